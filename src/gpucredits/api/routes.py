"""The route table: every operation of the API with all that is true of it.

Each noun's module declares its operations above their handlers; here they come together. The
server dispatches by this table. The OpenAPI document, the client's methods and the table of paths
in docs/api.md follow from it. The hot path comes first, and of two paths that fit a request the
one listed first serves it.
"""

from __future__ import annotations

from functools import partial

from gpucredits.api import clock, maintenance, system
from gpucredits.api.access import keys, tokens
from gpucredits.api.billing import anomalies, budget_requests, prices, statements, usage
from gpucredits.api.dispatch import pools, queue, shares
from gpucredits.api.http.call import Route
from gpucredits.api.http.openapi import openapi_document
from gpucredits.api.ledger import (
    accounts,
    balances,
    corrections,
    credit,
    entries,
    explanations,
    exposure,
    grants,
    heartbeats,
    leases,
    reservations,
    topups,
    transfers,
)
from gpucredits.api.limits import (
    boosts,
    budgets,
    idle_guards,
    overview,
    quotas,
    rate_limits,
    request_limits,
)
from gpucredits.api.metering import dead_letters, events
from gpucredits.api.reconciliation import comparisons, drift_alarms, lost_work, unmatched_use

NOUNS = (
    heartbeats,
    usage,
    reservations,
    corrections,
    credit,
    prices,
    budget_requests,
    statements,
    anomalies,
    comparisons,
    drift_alarms,
    unmatched_use,
    lost_work,
    explanations,
    overview,
    quotas,
    rate_limits,
    boosts,
    budgets,
    idle_guards,
    pools,
    shares,
    queue,
    keys,
    tokens,
    request_limits,
    events,
    dead_letters,
    grants,
    topups,
    transfers,
    entries,
    leases,
    exposure,
    clock,
    maintenance,
    accounts,
    balances,
    system,
)


def routes(*, has_test_clock: bool = False) -> list[Route]:
    """Every route of a server; the test clock's only where the server was started with one."""
    described = system.Description()
    rows = [row for noun in NOUNS for row in noun.route]
    table = [row for row in rows if has_test_clock or row.handler is not system.post_test_clock]
    table.append(system.described_by(described))
    described.make = partial(openapi_document, table)
    return table
