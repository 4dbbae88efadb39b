"""The rules of limits and budgets as questions to the database; see verify.

Owns: one query for each rule. What quotas count is counted again from the live reservations and
the entries, what budgets gave out from their grants.
"""

from __future__ import annotations

from gpucredits.store.book.tables import LEASE
from gpucredits.store.verify.check import Check
from gpucredits.store.verify.text import above

GATE_CHECKS = (
    Check(
        "counters",
        "quotas count the GPUs, jobs and holds of the leases that live below them",
        f"""WITH live AS (
            SELECT org_id, account, account_id, job_id, gpu_type, sum(milli_gpus) AS gpus,
                coalesce(sum(milli_gpus) FILTER (WHERE leaving), 0) AS leaving_gpus,
                sum(held + promised) AS held, bool_or(leaving) AS is_leaving
            FROM reservations WHERE state = 0 GROUP BY 1, 2, 3, 4, 5
        ), counted AS (
            SELECT q.org_id, q.quota_id, sum(gpus) AS gpus, sum(leaving_gpus) AS leaving_gpus,
                sum(held) AS held, count(DISTINCT (l.account_id, job_id)) AS jobs,
                count(DISTINCT (l.account_id, job_id)) FILTER (WHERE is_leaving) AS leaving_jobs
            FROM (SELECT live.*, {above("account")} AS path FROM live) AS l
            JOIN accounts a ON a.org_id = l.org_id AND a.path = l.path
            JOIN quotas q ON q.org_id = a.org_id AND q.account_id = a.account_id
                AND q.gpu_type IN ('', l.gpu_type)
            WHERE q.ended_at = 0 AND q.dimension > 0
            GROUP BY 1, 2
        )
        SELECT q.org_id, q.quota_id, q.dimension, c.count, c.leaving, c.held,
            n.gpus, n.jobs, n.held AS live_held
        FROM quotas q
        LEFT JOIN counters c ON c.org_id = q.org_id AND c.quota_id = q.quota_id
        LEFT JOIN counted n ON n.org_id = q.org_id AND n.quota_id = q.quota_id
        WHERE q.ended_at = 0 AND q.dimension > 0 AND (c.quota_id IS NULL
            OR c.count <> CASE q.dimension
                WHEN 1 THEN coalesce(n.gpus, 0) WHEN 2 THEN coalesce(n.jobs, 0) ELSE 0 END
            OR c.leaving <> CASE q.dimension WHEN 1 THEN coalesce(n.leaving_gpus, 0)
                WHEN 2 THEN coalesce(n.leaving_jobs, 0) ELSE 0 END
            OR c.held <> CASE q.dimension WHEN 3 THEN coalesce(n.held, 0) ELSE 0 END)""",  # noqa: S608  # constant texts only
    ),
    Check(
        "windows",
        "windows have counted what was settled below them, and no more than that",
        f"""WITH wanted AS (
            SELECT q.*, a.path FROM quotas q
            JOIN accounts a ON a.org_id = q.org_id AND a.account_id = q.account_id
            WHERE q.ended_at = 0 AND q.dimension = 3
        ), replayed AS ( -- from the entry on with which each began to count
            SELECT w.org_id, w.quota_id, sum(m.amount) AS settled
            FROM (
                SELECT org_id, reservation_id, gpu_type, {above("account")} AS path
                FROM reservations
            ) AS r
            JOIN wanted w ON w.org_id = r.org_id AND w.path = r.path
                AND w.gpu_type IN ('', r.gpu_type)
            JOIN entries m ON m.org_id = r.org_id AND m.reservation_id = r.reservation_id
                AND m.entry_id >= w.first_entry_id AND m.type = 6
            GROUP BY 1, 2
        ), past AS (
            SELECT w.org_id, w.quota_id, sum(y.used) AS used,
                coalesce(sum(y.used) FILTER (WHERE y.starts_at < c.starts_at AND y.starts_at
                    >= c.starts_at - w.rolling_hours * 3600000000), 0) AS base
            FROM wanted w
            JOIN counters c ON c.org_id = w.org_id AND c.quota_id = w.quota_id
            JOIN tallies y ON y.org_id = w.org_id AND y.quota_id = w.quota_id
            GROUP BY 1, 2
        )
        SELECT w.org_id, w.quota_id, w.seeded, c.used, c.base, t.used AS past, e.settled
        FROM wanted w
        JOIN counters c ON c.org_id = w.org_id AND c.quota_id = w.quota_id
        LEFT JOIN past t ON t.org_id = w.org_id AND t.quota_id = w.quota_id
        LEFT JOIN replayed e ON e.org_id = w.org_id AND e.quota_id = w.quota_id
        WHERE c.base <> coalesce(t.base, 0)
            OR coalesce(t.used, 0) + c.used - c.base <> w.seeded + coalesce(e.settled, 0)""",  # noqa: S608  # constant texts only
    ),
    Check(
        "buckets",
        "a rate limit was brought forward no further than its org, and owes no more than was drawn",
        f"""WITH drawn AS (
            SELECT org_id, account, sum(settled + held + promised) AS amount FROM reservations
            GROUP BY 1, 2
        ), below AS (
            SELECT org_id, path, sum(amount) AS drawn
            FROM (SELECT drawn.*, {above("account")} AS path FROM drawn) AS d GROUP BY 1, 2
        )
        SELECT b.org_id, b.bucket_id, b.account_id, m.level, m.level_at, m.fraction, o.clock
        FROM token_buckets b
        LEFT JOIN meters m ON m.org_id = b.org_id AND m.account_id = b.account_id
        JOIN accounts a ON a.org_id = b.org_id AND a.account_id = b.account_id
        JOIN orgs o ON o.org_id = b.org_id
        LEFT JOIN below d ON d.org_id = b.org_id AND d.path = a.path
        WHERE b.ended_at = 0 AND (m.account_id IS NULL OR m.level_at > o.clock
            OR m.level < -coalesce(d.drawn, 0)
            OR m.fraction NOT BETWEEN 0 AND 3599999999)""",  # noqa: S608  # constant texts only
    ),
    Check(
        "budgets",
        "every period has its one grant, periods follow one another, and the next one is awaited",
        """SELECT b.org_id, b.budget_id, b.account_id, p.starts_at, p.ends_at, p.grant_id, b.next_at
        FROM budgets b
        LEFT JOIN (
            SELECT v.*, lag(v.ends_at) OVER w AS previous, lead(v.starts_at) OVER w AS following
            FROM budget_periods v
            WINDOW w AS (PARTITION BY v.org_id, v.budget_id ORDER BY v.starts_at)
        ) AS p ON p.org_id = b.org_id AND p.budget_id = b.budget_id
        LEFT JOIN grants g ON g.org_id = p.org_id AND g.grant_id = p.grant_id
        LEFT JOIN accounts a ON a.org_id = b.org_id AND a.account_id = b.account_id
        WHERE a.account_id IS NULL OR (p.budget_id IS NOT NULL AND (g.grant_id IS NULL
                OR g.budget_id <> b.budget_id OR g.account_id <> b.account_id
                OR g.amount <> p.allowance OR g.starts_at <> p.starts_at
                OR g.expires_at <> p.ends_at OR p.starts_at < p.previous
                OR (p.following IS NULL AND p.ends_at > b.next_at)))
            OR (b.next_at < b.ends_at AND (NOT a.allocated OR a.due_at > b.next_at))
        UNION ALL
        SELECT g.org_id, g.budget_id, g.account_id, g.starts_at, g.expires_at, g.grant_id, NULL
        FROM grants g
        LEFT JOIN budget_periods p ON p.org_id = g.org_id AND p.budget_id = g.budget_id
            AND p.grant_id = g.grant_id
        WHERE g.budget_id <> 0 AND p.grant_id IS NULL""",
    ),
    Check(
        "rollovers",
        "what rolled out of a period is what its entries moved into the grant it rolled into",
        """SELECT p.org_id, p.budget_id, p.starts_at, p.rolled, p.rolled_grant_id, e.moved
        FROM budget_periods p
        LEFT JOIN grants g ON g.org_id = p.org_id AND g.grant_id = p.rolled_grant_id
        LEFT JOIN (
            SELECT org_id, grant_id, other_grant_id, sum(amount) AS moved FROM entries
            WHERE type = 3 AND other_id = account_id GROUP BY 1, 2, 3
        ) AS e ON e.org_id = p.org_id AND e.grant_id = p.grant_id
            AND e.other_grant_id = p.rolled_grant_id
        WHERE p.rolled <> coalesce(e.moved, 0)
            OR (p.rolled > 0 AND (g.amount IS NULL OR g.amount <> p.rolled
                OR (p.rollover_us > 0 AND g.expires_at <> p.ends_at + p.rollover_us)))""",
    ),
    Check(
        "gated_orgs",
        "an org knows whether it has limits and budgets",
        """SELECT o.org_id, o.gated, o.budgeted FROM orgs o
        LEFT JOIN (
            SELECT org_id FROM quotas WHERE ended_at = 0
            UNION SELECT org_id FROM token_buckets WHERE ended_at = 0
        ) AS l ON l.org_id = o.org_id
        LEFT JOIN (SELECT DISTINCT org_id FROM budgets) AS b ON b.org_id = o.org_id
        WHERE o.gated <> (l.org_id IS NOT NULL) OR (NOT o.budgeted AND b.org_id IS NOT NULL)""",
    ),
    Check(
        "promises",
        "what an account has promised of its overdraft is the sum of what its live leases may use",
        """SELECT coalesce(a.org_id, r.org_id) AS org_id,
            coalesce(a.account_id, r.payer_id) AS account_id, a.path, a.promised, r.live_promised
        FROM accounts a FULL JOIN (
            SELECT org_id, payer_id, sum(promised) AS live_promised FROM reservations
            GROUP BY org_id, payer_id
        ) AS r ON r.org_id = a.org_id AND r.payer_id = a.account_id
        WHERE coalesce(a.promised, -1) <> coalesce(r.live_promised, 0)
        UNION ALL
        SELECT org_id, payer_id, account, reservation_id, promised FROM reservations
        WHERE promised <> 0 AND (state <> 0 OR overdrawn + promised > overdraft)""",
    ),
    Check(
        "plain_leases",
        "there is nothing special about a lease that is kept as a plain one",
        f"""SELECT r.org_id, r.reservation_id, r.exhaustion, r.grace_ms, r.overdraft, r.overdrawn,
            r.promised, r.leaving
        FROM reservations r
        WHERE r.is_plain AND r.state = 0 AND NOT ({LEASE.plain_sql("r")})""",  # noqa: S608  # constant texts only
    ),
)
