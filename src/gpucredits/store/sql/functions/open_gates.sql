-- What open_book reads of accounts, grants and leases where one of the orgs has limits or budgets:
-- the same, and of orgs with limits (gated_orgs) also every account that is due, the accounts on
-- the way up from each lease, their limits with what they count, and the leases of each job that
-- a quota on jobs counts, as far as a command may end it (may_end), or that shares a cap; of orgs with budgets those of
-- accounts that are due or named. Of anew_orgs, where limits are set, also the last one that ended is
-- read, and of accounts that are counted or suspended (count_paths) every live lease below them,
-- with who pays for it. Where
-- nothing can end, quotas on what runs at once are left out unless they are exceeded: a beat that
-- only renews needs no other.

CREATE OR REPLACE FUNCTION open_gates(
    instant_now bigint, gated_orgs bigint[], budget_orgs bigint[], anew_orgs bigint[],
    count_orgs bigint[], count_paths text[],
    lease_orgs bigint[], lease_ids bigint[],
    path_orgs bigint[], paths text[],
    account_orgs bigint[], account_ids bigint[],
    topup_orgs bigint[], topup_ids bigint[],
    limit_orgs bigint[], limit_ids bigint[],
    job_orgs bigint[], job_paths text[], job_ids text[], may_end boolean
) RETURNS SETOF book_row LANGUAGE plpgsql STABLE ROWS 500
SET search_path FROM CURRENT AS $$
BEGIN
    RETURN QUERY
    WITH capped AS MATERIALIZED ( -- orgs with caps on jobs, where more than renewals may happen
        SELECT o.org_id, EXISTS (SELECT 1 FROM reservations r WHERE r.org_id = o.org_id
            AND r.state = 0 AND r.cap_part >= 0) AS shares
        FROM orgs o WHERE o.org_id = ANY (gated_orgs)
            AND (may_end OR EXISTS (SELECT 1 FROM accounts a WHERE a.org_id = o.org_id
                AND a.due_at <= greatest(instant_now, o.clock)))
            AND EXISTS (SELECT 1 FROM quotas q WHERE q.org_id = o.org_id AND q.dimension = 0
                AND q.ended_at = 0)
    ), sharing AS MATERIALIZED ( -- live leases that share the cap of a job with one that is named
        SELECT x.org_id, x.reservation_id AS id
        FROM capped c
        JOIN unnest(job_orgs, job_paths, job_ids) AS w(org_id, path, job_id)
            ON w.org_id = c.org_id
        JOIN accounts a ON a.org_id = w.org_id AND a.path = w.path
        CROSS JOIN LATERAL (
            SELECT l.org_id, l.reservation_id FROM reservations l
            WHERE l.org_id + 0 = a.org_id AND l.account_id + 0 = a.account_id
                AND l.job_id = w.job_id AND l.state + 0 = 0
            OFFSET 0
        ) AS x
        UNION
        SELECT x.org_id, x.reservation_id
        FROM capped c
        JOIN unnest(lease_orgs, lease_ids) AS w(org_id, id) ON w.org_id = c.org_id AND c.shares
        JOIN reservations r ON r.org_id = w.org_id AND r.reservation_id = w.id
            AND r.cap_part >= 0 AND r.state = 0
        CROSS JOIN LATERAL (
            SELECT l.org_id, l.reservation_id FROM reservations l
            WHERE l.org_id + 0 = r.org_id AND l.account_id + 0 = r.account_id
                AND l.job_id = r.job_id AND l.state + 0 = 0
            OFFSET 0
        ) AS x
        UNION -- or with one that has lapsed, whose use may be reported late
        SELECT x.org_id, x.reservation_id
        FROM capped c
        JOIN unnest(lease_orgs, lease_ids) AS w(org_id, id) ON w.org_id = c.org_id
        JOIN reservations r ON r.org_id = w.org_id AND r.reservation_id = w.id AND r.state = 3
        CROSS JOIN LATERAL (
            SELECT l.org_id, l.reservation_id FROM reservations l
            WHERE l.org_id + 0 = r.org_id AND l.account_id + 0 = r.account_id
                AND l.job_id = r.job_id AND l.state + 0 = 0
            OFFSET 0
        ) AS x
    ), named AS MATERIALIZED (
        SELECT r.beat_at, r.cap_part, r.extended_ms + r.reprieve_ms AS more_ms, -- [columns of lease r]
            r.org_id, r.reservation_id, r.held, r.settled, r.used_ms, r.seq, r.expires_at, r.state,
            r.decision, r.adjusted, r.refunded, r.ended_at, r.payer_id, r.window_ms, r.account_id,
            r.milli_gpus, r.price, r.admitted_at, r.escrow_windows, r.max_amount, r.account,
            r.job_id, r.gpu_type || chr(31) || r.region AS packed, r.paid, CASE WHEN NOT r.is_plain
            THEN ARRAY[r.extended_ms, r.reprieve_ms, r.beat_at, r.overdrawn,
            r.leaving::integer::bigint, r.stopping_at, r.why::bigint, r.promised, r.cap_part,
            r.cap_seen, r.clears_at, r.stopping_for, r.authorised, r.reconciled, r.lost_ms,
            r.exhaustion::bigint, r.grace_ms, r.overdraft, cardinality(r.kept)] || r.kept ||
            r.payers END AS terms
            -- [end]
        FROM (
            SELECT n.org_id, n.id FROM unnest(lease_orgs, lease_ids) AS n(org_id, id)
            UNION ALL SELECT s.org_id, s.id FROM sharing s
        ) AS w
        JOIN reservations r ON r.org_id = w.org_id AND r.reservation_id = w.id
    ), wanted AS MATERIALIZED (
        SELECT n.org_id, n.payer_id AS account_id FROM named n
        UNION
        SELECT a.org_id, a.account_id FROM unnest(path_orgs, paths) AS w(org_id, path)
        JOIN accounts a ON a.org_id = w.org_id AND a.path = w.path
        UNION
        SELECT w.org_id, w.id FROM unnest(account_orgs, account_ids) AS w(org_id, id)
        UNION
        SELECT t.org_id, t.account_id FROM unnest(topup_orgs, topup_ids) AS w(org_id, id)
        JOIN topups t ON t.org_id = w.org_id AND t.topup_id = w.id
        UNION -- who pays for what runs below accounts that are counted
        SELECT r.org_id, r.payer_id FROM unnest(count_orgs, count_paths) AS w(org_id, path)
        JOIN reservations r ON r.org_id = w.org_id AND r.state = 0
            AND r.account >= w.path AND r.account < w.path || '0'
            AND (r.account = w.path OR r.account >= w.path || '/')
        UNION
        SELECT q.org_id, q.account_id FROM unnest(limit_orgs, limit_ids) AS w(org_id, id)
        JOIN quotas q ON q.org_id = w.org_id AND q.quota_id = w.id
        UNION
        SELECT b.org_id, b.account_id FROM unnest(limit_orgs, limit_ids) AS w(org_id, id)
        JOIN token_buckets b ON b.org_id = w.org_id AND b.bucket_id = w.id
        UNION
        SELECT a.org_id, a.account_id FROM orgs o
        JOIN accounts a ON a.org_id = o.org_id AND a.due_at <= greatest(instant_now, o.clock)
        WHERE o.org_id = ANY (gated_orgs)
    ), held AS MATERIALIZED (
        SELECT a.*, greatest(instant_now, o.clock) AS instant_now
        FROM wanted w
        JOIN accounts a ON a.org_id = w.org_id AND a.account_id = w.account_id
        JOIN orgs o ON o.org_id = w.org_id
    ), leases AS MATERIALIZED (
        SELECT * FROM named
        UNION ALL -- the lapsed leases of accounts that are due, and the next one to lapse; all
        -- live ones where a grant has ended or a budget has gone on, since each may have used some of it
        SELECT r.beat_at, r.cap_part, r.extended_ms + r.reprieve_ms AS more_ms, -- [columns of lease r]
            r.org_id, r.reservation_id, r.held, r.settled, r.used_ms, r.seq, r.expires_at, r.state,
            r.decision, r.adjusted, r.refunded, r.ended_at, r.payer_id, r.window_ms, r.account_id,
            r.milli_gpus, r.price, r.admitted_at, r.escrow_windows, r.max_amount, r.account,
            r.job_id, r.gpu_type || chr(31) || r.region AS packed, r.paid, CASE WHEN NOT r.is_plain
            THEN ARRAY[r.extended_ms, r.reprieve_ms, r.beat_at, r.overdrawn,
            r.leaving::integer::bigint, r.stopping_at, r.why::bigint, r.promised, r.cap_part,
            r.cap_seen, r.clears_at, r.stopping_for, r.authorised, r.reconciled, r.lost_ms,
            r.exhaustion::bigint, r.grace_ms, r.overdraft, cardinality(r.kept)] || r.kept ||
            r.payers END AS terms
            -- [end]
        FROM held h
        CROSS JOIN LATERAL (
            SELECT CASE WHEN EXISTS (
                    SELECT 1 FROM grants g WHERE g.org_id = h.org_id
                        AND g.account_id = h.account_id AND g.is_open AND g.state <> 0
                        AND g.expires_at <= h.instant_now
                ) OR EXISTS (
                    SELECT 1 FROM budgets b WHERE b.org_id = h.org_id
                        AND b.account_id = h.account_id AND b.next_at <= h.instant_now
                ) THEN 4611686018427387904 ELSE (
                    SELECT min(l.expires_at) FROM reservations l
                    WHERE l.org_id = h.org_id AND l.payer_id = h.account_id AND l.state = 0
                        AND l.expires_at > h.instant_now
                ) END AS next_at
        ) AS upcoming
        CROSS JOIN LATERAL (
            SELECT * FROM reservations l
            WHERE l.org_id = h.org_id AND l.payer_id = h.account_id
                AND l.state = 0 AND l.expires_at <= coalesce(upcoming.next_at, h.instant_now)
            OFFSET 0 -- one payer after the other, whatever the plan
        ) AS r
        WHERE h.due_at <= h.instant_now
        UNION ALL -- what runs below accounts whose new quotas count it, or that are suspended
        SELECT r.beat_at, r.cap_part, r.extended_ms + r.reprieve_ms AS more_ms, -- [columns of lease r]
            r.org_id, r.reservation_id, r.held, r.settled, r.used_ms, r.seq, r.expires_at, r.state,
            r.decision, r.adjusted, r.refunded, r.ended_at, r.payer_id, r.window_ms, r.account_id,
            r.milli_gpus, r.price, r.admitted_at, r.escrow_windows, r.max_amount, r.account,
            r.job_id, r.gpu_type || chr(31) || r.region AS packed, r.paid, CASE WHEN NOT r.is_plain
            THEN ARRAY[r.extended_ms, r.reprieve_ms, r.beat_at, r.overdrawn,
            r.leaving::integer::bigint, r.stopping_at, r.why::bigint, r.promised, r.cap_part,
            r.cap_seen, r.clears_at, r.stopping_for, r.authorised, r.reconciled, r.lost_ms,
            r.exhaustion::bigint, r.grace_ms, r.overdraft, cardinality(r.kept)] || r.kept ||
            r.payers END AS terms
            -- [end]
        FROM unnest(count_orgs, count_paths) AS w(org_id, path)
        JOIN reservations r ON r.org_id = w.org_id AND r.state = 0
            AND r.account >= w.path AND r.account < w.path || '0'
            AND (r.account = w.path OR r.account >= w.path || '/')
    ), ways AS MATERIALIZED ( -- up from each account with a lease: its parent and grandparent
        SELECT l.org_id, l.account_id, a.parent_id, coalesce(p.parent_id, 0) AS top_id, l.beat_at
        FROM (
            SELECT r.org_id, r.account_id, min(lease_beat_at(r.beat_at, r.expires_at, r.window_ms,
                r.escrow_windows, r.more_ms)) AS beat_at
            FROM leases r WHERE r.org_id = ANY (gated_orgs) AND r.state IN (0, 3) -- late use counts
            GROUP BY r.org_id, r.account_id
        ) AS l
        JOIN accounts a ON a.org_id = l.org_id AND a.account_id = l.account_id
        LEFT JOIN accounts p ON p.org_id = l.org_id AND p.account_id = a.parent_id
    ), scope AS MATERIALIZED ( -- accounts whose limits are wanted
        SELECT w.org_id, w.account_id FROM wanted w WHERE w.org_id = ANY (gated_orgs)
        UNION SELECT w.org_id, w.account_id FROM ways w
        UNION SELECT w.org_id, w.parent_id FROM ways w
        UNION SELECT w.org_id, w.top_id FROM ways w
    ), limiting AS MATERIALIZED ( -- each quota with what it counts; a cap on jobs counts nothing
        SELECT q.*, CASE q.dimension WHEN 3 THEN 0 ELSE c.count END AS count,
            coalesce(c.leaving, 0) AS leaving, coalesce(w.used, 0) AS used,
            coalesce(w.held, 0) AS held, coalesce(w.base, 0) AS base,
            coalesce(w.starts_at, 0) AS starts_at, coalesce(w.ends_at, 0) AS ends_at
        FROM scope s
        JOIN quotas q ON q.org_id = s.org_id AND q.account_id = s.account_id AND q.ended_at = 0
        LEFT JOIN slots c ON c.org_id = q.org_id AND c.quota_id = q.quota_id
        LEFT JOIN windows w ON w.org_id = q.org_id AND w.account_id = q.account_id
            AND w.quota_id = q.quota_id
        WHERE may_end OR q.dimension IN (0, 3) OR c.count > q.amount OR c.leaving > 0
            OR q.org_id IN (SELECT h.org_id FROM held h WHERE h.due_at <= h.instant_now)
        ORDER BY q.org_id, q.quota_id
    ), buckets AS MATERIALIZED (
        SELECT b.org_id, b.bucket_id, b.account_id, b.capacity, b.refill_per_hour, m.level,
            m.level_at, m.fraction, b.ended_at, b.set_by
        FROM scope s
        JOIN token_buckets b ON b.org_id = s.org_id AND b.account_id = s.account_id
            AND b.kind = 0 AND b.ended_at = 0
        JOIN meters m ON m.org_id = s.org_id AND m.account_id = s.account_id
        UNION ALL -- and the last one that ended, where a limit may be set anew
        SELECT e.org_id, e.bucket_id, e.account_id, e.capacity, e.refill_per_hour, e.level,
            e.level_at, e.fraction, e.ended_at, e.set_by
        FROM scope s
        CROSS JOIN LATERAL (
            SELECT * FROM token_buckets t WHERE t.org_id = s.org_id
                AND t.account_id = s.account_id AND t.kind = 0 AND t.ended_at > 0
            ORDER BY t.bucket_id DESC LIMIT 1
        ) AS e
        WHERE s.org_id = ANY (anew_orgs)
    ), moment AS MATERIALIZED ( -- the time, and since when slices may be open
        SELECT greatest(instant_now, max(o.clock)) AS now,
            coalesce((SELECT min(w.beat_at) FROM ways w), greatest(instant_now, max(o.clock)))
                AS since
        FROM orgs o WHERE o.org_id = ANY (gated_orgs)
    ), jobs AS MATERIALIZED (
        SELECT l.org_id, l.account_id, l.job_id FROM leases l
        WHERE l.state = 0 AND (may_end
                OR l.org_id IN (SELECT h.org_id FROM held h WHERE h.due_at <= h.instant_now))
            AND (l.org_id IN (SELECT q.org_id FROM limiting q WHERE q.dimension = 2)
                OR l.cap_part >= 0)
        UNION
        SELECT n.org_id, n.account_id, n.job_id FROM named n
        WHERE n.org_id = ANY (anew_orgs)
            OR (n.state = 3 AND n.org_id IN (SELECT c.org_id FROM capped c))
        UNION
        SELECT a.org_id, a.account_id, w.job_id
        FROM unnest(job_orgs, job_paths, job_ids) AS w(org_id, path, job_id)
        JOIN accounts a ON a.org_id = w.org_id AND a.path = w.path
        WHERE w.org_id = ANY (anew_orgs)
            OR w.org_id IN (SELECT q.org_id FROM limiting q WHERE q.dimension IN (0, 2))
    ), spending AS MATERIALIZED ( -- budgets of accounts that are due or named
        SELECT b.* FROM held h
        JOIN budgets b ON b.org_id = h.org_id AND b.account_id = h.account_id
        WHERE h.org_id = ANY (budget_orgs) AND (h.due_at <= h.instant_now
            OR (h.org_id, h.path) IN (SELECT * FROM unnest(path_orgs, paths))
            OR (h.org_id, h.account_id) IN (SELECT * FROM unnest(account_orgs, account_ids)))
        ORDER BY b.org_id, b.budget_id
    )
    SELECT -- [account h | is_bare = 0 | is_due = h.due_at <= h.instant_now]
        2, h.org_id, h.account_id, h.remaining, h.reserved, h.spent, h.debt, h.overrun, h.promised,
        h.version, h.due_at, h.model::bigint, h.credit_limit, h.status::bigint,
        h.allocated::integer::bigint, h.delinquent::integer::bigint, h.overdraft_limit,
        h.created_at, 0::integer::bigint, (h.due_at <= h.instant_now)::integer::bigint,
        NULL::bigint, h.metadata::text, h.path, NULL::text, NULL::bigint[], NULL::bytea,
        NULL::bytea, ARRAY[h.funding::bigint, h.window_max_ms, h.suspended_by::bigint]
        -- [end]
    FROM held h
    UNION ALL -- accounts on the way that are not due and pay for nothing here: without their grants
    SELECT -- [account a | is_bare = 1 | is_due = 0]
        2, a.org_id, a.account_id, a.remaining, a.reserved, a.spent, a.debt, a.overrun, a.promised,
        a.version, a.due_at, a.model::bigint, a.credit_limit, a.status::bigint,
        a.allocated::integer::bigint, a.delinquent::integer::bigint, a.overdraft_limit,
        a.created_at, 1::integer::bigint, 0::integer::bigint, NULL::bigint, a.metadata::text,
        a.path, NULL::text, NULL::bigint[], NULL::bytea, NULL::bytea,
        ARRAY[a.funding::bigint, a.window_max_ms, a.suspended_by::bigint]
        -- [end]
    FROM (SELECT * FROM scope EXCEPT SELECT * FROM wanted) AS s
    JOIN accounts a ON a.org_id = s.org_id AND a.account_id = s.account_id
    UNION ALL
    SELECT -- [grant g]
        3, g.org_id, g.grant_id, g.amount, g.remaining, g.state::bigint, g.claims, g.account_id,
        g.starts_at, g.expires_at, g.priority::bigint, g.source::bigint, g.origin_id, g.created_at,
        g.budget_id, NULL::bigint, NULL::bigint, NULL::bigint, NULL::bigint, NULL::bigint,
        NULL::bigint, g.metadata::text, NULL::text, NULL::text, NULL::bigint[], NULL::bytea,
        NULL::bytea, NULL::bigint[]
        -- [end]
    FROM wanted w
    JOIN grants g ON g.org_id = w.org_id AND g.account_id = w.account_id AND g.is_open
    UNION ALL
    SELECT -- [lease l | packed = l.packed | terms = l.terms]
        4, l.org_id, l.reservation_id, l.held, l.settled, l.used_ms, l.seq, l.expires_at,
        l.state::bigint, l.decision::bigint, l.adjusted, l.refunded, l.ended_at, l.payer_id,
        l.window_ms, l.account_id, l.milli_gpus, l.price, l.admitted_at, l.escrow_windows,
        l.max_amount, l.account, l.job_id, l.packed::text, l.paid, NULL::bytea, NULL::bytea,
        l.terms::bigint[]
        -- [end]
    FROM leases l
    UNION ALL
    SELECT -- [quota q]
        8, q.org_id, q.quota_id, q.amount, q.set_by::bigint, q.account_id, q.dimension::bigint,
        q.calendar::bigint, q.rolling_hours::bigint, q.created_at, q.seeded, q.first_entry_id,
        q.count, q.leaving, q.used, q.held, q.base, q.starts_at, q.ends_at, NULL::bigint,
        NULL::bigint, q.gpu_type, q.zone, NULL::text, NULL::bigint[], NULL::bytea, NULL::bytea,
        NULL::bigint[]
        -- [end]
    FROM limiting q
    UNION ALL -- past windows that are asked about, that a new window counts or a slice began in
    SELECT -- [tally t]
        9, t.org_id, t.quota_id, t.starts_at, t.ends_at, t.used, NULL::bigint, NULL::bigint,
        NULL::bigint, NULL::bigint, NULL::bigint, NULL::bigint, NULL::bigint, NULL::bigint,
        NULL::bigint, NULL::bigint, NULL::bigint, NULL::bigint, NULL::bigint, NULL::bigint,
        NULL::bigint, NULL::text, NULL::text, NULL::text, NULL::bigint[], NULL::bytea, NULL::bytea,
        NULL::bigint[]
        -- [end]
    FROM moment m
    JOIN limiting q ON q.dimension = 3
        AND (q.org_id = ANY (job_orgs) OR q.ends_at <= m.now OR m.since < q.starts_at)
    JOIN tallies t ON t.org_id = q.org_id AND t.quota_id = q.quota_id
        AND t.starts_at > least(m.since, q.starts_at) - 3024000000000 -- 35 days
            - q.rolling_hours * 3600000000
        AND t.ends_at > least(m.since, CASE WHEN q.org_id = ANY (job_orgs) OR q.ends_at <= m.now
            THEN q.starts_at - q.rolling_hours * 3600000000 ELSE m.since END)
    UNION ALL -- a job without a lease has a row as well: it is known that there is none
    SELECT -- [job j | live = r.live | leaving = r.leaving | settled = r.settled
    --  | gpu_type = r.gpu_type | leases = r.leases]
        10, j.org_id, j.account_id, r.live::bigint, r.leaving::bigint, r.settled::bigint,
        NULL::bigint, NULL::bigint, NULL::bigint, NULL::bigint, NULL::bigint, NULL::bigint,
        NULL::bigint, NULL::bigint, NULL::bigint, NULL::bigint, NULL::bigint, NULL::bigint,
        NULL::bigint, NULL::bigint, NULL::bigint, j.job_id, r.gpu_type::text, NULL::text,
        r.leases::bigint[], NULL::bytea, NULL::bytea, NULL::bigint[]
        -- [end]
    FROM jobs j
    LEFT JOIN LATERAL (
        SELECT l.gpu_type, sum(l.live)::bigint AS live, sum(l.leaving)::bigint AS leaving,
            sum(l.settled)::bigint AS settled,
            coalesce(array_agg(l.id) FILTER (WHERE l.live > 0), '{}') AS leases
        FROM (
            SELECT x.gpu_type, x.reservation_id AS id, 1 AS live, x.leaving::integer AS leaving,
                0::bigint AS settled
            FROM reservations x WHERE x.org_id + 0 = j.org_id AND x.account_id + 0 = j.account_id
                AND x.job_id = j.job_id AND x.state + 0 = 0
            UNION ALL
            SELECT x.gpu_type, 0, 0, 0, x.settled
            FROM reservations x WHERE x.org_id + 0 = j.org_id AND x.account_id + 0 = j.account_id
                AND x.job_id = j.job_id AND x.state + 0 <> 0
                AND (j.org_id = ANY (anew_orgs)
                    OR j.org_id IN (SELECT c.org_id FROM capped c))
        ) AS l
        GROUP BY l.gpu_type
    ) AS r ON true
    UNION ALL
    SELECT -- [bucket b]
        11, b.org_id, b.bucket_id, b.capacity, b.refill_per_hour, b.level, b.level_at, b.fraction,
        b.ended_at, b.set_by::bigint, b.account_id, NULL::bigint, NULL::bigint, NULL::bigint,
        NULL::bigint, NULL::bigint, NULL::bigint, NULL::bigint, NULL::bigint, NULL::bigint,
        NULL::bigint, NULL::text, NULL::text, NULL::text, NULL::bigint[], NULL::bytea, NULL::bytea,
        NULL::bigint[]
        -- [end]
    FROM buckets b
    UNION ALL -- a bucket that was not looked at since has yet to see boosts that have lapsed
    SELECT -- [boost b]
        12, b.org_id, b.boost_id, b.starts_at, b.ends_at, b.account_id, b.target_id, b.amount,
        b.refill_per_hour, b.created_at, b.set_by::bigint, NULL::bigint, NULL::bigint, NULL::bigint,
        NULL::bigint, NULL::bigint, NULL::bigint, NULL::bigint, NULL::bigint, NULL::bigint,
        NULL::bigint, b.note, NULL::text, NULL::text, NULL::bigint[], NULL::bytea, NULL::bytea,
        NULL::bigint[]
        -- [end]
    FROM (
        SELECT q.org_id, q.quota_id AS target_id, instant_now AS since FROM limiting q
        UNION ALL SELECT k.org_id, k.bucket_id, least(k.level_at, instant_now) FROM buckets k
    ) AS x
    JOIN boosts b ON b.org_id = x.org_id AND b.target_id = x.target_id AND b.ends_at > x.since
    UNION ALL
    SELECT -- [budget b]
        13, b.org_id, b.budget_id, b.allowance, b.next_at, b.calendar::bigint, b.ends_at,
        b.rollover::bigint, b.rollover_cap, b.rollover_us, b.priority::bigint, b.account_id,
        b.created_at, NULL::bigint, NULL::bigint, NULL::bigint, NULL::bigint, NULL::bigint,
        NULL::bigint, NULL::bigint, NULL::bigint, b.zone, b.name, NULL::text,
        b.warn_percent::bigint[], NULL::bytea, NULL::bytea, NULL::bigint[]
        -- [end]
    FROM spending b
    UNION ALL -- the last period of each: those before it are over and written down
    SELECT -- [period p]
        14, p.org_id, p.budget_id, p.starts_at, p.rolled, p.rolled_grant_id,
        p.warned_percent::bigint, p.ends_at, p.allowance, p.grant_id, p.rollover::bigint,
        p.rollover_cap, p.rollover_us, p.calendar::bigint, NULL::bigint, NULL::bigint, NULL::bigint,
        NULL::bigint, NULL::bigint, NULL::bigint, NULL::bigint, p.zone, NULL::text, NULL::text,
        NULL::bigint[], NULL::bytea, NULL::bytea, NULL::bigint[]
        -- [end]
    FROM spending b
    CROSS JOIN LATERAL (
        SELECT * FROM budget_periods v WHERE v.org_id = b.org_id AND v.budget_id = b.budget_id
        ORDER BY v.starts_at DESC LIMIT 1
    ) AS p;
END $$;
