-- What limits an org: quotas and what they count, rate limits, boosts, budgets, statements.
--
-- As in 0001 every table leads with org_id and is changed under the org's lock only, and no index is
-- on a column that a heartbeat changes. Hot tables, which heartbeats update, are half empty.

ALTER TABLE orgs
    ADD COLUMN gated boolean NOT NULL DEFAULT false, -- it has a quota or a rate limit
    ADD COLUMN budgeted boolean NOT NULL DEFAULT false; -- it has had a budget

ALTER TABLE accounts
    ADD COLUMN delinquent boolean NOT NULL DEFAULT false,
    ADD COLUMN overdraft_limit bigint NOT NULL DEFAULT 0 CHECK (overdraft_limit >= 0),
    ADD COLUMN promised bigint NOT NULL DEFAULT 0 CHECK (promised >= 0); -- to its live leases
CREATE INDEX accounts_suspended ON accounts (org_id) INCLUDE (path) -- or with a bound on leases
    WHERE status = 1 OR delinquent OR window_max_ms > 0;
-- An org with limits asks for its due accounts in every batch. A heartbeat moves due_at once in the
-- time of a lease; the updates between, which leave it as it is, stay heap-only.
CREATE INDEX accounts_due ON accounts (org_id, due_at);

ALTER TABLE grants ADD COLUMN budget_id bigint NOT NULL DEFAULT 0;

-- Of a live lease that is_plain nothing here but gpu_type and job_id says more than its other columns:
-- it drains, without a grace or an overdraft, nobody told it to go or why it is not renewed in full, it shares no cap with other
-- leases of its job, and its last beat was taken one full lease before it expires. Beats renew plain leases without writing any of these columns,
-- so beat_at is kept for the others only: lease_beat_at() knows it of all.
ALTER TABLE reservations
    ADD COLUMN is_plain boolean NOT NULL DEFAULT true,
    ADD COLUMN beat_at bigint NOT NULL DEFAULT 0,
    ADD COLUMN exhaustion smallint NOT NULL DEFAULT 1 CHECK (exhaustion IN (0, 1, 2)),
    ADD COLUMN grace_ms bigint NOT NULL DEFAULT 0 CHECK (grace_ms >= 0),
    ADD COLUMN overdraft bigint NOT NULL DEFAULT 0 CHECK (overdraft >= 0),
    ADD COLUMN overdrawn bigint NOT NULL DEFAULT 0 CHECK (overdrawn >= 0),
    ADD COLUMN leaving boolean NOT NULL DEFAULT false,
    ADD COLUMN stopping_at bigint NOT NULL DEFAULT 0, -- preempted: no renewal goes beyond it, or 0
    ADD COLUMN stopping_for bigint NOT NULL DEFAULT 0, -- and the number of the request that it makes room for, or 0
    ADD COLUMN why smallint NOT NULL DEFAULT 0, -- it is not simply renewed: core/reservation.py, Why
    ADD COLUMN clears_at bigint NOT NULL DEFAULT 0, -- throttled: when it could go on
    ADD COLUMN promised bigint NOT NULL DEFAULT 0 CHECK (promised >= 0),
    -- of a job with several leases: how much of the job's cap this one may use, or -1; and the sum
    -- of the caps of which that is a part
    ADD COLUMN cap_part bigint NOT NULL DEFAULT -1 CHECK (cap_part >= -1),
    ADD COLUMN cap_seen bigint NOT NULL DEFAULT 0;
-- Asked for by (org_id + 0), which no other index has: one that begins with org_id alone would read
-- every live lease of the org, and the planner cannot tell before it has statistics. For the same
-- reason jobs are looked up one by one (LATERAL with OFFSET 0): joined, all leases would be read.
CREATE INDEX reservations_live_job ON reservations ((org_id + 0), account_id, job_id)
    WHERE state = 0;
CREATE INDEX reservations_ended_job ON reservations ((org_id + 0), account_id, job_id)
    WHERE state <> 0;
CREATE INDEX reservations_sharing ON reservations (org_id) WHERE state = 0 AND cap_part >= 0;

CREATE FUNCTION lease_beat_at(beat_at bigint, expires_at bigint, window_ms bigint, escrow bigint)
RETURNS bigint LANGUAGE sql IMMUTABLE AS $$
    SELECT greatest(beat_at, expires_at - window_ms * (1 + escrow) * 1000)
