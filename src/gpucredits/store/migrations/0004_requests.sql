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
    decided_from smallint NOT NULL CHECK (decided_from BETWEEN 0 AND 3), -- the scope of that key
    decided_at bigint NOT NULL,
    note text NOT NULL,
    given_amount bigint NOT NULL CHECK (given_amount >= 0),
    given_refill_per_hour bigint NOT NULL CHECK (given_refill_per_hour >= 0),
    given_ends_at bigint NOT NULL,
    taken_from text NOT NULL COLLATE "C", -- the account that gives the credits, or '': new ones
    attempt integer NOT NULL CHECK (attempt >= 0),
    result text NOT NULL,
    refusal text NOT NULL,
    PRIMARY KEY (org_id, request_id)
);
CREATE UNIQUE INDEX requests_number ON requests (request_id);
CREATE INDEX requests_undecided ON requests (org_id, account, expires_at) WHERE state < 2;

-- Statements with their lines: opening + charges - payments - credits = closing, owed if positive. A
-- statement is paid by whatever came in since the account was opened, oldest charge first, so
-- that the balance alone says what is paid of it: nothing has to be kept up to date here.

ALTER TABLE statements
    ALTER COLUMN statement_id ADD GENERATED ALWAYS AS IDENTITY,
    DROP COLUMN paid_at,
    DROP COLUMN status,
    ADD COLUMN account text NOT NULL COLLATE "C",
    ADD COLUMN starts_at bigint NOT NULL,
    ADD COLUMN ends_at bigint NOT NULL CHECK (ends_at > starts_at),
    ADD COLUMN closed_at bigint NOT NULL CHECK (closed_at >= ends_at),
    ADD COLUMN opening bigint NOT NULL,
    ADD COLUMN charges bigint NOT NULL,
    ADD COLUMN payments bigint NOT NULL,
    ADD COLUMN credits bigint NOT NULL,
    ADD COLUMN closing bigint NOT NULL,
    ADD COLUMN charged_through bigint NOT NULL, -- all that was charged to the account by ends_at
    ADD COLUMN paid_through bigint NOT NULL, -- all payments by then
    ADD CONSTRAINT statements_lines CHECK (opening + charges - payments - credits = closing);
CREATE UNIQUE INDEX statements_number ON statements (statement_id);
CREATE INDEX statements_due ON statements (org_id, account_id, due_at);
CREATE TRIGGER statements_insert_only BEFORE UPDATE OR DELETE OR TRUNCATE ON statements
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
CREATE INDEX accounts_postpaid ON accounts (org_id, account_id)
    WHERE model = 1 OR delinquent;
-- Payments, their reversals and refunds: few, and looked for among very many entries.
CREATE INDEX entries_paid ON entries (org_id, account_id, type)
    INCLUDE (amount, effective_at, entry_id) WHERE type IN (2, 7, 13);

-- What each account had spent in all at the end of an hour; hours in which that did not change
-- have no row.

CREATE TABLE spend_marks (
    org_id integer NOT NULL,
    account_id bigint NOT NULL,
    hour bigint NOT NULL, -- since 1970
    spent bigint NOT NULL,
    PRIMARY KEY (org_id, account_id, hour)
);

CREATE TABLE anomaly_terms (
    org_id integer NOT NULL,
    account_id bigint NOT NULL,
    ratio_percent bigint NOT NULL CHECK (ratio_percent > 100),
    floor bigint NOT NULL CHECK (floor >= 0),
    auto_suspend boolean NOT NULL,
    PRIMARY KEY (org_id, account_id)
);

CREATE TABLE anomalies (
    org_id integer NOT NULL,
    anomaly_id bigint GENERATED ALWAYS AS IDENTITY,
    account_id bigint NOT NULL,
    account text NOT NULL COLLATE "C",
    starts_at bigint NOT NULL,
    ends_at bigint NOT NULL,
    observed bigint NOT NULL,
    baseline bigint NOT NULL,
    threshold bigint NOT NULL,
    ratio_percent bigint NOT NULL,
    floor bigint NOT NULL,
    hours integer NOT NULL,
    sentence text NOT NULL,
    found_at bigint NOT NULL,
    action smallint NOT NULL CHECK (action BETWEEN 0 AND 3), -- none, to suspend, suspended, refused
    PRIMARY KEY (org_id, anomaly_id),
    CONSTRAINT anomalies_hour UNIQUE (org_id, account_id, starts_at)
);
CREATE UNIQUE INDEX anomalies_number ON anomalies (anomaly_id);
CREATE INDEX anomalies_acting ON anomalies (anomaly_id) WHERE action = 1;
