INSERT INTO entry_types VALUES -- [entry types]
    (1, 'issue', 'system:issuance', 'available'), (2, 'topup', 'system:payments', 'available'),
    (3, 'transfer', 'available', 'other:available'), (4, 'reserve', 'available', 'reserved'),
    (5, 'release', 'reserved', 'available'), (6, 'settle', 'reserved', 'spent'),
    (7, 'refund', 'spent', 'available'), (8, 'expire', 'available', 'system:expired'),
    (9, 'adjust', 'available', 'spent'), (10, 'overrun', 'system:overrun', 'available'),
    (11, 'collect', 'available', 'system:overrun'), (12, 'repay', 'available', 'available'),
    (13, 'reverse', 'available', 'system:payments'), (14, 'restore', 'system:expired', 'available'),
    (15, 'withdraw', 'available', 'system:issuance')
    -- [end]
ON CONFLICT (type) DO UPDATE
    SET name = excluded.name, debit = excluded.debit, credit = excluded.credit;

-- Entries with the times that count: in the order of their ids also where a clock was brought back.
CREATE OR REPLACE VIEW timed_entries AS
SELECT e.org_id, e.type, e.entry_id, least(e.recorded_at, r.repaired_at) AS recorded_at,
    least(e.effective_at, r.repaired_at) AS effective_at, e.account_id, e.amount, e.reserve,
    e.grant_id, e.other_id, e.other_grant_id, e.reservation_id, e.seq,
    e.effective_at AS stamped_at -- as the entry says
FROM entries e
LEFT JOIN clock_repairs r ON r.org_id = e.org_id AND e.entry_id >= r.first_entry_id
    AND e.entry_id < r.next_entry_id;

-- The first entry of an org that was recorded at or after an instant, or the next one to come if
-- there is none: entries are recorded in the order of their ids, and no id is missing.
CREATE OR REPLACE FUNCTION entry_at(org bigint, at bigint) RETURNS bigint
LANGUAGE plpgsql STABLE SET enable_seqscan = off
SET search_path FROM CURRENT AS $$
DECLARE
    least bigint := 1;
    beyond bigint;
    middle bigint;
BEGIN
    SELECT o.next_entry_id INTO beyond FROM orgs o WHERE o.org_id = org;
    WHILE least < beyond LOOP
        middle := (least + beyond) / 2;
        IF (SELECT e.recorded_at FROM timed_entries e WHERE e.org_id = org AND e.entry_id = middle)
            < at
        THEN least := middle + 1;
        ELSE beyond := middle;
        END IF;
    END LOOP;
    RETURN least;
END $$;

-- The first lease of an org that was admitted at or after an instant, or the next number to come:
-- numbers of leases and of their first entries rise together. A lease that was admitted in a batch
-- without entries may count as admitted with the next entry; nothing was charged for it before.
CREATE OR REPLACE FUNCTION lease_at(org bigint, at bigint) RETURNS bigint
LANGUAGE plpgsql STABLE SET enable_seqscan = off
SET search_path FROM CURRENT AS $$
DECLARE
    first_entry bigint := entry_at(org, at);
    least bigint := 1;
    beyond bigint;
    middle bigint;
    found record;
BEGIN
    SELECT o.next_id INTO beyond FROM orgs o WHERE o.org_id = org;
    WHILE least < beyond LOOP
        middle := (least + beyond) / 2;
        SELECT r.reservation_id, r.first_entry_id INTO found FROM reservations r
        WHERE r.org_id = org AND r.reservation_id >= middle AND r.reservation_id < beyond
        ORDER BY r.reservation_id LIMIT 1;
        IF found.reservation_id IS NULL THEN beyond := middle;
        ELSIF found.first_entry_id < first_entry THEN least := found.reservation_id + 1;
        ELSE beyond := middle;
        END IF;
    END LOOP;
    RETURN least;
END $$;

-- The first entry of an org from which on none of an account took effect before an instant. What the
-- clock alone has made true of an account is written down together, before anything else of it is:
-- so whatever is late is among the first that were recorded at or after the instant.
CREATE OR REPLACE FUNCTION entry_after(org bigint, account bigint, at bigint) RETURNS bigint
LANGUAGE plpgsql STABLE SET enable_seqscan = off
SET search_path FROM CURRENT AS $$
DECLARE
    first_id bigint := entry_at(org, at);