$$;

CREATE TABLE quotas (
    org_id integer NOT NULL,
    quota_id bigint NOT NULL,
    account_id bigint NOT NULL,
    dimension smallint NOT NULL CHECK (dimension BETWEEN 0 AND 3),
    amount bigint NOT NULL CHECK (amount >= 0), -- the limit itself
    gpu_type text NOT NULL,
    calendar smallint NOT NULL CHECK (calendar BETWEEN -1 AND 2), -- -1: none
    zone text NOT NULL,
    rolling_hours integer NOT NULL CHECK (rolling_hours >= 0),
    created_at bigint NOT NULL,
    ended_at bigint NOT NULL DEFAULT 0,
    seeded bigint NOT NULL DEFAULT 0, -- what was spent in its window before it was set
    first_entry_id bigint NOT NULL DEFAULT 0, -- the first entry that it has counted
    set_by smallint NOT NULL CHECK (set_by BETWEEN 0 AND 3), -- scope of the key: 0 is the system
    PRIMARY KEY (org_id, quota_id),
    CONSTRAINT quotas_window CHECK (
        (calendar >= 0)::integer + (rolling_hours > 0)::integer = (dimension = 3)::integer)
);
CREATE UNIQUE INDEX quotas_live
    ON quotas (org_id, account_id, dimension, gpu_type, calendar, zone, rolling_hours, set_by)
    WHERE ended_at = 0;
CREATE INDEX quotas_account ON quotas (org_id, account_id, quota_id);

CREATE TABLE slots ( -- what runs at once, for quotas on that
    org_id integer NOT NULL,
    quota_id bigint NOT NULL,
    count bigint NOT NULL CHECK (count >= 0),
    leaving bigint NOT NULL,
    PRIMARY KEY (org_id, quota_id),
    CONSTRAINT slots_leaving CHECK (leaving BETWEEN 0 AND count)
) WITH (fillfactor = 50);

-- What heartbeats move of an account's limits, in one row because they do so in every batch: for
-- each quota on credits per window its number, used, held, base, starts_at and ends_at, and the
-- tokens of its rate limit while it has one.
CREATE TABLE meters ( -- hot
    org_id integer NOT NULL,
    account_id bigint NOT NULL,
    windows bigint[] NOT NULL CHECK (cardinality(windows) % 6 = 0),
    level bigint NOT NULL,
    level_at bigint NOT NULL,
    fraction bigint NOT NULL CHECK (fraction >= 0 AND fraction < 3600000000),
    PRIMARY KEY (org_id, account_id)
) WITH (fillfactor = 50);

CREATE VIEW windows AS
SELECT m.org_id, m.account_id, m.windows[i] AS quota_id, m.windows[i + 1] AS used,
    m.windows[i + 2] AS held, m.windows[i + 3] AS base, m.windows[i + 4] AS starts_at,
    m.windows[i + 5] AS ends_at
FROM meters m CROSS JOIN LATERAL generate_series(1, cardinality(m.windows), 6) AS i;

-- What every quota counts, however it is kept.
CREATE VIEW counters AS
SELECT org_id, quota_id, count, leaving, 0::bigint AS used, 0::bigint AS held, 0::bigint AS base,
    0::bigint AS starts_at, 0::bigint AS ends_at
FROM slots
UNION ALL
SELECT org_id, quota_id, 0, 0, used, held, base, starts_at, ends_at FROM windows;

CREATE TABLE tallies (
    org_id integer NOT NULL,
    quota_id bigint NOT NULL,
    starts_at bigint NOT NULL,
    ends_at bigint NOT NULL CHECK (ends_at > starts_at),
    used bigint NOT NULL CHECK (used >= 0),
    PRIMARY KEY (org_id, quota_id, starts_at)
) WITH (fillfactor = 80);

CREATE TABLE token_buckets ( -- the level is that of when its terms last changed: see meters
    org_id integer NOT NULL,
    bucket_id bigint NOT NULL,
    account_id bigint NOT NULL,
    kind smallint NOT NULL CHECK (kind IN (0, 1)),
    capacity bigint NOT NULL CHECK (capacity >= 0),
    refill_per_hour bigint NOT NULL CHECK (refill_per_hour >= 0),
    level bigint NOT NULL,
    level_at bigint NOT NULL,
    fraction bigint NOT NULL CHECK (fraction >= 0 AND fraction < 3600000000),
    ended_at bigint NOT NULL DEFAULT 0,
    set_by smallint NOT NULL CHECK (set_by BETWEEN 0 AND 3), -- as of quotas
    PRIMARY KEY (org_id, bucket_id)
);
CREATE UNIQUE INDEX token_buckets_live ON token_buckets (org_id, account_id, kind)
    WHERE ended_at = 0;
