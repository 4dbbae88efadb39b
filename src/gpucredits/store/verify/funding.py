"""The rules of funding as questions to the database; see verify.

Owns: one query for each rule. Who paid for a lease is compared with its entries, account by
account; whose credits an account may spend with what it was given and with the audit log.
"""

from __future__ import annotations

from gpucredits.store.book.entry_moves import entry_move
from gpucredits.store.verify.check import Check

FUNDING_CHECKS = (
    Check(
        "payers",
        "who pays or paid for a lease is its account or above it, and paid what its entries say",
        f"""WITH moved AS MATERIALIZED (
            SELECT * FROM reservations WHERE payers <> '{{}}'
        ), stretches AS ( -- from which item of paid to which, two numbers each
            SELECT m.org_id, m.reservation_id, m.account, s.place, s.account_id, s.until,
                coalesce(lag(s.until) OVER w, 0) AS since, m.paid
            FROM moved m
            CROSS JOIN LATERAL (
                SELECT place, m.payers[place] AS account_id, m.payers[place + 1] AS until
                FROM generate_series(1, cardinality(m.payers), 2) AS place
                UNION ALL
                SELECT cardinality(m.payers) + 1, m.payer_id, cardinality(m.paid) / 2
            ) AS s
            WINDOW w AS (PARTITION BY m.org_id, m.reservation_id ORDER BY s.place)
        )
        SELECT s.org_id, s.reservation_id, s.account_id, s.since, s.until, a.path
        FROM stretches s
        LEFT JOIN accounts a ON a.org_id = s.org_id AND a.account_id = s.account_id
        WHERE (s.since <= s.until AND s.until <= cardinality(s.paid) / 2
            AND starts_with(s.account || '/', a.path || '/')) IS NOT TRUE
        UNION ALL
        SELECT org_id, reservation_id, account_id, NULL, NULL, sum(amount)::text FROM (
            SELECT s.org_id, s.reservation_id, s.account_id, s.paid[2 * item] AS amount
            FROM stretches s CROSS JOIN LATERAL generate_series(s.since + 1, s.until) AS item
            UNION ALL
            SELECT e.org_id, e.reservation_id, e.account_id,
                CASE e.type WHEN 7 THEN e.amount ELSE -e.amount END
            FROM moved m
            JOIN entries e ON e.org_id = m.org_id AND e.reservation_id = m.reservation_id
            WHERE e.type IN (6, 7, 9)
        ) AS parts
        GROUP BY org_id, reservation_id, account_id HAVING sum(amount) <> 0
        UNION ALL -- what each payer holds for it: the present one the hold, the others nothing
        SELECT e.org_id, e.reservation_id, e.account_id, NULL, NULL,
            sum({entry_move("reserved", "e.")})::text
        FROM moved m
        JOIN entries e ON e.org_id = m.org_id AND e.reservation_id = m.reservation_id
        GROUP BY e.org_id, e.reservation_id, e.account_id, m.payer_id, m.held
        HAVING sum({entry_move("reserved", "e.")})
            <> CASE e.account_id WHEN m.payer_id THEN m.held ELSE 0 END""",  # noqa: S608  # constant texts only
    ),
    Check(
        "funding",
        "an account spends the credits that the audit log says, and a project that was given some"
        " its own, unless an operator set it otherwise",
        """SELECT a.org_id, a.account_id, a.path, a.funding, a.allocated, l.new
        FROM accounts a
        LEFT JOIN (
            SELECT DISTINCT ON (org_id, resource) org_id, resource, new FROM audit_log
            WHERE action IN ('account.create', 'account.update', 'account.funding')
            ORDER BY org_id, resource, place DESC
        ) AS l ON l.org_id = a.org_id AND l.resource = a.path
        LEFT JOIN ( -- who was given credits
            SELECT org_id, account_id FROM grants UNION SELECT org_id, account_id FROM budgets
        ) AS g ON g.org_id = a.org_id AND g.account_id = a.account_id
        LEFT JOIN ( -- whom an operator set to share
            SELECT DISTINCT org_id, resource FROM audit_log
            WHERE action IN ('account.create', 'account.update') AND new ->> 'funding' = 'shared'
                AND (old ->> 'funding' = 'own'
                    OR (new ->> 'model' = 'postpaid' AND new ->> 'credit_limit' <> '0'))
        ) AS s ON s.org_id = a.org_id AND s.resource = a.path
        WHERE (l.new ->> 'funding' = CASE a.funding WHEN 0 THEN 'own' ELSE 'shared' END
            AND (a.parent_id <> 0 OR a.funding = 0)
            AND a.allocated = (a.credit_limit_max > 0 OR g.account_id IS NOT NULL)
            AND (a.funding = 0 OR NOT a.allocated OR a.path LIKE '%/%/%'
                OR s.resource IS NOT NULL)) IS NOT TRUE""",
    ),
)
