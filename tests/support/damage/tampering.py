"""What a superuser could do to the books unseen.

Each tampering is one act of a database superuser with triggers off, by the rule that must name it.
"""

from __future__ import annotations

from typing import Any

from gpucredits.core.bounds import NEVER_US
from gpucredits.service.write.acts import Act
from support.damage.reconciler_tampering import RECONCILER_TAMPERINGS

DAY_S = 86_400
WHO: dict[str, Any] = {"actor": "tester", "request_id": "r"}
STAFF = Act(org_id=1, actor="key_0_2")
ROGUE_KEY = (
    "INSERT INTO system_keys (hash, name, role, created_at)"
    " VALUES (sha256('evil'), 'evil', 'admin', 0)"
)
ROGUE_LIMIT = "INSERT INTO request_limits VALUES (1, 1, 99, 1000000, 3600000000, 0)"
MORE = "amount = amount * 2"
BODY = "RETURNS trigger LANGUAGE plpgsql AS E'BEGIN RETURN NEW\\073 END'"  # 073: the semicolon
TAMPERINGS: dict[str, tuple[str, ...]] = {
    "account_acts": (
        "UPDATE accounts SET status = 0, suspended_by = 0 WHERE path = 'acme/idle'",
        "UPDATE accounts SET suspended_by = 2 WHERE path = 'acme/idle'",
    ),
    "key_acts": (
        ROGUE_KEY,
        "UPDATE api_keys SET role = 'admin' WHERE name = 'member'",
        (
            "INSERT INTO system_keys (hash, name, role, created_at)"
            " SELECT hash, name, role, created_at FROM api_keys WHERE name = 'member';"
            "DELETE FROM api_keys WHERE name = 'member'"
        ),
        "UPDATE api_keys SET scope = 'acme' WHERE name = 'member'",
        "UPDATE api_keys SET revoked_at = 0 WHERE name = 'revoked'",
        "UPDATE api_keys SET revoked_at = 1 WHERE name = 'member'",
        "UPDATE api_keys SET hash = sha256('evil') WHERE name = 'member'",
        f"UPDATE api_keys SET expires_at = {NEVER_US} WHERE name = 'ending'",
        "UPDATE api_keys SET name = 'trusted' WHERE name = 'member'",
        "UPDATE api_keys SET node = '' WHERE name = 'bound'",
        "UPDATE api_keys SET node = 'gpu-8' WHERE name = 'bound'",
        "UPDATE api_keys SET by_system = true WHERE name = 'bound'",
        "DELETE FROM api_keys WHERE name = 'revoked'",
    ),
    "signing_key_acts": (
        (
            "INSERT INTO signing_keys (key_id, public_key, sealed, created_at, signs_from)"
            " VALUES ('evil', sha256('evil'), 'evil', 0, 0)"
        ),
        "UPDATE signing_keys SET public_key = sha256('evil') WHERE revoked_at = 0",
        "UPDATE signing_keys SET sealed = 'evil' WHERE revoked_at = 0",
        "UPDATE signing_keys SET signs_from = signs_from + 1 WHERE revoked_at = 0",
        "UPDATE signing_keys SET revoked_at = 0 WHERE revoked_at > 0",
        "UPDATE signing_keys SET revoked_at = 1 WHERE revoked_at = 0",
        "DELETE FROM signing_keys WHERE revoked_at > 0",
    ),
    "quota_acts": (
        f"UPDATE quotas SET {MORE} WHERE dimension = 1",
        f"UPDATE quotas SET {MORE} WHERE dimension = 3",
        "UPDATE quotas SET ended_at = 1 WHERE ended_at = 0",
        "UPDATE quotas SET ended_at = 0 WHERE ended_at > 0",
        "UPDATE quotas SET gpu_type = 'b200' WHERE dimension = 1",
        "UPDATE quotas SET calendar = 2 WHERE calendar = 0",
        "UPDATE quotas SET zone = 'Asia/Tokyo' WHERE dimension = 3",
        "UPDATE quotas SET account_id = 3 WHERE dimension = 1 AND ended_at = 0",
        "UPDATE quotas SET set_by = 3 - set_by WHERE ended_at = 0",
        "DELETE FROM quotas WHERE ended_at = 0",
    ),
    "rate_limit_acts": (
        "UPDATE token_buckets SET capacity = capacity * 2 WHERE ended_at = 0",
        "UPDATE token_buckets SET refill_per_hour = refill_per_hour + 1 WHERE ended_at = 0",
        "UPDATE token_buckets SET ended_at = 1 WHERE ended_at = 0",
        "DELETE FROM token_buckets WHERE ended_at = 0",
    ),
    "boost_acts": (
        f"UPDATE boosts SET {MORE}",
        "UPDATE boosts SET ends_at = ends_at + 86400000000",
        "UPDATE boosts SET starts_at = 0",
        "UPDATE boosts SET refill_per_hour = refill_per_hour + 1",
        "UPDATE boosts SET target_id = (SELECT max(quota_id) FROM quotas)",
        (
            "INSERT INTO boosts SELECT org_id, boost_id + 1000, account_id, target_id, 1000, 0,"
            " starts_at, ends_at, note, created_at, set_by FROM boosts LIMIT 1"
        ),
    ),
    "budget_acts": (
        "UPDATE budgets SET allowance = allowance * 2 WHERE name = 'm'",
        f"UPDATE budgets SET ends_at = {NEVER_US} WHERE ends_at < {NEVER_US}",
        "UPDATE budgets SET rollover = 1 WHERE name = 'm'",
        "UPDATE budgets SET priority = 0 WHERE name = 'm'",
    ),
    "pool_acts": (
        "UPDATE pools SET milli_gpus = milli_gpus * 2 WHERE pool_id > 0",
        "UPDATE pools SET milli_gpus = 8000 WHERE pool_id = 0",
        "UPDATE pools SET grace_ms = 0 WHERE pool_id > 0",
        "UPDATE pools SET preemption = NOT preemption WHERE pool_id > 0",
        "UPDATE pools SET min_runtime_ms = min_runtime_ms * 2 WHERE pool_id > 0",
        "UPDATE pools SET borrowing = NOT borrowing WHERE pool_id > 0",
        "UPDATE pools SET region = 'elsewhere' WHERE pool_id > 0",
        "DELETE FROM pools WHERE pool_id > 0",
    ),
    "weight_acts": (
        "UPDATE pool_weights SET weight = weight * 2",
        "UPDATE pool_weights SET may_borrow = NOT may_borrow",
        "UPDATE pool_weights SET path = 'acme/q' WHERE path = 'acme/p'",
        "DELETE FROM pool_weights WHERE path = 'acme'",
        (
            "INSERT INTO pool_weights (pool_id, path, weight, may_borrow)"
            " SELECT pool_id, 'acme/q', 9, true FROM pools WHERE gpu_type = 'h100'"
        ),
    ),
    "request_limit_acts": (
        "UPDATE request_limits SET capacity = capacity * 2 WHERE holder = 1",
        "UPDATE request_limits SET refill_per_hour = refill_per_hour * 2 WHERE holder = 2",
        "DELETE FROM request_limits WHERE holder = 2",
        ROGUE_LIMIT,
    ),
    "request_acts": (
        "UPDATE requests SET state = 1, decided_by = 'key_0_2' WHERE state = 0",
        "UPDATE requests SET state = 2 WHERE state = 3",
        "UPDATE requests SET state = 0 WHERE state = 2",
        f"UPDATE requests SET {MORE} WHERE state = 0",
        "UPDATE requests SET given_amount = given_amount * 2 WHERE state = 2",
        "UPDATE requests SET account = 'acme/q' WHERE state = 0",
        "UPDATE requests SET expires_at = expires_at + 1 WHERE state = 0",
        "UPDATE requests SET decided_by = 'key_0_9' WHERE state = 2",
        "UPDATE requests SET decided_from = 3 WHERE state = 2",
        "UPDATE requests SET attempt = attempt + 1 WHERE state = 2",
        "DELETE FROM requests WHERE state = 3",
    ),
    "anomaly_term_acts": (
        "UPDATE anomaly_terms SET ratio_percent = 100000",
        "UPDATE anomaly_terms SET floor = floor * 2",
        "UPDATE anomaly_terms SET auto_suspend = NOT auto_suspend",
        "DELETE FROM anomaly_terms",
        "UPDATE anomaly_terms SET set_by = 3",
        "INSERT INTO anomaly_terms VALUES (1, 3, 200, 0, true, 0)",
    ),
    "idle_guard_acts": (
        "UPDATE idle_guards SET window_ms = 0",
        "UPDATE idle_guards SET utilization_percent = 1",
        "UPDATE idle_guards SET memory_percent = 100",
        "UPDATE idle_guards SET grace_ms = grace_ms * 2",
        "UPDATE idle_guards SET set_by = 3",
        "DELETE FROM idle_guards",
        "INSERT INTO idle_guards VALUES (1, 3, 60000, 5, 0, 0, 0, 0, 0)",
    ),
    "standing_acts": (
        "UPDATE accounts SET delinquent = NOT delinquent WHERE path = 'acme'",
        "UPDATE accounts SET delinquent = NOT delinquent WHERE path = 'acme/q'",
    ),
    "statement_acts": (
        "UPDATE statements SET amount = amount + 1",
        f"UPDATE statements SET due_at = {NEVER_US}",
        "DELETE FROM statements",
    ),
    "lease_acts": (
        "UPDATE audit_log SET resource = 'rsv_1_999' WHERE action = 'reservation.cancel'",
        "DELETE FROM audit_log WHERE action = 'reservation.settle'",
        "UPDATE reservations SET state = 2 WHERE state = 1",
        "UPDATE reservations SET state = 1 WHERE state = 3",
    ),
    "price_acts": (
        "DELETE FROM list_prices WHERE is_end",
        f"UPDATE discounts SET effective_to = {NEVER_US} WHERE effective_to < {NEVER_US}",
        (
            "INSERT INTO list_prices SELECT price_id + 1000, gpu_type, region, 1,"
            " effective_from, created_at FROM list_prices WHERE NOT is_end LIMIT 1"
        ),
        (
            "INSERT INTO discounts SELECT org_id, price_id + 1000, gpu_type, region, 1,"
            " effective_from, account, created_at FROM discounts WHERE NOT is_end LIMIT 1"
        ),
    ),
    "org_clocks": ("UPDATE orgs SET clock = clock + 8640000000000 WHERE path = 'acme'",),
    "clock_repairs": ("INSERT INTO clock_repairs VALUES (1, 5, 10, 1, 1)",),
    "clock_offset": (
        "UPDATE clock SET offset_us = offset_us + 86400000000",
        "UPDATE clock SET offset_us = 0",
    ),
    "outages": (
        "INSERT INTO outages (since, until, grace_ms) VALUES (1, 2, 3600000)",
        "UPDATE outages SET grace_ms = grace_ms + 1",
        "UPDATE outages SET until = until + 1000000",
        "DELETE FROM outages",
    ),
    "maintenance_acts": (
        "INSERT INTO maintenances (announced_at, until, reason) VALUES (1, 2, '')",
        "UPDATE maintenances SET until = until + 1000000",
        "UPDATE maintenances SET ended_at = 0 WHERE ended_at > 0",
        "UPDATE maintenances SET ended_at = until WHERE ended_at = 0",
    ),
    "usage": (
        "UPDATE usage_events SET used_ms = used_ms * 2",
        "UPDATE usage_events SET reservation_id = 999 WHERE reservation_id <> 0",
        "DELETE FROM usage_events WHERE seq = 1",
        "UPDATE usage_events SET is_attested = true WHERE NOT is_attested AND NOT is_late",
        "INSERT INTO usage_events VALUES (1, 'job', 'n', 99, 0, 1, false, 1000, 1)",
    ),
    "measured": (
        "UPDATE measured SET used_ms = used_ms + 1",
        "DELETE FROM measured",
        "INSERT INTO measured VALUES (1, 5, 'elsewhere', 1, 1000, 0)",
    ),
    "insert_only": ("ALTER TABLE usage_events DISABLE TRIGGER usage_events_summed",),
    "functions": (
        f"CREATE OR REPLACE FUNCTION refuse_change() {BODY}",
        f"CREATE OR REPLACE FUNCTION chain_audit() {BODY}",
        (
            "CREATE OR REPLACE FUNCTION ledger_now() RETURNS bigint LANGUAGE sql VOLATILE"
            " AS 'SELECT 0::bigint'"
        ),
    ),
    **RECONCILER_TAMPERINGS,
}
