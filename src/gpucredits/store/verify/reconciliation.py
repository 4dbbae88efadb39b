"""What the reconciler posted and what lost work gave back, as questions to the database.

Owns: one query for each rule. A lease says what was posted for it as the audit log does, and the
terms by which credits move by themselves are those that somebody set.
"""

from __future__ import annotations

from gpucredits.core import ids
from gpucredits.store.verify.check import Check, terms_as_told
from gpucredits.store.verify.text import credits_text, id_text

LEASE_TEXT = id_text(ids.RESERVATION, "r", "reservation_id")

RECONCILIATION_CHECKS = (
    Check(
        "reconciled",
        "what the reconciler posted for a lease is what the audit log says, within its corrections",
        f"""SELECT coalesce(r.org_id, l.org_id) AS org_id, r.reservation_id, r.reconciled,
            r.adjusted, r.refunded, l.resource, l.reconciled AS told
        FROM (SELECT * FROM reservations WHERE reconciled <> 0) AS r
        FULL JOIN (
            SELECT DISTINCT ON (org_id, resource) org_id, resource,
                new ->> 'reconciled' AS reconciled,
                sum((new ->> 'amount')::numeric) OVER (PARTITION BY org_id, resource) AS total
            FROM audit_log WHERE action = 'credits.reconcile'
            ORDER BY org_id, resource, place DESC
        ) AS l ON l.org_id = r.org_id AND l.resource = {LEASE_TEXT}
        WHERE (l.reconciled = {credits_text("r.reconciled")}
            AND l.total * 1000000 = r.reconciled
            AND r.reconciled BETWEEN -r.refunded AND r.adjusted
            OR r.reservation_id IS NULL AND l.reconciled = '0' AND l.total = 0) IS NOT TRUE""",  # noqa: S608  # constant texts only
    ),
    Check(
        "lost_work",
        "lost work was given back once for a lease, as its claim and the audit log say",
        f"""SELECT coalesce(r.org_id, l.org_id, w.org_id) AS org_id, r.reservation_id, r.lost_ms,
            w.state, w.lost_ms AS claimed_ms, w.limit_ms, w.amount, l.new
        FROM (SELECT * FROM reservations WHERE lost_ms <> 0) AS r
        FULL JOIN (
            SELECT org_id, resource, new, count(*) OVER (PARTITION BY org_id, resource) AS times
            FROM audit_log WHERE action = 'credits.refund_lost_work'
        ) AS l ON l.org_id = r.org_id AND l.resource = {LEASE_TEXT}
        FULL JOIN (SELECT * FROM lost_work WHERE state <> 2) AS w
            ON w.org_id = r.org_id AND w.reservation_id = r.reservation_id
        WHERE (CASE WHEN w.state = 0 THEN w.lost_ms = 0 AND w.amount = 0
            ELSE l.times = 1 AND l.new ->> 'lost_ms' = r.lost_ms::text
                AND (w.reservation_id IS NULL OR w.lost_ms = r.lost_ms
                    AND l.new ->> 'amount' = {credits_text("w.amount")}) END) IS NOT TRUE""",  # noqa: S608  # constant texts only
    ),
    Check(
        "lost_work_claims",
        "claims of lost work are those that the audit log last says were made",
        f"""SELECT coalesce(w.org_id, l.org_id) AS org_id, w.reservation_id, w.limit_ms,
            w.checkpoint_ms, l.resource, l.new
        FROM lost_work w
        FULL JOIN (
            SELECT DISTINCT ON (org_id, resource) org_id, resource, new FROM audit_log
            WHERE action = 'lost_work.claim' ORDER BY org_id, resource, place DESC
        ) AS l ON l.org_id = w.org_id
            AND l.resource = {id_text(ids.RESERVATION, "w", "reservation_id")}
        WHERE (l.new ->> 'limit_ms' = w.limit_ms::text
            AND l.new ->> 'checkpoint_ms' = w.checkpoint_ms::text
            AND l.new ->> 'is_reported' = w.is_reported::text
            AND l.new ->> 'cause' = CASE w.cause WHEN 0 THEN 'node_failure'
                ELSE 'preemption' END) IS NOT TRUE""",  # noqa: S608  # constant texts only
    ),
    terms_as_told(
        "reconcile_policy_acts",
        "policies of the reconciler are those that the audit log last says were set or ended",
        "reconcile_policies",
        shown="t.mode",
        # Acts of before schema 16 do not tell quiet_ms: it was a constant.
        same=f"""l.new ->> 'mode' = CASE t.mode WHEN 0 THEN 'off' WHEN 1 THEN 'report'
                ELSE 'post' END
            AND l.new ->> 'tolerance_ms' = t.tolerance_ms::text
            AND l.new ->> 'alarm_percent' = t.alarm_percent::text
            AND coalesce(l.new ->> 'quiet_ms', '900000') = t.quiet_ms::text
            AND l.new ->> 'alarm_floor' = {credits_text("t.alarm_floor")}""",
        acts=("reconcile_policy.set", "reconcile_policy.end"),
    ),
    terms_as_told(
        "loss_term_acts",
        "terms of lost work are those that the audit log last says were set or ended",
        "loss_terms",
        shown="t.hours_per_job",
        # Acts of before schema 16 do not tell hours_per_account.
        same="""l.new ->> 'hours_per_job' = t.hours_per_job::text
            AND l.new ->> 'window_hours' = t.window_hours::text
            AND l.new ->> 'unreported_hours' = t.unreported_hours::text
            AND coalesce(l.new ->> 'hours_per_account', '24') = t.hours_per_account::text""",
        acts=("loss_terms.set", "loss_terms.end"),
    ),
    Check(
        "unmatched_acts",
        "use without a lease was matched or dismissed as the audit log last says, or is of the"
        " only lease of its job",
        f"""SELECT coalesce(u.org_id, l.org_id) AS org_id, u.unmatched_id, u.state,
            u.reservation_id, l.resource, l.action, l.new
        FROM (SELECT * FROM unmatched_use WHERE state <> 0 OR decided_by <> '') AS u
        FULL JOIN (
            SELECT DISTINCT ON (org_id, resource) org_id, resource, action, new, actor
            FROM audit_log WHERE action IN ('unmatched.match', 'unmatched.dismiss')
            ORDER BY org_id, resource, place DESC
        ) AS l ON l.org_id = u.org_id
            AND l.resource = {id_text(ids.UNMATCHED, "u", "unmatched_id")}
        LEFT JOIN reservations r ON r.org_id = u.org_id AND r.reservation_id = u.reservation_id
        WHERE (CASE WHEN l.resource IS NULL THEN u.state = 1 AND u.decided_by = ''
                AND r.account_id = u.account_id AND r.job_id = u.job_id
            WHEN u.state = 1 THEN l.action = 'unmatched.match' AND l.actor = u.decided_by
                AND l.new ->> 'reservation_id' = {LEASE_TEXT}
            ELSE u.state = 2 AND l.action = 'unmatched.dismiss'
                AND l.actor = u.decided_by END) IS NOT TRUE""",  # noqa: S608  # constant texts only
    ),
    Check(
        "reconciliation_ids",
        "no id of an alarm or of unmatched use is beyond its org's counter",
        """SELECT i.org_id, i.what, i.most FROM (
            SELECT org_id, 'unmatched' AS what, max(unmatched_id) AS most FROM unmatched_use
            GROUP BY 1
            UNION ALL SELECT org_id, 'alarms', max(alarm_id) FROM drift_alarms GROUP BY 1
        ) AS i
        LEFT JOIN org_numbers n ON n.org_id = i.org_id
        WHERE i.most > coalesce(CASE i.what WHEN 'alarms' THEN n.alarms ELSE n.unmatched END, 0)
        """,
    ),
)
