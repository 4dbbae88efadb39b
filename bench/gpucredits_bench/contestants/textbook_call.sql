-- The textbook's heartbeat as one call: the rows that its statements write, under the same locks.

CREATE FUNCTION heartbeat(
    wanted text, period_wanted text, number bigint, used_ms bigint, window_ms bigint
) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    lease record;
    lot record;
    charged bigint;
    due bigint;
    hold bigint;
    owed bigint;
    part bigint;
BEGIN
    SELECT r.account_id, r.job_id, r.rate_per_hour, r.amount_held, r.amount_settled, r.state,
        b.available
    INTO lease
    FROM reservations r JOIN balances b ON b.account_id = r.account_id AND b.period = period_wanted
    WHERE r.reservation_id = wanted FOR UPDATE;
    IF lease IS NULL OR lease.state <> 'active' THEN
        RETURN false;
    END IF;
    charged := greatest(lease.rate_per_hour * used_ms / 3600000000, lease.amount_settled);
    due := charged - lease.amount_settled;
    hold := lease.rate_per_hour * (used_ms + window_ms) / 3600000000 - charged;
    hold := least(greatest(hold - lease.amount_held + due, 0), lease.available);
    INSERT INTO ledger_entries (debit_account_id, credit_account_id, amount, type, job_id,
        reservation_id, idempotency_key)
    VALUES (lease.account_id || ':reserved', lease.account_id || ':spent', due, 'settle',
            lease.job_id, wanted, lease.job_id || ':' || number || ':settle'),
        (lease.account_id || ':available', lease.account_id || ':reserved', hold, 'reserve',
            lease.job_id, wanted, lease.job_id || ':' || number || ':reserve')
    ON CONFLICT (idempotency_key) DO NOTHING;
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    UPDATE balances SET available = available - hold, reserved = reserved + hold - due,
        spent = spent + due, version = version + 1
    WHERE account_id = lease.account_id AND period = period_wanted;
    owed := due;
    FOR lot IN
        SELECT g.grant_id, g.remaining FROM grants g
        WHERE g.account_id = lease.account_id AND g.remaining > 0 AND g.starts_at <= now()
            AND now() < g.expires_at
        ORDER BY g.priority, g.expires_at, g.grant_id
    LOOP
        part := least(lot.remaining, owed);
        UPDATE grants SET remaining = remaining - part WHERE grant_id = lot.grant_id;
        owed := owed - part;
        EXIT WHEN owed = 0;
    END LOOP;
    IF owed > 0 THEN
        RAISE EXCEPTION 'the grants of % do not cover a slice', lease.account_id;
    END IF;
    UPDATE reservations SET amount_held = lease.amount_held + hold - due, amount_settled = charged,
        expires_at = now() + window_ms * interval '1 millisecond'
    WHERE reservation_id = wanted;
    RETURN true;
END $$;
