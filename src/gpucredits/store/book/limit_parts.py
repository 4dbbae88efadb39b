"""The parts of the statement that writes limits and budgets down, one for each kind of change.

Owns: the texts, and the order and types of each part's columns; gates_save fills them.
"""

from __future__ import annotations

from gpucredits.store.book.sql_batch import part

GATED_ORGS = part(  # in the place of ORGS where limits or budgets came or went
    "changed_gated_orgs",
    "integer bigint bigint bigint bigint boolean boolean lists",
    """UPDATE orgs t SET next_id = x.next_id, next_entry_id = x.next_entry_id, clock = x.clock,
        version = x.version, budgeted = t.budgeted OR x.has_new_budget,
        gated = x.has_new_limit
            OR EXISTS (SELECT 1 FROM quotas q WHERE q.org_id = x.org_id AND q.ended_at = 0
                AND q.quota_id <> ALL (x.ended::bigint[]))
            OR EXISTS (SELECT 1 FROM token_buckets b WHERE b.org_id = x.org_id AND b.ended_at = 0
                AND b.bucket_id <> ALL (x.ended::bigint[]))
    FROM ROWS AS x(org_id, next_id, next_entry_id, clock, version, has_new_limit, has_new_budget,
        ended)
    WHERE t.org_id = x.org_id""",
)
QUOTAS = part(
    "changed_quotas",
    "integer bigint bigint bigint code",
    """UPDATE quotas t SET amount = x.amount, ended_at = x.ended_at, set_by = x.set_by
    FROM ROWS AS x(org_id, quota_id, amount, ended_at, set_by)
    WHERE t.org_id = x.org_id AND t.quota_id = x.quota_id""",
)
NEW_QUOTAS = part(
    "new_quotas",
    "integer bigint bigint bigint code bigint code text code text integer bigint bigint bigint",
    """INSERT INTO quotas (org_id, quota_id, amount, ended_at, set_by, account_id, dimension,
        gpu_type, calendar, zone, rolling_hours, created_at, seeded, first_entry_id)
    SELECT * FROM ROWS AS x""",
)
SLOTS = part(
    "changed_slots",
    "integer bigint bigint bigint",
    """UPDATE slots t SET count = x.count, leaving = x.leaving
    FROM ROWS AS x(org_id, quota_id, count, leaving)
    WHERE t.org_id = x.org_id AND t.quota_id = x.quota_id""",
)
NEW_SLOTS = part(
    "new_slots",
    "integer bigint bigint bigint",
    "INSERT INTO slots (org_id, quota_id, count, leaving) SELECT * FROM ROWS AS x",
)
METERS = part(
    "changed_meters",
    "integer bigint bigint bigint bigint lists",
    """UPDATE meters t SET level = x.level, level_at = x.level_at, fraction = x.fraction,
        windows = x.windows::bigint[]
    FROM ROWS AS x(org_id, account_id, level, level_at, fraction, windows)
    WHERE t.org_id = x.org_id AND t.account_id = x.account_id""",
)
KEPT_METERS = part(  # in the place of METERS where limits came or went
    "kept_meters",
    "integer bigint bigint bigint bigint lists",
    """INSERT INTO meters (org_id, account_id, level, level_at, fraction, windows)
    SELECT x.org_id, x.account_id, x.level, x.level_at, x.fraction, x.windows::bigint[]
    FROM ROWS AS x(org_id, account_id, level, level_at, fraction, windows)
    ON CONFLICT (org_id, account_id) DO UPDATE SET level = excluded.level,
        level_at = excluded.level_at, fraction = excluded.fraction, windows = excluded.windows""",
)
TALLIES = part(
    "kept_tallies",
    "integer bigint bigint bigint bigint",
    """INSERT INTO tallies (org_id, quota_id, starts_at, ends_at, used)
    SELECT * FROM ROWS AS x
    ON CONFLICT (org_id, quota_id, starts_at) DO UPDATE SET used = excluded.used""",
)
BUCKETS = part(
    "changed_buckets",
    "integer bigint bigint bigint bigint bigint bigint bigint code",
    """UPDATE token_buckets t SET capacity = x.capacity, refill_per_hour = x.refill_per_hour,
        level = x.level, level_at = x.level_at, fraction = x.fraction, ended_at = x.ended_at,
        set_by = x.set_by
    FROM ROWS AS x(org_id, bucket_id, capacity, refill_per_hour, level, level_at, fraction,
        ended_at, set_by)
    WHERE t.org_id = x.org_id AND t.bucket_id = x.bucket_id""",
)
NEW_BUCKETS = part(
    "new_buckets",
    "integer bigint bigint bigint bigint bigint bigint bigint code bigint code",
    """INSERT INTO token_buckets (org_id, bucket_id, capacity, refill_per_hour, level, level_at,
        fraction, ended_at, set_by, account_id, kind)
    SELECT * FROM ROWS AS x""",
)
BOOSTS = part(
    "changed_boosts",
    "integer bigint bigint bigint",
    """UPDATE boosts t SET starts_at = x.starts_at, ends_at = x.ends_at
    FROM ROWS AS x(org_id, boost_id, starts_at, ends_at)
    WHERE t.org_id = x.org_id AND t.boost_id = x.boost_id""",
)
NEW_BOOSTS = part(
    "new_boosts",
    "integer bigint bigint bigint bigint bigint bigint bigint text bigint code",
    """INSERT INTO boosts (org_id, boost_id, account_id, target_id, amount, refill_per_hour,
        starts_at, ends_at, note, created_at, set_by)
    SELECT * FROM ROWS AS x""",
)
BUDGETS = part(
    "kept_budgets",
    "integer bigint bigint text bigint bigint code text bigint code bigint bigint integer lists"
    " bigint",
    """INSERT INTO budgets (org_id, budget_id, account_id, name, allowance, next_at, calendar, zone,
        ends_at, rollover, rollover_cap, rollover_us, priority, warn_percent, created_at)
    SELECT x.org_id, x.budget_id, x.account_id, x.name, x.allowance, x.next_at, x.calendar, x.zone,
        x.ends_at, x.rollover, x.rollover_cap, x.rollover_us, x.priority,
        x.warn_percent::smallint[], x.created_at
    FROM ROWS AS x(org_id, budget_id, account_id, name, allowance, next_at, calendar, zone,
        ends_at, rollover, rollover_cap, rollover_us, priority, warn_percent, created_at)
    ON CONFLICT (org_id, budget_id) DO UPDATE SET allowance = excluded.allowance,
        next_at = excluded.next_at, calendar = excluded.calendar, zone = excluded.zone,
        ends_at = excluded.ends_at, rollover = excluded.rollover,
        rollover_cap = excluded.rollover_cap, rollover_us = excluded.rollover_us,
        priority = excluded.priority, warn_percent = excluded.warn_percent""",
)
PERIODS = part(
    "kept_periods",
    "integer bigint bigint bigint bigint bigint bigint bigint code code bigint bigint code text",
    """INSERT INTO budget_periods (org_id, budget_id, starts_at, ends_at, allowance, grant_id,
        rolled, rolled_grant_id, warned_percent, rollover, rollover_cap, rollover_us, calendar,
        zone)
    SELECT * FROM ROWS AS x
    ON CONFLICT (org_id, budget_id, starts_at) DO UPDATE SET rolled = excluded.rolled,
        rolled_grant_id = excluded.rolled_grant_id, warned_percent = excluded.warned_percent""",
)
