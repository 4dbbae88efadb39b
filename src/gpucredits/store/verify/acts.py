"""Limits and terms of tenants beside the audit log, as questions to the database; see verify.

Owns: one query for each rule. A row must say what the last act about the row says: whoever changes
a limit past the server leaves a row that no act explains.
"""

from __future__ import annotations

from gpucredits.core import ids
from gpucredits.store.verify.check import Check, terms_as_told
from gpucredits.store.verify.reconciliation import RECONCILIATION_CHECKS
from gpucredits.store.verify.text import credits_text, gpus_text, id_text, instant_text, scope_text

CALENDAR = "CASE {row}.calendar WHEN 0 THEN 'day' WHEN 1 THEN 'week' WHEN 2 THEN 'month' END"
UNIT = "CASE {row}.dimension WHEN 1 THEN 'GPUs' WHEN 2 THEN 'jobs' ELSE 'credits' END"


def quantity_text(amount: str, unit: str) -> str:
    """SQL for an amount in the unit of a limit: 1 are GPUs, 2 are jobs, all else is credits."""
    return (
        f"CASE {unit} WHEN 1 THEN {gpus_text(amount)} WHEN 2 THEN {amount}::text "
        f"ELSE {credits_text(amount)} END"
    )


def last_told(id_name: str, single: tuple[str, ...], several: str = "", items: str = "") -> str:
    """SQL for the last state that the audit log tells of each thing with an id.

    ``several`` is an act on all things of an account: it lists those that are and those that ended.
    """
    actions = ", ".join(f"'{action}'" for action in single)
    parts = [
        f"SELECT org_id, place, resource, new AS state FROM audit_log WHERE action IN ({actions})"  # noqa: S608  # constant texts only
    ]
    parts += [
        f"SELECT org_id, place, resource, jsonb_path_query(new, '$.{part}[*]') FROM audit_log"  # noqa: S608  # constant texts only
        f" WHERE action = '{several}'"
        for part in (items, "ended")
        if several
    ]
    return f"""SELECT DISTINCT ON (org_id, state ->> '{id_name}') org_id, resource, state
        FROM ({" UNION ALL ".join(parts)}) AS acts
        ORDER BY org_id, state ->> '{id_name}', place DESC"""  # noqa: S608  # constant texts only


