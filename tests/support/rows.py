"""Every row of an org, to see whether anything was left behind."""

from __future__ import annotations

from typing import Any

from support.engines.postgres import sql

TABLES = (
    "orgs accounts grants topups reservations entries prices idempotency decisions outbox "
    "usage_events measured quotas slots meters tallies token_buckets boosts budgets "
    "budget_periods all_keys audit_log"
)


# A loop gives an event its position, at any time.
OWN_ONLY = {"idempotency", "decisions"}  # the system's own are forgotten in time, at any time


def rows_of(dsn: str, org: str) -> dict[str, Any]:
    """A digest of every row that an org or the system has, and the number of orgs."""
    org_id = sql(dsn, "SELECT org_id FROM orgs WHERE path = $1", org)
    state: dict[str, Any] = {
        table: sql(
            dsn,
            "SELECT md5(string_agg(told, ',' ORDER BY told))"
            f" FROM (SELECT t.org_id, (to_jsonb(t) - 'position')::text AS told FROM {table} t) t"
            f" WHERE org_id IN ({org_id}, {org_id if table in OWN_ONLY else 0})",
        )
        for table in TABLES.split()
    }
    state["number of orgs"] = sql(dsn, "SELECT count(*) FROM orgs")
    return state
