"""The rules of accounts, grants and top-ups as questions to the database; see verify.

Owns: one query for each rule. The rows are compared with the entries that made them, with one
another, and with the acts in the audit log, which is a chain of its own.
"""

from __future__ import annotations

from gpucredits.core import ids
from gpucredits.core.bounds import NEVER_US
from gpucredits.store.verify.check import Check
from gpucredits.store.verify.text import base36, credits_text, id_text, instant_text, scope_text

TERM_CHECKS = (
    Check(
        "paths",
        "an account lies below its parent, and the topmost one has the name of its org",
        """SELECT a.org_id, a.account_id, a.path, p.path AS parent, o.path AS org
        FROM accounts a
        LEFT JOIN orgs o ON o.org_id = a.org_id
        LEFT JOIN accounts p ON p.org_id = a.org_id AND p.account_id = a.parent_id
        WHERE (CASE a.parent_id WHEN 0 THEN a.path = o.path AND a.path NOT LIKE '%/%'
            ELSE starts_with(a.path, p.path || '/')
                AND substr(a.path, length(p.path) + 2) NOT LIKE '%/%' END) IS NOT TRUE""",
    ),
    Check(
        "account_acts",
        "accounts and their terms are those that the audit log last says were set",
        f"""SELECT coalesce(a.org_id, l.org_id) AS org_id, a.account_id,
            coalesce(a.path, l.resource) AS path, a.model, a.credit_limit, a.overdraft_limit,
            a.status, l.new
        FROM accounts a
        FULL JOIN (
            SELECT DISTINCT ON (org_id, resource) org_id, resource, new FROM audit_log
            WHERE action IN ('account.create', 'account.update')
            ORDER BY org_id, resource, place DESC
        ) AS l ON l.org_id = a.org_id AND l.resource = a.path
        WHERE (l.new ->> 'model' = CASE a.model WHEN 0 THEN 'prepaid' ELSE 'postpaid' END
            AND l.new ->> 'status' = CASE a.status WHEN 0 THEN 'active' ELSE 'suspended' END
            AND l.new ->> 'suspended_by_scope' IS NOT DISTINCT FROM
                CASE WHEN a.status = 1 THEN {scope_text("a.suspended_by")} END
            AND l.new ->> 'credit_limit' = {credits_text("a.credit_limit")}
            AND l.new ->> 'overdraft_limit' = {credits_text("a.overdraft_limit")}
            AND l.new ->> 'window_max_seconds' = (a.window_max_ms / 1000)::text
            AND l.new -> 'metadata' = a.metadata) IS NOT TRUE""",  # noqa: S608  # constant texts only
    ),
    Check(
        "due",
        "an account is due when its next lease or grant is",
        """SELECT a.org_id, a.account_id, a.path, a.due_at, s.soonest
        FROM accounts a
        JOIN (
            SELECT org_id, account_id, min(due_at) AS soonest FROM (
                SELECT org_id, payer_id AS account_id, min(expires_at) AS due_at
                FROM reservations WHERE state = 0 GROUP BY 1, 2
                UNION ALL
                SELECT org_id, account_id, CASE state WHEN 2 THEN starts_at WHEN 1
                    THEN expires_at END
                FROM grants WHERE is_open
            ) AS coming GROUP BY 1, 2
        ) AS s ON s.org_id = a.org_id AND s.account_id = a.account_id
        WHERE a.due_at > s.soonest""",
    ),
    Check(
        "grant_terms",
        "a grant is what the entries made it that brought its credits; what moved keeps its terms",
        """WITH births AS (
            SELECT org_id, CASE type WHEN 3 THEN other_grant_id ELSE grant_id END AS grant_id,
                min(type) AS type, max(type) FILTER (WHERE type <> 15) AS last_type,
                sum(CASE type WHEN 15 THEN -1 ELSE 1 END) AS times,
                sum(CASE type WHEN 15 THEN -amount ELSE amount END) AS amount,
                max(stamped_at) FILTER (WHERE type <> 15) AS began_at,
                max(effective_at) FILTER (WHERE type <> 15) AS counts_at,
                min(stamped_at) AS first_at, min(effective_at) AS first_counts_at,
                min(grant_id) AS left_id, max(grant_id) AS last_left
            FROM timed_entries
            WHERE type IN (1, 2, 15) OR (type = 3 AND grant_id < other_grant_id)
            GROUP BY 1, 2 -- credits of a reversed payment go back to an older grant: see topups
        ), given_back AS ( -- a grant that a refund has made
            SELECT DISTINCT ON (org_id, grant_id) org_id, grant_id, amount, recorded_at
            FROM timed_entries WHERE type = 7 AND grant_id > 0 ORDER BY org_id, grant_id, entry_id
        )
        SELECT g.org_id, g.grant_id, g.account_id, g.amount, b.amount AS issued, g.source,
            g.origin_id, b.left_id, g.starts_at, g.expires_at, b.began_at, o.clock
        FROM grants g
        LEFT JOIN orgs o ON o.org_id = g.org_id
        LEFT JOIN births b ON b.org_id = g.org_id AND b.grant_id = g.grant_id
        LEFT JOIN grants l ON l.org_id = g.org_id AND l.grant_id = g.origin_id
        LEFT JOIN given_back r ON r.org_id = g.org_id AND r.grant_id = g.grant_id
        LEFT JOIN ( -- how far ahead the org's clock once stood
            SELECT org_id, max(clock) AS clock FROM clock_repairs GROUP BY org_id
        ) AS c ON c.org_id = g.org_id
        WHERE (g.state BETWEEN 0 AND 3 AND g.created_at <= o.clock
            AND (g.state = 2 OR g.starts_at <= greatest(o.clock, c.clock))
            AND (g.state IN (1, 2) OR g.expires_at <= greatest(o.clock, c.clock))
            AND CASE WHEN g.state = 2 THEN coalesce(b.times, 0) = 0 AND g.origin_id = 0
                WHEN b.type = 3 THEN b.last_type = 3 AND b.amount = g.amount
                    AND g.origin_id = b.left_id AND g.origin_id = b.last_left
                    AND g.source = l.source AND g.priority = l.priority
                    AND g.budget_id = 0 AND g.created_at IN (b.first_at, b.first_counts_at)
                    AND CASE WHEN l.account_id = g.account_id THEN g.starts_at = l.expires_at
                        ELSE g.starts_at = l.starts_at AND g.expires_at = l.expires_at END
                WHEN b.type IS NOT NULL THEN b.times = 1 AND b.amount = g.amount
                    AND g.origin_id = 0 AND (b.type = 2) = (g.source = 3)
                    AND greatest(g.starts_at, g.created_at) IN (b.began_at, b.counts_at)
                ELSE g.origin_id = 0 AND g.budget_id = 0 AND g.amount = r.amount
                    AND g.created_at = r.recorded_at END) IS NOT TRUE""",
    ),
    Check(
        "issues",
        "grants that were issued are those of the audit log",
        f"""SELECT coalesce(g.org_id, l.org_id) AS org_id, g.grant_id, g.amount, g.source,
            g.starts_at, g.expires_at, l.resource, l.new
        FROM (
            SELECT g.*, a.path, c.org_id IS NOT NULL AS is_restamped FROM grants g
            LEFT JOIN accounts a ON a.org_id = g.org_id AND a.account_id = g.account_id
            LEFT JOIN clock_repairs c ON c.org_id = g.org_id AND c.repaired_at = g.starts_at
            LEFT JOIN (SELECT DISTINCT org_id, grant_id FROM entries WHERE type = 1) AS e
                ON e.org_id = g.org_id AND e.grant_id = g.grant_id
            WHERE g.origin_id = 0 AND g.budget_id = 0 AND g.source <> 3
                AND (g.state = 2 OR e.grant_id IS NOT NULL)
        ) AS g
        FULL JOIN (
            SELECT org_id, resource, new FROM audit_log WHERE action = 'credits.issue'
        ) AS l ON l.org_id = g.org_id
            AND l.new ->> 'grant_id' = {id_text(ids.GRANT, "g", "grant_id")}
        WHERE (l.resource = g.path AND l.new ->> 'amount' = {credits_text("g.amount")}
            AND l.new ->> 'source' = CASE g.source WHEN 0 THEN 'promo' WHEN 1 THEN 'allowance'
                WHEN 2 THEN 'transfer' END
            AND (l.new ->> 'starts_at' = {instant_text("g.starts_at")} OR g.is_restamped)
            AND l.new ->> 'expires_at' IS NOT DISTINCT FROM {instant_text("g.expires_at")}
            AND coalesce(l.new ->> 'priority', g.priority::text) = g.priority::text) IS NOT TRUE""",  # noqa: S608  # constant texts only
    ),
    Check(
        "topups",
        "a payment that was confirmed has made its one grant, others none; reversals add up",
        """WITH RECURSIVE moved AS (
            SELECT org_id, grant_id AS paid_id, grant_id FROM topups WHERE status = 3
            UNION ALL -- looked up one by one: joined, all grants would be read for every move
            SELECT m.org_id, m.paid_id, g.grant_id FROM moved m
            CROSS JOIN LATERAL (
                SELECT grant_id FROM grants WHERE org_id = m.org_id AND origin_id = m.grant_id
                    AND origin_id <> 0 OFFSET 0
            ) AS g
            WHERE g.grant_id > m.grant_id
        )
        SELECT coalesce(t.org_id, g.org_id) AS org_id, t.topup_id, t.account_id, t.status,
            t.amount, g.grant_id, g.amount AS granted
        FROM (
            SELECT *, count(*) OVER (PARTITION BY org_id, grant_id) AS sharing FROM topups
        ) AS t
        FULL JOIN (SELECT * FROM grants WHERE source = 3 AND origin_id = 0) AS g
            ON g.org_id = t.org_id AND g.grant_id = t.grant_id
        WHERE (CASE WHEN t.status IN (0, 2) THEN t.grant_id = 0
            WHEN t.status IN (1, 3) THEN t.sharing = 1 AND g.account_id = t.account_id
                AND g.amount = t.amount AND g.expires_at = t.expires_at
                AND g.priority = t.priority AND g.starts_at = g.created_at END) IS NOT TRUE
        UNION ALL -- what had expired unused, wherever it was moved, needs not be taken back
        SELECT coalesce(t.org_id, e.org_id), NULL, coalesce(t.account_id, e.account_id), 3,
            t.amount, NULL, e.amount
        FROM (
            SELECT t.org_id, t.account_id, sum(t.amount) AS amount,
                sum(greatest(t.amount - coalesce(x.amount, 0), 0)) AS least_amount
            FROM topups t
            LEFT JOIN (
                SELECT m.org_id, m.paid_id AS grant_id,
                    sum(CASE e.type WHEN 8 THEN e.amount ELSE -e.amount END) AS amount
                FROM moved m
                JOIN entries e ON e.org_id = m.org_id AND e.grant_id = m.grant_id
                    AND e.type IN (8, 14)
                GROUP BY 1, 2
            ) AS x ON x.org_id = t.org_id AND x.grant_id = t.grant_id
            WHERE t.status = 3 GROUP BY 1, 2
        ) AS t
        FULL JOIN (
            SELECT org_id, account_id, sum(amount) AS amount FROM entries WHERE type = 13
            GROUP BY 1, 2
        ) AS e ON e.org_id = t.org_id AND e.account_id = t.account_id
        WHERE coalesce(e.amount, 0) NOT BETWEEN coalesce(t.least_amount, 0)
            AND coalesce(t.amount, 0)
        UNION ALL -- what went back to the grant of a payment was of that payment, and was reversed
        SELECT b.org_id, NULL, b.other_id, 3, NULL, b.other_grant_id, b.amount
        FROM (SELECT * FROM entries WHERE type = 3 AND grant_id > other_grant_id) AS b
        LEFT JOIN entries e ON e.org_id = b.org_id AND e.entry_id = b.entry_id + 1
        LEFT JOIN moved m ON m.org_id = b.org_id AND m.grant_id = b.grant_id
            AND m.paid_id = b.other_grant_id
        WHERE (m.grant_id IS NOT NULL AND e.type = 13 AND e.amount = b.amount
            AND e.account_id = b.other_id AND e.grant_id = b.other_grant_id) IS NOT TRUE""",
    ),
    Check(
        "topup_acts",
        "payments stand where the audit log last says they stood",
        f"""SELECT coalesce(t.org_id, l.org_id) AS org_id, t.topup_id, t.amount, t.status,
            t.payment_reference, l.resource, l.new
        FROM (
            SELECT t.*, a.path FROM topups t
            LEFT JOIN accounts a ON a.org_id = t.org_id AND a.account_id = t.account_id
        ) AS t
        FULL JOIN (
            SELECT DISTINCT ON (org_id, new ->> 'topup_id') org_id, resource, new FROM audit_log
            WHERE action IN ('topup.record', 'topup.confirm', 'topup.fail', 'topup.reverse')
            ORDER BY org_id, new ->> 'topup_id', place DESC
        ) AS l ON l.org_id = t.org_id
            AND l.new ->> 'topup_id' = {id_text(ids.TOPUP, "t", "topup_id")}
        WHERE (l.resource = t.path AND l.new ->> 'amount' = {credits_text("t.amount")}
            AND l.new ->> 'payment_reference' = t.payment_reference
            AND l.new ->> 'status' = CASE t.status WHEN 0 THEN 'pending' WHEN 1 THEN 'confirmed'
                WHEN 2 THEN 'failed' WHEN 3 THEN 'reversed' END) IS NOT TRUE""",  # noqa: S608  # constant texts only
    ),
    Check(
        "price_acts",
        "prices are those that the audit log says were set or ended, no more and no fewer",
        f"""SELECT coalesce(p.org_id, l.org_id) AS org_id, p.price_id, p.credits_per_gpu_hour,
            l.place, l.resource, l.new
        FROM prices p
        FULL JOIN (
            SELECT org_id, place, resource, action, new FROM audit_log
            WHERE action IN ('price.set', 'price.end')
        ) AS l ON l.org_id = p.org_id
            AND l.new ->> 'price_id' = '{ids.PRICE}_0_' || {base36("p.price_id")}
        WHERE (l.new ->> 'gpu_type' = p.gpu_type AND l.new ->> 'region' = p.region
            AND l.new ->> 'account' = p.account AND (l.action = 'price.end') = p.is_end
            AND CASE WHEN p.is_end THEN p.effective_to = {NEVER_US}
                    AND l.new ->> 'effective_to' = {instant_text("p.effective_from")}
                ELSE l.new ->> 'effective_from' = {instant_text("p.effective_from")}
                    AND l.new ->> 'credits_per_gpu_hour' = {credits_text("p.credits_per_gpu_hour")}
                    AND l.new ->> 'effective_to' IS NOT DISTINCT FROM
                        {instant_text("p.effective_to")} END) IS NOT TRUE""",  # noqa: S608  # constant texts only
    ),
)
