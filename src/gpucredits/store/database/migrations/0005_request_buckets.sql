-- How many requests keys and orgs may make, and what their buckets held when they were last saved.
-- Nothing here is money: no command of the ledger reads or writes it, and no lock of it is needed.

-- Who may make how many. holder 1: a key, number is its key_id; 2: all keys of an org, number 0.
CREATE TABLE request_limits (
    org_id integer NOT NULL, -- 0: keys for the whole system
    holder smallint NOT NULL CHECK (holder IN (1, 2)),
    number bigint NOT NULL,
    capacity bigint NOT NULL CHECK (capacity BETWEEN 1 AND 1000000),
    refill_per_hour bigint NOT NULL CHECK (refill_per_hour BETWEEN 1 AND 3600000000),
    set_at bigint NOT NULL,
    PRIMARY KEY (org_id, holder, number)
);

-- The last known level of each bucket, saved every few seconds: what it held at saved_at, by the
-- database's clock. The terms are those it was filled by. No index beyond the key, so updates stay
-- heap-only.
CREATE TABLE request_buckets (
    org_id integer NOT NULL,
    holder smallint NOT NULL CHECK (holder IN (1, 2)),
    number bigint NOT NULL,
    capacity bigint NOT NULL,
    refill_per_hour bigint NOT NULL,
    level bigint NOT NULL,
    fraction bigint NOT NULL,
    saved_at bigint NOT NULL,
    PRIMARY KEY (org_id, holder, number)
) WITH (fillfactor = 50);
