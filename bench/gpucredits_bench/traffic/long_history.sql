-- Leases of an org in a time that has passed, with every entry that they would have made: in sums
-- and order as the server writes them, so that verify accepts them. $1 org, $2 leases, $3 beats of
-- each at most, $4 and $5 from when until when, $6 GPU types. Accounts and grants are there.

-- [plan]
CREATE TEMPORARY TABLE users ON COMMIT DROP AS
SELECT row_number() OVER (ORDER BY u.path) - 1 AS number, u.account_id, u.path,
    p.account_id AS payer_id, g.grant_id
FROM accounts u
JOIN accounts p ON p.org_id = u.org_id AND p.account_id = u.parent_id
JOIN grants g ON g.org_id = p.org_id AND g.account_id = p.account_id
WHERE u.org_id = $1 AND u.path LIKE '%/%/%' AND u.path NOT LIKE '%/idle';
-- [leases]
CREATE TEMPORARY TABLE leases ON COMMIT DROP AS
SELECT o.next_id - 1 + row_number() OVER (ORDER BY w.admitted_at, w.n) AS reservation_id, w.n,
    u.account_id, u.path, u.payer_id, u.grant_id, v.price_id, v.gpu_type,
    v.credits_per_gpu_hour AS price, w.admitted_at, w.beat_ms, w.window_ms, k.beats,
    w.admitted_at + (k.beats * w.beat_ms + w.window_ms) * 1000 AS expires_at,
    w.admitted_at + (k.beats * w.beat_ms + w.window_ms) * 1000 > $5 AS is_live,
    div(1000::numeric * v.credits_per_gpu_hour * w.window_ms, 3600000000)::bigint AS hold
FROM (
    SELECT n, beat_ms, window_ms,
        CASE WHEN n % 10 = 0 -- these run at the end
            THEN $5::bigint - $3::bigint * beat_ms * 1000 * (n / 10 + 1) / ($2::bigint / 10 + 1)
            ELSE $4::bigint + ($5::bigint - $4::bigint) / $2::bigint * n END AS admitted_at
    FROM generate_series(0::bigint, $2::bigint - 1) AS n
    CROSS JOIN LATERAL (
        SELECT CASE WHEN n % 5 = 0 THEN 3000000 ELSE 50000 END AS beat_ms,
            CASE WHEN n % 5 = 0 THEN 3600000 ELSE 60000 END AS window_ms
    ) AS long
) AS w
CROSS JOIN LATERAL (
    SELECT least($3::bigint, ($5::bigint - w.admitted_at) / 1000 / w.beat_ms) AS beats
) AS k
JOIN orgs o ON o.org_id = $1
JOIN users u ON u.number = (w.n * 7919) % (SELECT count(*) FROM users)
JOIN prices v ON v.org_id = 0 AND v.gpu_type = ($6::text[])[1 + (w.n / 3) % cardinality($6::text[])];
-- [moves]
CREATE TEMPORARY TABLE moves ON COMMIT DROP AS
SELECT o.next_entry_id - 1 + row_number() OVER (ORDER BY m.at, m.reservation_id, m.place)
    AS entry_id, m.*
FROM (
    SELECT l.reservation_id, l.payer_id, p.place,
        CASE WHEN p.place <= l.beats THEN l.admitted_at + p.place * l.beat_ms * 1000
            ELSE l.expires_at END AS at,
        CASE WHEN p.place = 0 THEN 4 WHEN p.place <= l.beats THEN 6 ELSE 5 END AS type,
        CASE WHEN p.place BETWEEN 1 AND l.beats
            THEN (div(1000::numeric * l.price * l.beat_ms * p.place, 3600000000)
                - div(1000::numeric * l.price * l.beat_ms * (p.place - 1), 3600000000))::bigint
            ELSE l.hold END AS amount,
        CASE WHEN p.place BETWEEN 1 AND l.beats THEN l.grant_id ELSE 0 END AS grant_id,
        CASE WHEN p.place BETWEEN 1 AND l.beats THEN p.place ELSE 0 END AS seq
    FROM leases l
    CROSS JOIN LATERAL generate_series(0, l.beats + CASE WHEN l.is_live THEN 0 ELSE 1 END)
        AS p(place)
) AS m
JOIN orgs o ON o.org_id = $1;
-- [entries]
INSERT INTO entries (org_id, type, entry_id, recorded_at, effective_at, account_id, amount, reserve,
    grant_id, other_id, other_grant_id, reservation_id, seq)
SELECT $1, type, entry_id, at, at, payer_id, amount, CASE type WHEN 6 THEN amount ELSE 0 END,
    grant_id, 0, 0, reservation_id, seq