CREATE INDEX token_buckets_ended ON token_buckets (org_id, account_id, bucket_id)
    WHERE ended_at > 0;

CREATE TABLE boosts (
    org_id integer NOT NULL,
    boost_id bigint NOT NULL,
    account_id bigint NOT NULL,
    target_id bigint NOT NULL, -- a quota or a bucket
    amount bigint NOT NULL CHECK (amount >= 0),
    refill_per_hour bigint NOT NULL CHECK (refill_per_hour >= 0),
    starts_at bigint NOT NULL,
    ends_at bigint NOT NULL CHECK (ends_at >= starts_at), -- equal: ended before it began
    note text NOT NULL,
    created_at bigint NOT NULL,
    set_by smallint NOT NULL CHECK (set_by BETWEEN 0 AND 3), -- as of quotas
    PRIMARY KEY (org_id, boost_id)
);
CREATE INDEX boosts_target ON boosts (org_id, target_id, ends_at);
CREATE INDEX boosts_account ON boosts (org_id, account_id, boost_id);

CREATE TABLE budgets (
    org_id integer NOT NULL,
    budget_id bigint NOT NULL,
    account_id bigint NOT NULL,
    name text NOT NULL,
    allowance bigint NOT NULL CHECK (allowance > 0),
    next_at bigint NOT NULL, -- when the next period begins, if the budget has not ended by then
    calendar smallint NOT NULL CHECK (calendar BETWEEN -1 AND 2),
    zone text NOT NULL,
    ends_at bigint NOT NULL,
    rollover smallint NOT NULL CHECK (rollover BETWEEN 0 AND 2),
    rollover_cap bigint NOT NULL CHECK (rollover_cap >= 0),
    rollover_us bigint NOT NULL CHECK (rollover_us >= 0),
    priority integer NOT NULL,
    warn_percent smallint[] NOT NULL,
    created_at bigint NOT NULL,
    PRIMARY KEY (org_id, budget_id),
    CONSTRAINT budgets_name UNIQUE (org_id, account_id, name)
);

CREATE TABLE budget_periods (
    org_id integer NOT NULL,
    budget_id bigint NOT NULL,
    starts_at bigint NOT NULL,
    ends_at bigint NOT NULL CHECK (ends_at > starts_at),
    allowance bigint NOT NULL CHECK (allowance > 0),
    grant_id bigint NOT NULL,
    rolled bigint NOT NULL CHECK (rolled BETWEEN 0 AND allowance),
    rolled_grant_id bigint NOT NULL,
    warned_percent smallint NOT NULL,
    rollover smallint NOT NULL CHECK (rollover BETWEEN 0 AND 2), -- as agreed when it began
    rollover_cap bigint NOT NULL CHECK (rollover_cap >= 0),
    rollover_us bigint NOT NULL CHECK (rollover_us >= 0),
    calendar smallint NOT NULL CHECK (calendar BETWEEN -1 AND 2),
    zone text NOT NULL,
    PRIMARY KEY (org_id, budget_id, starts_at)
);

-- What a postpaid account owes for a period, and whether it has paid.
CREATE TABLE statements (
    org_id integer NOT NULL,
    statement_id bigint NOT NULL,
    account_id bigint NOT NULL,
    period text NOT NULL COLLATE "C",
    amount bigint NOT NULL CHECK (amount >= 0),
    due_at bigint NOT NULL,
    paid_at bigint NOT NULL DEFAULT 0,
    status smallint NOT NULL DEFAULT 0 CHECK (status IN (0, 1, 2)), -- open, paid, void
    PRIMARY KEY (org_id, statement_id),
    CONSTRAINT statements_period UNIQUE (org_id, account_id, period)
);

-- What has expired of each grant and was not restored, for what a closed period of a budget has used.
CREATE INDEX entries_expired ON entries (org_id, grant_id) INCLUDE (type, amount)
    WHERE type IN (8, 14);