BEGIN
    RETURN coalesce((
        SELECT entry_at(org, e.recorded_at + 1) FROM timed_entries e
        WHERE e.org_id = org AND e.account_id = account AND e.entry_id >= first_id
        ORDER BY e.entry_id LIMIT 1), first_id);
END $$;

-- Every stored row as ordinary debit/credit pairs: first the pair of its reserve column, if any,
-- then the pair of its type.
CREATE OR REPLACE VIEW ledger_entries AS
SELECT
    e.org_id, e.entry_id, pair.line,
    instant(e.recorded_at) AS recorded_at, instant(e.effective_at) AS effective_at,
    pair.type,
    CASE WHEN pair.debit LIKE 'system:%' THEN pair.debit ELSE own.path END AS debit_account,
    CASE WHEN pair.debit LIKE 'system:%' THEN 'available' ELSE pair.debit END AS debit_bucket,
    CASE WHEN pair.credit LIKE 'system:%' THEN pair.credit
        WHEN pair.credit LIKE 'other:%' THEN receiver.path ELSE own.path END AS credit_account,
    CASE WHEN pair.credit LIKE 'system:%' OR pair.credit LIKE 'other:%' THEN 'available'
        ELSE pair.credit END AS credit_bucket,
    pair.amount, e.grant_id, e.other_grant_id, e.reservation_id, e.seq
FROM entries e
JOIN accounts own ON own.org_id = e.org_id AND own.account_id = e.account_id
LEFT JOIN accounts receiver ON receiver.org_id = e.org_id AND receiver.account_id = e.other_id
CROSS JOIN LATERAL (
    SELECT 1 AS line, t.name AS type, t.debit, t.credit, abs(e.reserve) AS amount
    FROM entry_types t
    WHERE e.reserve <> 0 AND t.type = CASE WHEN e.reserve > 0 THEN 4 ELSE 5 END
    UNION ALL
    SELECT 2, t.name, t.debit, t.credit, e.amount
    FROM entry_types t
    WHERE e.amount <> 0 AND t.type = e.type
) AS pair;

-- What each entry does to the buckets of the accounts it names: add these up to get a balance.
CREATE OR REPLACE VIEW entry_moves AS
SELECT org_id, account_id, entry_id, recorded_at, effective_at, -- [entry moves]
    CASE WHEN other_id = account_id THEN 0 WHEN type IN (1, 2, 5, 7, 10, 14) THEN amount WHEN type
    IN (3, 4, 8, 9, 11, 13, 15) THEN -amount ELSE 0 END - reserve AS available, CASE WHEN type IN
    (4) THEN amount WHEN type IN (5, 6) THEN -amount ELSE 0 END + reserve AS reserved,
    CASE WHEN type IN (6, 9) THEN amount WHEN type IN (7) THEN -amount ELSE 0 END AS spent
    -- [end]
FROM timed_entries
UNION ALL
SELECT org_id, other_id, entry_id, recorded_at, effective_at, amount, 0, 0
FROM timed_entries WHERE other_id <> 0 AND other_id <> account_id;

-- The hash of a block covers the block before it and every column of its entries, as 64-bit
-- big-endian integers in an array each.
CREATE OR REPLACE FUNCTION block_hash(org bigint, first_id bigint, last_id bigint, previous bytea)
RETURNS bytea LANGUAGE sql STABLE SET search_path FROM CURRENT AS $$
    SELECT sha256(previous || int8send(first_id) || int8send(last_id)
        || sha256(coalesce(string_agg(array_send(ARRAY[
            e.org_id, e.entry_id, e.recorded_at, e.effective_at, e.type, e.account_id, e.amount,
            e.reserve, e.grant_id, e.other_id, e.other_grant_id, e.reservation_id, e.seq
        ]::bigint[]), ''::bytea ORDER BY e.entry_id), ''::bytea)))
    FROM entries e WHERE e.org_id = org AND e.entry_id BETWEEN first_id AND last_id
$$;
