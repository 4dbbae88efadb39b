-- What users ask for. A request is decided under its org's lock; what its approval does is a
-- command of the ledger under a key made of its number and attempt, so that it is done once.

CREATE TABLE requests (
    org_id integer NOT NULL,
    request_id bigint GENERATED ALWAYS AS IDENTITY,
    account text NOT NULL COLLATE "C",
    kind smallint NOT NULL CHECK (kind BETWEEN 0 AND 3),
    unit smallint NOT NULL CHECK (unit BETWEEN 0 AND 2),
    target_id bigint NOT NULL,
    budget text NOT NULL,
    amount bigint NOT NULL CHECK (amount > 0),
    refill_per_hour bigint NOT NULL CHECK (refill_per_hour >= 0),
    ends_at bigint NOT NULL,
    reason text NOT NULL,
    asked_by text NOT NULL,
    asked_at bigint NOT NULL,
    expires_at bigint NOT NULL CHECK (expires_at > asked_at),
    state smallint NOT NULL CHECK (state BETWEEN 0 AND 5),
    decided_by text NOT NULL,
    decided_at bigint NOT NULL,
    note text NOT NULL,
    given_amount bigint NOT NULL CHECK (given_amount >= 0),
    given_refill_per_hour bigint NOT NULL CHECK (given_refill_per_hour >= 0),
    given_ends_at bigint NOT NULL,
    attempt integer NOT NULL CHECK (attempt >= 0),
    result text NOT NULL,
    refusal text NOT NULL,
    PRIMARY KEY (org_id, request_id)
);
CREATE UNIQUE INDEX requests_number ON requests (request_id);
CREATE INDEX requests_undecided ON requests (org_id, account, expires_at) WHERE state < 2;