-- What open_book reads of accounts, grants and leases where one of the orgs has limits or budgets:
-- the same, and of orgs with limits (gated_orgs) also every account that is due, the accounts on
-- the way up from each lease, their limits with what they count, and the leases of each job that
-- a quota on jobs counts, as far as a command may end it (may_end), or that shares a cap; of orgs with budgets those of
-- accounts that are due or named. Of anew_orgs, where limits are set, also the last one that ended is
-- read, and of accounts that are counted or suspended (count_paths) every live lease below them,
-- with who pays for it. Where
-- nothing can end, quotas on what runs at once are left out unless they are exceeded: a beat that
-- only renews needs no other.

CREATE FUNCTION open_gates(
    instant_now bigint, gated_orgs integer[], budget_orgs integer[], anew_orgs integer[],
    count_orgs integer[], count_paths text[],
    lease_orgs integer[], lease_ids bigint[],
    path_orgs integer[], paths text[],
    account_orgs integer[], account_ids bigint[],
    topup_orgs integer[], topup_ids bigint[],
    limit_orgs integer[], limit_ids bigint[],
    job_orgs integer[], job_paths text[], job_ids text[], may_end boolean
) RETURNS SETOF book_row LANGUAGE plpgsql STABLE ROWS 500 AS $$
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
            WHERE l.org_id + 0 = a.org_id AND l.account_id = a.account_id
                AND l.job_id = w.job_id AND l.state = 0
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
            WHERE l.org_id + 0 = r.org_id AND l.account_id = r.account_id
                AND l.job_id = r.job_id AND l.state = 0
            OFFSET 0
        ) AS x
        UNION -- or with one that has lapsed, whose use may be reported late
        SELECT x.org_id, x.reservation_id
        FROM capped c
        JOIN unnest(lease_orgs, lease_ids) AS w(org_id, id) ON w.org_id = c.org_id
        JOIN reservations r ON r.org_id = w.org_id AND r.reservation_id = w.id AND r.state = 3
        CROSS JOIN LATERAL (
            SELECT l.org_id, l.reservation_id FROM reservations l
            WHERE l.org_id + 0 = r.org_id AND l.account_id = r.account_id
                AND l.job_id = r.job_id AND l.state = 0
            OFFSET 0
        ) AS x
    ), named AS MATERIALIZED (
        SELECT r.org_id, r.reservation_id, r.account_id, r.payer_id, r.gpu_count, r.price,
            r.window_ms, r.escrow_windows, r.max_amount, r.admitted_at, r.state, r.decision,
            r.held, r.settled, r.adjusted, r.refunded, r.used_ms, r.seq, r.expires_at,
            r.ended_at, r.account, r.paid, r.gpu_type || chr(31) || r.region AS place, r.job_id,
            r.beat_at, r.cap_part,
            CASE WHEN NOT r.is_plain THEN ARRAY[r.beat_at, r.exhaustion, r.grace_ms, r.overdraft,
                r.overdrawn, r.leaving::integer, r.stopping_at, r.why,
                r.promised, r.cap_part, r.cap_seen, r.clears_at, r.stopping_for, r.authorised,
                cardinality(r.kept)] || r.kept || r.payers END AS terms
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
        SELECT r.org_id, r.reservation_id, r.account_id, r.payer_id, r.gpu_count, r.price,
            r.window_ms, r.escrow_windows, r.max_amount, r.admitted_at, r.state, r.decision,
            r.held, r.settled, r.adjusted, r.refunded, r.used_ms, r.seq, r.expires_at,
            r.ended_at, r.account, r.paid, r.gpu_type || chr(31) || r.region AS place, r.job_id,
            r.beat_at, r.cap_part,
            CASE WHEN NOT r.is_plain THEN ARRAY[r.beat_at, r.exhaustion, r.grace_ms, r.overdraft,
                r.overdrawn, r.leaving::integer, r.stopping_at, r.why,
                r.promised, r.cap_part, r.cap_seen, r.clears_at, r.stopping_for, r.authorised,
                cardinality(r.kept)] || r.kept || r.payers END
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
        SELECT r.org_id, r.reservation_id, r.account_id, r.payer_id, r.gpu_count, r.price,
            r.window_ms, r.escrow_windows, r.max_amount, r.admitted_at, r.state, r.decision,
            r.held, r.settled, r.adjusted, r.refunded, r.used_ms, r.seq, r.expires_at,
            r.ended_at, r.account, r.paid, r.gpu_type || chr(31) || r.region AS place, r.job_id,
            r.beat_at, r.cap_part,
            CASE WHEN NOT r.is_plain THEN ARRAY[r.beat_at, r.exhaustion, r.grace_ms, r.overdraft,
                r.overdrawn, r.leaving::integer, r.stopping_at, r.why,
                r.promised, r.cap_part, r.cap_seen, r.clears_at, r.stopping_for, r.authorised,
                cardinality(r.kept)] || r.kept || r.payers END
        FROM unnest(count_orgs, count_paths) AS w(org_id, path)
        JOIN reservations r ON r.org_id = w.org_id AND r.state = 0
            AND r.account >= w.path AND r.account < w.path || '0'
            AND (r.account = w.path OR r.account >= w.path || '/')
    ), ways AS MATERIALIZED ( -- up from each account with a lease: its parent and grandparent
        SELECT l.org_id, l.account_id, a.parent_id, coalesce(p.parent_id, 0) AS top_id, l.beat_at
        FROM (
            SELECT r.org_id, r.account_id, min(lease_beat_at(r.beat_at, r.expires_at, r.window_ms,
                r.escrow_windows)) AS beat_at
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
    SELECT 2, h.org_id, h.account_id,
        h.model::bigint, h.credit_limit, h.status::bigint, h.remaining, h.reserved, h.spent,
        h.debt, h.overrun, h.version, h.due_at, h.allocated::integer::bigint, 0::bigint,
        h.created_at, (h.due_at <= h.instant_now)::integer::bigint, h.overdraft_limit,
        h.delinquent::integer::bigint, h.promised, NULL::bigint, h.path, h.metadata::text,
        NULL::text, NULL::bigint[], NULL::bytea, NULL::bytea, ARRAY[h.funding, h.window_max_ms, h.suspended_by]
    FROM held h
    UNION ALL -- accounts on the way that are not due and pay for nothing here: without their grants
    SELECT 2, a.org_id, a.account_id,
        a.model, a.credit_limit, a.status, a.remaining, a.reserved, a.spent,
        a.debt, a.overrun, a.version, a.due_at, a.allocated::integer, 1,
        a.created_at, 0, a.overdraft_limit, a.delinquent::integer, a.promised, NULL, a.path,
        a.metadata::text, NULL, NULL, NULL, NULL, ARRAY[a.funding, a.window_max_ms, a.suspended_by]
    FROM (SELECT * FROM scope EXCEPT SELECT * FROM wanted) AS s
    JOIN accounts a ON a.org_id = s.org_id AND a.account_id = s.account_id
    UNION ALL
    SELECT 3, g.org_id, g.grant_id,
        g.account_id, g.amount, g.remaining, g.starts_at, g.expires_at, g.priority, g.source,
        g.state, g.origin_id, g.created_at, g.budget_id, g.claims, NULL, NULL, NULL, NULL, NULL, NULL,
        NULL, g.metadata::text, NULL, NULL, NULL, NULL, NULL
    FROM wanted w
    JOIN grants g ON g.org_id = w.org_id AND g.account_id = w.account_id AND g.is_open
    UNION ALL
    SELECT 4, l.org_id, l.reservation_id,
        l.account_id, l.payer_id, l.gpu_count, l.price, l.window_ms, l.admitted_at,
        l.expires_at, l.escrow_windows, l.max_amount, l.held, l.settled, l.adjusted, l.refunded,
        l.used_ms, l.seq, l.state, l.decision, l.ended_at,
        l.account, l.place, l.job_id, l.paid, NULL, NULL, l.terms
    FROM leases l
    UNION ALL
    SELECT 8, q.org_id, q.quota_id,
        q.account_id, q.dimension, q.amount, q.calendar, q.rolling_hours, q.created_at,
        q.seeded, q.first_entry_id, q.count, q.leaving, q.used, q.held, q.base, q.starts_at,
        q.ends_at, q.set_by, NULL, NULL, q.gpu_type, q.zone, NULL, NULL, NULL, NULL, NULL
    FROM limiting q
    UNION ALL -- past windows that are asked about, that a new window counts or a slice began in
    SELECT 9, t.org_id, t.quota_id,
        t.starts_at, t.ends_at, t.used,
        NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL,
        NULL, NULL, NULL, NULL, NULL, NULL, NULL
    FROM moment m
    JOIN limiting q ON q.dimension = 3
        AND (q.org_id = ANY (job_orgs) OR q.ends_at <= m.now OR m.since < q.starts_at)
    JOIN tallies t ON t.org_id = q.org_id AND t.quota_id = q.quota_id
        AND t.starts_at > least(m.since, q.starts_at) - 3024000000000 -- 35 days
            - q.rolling_hours * 3600000000
        AND t.ends_at > least(m.since, CASE WHEN q.org_id = ANY (job_orgs) OR q.ends_at <= m.now
            THEN q.starts_at - q.rolling_hours * 3600000000 ELSE m.since END)
    UNION ALL -- a job without a lease has a row as well: it is known that there is none
    SELECT 10, j.org_id, j.account_id,
        r.live, r.leaving, r.settled,
        NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL,
        NULL, j.job_id, r.gpu_type, NULL, r.leases, NULL, NULL, NULL
    FROM jobs j
    LEFT JOIN LATERAL (
        SELECT l.gpu_type, sum(l.live)::bigint AS live, sum(l.leaving)::bigint AS leaving,
            sum(l.settled)::bigint AS settled,
            coalesce(array_agg(l.id) FILTER (WHERE l.live > 0), '{}') AS leases
        FROM (
            SELECT x.gpu_type, x.reservation_id AS id, 1 AS live, x.leaving::integer AS leaving,
                0::bigint AS settled
            FROM reservations x WHERE x.org_id + 0 = j.org_id AND x.account_id = j.account_id
                AND x.job_id = j.job_id AND x.state = 0
            UNION ALL
            SELECT x.gpu_type, 0, 0, 0, x.settled
            FROM reservations x WHERE x.org_id + 0 = j.org_id AND x.account_id = j.account_id
                AND x.job_id = j.job_id AND x.state <> 0
                AND (j.org_id = ANY (anew_orgs)
                    OR j.org_id IN (SELECT c.org_id FROM capped c))
        ) AS l
        GROUP BY l.gpu_type
    ) AS r ON true
    UNION ALL
    SELECT 11, b.org_id, b.bucket_id,
        b.account_id, b.capacity, b.refill_per_hour, b.level, b.level_at, b.fraction,
        b.ended_at, b.set_by, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL,
        NULL, NULL, NULL, NULL, NULL, NULL, NULL
    FROM buckets b
    UNION ALL -- a bucket that was not looked at since has yet to see boosts that have lapsed
    SELECT 12, b.org_id, b.boost_id,
        b.account_id, b.target_id, b.amount, b.refill_per_hour, b.starts_at, b.ends_at,
        b.created_at, b.set_by, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL,
        b.note, NULL, NULL, NULL, NULL, NULL, NULL
    FROM (
        SELECT q.org_id, q.quota_id AS target_id, instant_now AS since FROM limiting q
        UNION ALL SELECT k.org_id, k.bucket_id, least(k.level_at, instant_now) FROM buckets k
    ) AS x
    JOIN boosts b ON b.org_id = x.org_id AND b.target_id = x.target_id AND b.ends_at > x.since
    UNION ALL
    SELECT 13, b.org_id, b.budget_id,
        b.account_id, b.allowance, b.next_at, b.calendar, b.ends_at, b.rollover, b.rollover_cap,
        b.rollover_us, b.priority, b.created_at, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL,
        b.name, b.zone, NULL, b.warn_percent::bigint[], NULL, NULL, NULL
    FROM spending b
    UNION ALL -- the last period of each: those before it are over and written down
    SELECT 14, p.org_id, p.budget_id,
        p.starts_at, p.ends_at, p.allowance, p.grant_id, p.rolled, p.rolled_grant_id,
        p.warned_percent, p.rollover, p.rollover_cap, p.rollover_us, p.calendar, NULL, NULL, NULL,
        NULL, NULL, NULL, NULL, p.zone, NULL, NULL, NULL, NULL, NULL, NULL
    FROM spending b
    CROSS JOIN LATERAL (
        SELECT * FROM budget_periods v WHERE v.org_id = b.org_id AND v.budget_id = b.budget_id
        ORDER BY v.starts_at DESC LIMIT 1
    ) AS p;
END $$;
