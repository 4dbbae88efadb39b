-- What admissions need beside the textbook's tables: a price list, and the same two transactions
-- as one call each. The calls write the rows that the statements write, under the same locks.

CREATE TABLE prices (
    gpu_type text PRIMARY KEY,
    rate_per_hour bigint NOT NULL
);

CREATE FUNCTION reserve(
    payer text, chain text[], period_wanted text, new_id text, job text, type text, gpus integer,
    window_ms bigint, key text
) RETURNS TABLE (reservation_id text, held bigint, is_new boolean) LANGUAGE plpgsql AS $$
DECLARE
    free bigint;
    rate bigint;
    hold bigint;
BEGIN
    SELECT b.available, p.rate_per_hour * gpus INTO free, rate
    FROM balances b, prices p
    WHERE b.account_id = payer AND b.period = period_wanted AND p.gpu_type = type
        AND (SELECT count(*) FROM accounts a WHERE a.account_id = ANY (chain)
            AND a.status = 'active') = cardinality(chain)
    FOR UPDATE OF b;
    hold := rate * window_ms / 3600000000;
    IF free IS NULL OR free < hold THEN
        RETURN;
    END IF;
    INSERT INTO reservations AS r VALUES (new_id, payer, job, type, gpus, rate, hold, 0, 'active',
        now() + window_ms * interval '1 millisecond', key)
    ON CONFLICT (idempotency_key) DO NOTHING;
    IF NOT FOUND THEN
        RETURN QUERY SELECT r.reservation_id, r.amount_held, false FROM reservations r
            WHERE r.idempotency_key = key;
        RETURN;
    END IF;
    INSERT INTO ledger_entries (debit_account_id, credit_account_id, amount, type, job_id,
        reservation_id, idempotency_key)
    VALUES (payer || ':available', payer || ':reserved', hold, 'reserve', job, new_id, key);
    UPDATE balances SET available = available - hold, reserved = reserved + hold,
        version = version + 1
    WHERE account_id = payer AND period = period_wanted;
    RETURN QUERY SELECT new_id, hold, true;
END $$;

CREATE FUNCTION settle(wanted text, period_wanted text, used_ms bigint, key text)
RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    lease record;
    due bigint;
    owed bigint;
    lot record;
    part bigint;
BEGIN
    SELECT r.account_id, r.job_id, r.rate_per_hour, r.amount_held, r.amount_settled, r.state
    INTO lease
    FROM reservations r JOIN balances b ON b.account_id = r.account_id AND b.period = period_wanted
    WHERE r.reservation_id = wanted FOR UPDATE;
    IF lease IS NULL OR lease.state <> 'active' THEN
        RETURN lease.amount_settled;
    END IF;
    due := least(lease.rate_per_hour * used_ms / 3600000000, lease.amount_held);
    owed := due;
    FOR lot IN SELECT g.grant_id, g.remaining FROM grants g
        WHERE g.account_id = lease.account_id AND g.remaining > 0 AND g.starts_at <= now()
            AND now() < g.expires_at
        ORDER BY g.priority, g.expires_at, g.grant_id
    LOOP
        part := least(lot.remaining, owed);
        UPDATE grants SET remaining = remaining - part WHERE grant_id = lot.grant_id;
        owed := owed - part;
        EXIT WHEN owed = 0;
    END LOOP;
    INSERT INTO ledger_entries (debit_account_id, credit_account_id, amount, type, job_id,
        reservation_id, idempotency_key)
    VALUES (lease.account_id || ':reserved', lease.account_id || ':spent', due, 'settle',
            lease.job_id, wanted, key || ':settle'),
        (lease.account_id || ':reserved', lease.account_id || ':available',
            lease.amount_held - due, 'release', lease.job_id, wanted, key || ':release');
    UPDATE balances SET available = available + lease.amount_held - due,
        reserved = reserved - lease.amount_held, spent = spent + due, version = version + 1
    WHERE account_id = lease.account_id AND period = period_wanted;
    UPDATE reservations SET amount_held = 0, amount_settled = due, state = 'settled'
    WHERE reservation_id = wanted;
    RETURN due;
END $$;
