"""Damage of single rows, by the rule that finds it; the rows are those of ``damage.open_books``."""

from __future__ import annotations

from gpucredits.core.bounds import NEVER_US

SHARED = "cardinality(paid) = 4 AND refunded = 0"
PARTLY = "cardinality(paid) = 4 AND refunded > 0"
MOVED = "origin_id <> 0 AND priority = 7"
ROW_DAMAGE: dict[str, tuple[str, ...]] = {
    "topups": (
        "UPDATE topups SET status = 0, grant_id = 0 WHERE status = 1",
        "UPDATE topups SET status = 3 WHERE status = 1",
        "UPDATE topups SET status = 1 WHERE status = 3",
        "UPDATE topups SET status = 2 WHERE status = 1",
        "UPDATE topups SET amount = amount + 1 WHERE status = 1",
        "UPDATE topups SET grant_id = (SELECT max(grant_id) FROM topups) WHERE status = 1",
        "DELETE FROM topups WHERE status = 1",
        "UPDATE grants SET expires_at = expires_at - 1 WHERE source = 3",
        "UPDATE grants SET starts_at = 0 WHERE source = 3",
        "UPDATE grants SET priority = 1 WHERE source = 3",
    ),
    "topup_acts": (
        "UPDATE topups SET status = 2 WHERE status = 0",
        "UPDATE topups SET status = 0 WHERE status = 2",
        "UPDATE topups SET amount = amount * 2 WHERE status = 0",
        "UPDATE topups SET account_id = 2 WHERE status = 0",
        "UPDATE topups SET payment_reference = payment_reference || 'x' WHERE status = 1",
        "DELETE FROM topups WHERE status = 0",
    ),
    "leases": (
        (
            "UPDATE reservations SET state = 0, ended_at = 0, expires_at = expires_at + 10000000"
            " WHERE state = 1"
        ),
        f"UPDATE reservations SET expires_at = {NEVER_US} WHERE state = 0",
        "UPDATE reservations SET expires_at = expires_at + 100000000 WHERE state = 0",
        "UPDATE reservations SET window_ms = 1000 WHERE state = 0",
        "UPDATE reservations SET window_ms = window_ms * 2 WHERE state = 0",
        "UPDATE reservations SET escrow_windows = 1 WHERE state = 0",
        "UPDATE reservations SET expires_at = expires_at + 1000000 WHERE max_amount > 0",
        "UPDATE reservations SET ended_at = 9 WHERE state = 0",
        "UPDATE reservations SET ended_at = ended_at + 1 WHERE state = 1",
        "UPDATE reservations SET ended_at = 0 WHERE state = 3",
        "UPDATE reservations SET state = 2 WHERE state = 1",
        "UPDATE reservations SET used_ms = 1000000000 WHERE state = 0",
    ),
    "spending": (
        "UPDATE spend_days SET amount = amount + 1",
        "UPDATE spend_days SET day = day - 1",
        "UPDATE spend_days SET payer_id = payer_id + 1000",
        "UPDATE spend_days SET account_id = account_id + 1000",
        "UPDATE spend_days SET gpu_type = gpu_type || 'x'",
        "DELETE FROM spend_days",
        "INSERT INTO spend_days VALUES (1, 1, 1, 1, 'h100', 1)",
    ),
    "spend_hours": (
        "UPDATE spend_hours SET before = before + 1",
        "UPDATE spend_hours SET hour = hour - 1",
        "UPDATE spend_hours SET payer_id = payer_id + 1000",
        "UPDATE spend_hours SET account_id = account_id + 1000",
        "UPDATE spend_hours SET gpu_type = gpu_type || 'x'",
        "DELETE FROM spend_hours",
        "INSERT INTO spend_hours VALUES (1, 1, 1, 'h100', 1, 1)",
    ),
    "lease_days": (  # of a lease that runs across days: tests/db/reads/test_spending_days.py
        "INSERT INTO lease_days SELECT org_id, reservation_id, 1, account_id, 0 FROM reservations",
    ),
    "extensions": (
        (
            "UPDATE reservations SET extended_ms = 1000, expires_at = expires_at + 1000000"
            " WHERE state = 0"
        ),
        (
            "UPDATE reservations SET reprieve_ms = 1000, expires_at = expires_at + 1000000"
            " WHERE state = 0"
        ),
    ),
    "reservations": (
        "DELETE FROM reservations WHERE state = 1",
        "UPDATE reservations SET payer_id = 3 WHERE state = 1 AND payer_id = 1",
        "UPDATE entries SET account_id = 3 WHERE type = 4 AND account_id = 1",
        f"UPDATE reservations SET paid = ARRAY[paid[3], paid[2] + paid[4]] WHERE {SHARED}",
        "UPDATE reservations SET paid[1] = 99999 WHERE cardinality(paid) = 2 AND refunded = 0",
        "UPDATE reservations SET admitted_at = admitted_at + 1",
        "UPDATE reservations SET first_entry_id = first_entry_id + 1000",
        "UPDATE reservations SET ended_at = ended_at - 1 WHERE state = 1",
        "UPDATE reservations SET state = 0, expires_at = expires_at - 60000000 WHERE state = 1",
    ),
    "payments": (
        f"UPDATE reservations SET paid = ARRAY[paid[3], paid[4], paid[1], paid[2]] WHERE {SHARED}",
        f"UPDATE reservations SET paid[1] = 99999 WHERE {SHARED}",
        f"UPDATE reservations SET paid[2] = paid[2] + 1, paid[4] = paid[4] - 1 WHERE {SHARED}",
        f"UPDATE reservations SET paid[2] = paid[2] + 1, paid[4] = paid[4] - 1 WHERE {PARTLY}",
        f"UPDATE reservations SET paid[3] = paid[1], paid[1] = paid[3] WHERE {PARTLY}",
        "UPDATE reservations SET paid[1] = 1 WHERE refunded > 0 AND cardinality(paid) = 2",
        (
            "UPDATE entries SET grant_id = 4711 WHERE type = 7 AND reservation_id IN"
            f" (SELECT reservation_id FROM reservations WHERE {PARTLY})"
        ),
    ),
    "admissions": (
        "UPDATE list_prices SET credits_per_gpu_hour = 1 WHERE gpu_type = 'h100'",
        "UPDATE list_prices SET region = 'x' WHERE gpu_type = 'h100'",
        "UPDATE discounts SET account = 'acme/q' WHERE account = 'acme/p'",
        (
            f"UPDATE list_prices SET effective_from = {NEVER_US - 1}, effective_to = {NEVER_US}"
            " WHERE gpu_type = 'h100'"
        ),
        "UPDATE list_prices SET effective_to = effective_from + 1 WHERE gpu_type = 'h100'",
        "UPDATE discounts SET is_end = true WHERE account = 'acme/p'",
        f"UPDATE discounts SET effective_to = {NEVER_US} WHERE credits_per_gpu_hour = 1",
        "UPDATE discounts SET effective_to = effective_to * 2 WHERE credits_per_gpu_hour = 1",
        "DELETE FROM list_prices WHERE gpu_type = 'h100'",
        "UPDATE reservations SET price_id = 99",
        "UPDATE reservations SET price = price + 1 WHERE used_ms = 0",
        (
            "UPDATE reservations r SET price_id = p.price_id, price = p.credits_per_gpu_hour"
            " FROM prices p WHERE p.gpu_type = 'h100' AND p.account = '' AND r.account = 'acme/p'"
        ),
        "UPDATE reservations SET gpu_type = 'b200'",
        "UPDATE reservations SET account = 'acme/q' WHERE account = 'acme/p'",
        "UPDATE reservations SET account = 'acme', account_id = 1 WHERE account = 'acme/p'",
        "UPDATE reservations SET payer_id = 77",
        "UPDATE reservations SET payer_id = 3 WHERE account = 'acme/p'",
    ),
    "price_acts": (
        "UPDATE list_prices SET credits_per_gpu_hour = 1 WHERE gpu_type = 'b200'",
        "UPDATE discounts SET effective_from = effective_from + 1 WHERE account = 'acme/p'",
        "DELETE FROM list_prices WHERE gpu_type = 'b200'",
        "DELETE FROM list_prices WHERE is_end",
        "UPDATE list_prices SET effective_from = effective_from + 1 WHERE is_end",
        "UPDATE discounts SET effective_to = effective_to + 1 WHERE credits_per_gpu_hour = 1",
    ),
    "grants": (
        "DELETE FROM grants WHERE remaining = 0 AND state = 1",
        "UPDATE grants SET account_id = 2 WHERE remaining = 0 AND account_id = 1",
        "UPDATE grants SET account_id = 2 WHERE remaining > 0 AND account_id = 1",
        f"UPDATE grants SET starts_at = {NEVER_US} - 1, expires_at = {NEVER_US} WHERE state = 1",
        f"UPDATE grants SET expires_at = {NEVER_US} WHERE state = 3",
    ),
    "grant_terms": (
        "UPDATE grants SET amount = amount + 1 WHERE origin_id = 0",
        "UPDATE grants SET amount = amount + 1 WHERE origin_id <> 0",
        (
            "UPDATE grants SET amount = amount + 1 WHERE created_at = starts_at"
            " AND grant_id NOT IN (SELECT grant_id FROM entries WHERE type IN (1, 2))"
        ),
        "UPDATE grants SET origin_id = 77 WHERE origin_id <> 0",
        "UPDATE grants SET origin_id = 0 WHERE origin_id <> 0",
        "UPDATE grants SET origin_id = 1 WHERE origin_id = 0",
        f"UPDATE grants SET expires_at = {NEVER_US} WHERE {MOVED}",
        f"UPDATE grants SET starts_at = 0 WHERE {MOVED}",
        f"UPDATE grants SET source = 1 WHERE {MOVED}",
        f"UPDATE grants SET priority = 0 WHERE {MOVED}",
        f"UPDATE grants SET created_at = created_at - 1 WHERE {MOVED}",
        f"UPDATE grants SET expires_at = {NEVER_US} WHERE state = 3",
        "UPDATE grants SET state = 4 WHERE remaining = 0",
        "UPDATE entries SET other_grant_id = grant_id WHERE type = 3",
        "UPDATE entries SET effective_at = effective_at - 1 WHERE type = 1",
    ),
    "issues": (
        "UPDATE grants SET amount = amount * 2, remaining = remaining * 2 WHERE state = 2",
        "UPDATE grants SET starts_at = starts_at - 1 WHERE state = 2",
        (
            f"UPDATE grants SET expires_at = expires_at + 1 WHERE expires_at < {NEVER_US}"
            " AND origin_id = 0 AND budget_id = 0"
        ),
        "UPDATE grants SET source = 1 WHERE source = 0",
        "UPDATE grants SET priority = 8 WHERE priority = 7",
        "UPDATE grants SET account_id = 1 WHERE state = 2",
        "DELETE FROM grants WHERE state = 2",
        "DELETE FROM audit_log WHERE action = 'credits.issue'",
    ),
    "due": (
        f"UPDATE accounts SET due_at = {NEVER_US} WHERE path = 'acme'",
        f"UPDATE accounts SET due_at = {NEVER_US} WHERE path = 'acme/p'",
        "UPDATE accounts SET due_at = due_at + 100000000 WHERE path = 'acme'",
    ),
    "payers": (
        "UPDATE reservations SET payers[2] = payers[2] + 1 WHERE payers <> '{}'",
        "UPDATE reservations SET payers[2] = 0 WHERE payers <> '{}'",
        "UPDATE reservations SET payers[1] = 1 WHERE payers <> '{}'",
        "UPDATE reservations SET payers[1] = 3 WHERE payers <> '{}'",
        "UPDATE reservations SET payer_id = 1 WHERE payers <> '{}'",
        "UPDATE reservations SET payer_id = 3 WHERE payers <> '{}'",
        (
            "UPDATE entries SET account_id = 1 WHERE type = 6 AND reservation_id IN"
            " (SELECT reservation_id FROM reservations WHERE payers <> '{}')"
        ),
    ),
    "funding": (
        "UPDATE accounts SET funding = 1 WHERE path = 'acme/p'",
        "UPDATE accounts SET funding = 1 WHERE path = 'acme'",
        "UPDATE accounts SET funding = 0 WHERE path = 'acme/p/u'",
        "UPDATE accounts SET allocated = false WHERE path = 'acme/p'",
        "DELETE FROM audit_log WHERE action = 'account.funding'",
        (
            "UPDATE accounts SET funding = 1 WHERE path = 'acme/p';"
            'UPDATE audit_log SET new = \'{"funding": "shared"}\''
            " WHERE action = 'account.funding'"
        ),
    ),
    "paths": (
        "UPDATE accounts SET path = 'evil' WHERE path = 'acme/p'",
        "UPDATE accounts SET path = 'evil/p' WHERE path = 'acme/p'",
        "UPDATE accounts SET path = 'acme/p/q' WHERE path = 'acme/p'",
        "UPDATE accounts SET parent_id = 77 WHERE path = 'acme/p'",
        "UPDATE accounts SET parent_id = 0 WHERE path = 'acme/p'",
        "UPDATE orgs SET path = 'evil' WHERE path = 'acme'",
    ),
    "directory": (
        "UPDATE org_directory SET path = 'evil' WHERE path = 'acme'",
        "DELETE FROM org_directory WHERE path = 'acme'",
        "INSERT INTO org_directory (path, state) VALUES ('evil', 1)",
        "UPDATE pool_directory SET region = 'evil' WHERE pool_id = 0",
        "DELETE FROM pool_directory WHERE pool_id = 0",
    ),
    "floor": ("UPDATE accounts SET floor = floor - 1 WHERE model = 1",),
    "account_acts": (
        "UPDATE accounts SET path = 'acme/r' WHERE path = 'acme/p'",
        (
            "UPDATE orgs SET path = 'evil' WHERE path = 'acme';"
            "UPDATE accounts SET path = replace(path, 'acme', 'evil')"
        ),
        "UPDATE accounts SET credit_limit = 60000000, credit_limit_max = 60000000 WHERE model = 1",
        "UPDATE accounts SET overdraft_limit = overdraft_limit + 1",
        "UPDATE accounts SET model = 1 - model, credit_limit_max = 0 WHERE path = 'acme/p'",
        "UPDATE accounts SET status = 1",
        'UPDATE accounts SET metadata = \'{"a": "b"}\'',
        "DELETE FROM accounts WHERE path = 'acme/p'",
    ),
    "entry_times": tuple(
        f"UPDATE entries SET effective_at = effective_at - 86400000000 WHERE type = {kind}"
        for kind in (2, 3, 4, 6, 7, 9, 13)
    ),
    "rollovers": (
        (
            "UPDATE grants SET expires_at = expires_at + 1"
            " WHERE grant_id IN (SELECT rolled_grant_id FROM budget_periods)"
        ),
    ),
    "announced": (
        "UPDATE reservations SET account = 'acme', account_id = 1, payer_id = 1 WHERE payer_id > 1",
        "UPDATE reservations SET job_id = 'other'",
        "UPDATE reservations SET state = 3 WHERE state = 1",
        "UPDATE reservations SET state = 1 WHERE state = 3",
        "UPDATE reservations SET state = 0, ended_at = 0 WHERE state = 2",
        "UPDATE reservations SET settled = settled + 1 WHERE state = 1",
        "DELETE FROM reservations WHERE state = 2",
    ),
    "insert_only": (
        "ALTER TABLE list_prices DISABLE TRIGGER list_prices_insert_only",
        "DROP TRIGGER statements_insert_only ON statements",
    ),
    "answers": (
        "UPDATE idempotency SET outcome = '\\x00'",
        "UPDATE idempotency SET outcome = substring(outcome FOR length(outcome) - 1)",
        (
            "UPDATE idempotency SET outcome = convert_to(replace(convert_from(outcome, 'UTF8'),"
            " '\"window_ms\"', '\"Window\"'), 'UTF8')"
        ),
        (
            "UPDATE reservations SET account = 'acme', account_id = 1, payer_id = 1"
            " WHERE account = 'acme/p'"
        ),
        "UPDATE reservations SET job_id = 'other'",
        "UPDATE reservations SET state = 3 WHERE state = 1",
        "DELETE FROM quotas",
        "DELETE FROM token_buckets",
        "DELETE FROM boosts",
        "DELETE FROM budgets WHERE name = 'm'",
        "DELETE FROM topups WHERE status = 2",
        "UPDATE accounts SET created_at = created_at - 1",
        f"DELETE FROM grants WHERE {MOVED}",
        "DELETE FROM reservations WHERE refunded > 0",
    ),
}
