-- When the last beat of a lease was taken; more_ms is by how much its end was moved since.
CREATE OR REPLACE FUNCTION lease_beat_at(
    beat_at bigint, expires_at bigint, window_ms bigint, escrow bigint, more_ms bigint
) RETURNS bigint LANGUAGE sql IMMUTABLE AS $$
    SELECT greatest(beat_at, expires_at - (window_ms * (1 + escrow) + more_ms) * 1000)
$$;

-- Everybody who pays or has paid for a lease: payers holds account and number of items by turns.
CREATE OR REPLACE FUNCTION lease_payers(payer_id bigint, payers bigint[])
RETURNS SETOF bigint LANGUAGE sql IMMUTABLE AS $$
    SELECT payer_id UNION SELECT payers[place] FROM generate_series(1, cardinality(payers), 2) AS place
$$;
