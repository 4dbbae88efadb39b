"""A hash of everything of one org that a write may change."""

from __future__ import annotations

import hashlib

from support.engines.postgres import sql

# What a write may change; sealed blocks and snapshots follow by themselves in their own time.
TABLES = (
    "accounts",
    "grants",
    "topups",
    "reservations",
    "entries",
    "prices",
    "usage_events",
    "measured",
    "quotas",
    "slots",
    "meters",
    "token_buckets",
    "boosts",
    "budgets",
    "budget_periods",
    "statements",
    "requests",
    "queue",
    "anomaly_terms",
    "idle_guards",
    "reconcile_policies",
    "(SELECT * FROM reconciliations WHERE state <> 0)",  # the reconciler notes new use by itself
    "drift_alarms",
    "unmatched_use",
    "unmatched_drops",
    "checkpoints",
    "loss_terms",
    "lost_work",
    "request_limits",
    "api_keys",
    "audit_log",
)
# These belong to no org; those of a scenario are named after its org.
POOL_ROWS = (
    "pools t WHERE gpu_type = $1",
    "pool_weights t WHERE pool_id = (SELECT pool_id FROM pools WHERE gpu_type = $1)",
    "audit_log t WHERE org_id = 0 AND resource = 'pool:' || $1 || '/default'",
    "event_consumers t WHERE name = $1",
    "dead_letters t WHERE detail = $1",
    "maintenances t WHERE $1 <> ''",
    "signing_keys t WHERE $1 <> ''",
)


def digest(dsn: str, org: str) -> str:
    """A hash of every row of an org that a write may change; other orgs live on meanwhile.

    The pool that has the org's name belongs to it.
    """
    org_id = sql(dsn, "SELECT org_id FROM orgs WHERE path = $1", org)
    each = "SELECT coalesce(string_agg(t::text, '|' ORDER BY t::text), '') FROM {}"
    rows = [sql(dsn, f"{each.format(f'{table} t')} WHERE org_id = $1", org_id) for table in TABLES]
    rows += [sql(dsn, each.format(which), org) for which in POOL_ROWS]
    return hashlib.sha256("\n".join(rows).encode()).hexdigest()
