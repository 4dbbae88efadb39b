"""The parts of the statement that writes books down, one for each kind of change.

Owns: the texts, and the order and types of each part's columns; book_save fills them.
"""

from __future__ import annotations

from gpucredits.store.statement import part

ORGS = part(
    "changed_orgs",
    "integer bigint bigint bigint bigint",
    """UPDATE orgs t SET next_id = x.next_id, next_entry_id = x.next_entry_id, clock = x.clock,
        version = x.version
    FROM ROWS AS x(org_id, next_id, next_entry_id, clock, version)
    WHERE t.org_id = x.org_id""",
)
BALANCES = part(
    "changed_balances",
    "integer bigint bigint bigint bigint bigint bigint bigint bigint bigint",
    """UPDATE accounts t SET remaining = x.remaining, reserved = x.reserved, spent = x.spent,
        debt = x.debt, overrun = x.overrun, promised = x.promised, version = x.version,
        due_at = x.due_at
    FROM ROWS AS x(org_id, account_id, remaining, reserved, spent, debt, overrun, promised, version,
        due_at)
    WHERE t.org_id = x.org_id AND t.account_id = x.account_id""",
)
SETTINGS = part(
    "changed_settings",
    "integer bigint bigint bigint bigint bigint bigint bigint bigint bigint"
    " code bigint code boolean text boolean bigint code bigint code",
    """UPDATE accounts t SET remaining = x.remaining, reserved = x.reserved, spent = x.spent,
        debt = x.debt, overrun = x.overrun, promised = x.promised, version = x.version,
        due_at = x.due_at, model = x.model,
        credit_limit = x.credit_limit,
        credit_limit_max = greatest(t.credit_limit_max, x.model * x.credit_limit),
        floor = CASE WHEN (t.model, t.credit_limit) = (x.model, x.credit_limit) THEN t.floor
            ELSE least(-x.model * x.credit_limit, x.remaining - x.reserved - x.debt) END,
        status = x.status, allocated = x.allocated, metadata = x.metadata::jsonb,
        delinquent = x.delinquent, overdraft_limit = x.overdraft_limit, funding = x.funding,
        window_max_ms = x.window_max_ms, suspended_by = x.suspended_by
    FROM ROWS AS x(org_id, account_id, remaining, reserved, spent, debt, overrun, promised, version,
        due_at, model, credit_limit, status, allocated, metadata, delinquent,
        overdraft_limit, funding, window_max_ms, suspended_by)
    WHERE t.org_id = x.org_id AND t.account_id = x.account_id""",
)
NEW_ACCOUNTS = part(
    "new_accounts",
    "integer bigint bigint bigint bigint bigint bigint bigint bigint bigint"
    " code bigint code boolean text boolean bigint code bigint code bigint text bigint",
    """INSERT INTO accounts (org_id, account_id, remaining, reserved, spent, debt, overrun,
        promised, version, due_at, model, credit_limit, credit_limit_max, floor,
        status, allocated, metadata, delinquent, overdraft_limit, funding, window_max_ms,
        suspended_by, parent_id, path, created_at)
    SELECT x.org_id, x.account_id, x.remaining, x.reserved, x.spent, x.debt, x.overrun,
        x.promised, x.version, x.due_at, x.model, x.credit_limit,
        x.model * x.credit_limit,
        least(-x.model * x.credit_limit, x.remaining - x.reserved - x.debt),
        x.status, x.allocated, x.metadata::jsonb, x.delinquent,
        x.overdraft_limit, x.funding, x.window_max_ms, x.suspended_by, x.parent_id, x.path,
        x.created_at
    FROM ROWS AS x(org_id, account_id, remaining, reserved, spent, debt, overrun, promised, version,
        due_at, model, credit_limit, status, allocated, metadata, delinquent,
        overdraft_limit, funding, window_max_ms, suspended_by, parent_id, path, created_at)""",
)
GRANTS = part(
    "changed_grants",
    "integer bigint bigint bigint code boolean bigint",
    """UPDATE grants t SET amount = x.amount, remaining = x.remaining, state = x.state,
        is_open = x.is_open, claims = x.claims
    FROM ROWS AS x(org_id, grant_id, amount, remaining, state, is_open, claims)
    WHERE t.org_id = x.org_id AND t.grant_id = x.grant_id""",
)
NEW_GRANTS = part(
    "new_grants",
    "integer bigint bigint bigint code boolean bigint"
    " bigint bigint bigint integer code bigint bigint text bigint",
    """INSERT INTO grants (org_id, grant_id, amount, remaining, state, is_open, claims,
        account_id, starts_at, expires_at, priority, source, origin_id, created_at, metadata,
        budget_id)
    SELECT x.org_id, x.grant_id, x.amount, x.remaining, x.state, x.is_open, x.claims,
        x.account_id, x.starts_at, x.expires_at, x.priority, x.source, x.origin_id, x.created_at,
        x.metadata::jsonb, x.budget_id
    FROM ROWS AS x(org_id, grant_id, amount, remaining, state, is_open, claims, account_id,
        starts_at, expires_at, priority, source, origin_id, created_at, metadata, budget_id)""",
)
RENEWALS = part(  # of leases that one grant has paid for, as nearly all are
    "renewed_leases",
    "integer bigint bigint bigint bigint bigint bigint bigint",
    """UPDATE reservations t SET held = x.held, settled = x.settled, used_ms = x.used_ms,
        seq = x.seq, expires_at = x.expires_at, paid = ARRAY[x.grant_id, x.settled]
    FROM ROWS AS x(org_id, reservation_id, held, settled, used_ms, seq, expires_at, grant_id)
    WHERE t.org_id = x.org_id AND t.reservation_id = x.reservation_id""",
)
SHARED_RENEWALS = part(
    "renewed_shared_leases",
    "integer bigint bigint bigint bigint bigint bigint lists",
    """UPDATE reservations t SET held = x.held, settled = x.settled, used_ms = x.used_ms,
        seq = x.seq, expires_at = x.expires_at, paid = x.paid::bigint[]
    FROM ROWS AS x(org_id, reservation_id, held, settled, used_ms, seq, expires_at, paid)
    WHERE t.org_id = x.org_id AND t.reservation_id = x.reservation_id""",
)
LEASES = part(
    "changed_leases",
    "integer bigint code code bigint bigint bigint bigint bigint bigint bigint bigint text"
    " bigint bigint boolean boolean bigint code bigint bigint bigint bigint bigint"
    " bigint bigint bigint text text",
    """UPDATE reservations t SET state = x.state, decision = x.decision, held = x.held,
        settled = x.settled, adjusted = x.adjusted, refunded = x.refunded, used_ms = x.used_ms,
        seq = x.seq, expires_at = x.expires_at, ended_at = x.ended_at, paid = x.paid::bigint[],
        beat_at = greatest(t.beat_at, x.beat_at), overdrawn = x.overdrawn, leaving = x.leaving,
        is_plain = x.is_plain, stopping_at = x.stopping_at, why = x.why,
        promised = x.promised, cap_part = x.cap_part, cap_seen = x.cap_seen,
        clears_at = x.clears_at, stopping_for = x.stopping_for, payer_id = x.payer_id,
        window_ms = x.window_ms, authorised = x.authorised, kept = x.kept::bigint[],
        payers = x.payers::bigint[]
    FROM ROWS AS x(org_id, reservation_id, state, decision, held, settled, adjusted, refunded,
        used_ms, seq, expires_at, ended_at, paid, beat_at, overdrawn, leaving, is_plain,
        stopping_at, why, promised, cap_part, cap_seen, clears_at, stopping_for,
        payer_id, window_ms, authorised, kept, payers)
    WHERE t.org_id = x.org_id AND t.reservation_id = x.reservation_id""",
)
NEW_LEASES = part(
    "new_leases",
    "integer bigint code code bigint bigint bigint bigint bigint bigint bigint bigint text"
    " bigint bigint boolean boolean bigint code bigint bigint bigint bigint bigint"
    " bigint bigint bigint text text"
    " text bigint text text bigint text text bigint bigint bigint bigint bigint"
    " bigint text code bigint bigint",
    """INSERT INTO reservations (org_id, reservation_id, state, decision, held, settled, adjusted,
        refunded, used_ms, seq, expires_at, ended_at, paid, beat_at, overdrawn, leaving, is_plain,
        stopping_at, why, promised, cap_part, cap_seen, clears_at, stopping_for,
        payer_id, window_ms, authorised, kept, payers,
        account, account_id, job_id, gpu_type, gpu_count, region, node, price, price_id,
        admitted_at, escrow_windows, max_amount, first_entry_id, metadata, exhaustion,
        grace_ms, overdraft)
    SELECT x.org_id, x.reservation_id, x.state, x.decision, x.held, x.settled, x.adjusted,
        x.refunded, x.used_ms, x.seq, x.expires_at, x.ended_at, x.paid::bigint[], x.beat_at,
        x.overdrawn, x.leaving, x.is_plain, x.stopping_at, x.why, x.promised, x.cap_part,
        x.cap_seen, x.clears_at, x.stopping_for, x.payer_id, x.window_ms, x.authorised,
        x.kept::bigint[], x.payers::bigint[], x.account, x.account_id,
        x.job_id, x.gpu_type, x.gpu_count, x.region, x.node, x.price, x.price_id,
        x.admitted_at, x.escrow_windows, x.max_amount, x.first_entry_id, x.metadata::jsonb,
        x.exhaustion, x.grace_ms, x.overdraft
    FROM ROWS AS x(org_id, reservation_id, state, decision, held, settled, adjusted, refunded,
        used_ms, seq, expires_at, ended_at, paid, beat_at, overdrawn, leaving, is_plain,
        stopping_at, why, promised, cap_part, cap_seen, clears_at, stopping_for,
        payer_id, window_ms, authorised, kept, payers,
        account, account_id, job_id, gpu_type, gpu_count, region, node, price, price_id,
        admitted_at, escrow_windows, max_amount, first_entry_id, metadata, exhaustion, grace_ms,
        overdraft)""",
)
TOPUPS = part(
    "changed_topups",
    "integer bigint code bigint",
    """UPDATE topups t SET status = x.status, grant_id = x.grant_id
    FROM ROWS AS x(org_id, topup_id, status, grant_id)
    WHERE t.org_id = x.org_id AND t.topup_id = x.topup_id""",
)
NEW_TOPUPS = part(
    "new_topups",
    "integer bigint code bigint bigint bigint text bigint integer bigint text",
    """INSERT INTO topups (org_id, topup_id, status, grant_id, account_id, amount,
        payment_reference, expires_at, priority, created_at, metadata)
    SELECT x.org_id, x.topup_id, x.status, x.grant_id, x.account_id, x.amount,
        x.payment_reference, x.expires_at, x.priority, x.created_at, x.metadata::jsonb
    FROM ROWS AS x(org_id, topup_id, status, grant_id, account_id, amount, payment_reference,
        expires_at, priority, created_at, metadata)""",
)
ENTRIES = part(
    "new_entries",
    "integer bigint bigint bigint code bigint bigint bigint bigint bigint bigint bigint bigint",
    """INSERT INTO entries (org_id, recorded_at, entry_id, effective_at, type, account_id, amount,
        reserve, grant_id, other_id, other_grant_id, reservation_id, seq)
    SELECT * FROM ROWS AS x""",
)
SETTLEMENTS = part(  # entries of heartbeats: type 6, effective when recorded, nobody else in it
    "new_settlements",
    "integer bigint bigint bigint bigint bigint bigint bigint bigint",
    """INSERT INTO entries (org_id, recorded_at, effective_at, type, other_id, other_grant_id,
        entry_id, account_id, amount, reserve, grant_id, reservation_id, seq)
    SELECT x.org_id, x.at, x.at, 6, 0, 0,
        x.entry_id, x.account_id, x.amount, x.reserve, x.grant_id, x.reservation_id, x.seq
    FROM ROWS AS x(org_id, at, entry_id, account_id, amount, reserve, grant_id, reservation_id,
        seq)""",
)
LATE_USE = part(
    "new_late_use",
    "integer bigint bigint bigint bigint",
    """INSERT INTO usage_events (org_id, job_id, node, seq, reservation_id, is_late, used_ms,
        recorded_at)
    SELECT x.org_id, r.job_id, r.node, x.seq, x.reservation_id, true, x.used_ms, x.recorded_at
    FROM ROWS AS x(org_id, reservation_id, seq, used_ms, recorded_at)
    JOIN reservations r ON r.org_id = x.org_id AND r.reservation_id = x.reservation_id
    ON CONFLICT DO NOTHING""",
)
ANSWERS = part(
    "new_answers",
    "integer text bytea bytea bigint",
    """INSERT INTO idempotency (org_id, key, request_hash, outcome, created_at)
    SELECT * FROM ROWS AS x""",
)
DECISIONS_MADE = part(
    "new_decisions",
    "integer bigint text text text bigint text text",
    """INSERT INTO decisions (org_id, decided_at, command, decision, reason, reservation_id, actor,
        detail)
    SELECT x.org_id, x.decided_at, x.command, x.decision, x.reason, x.reservation_id, x.actor,
        x.detail::jsonb
    FROM ROWS AS x(org_id, decided_at, command, decision, reason, reservation_id, actor, detail)""",
)
ACTS = part(
    "new_acts",
    "integer bigint text text text text text text",
    """INSERT INTO audit_log (org_id, recorded_at, actor, action, resource, old, new, request_id)
    SELECT x.org_id, x.recorded_at, x.actor, x.action, x.resource, x.old::jsonb, x.new::jsonb,
        x.request_id
    FROM ROWS AS x(org_id, recorded_at, actor, action, resource, old, new, request_id)""",
)
OUTBOX = part(
    "new_events",
    "integer bigint text bigint text",
    """INSERT INTO outbox (org_id, recorded_at, type, subject_id, payload)
    SELECT x.org_id, x.recorded_at, x.type, x.subject_id, x.payload::jsonb
    FROM ROWS AS x(org_id, recorded_at, type, subject_id, payload)""",
)
