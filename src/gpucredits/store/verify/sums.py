"""The rules of stored sums as questions to the database; see verify.

Owns: one query for each table whose rows are sums of entries, kept so that reads are short.
"""

from __future__ import annotations

from gpucredits.store.verify.check import Check

CHARGES = """
SELECT e.org_id, e.account_id AS payer_id, e.reservation_id, r.account_id, r.gpu_type,
    r.admitted_at / 86400000000 AS admitted, e.effective_at / 86400000000 AS day,
    e.effective_at / 3600000000 AS hour,
    sum(CASE e.type WHEN 7 THEN -e.amount ELSE e.amount END) AS amount
FROM timed_entries e
LEFT JOIN reservations r ON r.org_id = e.org_id AND r.reservation_id = e.reservation_id
WHERE e.type IN (6, 7, 9) AND e.amount <> 0 GROUP BY 1, 2, 3, 4, 5, 6, 7, 8
"""

HOURS = f"""
SELECT org_id, payer_id, account_id, gpu_type, hour, coalesce(sum(sum(amount)) OVER (
    PARTITION BY org_id, payer_id, account_id, gpu_type, hour / 24 ORDER BY hour
    ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), 0) AS before
FROM ({CHARGES}) AS of_leases GROUP BY 1, 2, 3, 4, 5
"""  # noqa: S608  # constant texts only

SUM_CHECKS = (
    Check(
        "snapshots",
        "snapshots equal the replay of the entries up to them",
        """SELECT s.org_id, s.account_id, s.entry_id, s.available, s.reserved, s.spent
        FROM snapshots s
        LEFT JOIN (
            SELECT org_id, account_id, entry_id, sum(available) OVER w AS available,
                sum(reserved) OVER w AS reserved, sum(spent) OVER w AS spent
            FROM entry_moves WINDOW w AS (
                PARTITION BY org_id, account_id ORDER BY entry_id ROWS UNBOUNDED PRECEDING)
        ) AS h ON h.org_id = s.org_id AND h.account_id = s.account_id AND h.entry_id = s.entry_id
        WHERE s.available IS DISTINCT FROM h.available OR s.reserved IS DISTINCT FROM h.reserved
            OR s.spent IS DISTINCT FROM h.spent""",
    ),
    Check(
        "spending",
        "what each payer spent on an account, a GPU type and a day is the sum of its entries",
        f"""SELECT coalesce(s.org_id, c.org_id) AS org_id, coalesce(s.day, c.day) AS day,
            coalesce(s.payer_id, c.payer_id) AS payer_id,
            coalesce(s.account_id, c.account_id) AS account_id,
            coalesce(s.gpu_type, c.gpu_type) AS gpu_type, s.amount, c.amount AS replayed
        FROM spend_days s FULL JOIN (
            SELECT org_id, day, payer_id, account_id, gpu_type, sum(amount) AS amount
            FROM ({CHARGES}) AS of_leases GROUP BY 1, 2, 3, 4, 5
        ) AS c ON c.org_id = s.org_id AND c.day = s.day AND c.payer_id = s.payer_id
            AND c.account_id = s.account_id AND c.gpu_type = s.gpu_type
        WHERE s.amount IS DISTINCT FROM c.amount""",  # noqa: S608  # constant texts only
    ),
    Check(
        "spend_hours",
        "what each payer had spent on a day before an hour in which more was spent is the sum of"
        " its entries",
        f"""SELECT coalesce(s.org_id, c.org_id) AS org_id, coalesce(s.hour, c.hour) AS hour,
            coalesce(s.payer_id, c.payer_id) AS payer_id,
            coalesce(s.account_id, c.account_id) AS account_id,
            coalesce(s.gpu_type, c.gpu_type) AS gpu_type, s.before, c.before AS replayed
        FROM spend_hours s FULL JOIN ({HOURS}) AS c
        ON c.org_id = s.org_id AND c.hour = s.hour AND c.payer_id = s.payer_id
            AND c.account_id = s.account_id AND c.gpu_type = s.gpu_type
        WHERE s.before IS DISTINCT FROM c.before""",  # noqa: S608  # constant texts only
    ),
    Check(
        "lease_days",
        "a lease has a row for each day after its first on which it was charged, with what it had"
        " been charged before",
        f"""SELECT coalesce(d.org_id, c.org_id) AS org_id,
            coalesce(d.reservation_id, c.reservation_id) AS reservation_id,
            coalesce(d.day, c.day) AS day, d.account_id, d.charged, c.charged AS replayed
        FROM lease_days d FULL JOIN (
            SELECT org_id, reservation_id, account_id, admitted, day, coalesce(sum(sum(amount))
                OVER (PARTITION BY org_id, reservation_id ORDER BY day
                    ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), 0) AS charged
            FROM ({CHARGES}) AS by_payer GROUP BY 1, 2, 3, 4, 5
        ) AS c ON c.org_id = d.org_id AND c.reservation_id = d.reservation_id AND c.day = d.day
        WHERE c.day IS NULL OR d.account_id <> c.account_id OR d.charged <> c.charged
            OR (d.day IS NULL AND c.admitted <> c.day)""",  # noqa: S608  # constant texts only
    ),
)