FROM moves ORDER BY entry_id;
-- [reservations]
INSERT INTO reservations (org_id, reservation_id, account, account_id, payer_id, job_id, gpu_type,
    milli_gpus, region, node, price, price_id, window_ms, admitted_at, escrow_windows, max_amount,
    first_entry_id, metadata, state, decision, held, settled, adjusted, refunded, used_ms, seq,
    expires_at, ended_at, paid, authorised)
SELECT $1, l.reservation_id, l.path, l.account_id, l.payer_id,
    'job-' || CASE WHEN l.n % 4 = 0 THEN l.n / 40 ELSE l.n END, l.gpu_type, 1000, 'default',
    'node-' || l.n % 1000, l.price, l.price_id, l.window_ms, l.admitted_at, 0, 0, m.first_id, '{}',
    CASE WHEN l.is_live THEN 0 ELSE 3 END, 0, CASE WHEN l.is_live THEN l.hold ELSE 0 END,
    m.settled, 0, 0, l.beats * l.beat_ms, l.beats, l.expires_at,
    CASE WHEN l.is_live THEN 0 ELSE l.expires_at END,
    CASE WHEN m.settled > 0 THEN ARRAY[l.grant_id, m.settled] ELSE '{}' END,
    CASE WHEN l.is_live THEN 0 ELSE m.settled + l.hold END
FROM leases l
JOIN (
    SELECT reservation_id, min(entry_id) AS first_id,
        coalesce(sum(amount) FILTER (WHERE type = 6), 0)::bigint AS settled
    FROM moves GROUP BY 1
) AS m ON m.reservation_id = l.reservation_id ORDER BY l.reservation_id;
-- [accounts]
UPDATE accounts a SET remaining = a.remaining - m.settled, spent = a.spent + m.settled,
    reserved = a.reserved + m.held, version = a.version + m.moves, due_at = least(a.due_at, m.due_at)
FROM (
    SELECT e.payer_id, count(*) AS moves,
        sum(CASE WHEN e.type = 6 THEN e.amount ELSE 0 END)::bigint AS settled,
        sum(CASE e.type WHEN 4 THEN e.amount WHEN 5 THEN -e.amount ELSE 0 END)::bigint AS held,
        min(CASE WHEN l.is_live THEN l.expires_at END) AS due_at
    FROM moves e JOIN leases l ON l.reservation_id = e.reservation_id GROUP BY 1
) AS m WHERE a.org_id = $1 AND a.account_id = m.payer_id;
-- [grants]
UPDATE grants g SET remaining = g.remaining - m.settled
FROM (SELECT grant_id, sum(amount)::bigint AS settled FROM moves WHERE type = 6 GROUP BY 1) AS m
WHERE g.org_id = $1 AND g.grant_id = m.grant_id;
-- [spend_days]
INSERT INTO spend_days (org_id, day, payer_id, account_id, gpu_type, amount)
SELECT $1, m.at / 86400000000, m.payer_id, l.account_id, l.gpu_type, sum(m.amount)
FROM moves m JOIN leases l ON l.reservation_id = m.reservation_id WHERE m.type = 6
GROUP BY 2, 3, 4, 5;
-- [spend_hours]
INSERT INTO spend_hours (org_id, payer_id, account_id, gpu_type, hour, before)
SELECT $1, payer_id, account_id, gpu_type, hour, coalesce(sum(amount) OVER (
    PARTITION BY payer_id, account_id, gpu_type, hour / 24 ORDER BY hour
    ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), 0)::bigint
FROM (
    SELECT m.payer_id, l.account_id, l.gpu_type, m.at / 3600000000 AS hour, sum(m.amount) AS amount
    FROM moves m JOIN leases l ON l.reservation_id = m.reservation_id WHERE m.type = 6
    GROUP BY 1, 2, 3, 4
) AS spent;
-- [lease_days]
INSERT INTO lease_days (org_id, reservation_id, day, account_id, charged)
SELECT $1, d.reservation_id, d.day, l.account_id, d.before FROM (
    SELECT reservation_id, at / 86400000000 AS day, coalesce(sum(sum(amount)) OVER (
            PARTITION BY reservation_id ORDER BY at / 86400000000
            ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), 0)::bigint AS before
    FROM moves WHERE type = 6 GROUP BY 1, 2
) AS d JOIN leases l ON l.reservation_id = d.reservation_id
WHERE d.day <> l.admitted_at / 86400000000;
-- [org]
UPDATE orgs SET next_id = (SELECT max(reservation_id) + 1 FROM leases),
    next_entry_id = (SELECT max(entry_id) + 1 FROM moves), clock = (SELECT max(at) FROM moves),
    version = new_version()
WHERE org_id = $1;
