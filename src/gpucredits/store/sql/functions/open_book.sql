-- Filling a book: take the time, then read every row that a batch of commands touches, in one round
-- trip. It is stable, so that all it reads is of one moment. Rows of all kinds share one shape:
-- store/book/tables.py names the columns of each kind, and tools/make_rows.py writes the lists here.
CREATE OR REPLACE FUNCTION open_book(
    orgs_wanted bigint[],
    lease_orgs bigint[], lease_ids bigint[],
    path_orgs bigint[], paths text[],
    account_orgs bigint[], account_ids bigint[],
    topup_orgs bigint[], topup_ids bigint[],
    corrected_orgs bigint[], corrected_ids bigint[],
    price_orgs bigint[], price_types text[], price_regions text[], price_accounts text[],
    key_orgs bigint[], keys text[],
    anew_orgs bigint[], count_orgs bigint[], count_paths text[],
    limit_orgs bigint[], limit_ids bigint[],
    job_orgs bigint[], job_paths text[], job_ids text[], may_end boolean,
    reference_orgs bigint[], reference_texts text[], chains boolean
) RETURNS SETOF book_row LANGUAGE plpgsql STABLE ROWS 500
SET search_path FROM CURRENT
SET plan_cache_mode = force_generic_plan AS $$ -- planning costs more than reading
DECLARE
    instant_now bigint;
    gated_orgs bigint[];
    budget_orgs bigint[];
    prices_version bigint;
    prices_until bigint;
    lot_orgs bigint[];
    lot_ids bigint[];
    expired_orgs bigint[];
    expired_ids bigint[];
