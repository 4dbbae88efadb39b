"""The rules of leases as questions to the database; see verify.

Owns: one query for each rule. What a lease is follows from its terms, from the clock of its org,
and from its entries in their order.
"""

from __future__ import annotations

from gpucredits.core import bounds
from gpucredits.store.verify.check import Check
from gpucredits.store.verify.text import above, credits_text

# A batch may have read its prices when another one was just being added.
PRICE_SETTLES_US = 60_000_000

LEASE_CHECKS = (
    Check(
        "leases",
        "a lease that runs has paid ahead as far as it may go; one that is over ended when it did,"
        " and none has used more time than the server has seen pass",
        """SELECT r.org_id, r.reservation_id, r.state, r.held, r.promised, r.settled, r.window_ms,
            r.admitted_at, r.expires_at, r.extended_ms, r.reprieve_ms, r.ended_at, o.clock
        FROM reservations r
        LEFT JOIN orgs o ON o.org_id = r.org_id
        LEFT JOIN ( -- how far ahead the org's clock once stood
            SELECT org_id, max(clock) AS clock FROM clock_repairs GROUP BY org_id
        ) AS c ON c.org_id = r.org_id
        CROSS JOIN LATERAL (
            SELECT greatest(o.clock, c.clock) AS latest, r.milli_gpus::numeric * r.price AS rate,
                r.window_ms * (1 + r.escrow_windows) + r.extended_ms AS lease_ms,
                r.expires_at - r.reprieve_ms * 1000 AS trusted_until,
                r.settled + r.held + r.promised AS funds
        ) AS t
        WHERE (t.latest >= r.admitted_at AND (r.state <> 0 OR o.clock >= r.admitted_at)
            AND r.used_ms <= (CASE r.state WHEN 0 THEN t.latest ELSE r.ended_at END
                - r.admitted_at) / 1000
            AND CASE WHEN r.state <> 0 THEN r.ended_at = r.expires_at
                    AND r.ended_at BETWEEN r.admitted_at AND t.latest
                    AND (r.state <> 2 OR r.used_ms = 0)
                ELSE r.ended_at = 0 AND t.trusted_until <= o.clock + t.lease_ms * 1000
                    -- it could go on for a millisecond, and not for longer than its lease
                    AND t.funds BETWEEN div(t.rate * (r.used_ms + 1), 3600000000)
                        AND div(t.rate * (r.used_ms + t.lease_ms), 3600000000)
                    -- in full, unless its last beat was nearer to its end: that has paid for less
                    AND CASE WHEN r.beat_at <= t.trusted_until - t.lease_ms * 1000
                        THEN t.funds = div(t.rate * (r.used_ms + t.lease_ms), 3600000000)
                        ELSE t.rate = 0 OR t.trusted_until <= r.beat_at + 1000
                            * (div((t.funds + 1)::numeric * 3600000000 - 1, nullif(t.rate, 0))
                                - r.used_ms)
                        END
                END) IS NOT TRUE""",  # constant texts only
    ),
    Check(
        "extensions",
        "a live lease ends later than its last report let it only for a maintenance or an outage",
        """SELECT r.org_id, r.reservation_id, r.expires_at, r.extended_ms, r.reprieve_ms
        FROM reservations r
        WHERE r.state = 0 AND r.extended_ms > 0 AND NOT EXISTS (
            SELECT FROM maintenances m WHERE m.until + 1000 > r.expires_at - r.reprieve_ms * 1000
        )
        UNION ALL
        SELECT r.org_id, r.reservation_id, r.expires_at, r.extended_ms, r.reprieve_ms
        FROM reservations r
        WHERE r.state = 0 AND r.reprieve_ms > 0 AND NOT EXISTS (
            SELECT FROM outages o
            WHERE o.until + least(r.window_ms, o.grace_ms) * 1000 + 1000 > r.expires_at
        )""",
    ),
    Check(
        "authorised",
        "no lease has cost more than was authorised, nor while it ran overrun more than was agreed",
        """SELECT r.org_id, r.reservation_id, r.state, r.settled, r.max_amount, r.authorised,
            r.overdraft, o.overrun
        FROM reservations r
        LEFT JOIN ( -- corrections have no seq, and what a lapsed lease is charged comes after it
            SELECT e.org_id, e.reservation_id, sum(e.amount) AS overrun
            FROM timed_entries e
            JOIN reservations l ON l.org_id = e.org_id AND l.reservation_id = e.reservation_id
            WHERE e.type = 10 AND e.seq > 0 AND (l.state <> 3 OR e.recorded_at <= l.ended_at)
            GROUP BY 1, 2
        ) AS o ON o.org_id = r.org_id AND o.reservation_id = r.reservation_id
        WHERE (r.max_amount > 0 AND greatest(r.settled, r.authorised) > r.max_amount)
            OR (r.state = 3 AND r.settled > r.authorised) OR (r.state <> 3 AND r.authorised <> 0)
            OR o.overrun > r.overdraft""",
    ),
    Check(
        "claims",
        "credits of grants that have ended are kept for claims of live leases, within their holds",
        # A claim on a grant of which nothing is left is none; it goes with the lease's next report.
        """WITH kept AS MATERIALIZED (
            SELECT r.org_id, r.reservation_id, r.payer_id, r.state, r.held,
                r.kept[place] AS grant_id, r.kept[place + 1] AS claim, r.kept[place + 2] AS until
            FROM reservations r
            CROSS JOIN LATERAL generate_series(1, cardinality(r.kept), 3) AS place
            WHERE r.kept <> '{}'
        )
        SELECT g.org_id, g.grant_id, NULL::bigint AS reservation_id, g.state, g.remaining, g.claims,
            c.claims AS claimed
        FROM grants g LEFT JOIN (
            SELECT org_id, grant_id, sum(claim) AS claims FROM kept GROUP BY 1, 2
        ) AS c ON c.org_id = g.org_id AND c.grant_id = g.grant_id
        WHERE g.claims <> CASE WHEN g.state = 0 AND g.is_open THEN coalesce(c.claims, 0) ELSE 0 END
            OR (g.state = 0 AND g.remaining > g.claims)
        UNION ALL
        SELECT k.org_id, k.grant_id, k.reservation_id, g.state, g.remaining, g.claims, k.claim
        FROM kept k LEFT JOIN grants g ON g.org_id = k.org_id AND g.grant_id = k.grant_id
        WHERE k.state <> 0 OR k.claim <= 0
            OR (g.account_id = k.payer_id AND k.until >= g.expires_at) IS NOT TRUE
        UNION ALL
        SELECT k.org_id, NULL, k.reservation_id, NULL, NULL, k.held, sum(k.claim)
        FROM kept k JOIN grants g ON g.org_id = k.org_id AND g.grant_id = k.grant_id AND g.is_open
        GROUP BY k.org_id, k.reservation_id, k.held
        HAVING sum(k.claim) > k.held""",
    ),
    Check(
        "payments",
        "who paid for a lease is whom its charges took from, less what was given back, last first",
        # Charges pile up and refunds take off the top: of each charge that is left which lies below
        # the lowest that the pile ever was from then on.
        """WITH special AS MATERIALIZED (
            SELECT org_id, reservation_id, paid FROM reservations
            WHERE cardinality(paid) > 2 OR refunded > 0
        ), piled AS (
            SELECT e.org_id, e.reservation_id, e.entry_id, e.account_id, e.grant_id, e.type,
                m.amount,
                sum(m.amount) OVER (PARTITION BY e.org_id, e.reservation_id ORDER BY e.entry_id)
                    AS top
            FROM special s
            JOIN entries e ON e.org_id = s.org_id AND e.reservation_id = s.reservation_id
            CROSS JOIN LATERAL (
                SELECT CASE e.type WHEN 7 THEN -e.amount ELSE e.amount END AS amount
            ) AS m
            WHERE e.type IN (6, 7, 9)
        ), lasting AS (
            SELECT p.*, min(top) OVER (
                PARTITION BY org_id, reservation_id ORDER BY entry_id DESC
            ) - (top - amount) AS lasts
            FROM piled p
        ), marked AS (
            SELECT l.*, (account_id, grant_id) IS DISTINCT FROM lag((account_id, grant_id)) OVER (
                PARTITION BY org_id, reservation_id ORDER BY entry_id
            ) AS begins
            FROM lasting l WHERE type <> 7 AND lasts > 0
        ), numbered AS (
            SELECT m.*, count(*) FILTER (WHERE begins) OVER (
                PARTITION BY org_id, reservation_id ORDER BY entry_id
            ) AS run
            FROM marked m
        ), replayed AS (
            SELECT org_id, reservation_id, string_agg(grant_id || ',' || lasts, ',' ORDER BY run)
                AS paid
            FROM (
                SELECT org_id, reservation_id, run, min(grant_id) AS grant_id, sum(lasts) AS lasts
                FROM numbered GROUP BY 1, 2, 3
            ) AS runs GROUP BY 1, 2
        )
        SELECT s.org_id, s.reservation_id, array_to_string(s.paid, ',') AS paid,
            r.paid AS replayed_paid, NULL::bigint AS grant_id
        FROM special s
        LEFT JOIN replayed r ON r.org_id = s.org_id AND r.reservation_id = s.reservation_id
        WHERE array_to_string(s.paid, ',') <> coalesce(r.paid, '')
        UNION ALL -- whoever has paid gets back so much as is refunded, and no other
        SELECT org_id, reservation_id, NULL, NULL, grant_id FROM (
            SELECT org_id, reservation_id, grant_id, amount FROM piled
            UNION ALL
            SELECT s.org_id, s.reservation_id, s.paid[place], -s.paid[place + 1]
            FROM special s CROSS JOIN LATERAL generate_series(1, cardinality(s.paid), 2) AS place
        ) AS lots
        GROUP BY org_id, reservation_id, grant_id
        HAVING sum(amount) <> 0""",
    ),
    Check(
        "admissions",
        "leases belong to accounts that are there, and have the price that was in force",
        # Alike ones are looked at together, the first and the last of them: the last one beside the
        # newest version, at each level, of all that had settled by then.
        f"""WITH alike AS (
            SELECT org_id, account_id, account, payer_id, gpu_type, region, price_id, price,
                min(reservation_id) AS reservation_id, min(admitted_at) AS first_at,
                max(admitted_at) AS last_at
            FROM reservations r
            WHERE NOT EXISTS ( -- the price is that of when the lease began by the wrong clock
                SELECT FROM clock_repairs c
                WHERE c.org_id = r.org_id AND c.repaired_at = r.admitted_at
            )
            GROUP BY 1, 2, 3, 4, 5, 6, 7, 8
        ), asked AS (
            SELECT alike.*, {above("account")} AS path FROM alike
        ), moments AS ( -- when versions have settled, and when leases could have had them
            SELECT greatest(effective_from, created_at + {PRICE_SETTLES_US}) AS at,
                org_id AS price_org, gpu_type, region, account AS path,
                ARRAY[effective_from, price_id] AS version, NULL::bigint AS org_id,
                NULL::bigint AS reservation_id, NULL AS account, NULL::bigint AS price, price_id
            FROM prices WHERE effective_to = {bounds.NEVER_US}
            UNION ALL
            SELECT last_at, CASE path WHEN '' THEN 0 ELSE org_id END, gpu_type, region, path, NULL,
                org_id, reservation_id, account, price, price_id
            FROM asked
        ), settled AS (
            SELECT m.*, max(version) OVER (
                PARTITION BY price_org, gpu_type, region, path ORDER BY at
            ) AS best
            FROM moments m
        )
        SELECT r.org_id, r.reservation_id, r.account, a.path, p.path AS payer, r.price,
            v.credits_per_gpu_hour, r.price_id
        FROM alike r
        LEFT JOIN accounts a ON a.org_id = r.org_id AND a.account_id = r.account_id
        LEFT JOIN accounts p ON p.org_id = r.org_id AND p.account_id = r.payer_id
        LEFT JOIN prices v ON v.price_id = r.price_id
            AND v.org_id = CASE v.account WHEN '' THEN 0 ELSE r.org_id END
        WHERE (r.account = a.path AND starts_with(a.path || '/', p.path || '/')
            AND v.credits_per_gpu_hour = r.price AND v.gpu_type = r.gpu_type
            AND v.region = r.region AND v.effective_from <= r.first_at
            AND v.effective_to > r.last_at AND NOT v.is_end
            AND (v.account = '' OR starts_with(a.path || '/', v.account || '/'))) IS NOT TRUE
        UNION ALL
        SELECT r.org_id, r.reservation_id, r.account, NULL, NULL, r.price,
            w.credits_per_gpu_hour, w.price_id
        FROM settled r
        JOIN prices v ON v.price_id = r.price_id
        JOIN prices w ON w.price_id = r.best[2]
        WHERE r.org_id IS NOT NULL
            AND (NOT w.is_end OR w.account = v.account) -- an end says nothing of other owners
            AND (length(w.account), w.effective_from, w.price_id)
                > (length(v.account), v.effective_from, v.price_id)
        UNION ALL -- a version with an end that was in force then, and would have come first
        SELECT r.org_id, r.reservation_id, r.account, NULL, NULL, r.price,
            w.credits_per_gpu_hour, w.price_id
        FROM asked r
        JOIN prices v ON v.price_id = r.price_id
        JOIN prices w ON w.org_id = CASE r.path WHEN '' THEN 0 ELSE r.org_id END
            AND w.gpu_type = r.gpu_type AND w.region = r.region AND w.account = r.path
            AND w.effective_to BETWEEN r.last_at + 1 AND {bounds.NEVER_US} - 1
            AND greatest(w.effective_from, w.created_at + {PRICE_SETTLES_US}) <= r.last_at
        WHERE (length(w.account), w.effective_from, w.price_id)
            > (length(v.account), v.effective_from, v.price_id)""",  # noqa: S608  # constant texts only
    ),
    Check(
        "announced",
        "leases are those that were announced, and ended as that was announced",
        f"""SELECT o.org_id, o.event_id, o.type, o.payload, o.subject_id AS reservation_id,
            r.account, r.job_id, r.state, r.settled
        FROM outbox o
        LEFT JOIN reservations r ON r.org_id = o.org_id AND r.reservation_id = o.subject_id
        LEFT JOIN (
            SELECT org_id, subject_id, max(event_id) AS event_id FROM outbox
            WHERE type = 'reservation.charged_late' GROUP BY 1, 2
        ) AS n ON n.org_id = o.org_id AND n.subject_id = o.subject_id
        WHERE o.type IN ('reservation.opened', 'reservation.settled', 'reservation.canceled',
                'reservation.lapsed', 'reservation.charged_late')
            AND (o.payload ->> 'account' = r.account
                AND CASE o.type WHEN 'reservation.opened' THEN o.payload ->> 'job_id' = r.job_id
                    ELSE (o.payload ->> 'settled' = {credits_text("r.settled")}
                        OR n.event_id > o.event_id)
                        AND r.state = CASE o.type WHEN 'reservation.settled' THEN 1
                            WHEN 'reservation.canceled' THEN 2 ELSE 3 END
                END) IS NOT TRUE""",  # noqa: S608  # constant texts only
    ),
)
