"""The route table: every path of the API with all that is true of it.

Each noun's module ends with the rows of its handlers; here they come together. From this table the
server dispatches and the OpenAPI document is made. The hot path comes first, and of two paths that
fit a request the one listed first serves it.
"""

from __future__ import annotations

from gpucredits.api import (
    accounts,
    admissions,
    anomalies,
    balances,
    boosts,
    budgets,
    clock,
    credit,
    entries,
    grants,
    heartbeats,
    keys,
    leases,
    limits,
    pools,
    prices,
    queue,
    quotas,
    rate_limits,
    request_limits,
    requests,
    reservations,
    shares,
    statements,
    system,
    topups,
    transfers,
    usage,
)
from gpucredits.api.call import Route
from gpucredits.api.openapi import openapi_document


def routes(*, has_test_clock: bool = False) -> list[Route]:
    """Every route of a server."""
    description = system.Description()
    table = [
        *heartbeats.ROUTES,
        *usage.ROUTES,
        *reservations.ROUTES,
        *credit.ROUTES,
        *prices.ROUTES,
        *requests.ROUTES,
        *statements.ROUTES,
        *anomalies.ROUTES,
        *admissions.ROUTES,
        *limits.ROUTES,
        *quotas.ROUTES,
        *rate_limits.ROUTES,
        *boosts.ROUTES,
        *budgets.ROUTES,
        *pools.ROUTES,
        *shares.ROUTES,
        *queue.ROUTES,
        *keys.ROUTES,
        *request_limits.ROUTES,
        *grants.ROUTES,
        *topups.ROUTES,
        *transfers.ROUTES,
        *entries.ROUTES,
        *leases.ROUTES,
        *clock.ROUTES,
        *accounts.ROUTES,
        *balances.ROUTES,
        *system.system_routes(description, has_test_clock=has_test_clock),
    ]
    description.document.update(openapi_document(table))
    return table