QUOTAS = f"""
    SELECT q.org_id, q.quota_id, a.path, jsonb_strip_nulls(jsonb_build_object(
        'quota_id', {id_text(ids.QUOTA, "q", "quota_id")}, 'account', a.path,
        'dimension', CASE q.dimension WHEN 0 THEN 'credits_per_job' WHEN 1 THEN 'concurrent_gpus'
            WHEN 2 THEN 'concurrent_jobs' ELSE 'credits_per_window' END,
        'unit', {UNIT.format(row="q")},
        'limit', {quantity_text("q.amount", "q.dimension")},
        'gpu_type', nullif(q.gpu_type, ''), 'calendar', {CALENDAR.format(row="q")},
        'zone', CASE WHEN q.calendar >= 0 THEN q.zone END,
        'rolling_hours', nullif(q.rolling_hours, 0),
        'created_at', {instant_text("q.created_at")},
        'set_by_scope', {scope_text("q.set_by")},
        'ended_at', CASE WHEN q.ended_at > 0 THEN {instant_text("q.ended_at")} END)) AS state
    FROM quotas q
    LEFT JOIN accounts a ON a.org_id = q.org_id AND a.account_id = q.account_id
"""  # noqa: S608  # constant texts only
RATE_LIMITS = f"""
    SELECT b.org_id, b.bucket_id, a.path, jsonb_strip_nulls(jsonb_build_object(
        'limit_id', {id_text(ids.RATE_LIMIT, "b", "bucket_id")}, 'account', a.path,
        'capacity', {credits_text("b.capacity")},
        'refill_per_hour', {credits_text("b.refill_per_hour")},
        'set_by_scope', {scope_text("b.set_by")},
        'ended_at', CASE WHEN b.ended_at > 0 THEN {instant_text("b.ended_at")} END)) AS state
    FROM token_buckets b
    LEFT JOIN accounts a ON a.org_id = b.org_id AND a.account_id = b.account_id
"""  # noqa: S608  # constant texts only
BOOSTS = f"""
    SELECT b.org_id, b.boost_id, a.path, jsonb_strip_nulls(jsonb_build_object(
        'boost_id', {id_text(ids.BOOST, "b", "boost_id")}, 'account', a.path,
        'target_id', CASE WHEN q.quota_id IS NOT NULL THEN {id_text(ids.QUOTA, "b", "target_id")}
            WHEN t.bucket_id IS NOT NULL THEN {id_text(ids.RATE_LIMIT, "b", "target_id")} END,
        'unit', {UNIT.format(row="q")},
        'amount', {quantity_text("b.amount", "q.dimension")},
        'refill_per_hour', CASE WHEN q.quota_id IS NULL
            THEN {credits_text("b.refill_per_hour")} END, -- of a quota it means nothing
        'starts_at', {instant_text("b.starts_at")}, 'ends_at', {instant_text("b.ends_at")},
        'set_by_scope', {scope_text("b.set_by")},
        'note', b.note, 'created_at', {instant_text("b.created_at")})) AS state
    FROM boosts b
    LEFT JOIN accounts a ON a.org_id = b.org_id AND a.account_id = b.account_id
    LEFT JOIN quotas q ON q.org_id = b.org_id AND q.quota_id = b.target_id
    LEFT JOIN token_buckets t ON t.org_id = b.org_id AND t.bucket_id = b.target_id
"""  # noqa: S608  # constant texts only
# When a budget's next period begins moves on with the clock; all else stays as it was set.
BUDGETS = f"""
    SELECT b.org_id, b.budget_id, a.path, jsonb_strip_nulls(jsonb_build_object(
        'budget_id', {id_text(ids.BUDGET, "b", "budget_id")}, 'account', a.path, 'name', b.name,
        'allowance', {credits_text("b.allowance")}, 'calendar', {CALENDAR.format(row="b")},
        'zone', CASE WHEN b.calendar >= 0 THEN b.zone END,
        'ends_at', {instant_text("b.ends_at")},
        'rollover', CASE b.rollover WHEN 0 THEN 'none' WHEN 1 THEN 'all' ELSE 'capped' END,
        'rollover_cap', CASE WHEN b.rollover_cap > 0 THEN {credits_text("b.rollover_cap")} END,
        'rollover_seconds', nullif(b.rollover_us / 1000000, 0), 'priority', b.priority,
        'warn_percent', b.warn_percent, 'created_at', {instant_text("b.created_at")})) AS state
    FROM budgets b
    LEFT JOIN accounts a ON a.org_id = b.org_id AND a.account_id = b.account_id
"""  # noqa: S608  # constant texts only
AMOUNT = "r.unit"
GIVEN = "CASE WHEN r.given_amount > 0 THEN {text} END"
REQUESTS = f"""
    SELECT r.org_id, r.request_id, r.account AS path, jsonb_strip_nulls(jsonb_build_object(
        'request_id', {id_text(ids.REQUEST, "r", "request_id")},
        'kind', CASE r.kind WHEN 0 THEN 'credits' WHEN 1 THEN 'quota' WHEN 2 THEN 'rate_limit'
            ELSE 'budget' END,
        'state', CASE r.state WHEN 0 THEN 'open' WHEN 1 THEN 'approving' WHEN 2 THEN 'approved'
            WHEN 3 THEN 'declined' WHEN 4 THEN 'canceled' ELSE 'expired' END,
        'amount', {quantity_text("r.amount", AMOUNT)}, 'ends_at', {instant_text("r.ends_at")},
        'refill_per_hour', CASE WHEN r.refill_per_hour > 0
            THEN {credits_text("r.refill_per_hour")} END,
        'target', nullif(r.target_id, 0), 'budget', nullif(r.budget, ''), 'reason', r.reason,
        'asked_by', r.asked_by, 'expires_at', {instant_text("r.expires_at")},
        'decided_by', nullif(r.decided_by, ''),
        'decided_from', CASE WHEN r.decided_by <> ''
            THEN {scope_text("r.decided_from")} END,
        'note', CASE WHEN r.decided_by <> '' THEN r.note END, 'attempt', nullif(r.attempt, 0),
        'given_amount', {GIVEN.format(text=quantity_text("r.given_amount", AMOUNT))},
        'given_ends_at', {GIVEN.format(text=instant_text("r.given_ends_at"))},
        'given_refill_per_hour', CASE WHEN r.given_refill_per_hour > 0
            THEN {credits_text("r.given_refill_per_hour")} END,
        'taken_from', {GIVEN.format(text="r.taken_from")}, 'result', nullif(r.result, ''))) AS state
    FROM requests r
"""  # noqa: S608  # constant texts only


def as_told(  # the rule, what there is, and what was said
    name: str, claim: str, rows: str, number: str, *, told: str, id_name: str, besides: str = "{}"
) -> Check:
    """The rule that rows are what the last act about each says; ``besides`` is not compared."""
    return Check(
        name,
        claim,
        f"""SELECT coalesce(t.org_id, l.org_id) AS org_id, t.{number}, t.state::text AS found,
            l.state::text AS told
        FROM ({rows}) AS t
        FULL JOIN ({told}) AS l
            ON l.org_id = t.org_id AND l.state ->> '{id_name}' = t.state ->> '{id_name}'
        WHERE (jsonb_strip_nulls(l.state) - '{besides}'::text[] = t.state
            AND l.resource = t.path) IS NOT TRUE""",  # noqa: S608  # constant texts only
    )