BEGIN
    SELECT array_agg(o.org_id) FILTER (WHERE o.gated OR o.org_id = ANY (anew_orgs)),
        array_agg(o.org_id) FILTER (WHERE o.budgeted)
    INTO gated_orgs, budget_orgs FROM orgs o WHERE o.org_id = ANY (orgs_wanted);
    SELECT clock_us(c.offset_us) INTO instant_now FROM clock c; -- of the offset that is told below
    IF cardinality(price_orgs) > 0 THEN
        SELECT s.prices_version INTO prices_version FROM system_state s;
        SELECT least( -- the next instant at which a version begins or ends
            (SELECT min(p.effective_from) FROM list_prices p WHERE p.effective_from > instant_now),
            (SELECT min(p.effective_to) FROM list_prices p WHERE p.effective_to > instant_now
                AND p.effective_to < 4611686018427387904),
            (SELECT min(d.effective_from) FROM discounts d WHERE d.effective_from > instant_now),
            (SELECT min(d.effective_to) FROM discounts d WHERE d.effective_to > instant_now
                AND d.effective_to < 4611686018427387904)
        ) INTO prices_until;
    END IF;
    IF cardinality(topup_ids) > 0 THEN -- grants of payments, all grants that transfers have made
        WITH RECURSIVE lots AS (       -- of them, and the accounts that have something left
            SELECT t.org_id, t.grant_id, NULL::bigint AS holder
            FROM unnest(topup_orgs, topup_ids) AS w(org_id, id)
            JOIN topups t ON t.org_id = w.org_id AND t.topup_id = w.id
            UNION
            SELECT g.org_id, g.grant_id, CASE WHEN g.is_open THEN g.account_id END
            FROM lots l
            JOIN grants g ON g.org_id = l.org_id AND g.origin_id = l.grant_id AND g.origin_id <> 0
                AND g.grant_id > l.grant_id
        )
        SELECT array_agg(l.org_id), array_agg(l.grant_id),
            account_orgs || array_agg(l.org_id) FILTER (WHERE l.holder IS NOT NULL),
            account_ids || array_agg(l.holder) FILTER (WHERE l.holder IS NOT NULL)
        INTO lot_orgs, lot_ids, account_orgs, account_ids FROM lots l;
    END IF;
    IF chains AND cardinality(lease_ids) > 0 THEN -- the accounts that live leases may move up to
        SELECT account_orgs || coalesce(array_agg(l.org_id), '{}'),
            account_ids || coalesce(array_agg(l.account_id), '{}')
        INTO account_orgs, account_ids
        FROM (
            SELECT DISTINCT r.org_id, above.account_id
            FROM unnest(lease_orgs, lease_ids) AS w(org_id, id)
            JOIN reservations r ON r.org_id = w.org_id AND r.reservation_id = w.id AND r.state = 0
            JOIN accounts a ON a.org_id = r.org_id AND a.account_id = r.account_id
            LEFT JOIN accounts p ON p.org_id = r.org_id AND p.account_id = a.parent_id
            CROSS JOIN LATERAL (VALUES (a.account_id), (a.parent_id), (p.parent_id))
                AS above(account_id)
            WHERE above.account_id > 0
        ) AS l;
    END IF;
    IF cardinality(corrected_ids) > 0 THEN -- who has paid for a lease before its present payer
        SELECT account_orgs || coalesce(array_agg(l.org_id), '{}'),
            account_ids || coalesce(array_agg(l.account_id), '{}')
        INTO account_orgs, account_ids
        FROM (
            SELECT DISTINCT r.org_id, r.payers[place] AS account_id
            FROM unnest(corrected_orgs, corrected_ids) AS w(org_id, id)
            JOIN reservations r ON r.org_id = w.org_id AND r.reservation_id = w.id
            CROSS JOIN generate_series(1, cardinality(r.payers), 2) AS place
        ) AS l;
        SELECT array_agg(g.org_id), array_agg(g.grant_id) -- what its payer had while an ended
        INTO expired_orgs, expired_ids                    -- lease ran, and has lost since
        FROM unnest(corrected_orgs, corrected_ids) AS w(org_id, id)
        JOIN reservations r ON r.org_id = w.org_id AND r.reservation_id = w.id
        JOIN grants g ON g.org_id = r.org_id AND g.account_id = r.payer_id
            AND g.expires_at > r.admitted_at AND g.expires_at < 4611686018427387904
            AND greatest(g.starts_at, g.created_at) < r.expires_at
            AND NOT is_reversed_grant(g.org_id, g.grant_id);
    END IF;
    RETURN QUERY
    SELECT -- [opened_org o | now = greatest(instant_now, o.clock) | read_at = instant_now
    --  | prices_version = prices_version | prices_until = prices_until | offset_us = (SELECT c.offset_us FROM clock c)]
        0, o.org_id, (greatest(instant_now, o.clock))::bigint, o.next_id, o.next_entry_id, o.clock,
        o.version, o.gated::integer::bigint, o.budgeted::integer::bigint, instant_now::bigint,
        prices_version::bigint, prices_until::bigint, ((SELECT c.offset_us FROM clock c))::bigint,
        NULL::bigint, NULL::bigint, NULL::bigint, NULL::bigint, NULL::bigint, NULL::bigint,
        NULL::bigint, NULL::bigint, o.path, NULL::text, NULL::text, NULL::bigint[], NULL::bytea,
        NULL::bytea, NULL::bigint[]
        -- [end]
    FROM orgs o WHERE o.org_id = ANY (orgs_wanted)
    UNION ALL
    SELECT -- [suspended s | status = CASE WHEN s.status = 1 OR s.delinquent THEN s.status END]
        1, s.org_id, (CASE WHEN s.status = 1 OR s.delinquent THEN s.status END)::bigint,
        s.window_max_ms, NULL::bigint, NULL::bigint, NULL::bigint, NULL::bigint, NULL::bigint,
        NULL::bigint, NULL::bigint, NULL::bigint, NULL::bigint, NULL::bigint, NULL::bigint,
        NULL::bigint, NULL::bigint, NULL::bigint, NULL::bigint, NULL::bigint, NULL::bigint, s.path,
        NULL::text, NULL::text, NULL::bigint[], NULL::bytea, NULL::bytea, NULL::bigint[]
        -- [end]
    FROM accounts s WHERE s.org_id = ANY (orgs_wanted)
        AND (s.status = 1 OR s.delinquent OR s.window_max_ms > 0);
    IF gated_orgs IS NOT NULL OR budget_orgs IS NOT NULL OR cardinality(count_orgs) > 0 THEN
        RETURN QUERY SELECT * FROM open_gates(
            instant_now, coalesce(gated_orgs, '{}'), coalesce(budget_orgs, '{}'), anew_orgs,
            count_orgs, count_paths, lease_orgs, lease_ids, path_orgs, paths, account_orgs,
            account_ids, topup_orgs, topup_ids, limit_orgs, limit_ids, job_orgs, job_paths, job_ids, may_end);
    ELSE
    RETURN QUERY
    WITH named AS MATERIALIZED (
        SELECT -- [columns of lease r | job_id = NULL::text]
            r.org_id, r.reservation_id, r.held, r.settled, r.used_ms, r.seq, r.expires_at, r.state,
            r.decision, r.adjusted, r.refunded, r.ended_at, r.payer_id, r.window_ms, r.account_id,
            r.milli_gpus, r.price, r.admitted_at, r.escrow_windows, r.max_amount, r.account,
            NULL::text AS job_id, r.gpu_type || chr(31) || r.region AS packed, r.paid, CASE WHEN NOT
            r.is_plain THEN ARRAY[r.extended_ms, r.reprieve_ms, r.beat_at, r.overdrawn,
            r.leaving::integer::bigint, r.stopping_at, r.why::bigint, r.promised, r.cap_part,
            r.cap_seen, r.clears_at, r.stopping_for, r.authorised, r.reconciled, r.lost_ms,
            r.exhaustion::bigint, r.grace_ms, r.overdraft, cardinality(r.kept)] || r.kept ||
            r.payers END AS terms
            -- [end]
        FROM unnest(lease_orgs, lease_ids) AS w(org_id, id)
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
    ), held AS MATERIALIZED (
        SELECT a.*, greatest(instant_now, o.clock) AS instant_now
        FROM wanted w
        JOIN accounts a ON a.org_id = w.org_id AND a.account_id = w.account_id
        JOIN orgs o ON o.org_id = w.org_id
    ), leases AS (
        SELECT * FROM named
        UNION ALL -- the lapsed leases of accounts that are due, and the next one to lapse; all
        -- live ones where a grant has ended, since each may have used some of it
        SELECT -- [columns of lease r | job_id = NULL::text]
            r.org_id, r.reservation_id, r.held, r.settled, r.used_ms, r.seq, r.expires_at, r.state,
            r.decision, r.adjusted, r.refunded, r.ended_at, r.payer_id, r.window_ms, r.account_id,
            r.milli_gpus, r.price, r.admitted_at, r.escrow_windows, r.max_amount, r.account,
            NULL::text AS job_id, r.gpu_type || chr(31) || r.region AS packed, r.paid, CASE WHEN NOT
            r.is_plain THEN ARRAY[r.extended_ms, r.reprieve_ms, r.beat_at, r.overdrawn,
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
    FROM leases l;
    END IF;
    IF cardinality(topup_ids) > 0 OR cardinality(reference_texts) > 0 THEN
        RETURN QUERY -- those named, and those whose references are to be used
        SELECT -- [topup t]
            5, t.org_id, t.topup_id, t.status::bigint, t.grant_id, t.account_id, t.amount,
            t.expires_at, t.priority::bigint, t.created_at, NULL::bigint, NULL::bigint,
            NULL::bigint, NULL::bigint, NULL::bigint, NULL::bigint, NULL::bigint, NULL::bigint,
            NULL::bigint, NULL::bigint, NULL::bigint, t.payment_reference, t.metadata::text,
            NULL::text, NULL::bigint[], NULL::bytea, NULL::bytea, NULL::bigint[]
            -- [end]
        FROM (
            SELECT n.* FROM unnest(topup_orgs, topup_ids) AS w(org_id, id)
            JOIN topups n ON n.org_id = w.org_id AND n.topup_id = w.id
            UNION ALL
            SELECT n.* FROM unnest(reference_orgs, reference_texts) AS w(org_id, reference)
            JOIN topups n ON n.org_id = w.org_id AND n.payment_reference = w.reference
                AND n.status <> 2
        ) AS t;
    END IF;
    IF cardinality(topup_ids) > 0 OR cardinality(corrected_ids) > 0 THEN
        RETURN QUERY -- grants that may be spent or ended, and are given back to all the same
        SELECT -- [grant g]
            3, g.org_id, g.grant_id, g.amount, g.remaining, g.state::bigint, g.claims, g.account_id,
            g.starts_at, g.expires_at, g.priority::bigint, g.source::bigint, g.origin_id,
            g.created_at, g.budget_id, NULL::bigint, NULL::bigint, NULL::bigint, NULL::bigint,
            NULL::bigint, NULL::bigint, g.metadata::text, NULL::text, NULL::text, NULL::bigint[],
            NULL::bytea, NULL::bytea, NULL::bigint[]
            -- [end]
        FROM (
            SELECT w.org_id, w.grant_id FROM unnest(lot_orgs, lot_ids) AS w(org_id, grant_id)
            UNION
            SELECT w.org_id, w.grant_id
            FROM unnest(expired_orgs, expired_ids) AS w(org_id, grant_id)
            UNION
            SELECT r.org_id, r.paid[place] FROM unnest(corrected_orgs, corrected_ids) AS w(org_id, id)
            JOIN reservations r ON r.org_id = w.org_id AND r.reservation_id = w.id
            CROSS JOIN generate_series(1, cardinality(r.paid), 2) AS place
            UNION
            SELECT e.org_id, e.grant_id FROM unnest(corrected_orgs, corrected_ids) AS w(org_id, id)
            JOIN reservations r ON r.org_id = w.org_id AND r.reservation_id = w.id
            CROSS JOIN LATERAL lease_payers(r.payer_id, r.payers) AS payer
            JOIN entries e ON e.org_id = r.org_id AND e.account_id = payer
                AND (e.type IN (11, 12) OR (e.type = 7 AND e.other_grant_id <> 0))
        ) AS lots
        JOIN grants g ON g.org_id = lots.org_id AND g.grant_id = lots.grant_id;
        RETURN QUERY -- who repaid what was owed, and what has expired of payments
        SELECT -- [entry e]
            15, e.org_id, e.entry_id, e.type::bigint, e.account_id, e.amount, e.grant_id,
            e.other_grant_id, NULL::bigint, NULL::bigint, NULL::bigint, NULL::bigint, NULL::bigint,
            NULL::bigint, NULL::bigint, NULL::bigint, NULL::bigint, NULL::bigint, NULL::bigint,
            NULL::bigint, NULL::bigint, NULL::text, NULL::text, NULL::text, NULL::bigint[],
            NULL::bytea, NULL::bytea, NULL::bigint[]
            -- [end]
        FROM (
            SELECT p.* FROM (
                SELECT DISTINCT r.org_id, payer
                FROM unnest(corrected_orgs, corrected_ids) AS w(org_id, id)
                JOIN reservations r ON r.org_id = w.org_id AND r.reservation_id = w.id
                CROSS JOIN LATERAL lease_payers(r.payer_id, r.payers) AS payer
            ) AS corrected
            JOIN entries p ON p.org_id = corrected.org_id AND p.account_id = corrected.payer
                AND (p.type IN (11, 12) OR (p.type = 7 AND p.other_grant_id <> 0))
            UNION ALL
            SELECT x.* FROM (
                SELECT DISTINCT w.org_id, w.grant_id
                FROM unnest(lot_orgs || expired_orgs, lot_ids || expired_ids)
                    AS w(org_id, grant_id)
            ) AS topped
            JOIN entries x ON x.org_id = topped.org_id AND x.grant_id = topped.grant_id
                AND x.type IN (8, 14)
        ) AS e
        ORDER BY e.org_id, e.entry_id;
    END IF;
    IF cardinality(price_orgs) > 0 THEN
        RETURN QUERY -- of each owner the version in force, or when the last one ended
        SELECT -- [price w | price_id = coalesce(p.price_id, 0)
        --  | credits_per_gpu_hour = coalesce(p.credits_per_gpu_hour, 0)
        --  | effective_from = greatest(p.effective_from, e.ended_at) | effective_to = p.effective_to | is_end = coalesce(p.is_end, true)]
            6, w.org_id, (coalesce(p.price_id, 0))::bigint,
            (coalesce(p.credits_per_gpu_hour, 0))::bigint,
            (greatest(p.effective_from, e.ended_at))::bigint, p.effective_to::bigint,
            (coalesce(p.is_end, true))::integer::bigint, NULL::bigint, NULL::bigint, NULL::bigint,
            NULL::bigint, NULL::bigint, NULL::bigint, NULL::bigint, NULL::bigint, NULL::bigint,
            NULL::bigint, NULL::bigint, NULL::bigint, NULL::bigint, NULL::bigint, w.gpu_type,
            w.region, w.account, NULL::bigint[], NULL::bytea, NULL::bytea, NULL::bigint[]
            -- [end]
        FROM unnest(price_orgs, price_types, price_regions, price_accounts)
            AS w(org_id, gpu_type, region, account)
        JOIN orgs o ON o.org_id = w.org_id
        LEFT JOIN LATERAL (
            SELECT v.price_id, v.credits_per_gpu_hour, v.effective_from, v.effective_to, v.is_end
            FROM prices v
            WHERE v.org_id = CASE w.account WHEN '' THEN 0 ELSE w.org_id END
                AND v.gpu_type = w.gpu_type AND v.region = w.region AND v.account = w.account
                AND v.effective_from <= greatest(instant_now, o.clock)
                AND v.effective_to > greatest(instant_now, o.clock)
            ORDER BY v.effective_from DESC, v.price_id DESC LIMIT 1
        ) AS p ON true
        LEFT JOIN LATERAL (
            SELECT max(v.effective_to) AS ended_at FROM prices v
            WHERE coalesce(p.is_end, true)
                AND v.org_id = CASE w.account WHEN '' THEN 0 ELSE w.org_id END
                AND v.gpu_type = w.gpu_type AND v.region = w.region AND v.account = w.account
                AND v.effective_to <= greatest(instant_now, o.clock)
                AND (p.price_id IS NULL -- an end has ended all that began before it
                    OR (v.effective_from, v.price_id) > (p.effective_from, p.price_id))
        ) AS e ON true
        WHERE p.price_id IS NOT NULL OR e.ended_at IS NOT NULL;
    END IF;
    IF cardinality(job_ids) > 0 THEN
        RETURN QUERY -- first: what is known of earlier batches no longer counts
        SELECT DISTINCT -- [node w | account_id = 0 | reservation_id = NULL
        --  | expires_at = NULL | job_id = NULL | node = '']
            16, w.org_id, 0::bigint, NULL::bigint, NULL::bigint, NULL::bigint, NULL::bigint,
            NULL::bigint, NULL::bigint, NULL::bigint, NULL::bigint, NULL::bigint, NULL::bigint,
            NULL::bigint, NULL::bigint, NULL::bigint, NULL::bigint, NULL::bigint, NULL::bigint,
            NULL::bigint, NULL::bigint, NULL::text, ''::text, NULL::text, NULL::bigint[],
            NULL::bytea, NULL::bytea, NULL::bigint[]
            -- [end]
        FROM unnest(job_orgs) AS w(org_id) JOIN orgs o ON o.org_id = w.org_id;
        RETURN QUERY -- then the live leases of jobs that ask for one more, in order
        SELECT -- [node a | reservation_id = x.reservation_id
        --  | expires_at = x.expires_at | job_id = x.job_id | node = x.node]
            16, a.org_id, a.account_id, x.reservation_id::bigint, x.expires_at::bigint,
            NULL::bigint, NULL::bigint, NULL::bigint, NULL::bigint, NULL::bigint, NULL::bigint,
            NULL::bigint, NULL::bigint, NULL::bigint, NULL::bigint, NULL::bigint, NULL::bigint,
            NULL::bigint, NULL::bigint, NULL::bigint, NULL::bigint, x.job_id::text, x.node::text,
            NULL::text, NULL::bigint[], NULL::bytea, NULL::bytea, NULL::bigint[]
            -- [end]
        FROM unnest(job_orgs, job_paths, job_ids) AS w(org_id, path, job_id)
        JOIN accounts a ON a.org_id = w.org_id AND a.path = w.path
        CROSS JOIN LATERAL (
            SELECT r.reservation_id, r.expires_at, r.job_id, r.node FROM reservations r
            WHERE r.org_id + 0 = a.org_id AND r.account_id + 0 = a.account_id
                AND r.job_id = w.job_id AND r.state + 0 = 0
            OFFSET 0 -- one job after the other: a plan made while the table was empty stays good
        ) AS x
        ORDER BY x.reservation_id;
    END IF;
    IF cardinality(keys) > 0 THEN
        RETURN QUERY
        SELECT -- [answer i]
            7, i.org_id, NULL::bigint, NULL::bigint, NULL::bigint, NULL::bigint, NULL::bigint,
            NULL::bigint, NULL::bigint, NULL::bigint, NULL::bigint, NULL::bigint, NULL::bigint,
            NULL::bigint, NULL::bigint, NULL::bigint, NULL::bigint, NULL::bigint, NULL::bigint,
            NULL::bigint, NULL::bigint, i.key, NULL::text, NULL::text, NULL::bigint[],
            i.request_hash, i.outcome, NULL::bigint[]
            -- [end]
        FROM unnest(key_orgs, keys) AS w(org_id, key)
        JOIN idempotency i ON i.org_id = w.org_id AND i.key = w.key
        WHERE w.org_id > 0; -- keys of the system are no key of an org
    END IF;
END $$;