ACT_CHECKS = (
    as_told(
        "quota_acts",
        "quotas are those that the audit log last says were set",
        QUOTAS,
        "quota_id",
        told=last_told("quota_id", ("quota.set", "quota.end"), "quota.replace", "quotas"),
        id_name="quota_id",
    ),
    as_told(
        "rate_limit_acts",
        "rate limits are those that the audit log last says were set",
        RATE_LIMITS,
        "bucket_id",
        told=last_told("limit_id", ("rate_limit.set", "rate_limit.end")),
        id_name="limit_id",
    ),
    as_told(
        "boost_acts",
        "boosts are those that the audit log last says were given",
        BOOSTS,
        "boost_id",
        told=last_told("boost_id", ("boost.add", "boost.end")),
        id_name="boost_id",
    ),
    as_told(
        "budget_acts",
        "budgets have the terms that the audit log last says were set",
        BUDGETS,
        "budget_id",
        told=last_told("budget_id", ("budget.set", "budget.end"), "budget.replace", "budgets"),
        id_name="budget_id",
        besides="{next_at}",
    ),
    as_told(
        "request_acts",
        "requests for more stand where the audit log last says they stood, on those terms",
        REQUESTS,
        "request_id",
        told=last_told(
            "request_id",
            tuple(
                f"request.{act}"
                for act in (*("ask", "approve", "decline", "cancel", "expire", "apply", "reopen"),)
            ),
        ),
        id_name="request_id",
        besides="{refusal}",
    ),
    Check(
        "standing_acts",
        "accounts are paused for unpaid statements where the audit log last says so",
        """SELECT coalesce(a.org_id, l.org_id) AS org_id, a.account_id, a.path, a.delinquent, l.new
        FROM accounts a
        FULL JOIN (
            SELECT DISTINCT ON (org_id, resource) org_id, resource, new FROM audit_log
            WHERE action IN ('account.standing', 'account.create', 'account.update')
            ORDER BY org_id, resource, place DESC
        ) AS l ON l.org_id = a.org_id AND l.resource = a.path
        WHERE (a.delinquent::text = l.new ->> 'delinquent') IS NOT TRUE""",
    ),
    terms_as_told(
        "anomaly_term_acts",
        "the terms of unusual spending are those that the audit log last says were set",
        "anomaly_terms",
        shown="t.ratio_percent, t.floor, t.auto_suspend, t.set_by",
        # Acts of before schema 9 tell no scope; the upgrade made them the org's.
        same=f"""l.new ->> 'ratio_percent' = t.ratio_percent::text
            AND l.new ->> 'floor' = {credits_text("t.floor")}
            AND l.new ->> 'auto_suspend' = t.auto_suspend::text
            AND coalesce(l.new ->> 'set_by_scope', 'org') = {scope_text("t.set_by")}""",
        acts=("anomaly_terms.set",),
    ),
    terms_as_told(
        "idle_guard_acts",
        "idle guards are those that the audit log last says were set, and none that were ended",
        "idle_guards",
        shown="t.window_ms, t.set_by",
        same=f"""l.new = jsonb_build_object('window_ms', t.window_ms,
            'utilization_percent', t.utilization_percent, 'memory_percent', t.memory_percent,
            'startup_ms', t.startup_ms, 'warning_ms', t.warning_ms, 'grace_ms', t.grace_ms,
            'set_by_scope', {scope_text("t.set_by")})""",
        acts=("idle_guard.set", "idle_guard.end"),
    ),
    Check(
        "statement_acts",
        "statements are those that the audit log says were closed",
        f"""SELECT coalesce(s.org_id, l.org_id) AS org_id, s.statement_id, s.period, s.amount,
            l.resource, l.new
        FROM statements s
        FULL JOIN (
            SELECT org_id, resource, new FROM audit_log WHERE action = 'statement.close'
        ) AS l ON l.org_id = s.org_id
            AND l.new ->> 'statement_id' = {id_text(ids.STATEMENT, "s", "statement_id")}
        WHERE (l.resource = s.account AND l.new ->> 'period' = s.period
            AND l.new ->> 'closing' = {credits_text("s.closing")}
            AND l.new ->> 'amount' = {credits_text("s.amount")}
            AND l.new ->> 'due_at' = {instant_text("s.due_at")}) IS NOT TRUE""",  # noqa: S608  # constant texts only
    ),
    Check(
        "lease_acts",
        "who settled or canceled a lease is in the audit log, once, with what that came to",
        f"""SELECT coalesce(r.org_id, l.org_id) AS org_id, r.reservation_id, r.state, r.settled,
            r.ended_at, l.resource, l.action, l.new, l.times
        FROM (SELECT * FROM reservations WHERE state IN (1, 2)) AS r
        FULL JOIN (
            SELECT org_id, resource, action, new, recorded_at,
                count(*) OVER (PARTITION BY org_id, resource) AS times
            FROM audit_log WHERE action IN ('reservation.settle', 'reservation.cancel')
        ) AS l ON l.org_id = r.org_id
            AND l.resource = {id_text(ids.RESERVATION, "r", "reservation_id")}
        WHERE (l.times = 1 AND l.recorded_at = r.ended_at
            AND l.action = CASE r.state WHEN 1 THEN 'reservation.settle'
                ELSE 'reservation.cancel' END
            AND l.new ->> 'settled' = {credits_text("r.settled")}
            AND l.new ->> 'used_ms' = r.used_ms::text) IS NOT TRUE""",  # noqa: S608  # constant texts only
    ),
    *RECONCILIATION_CHECKS,
)
