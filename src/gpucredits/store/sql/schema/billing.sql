-- What users ask for. A request is decided under its org's lock; what its approval does is a
-- command of the ledger under a key made of its number and attempt, so that it is done once.

CREATE TABLE requests (
    org_id bigint NOT NULL,
    request_id bigint NOT NULL,
    account text NOT NULL COLLATE "C",
    kind smallint NOT NULL CONSTRAINT requests_kind CHECK (kind BETWEEN 0 AND 3),
    unit smallint NOT NULL CONSTRAINT requests_unit CHECK (unit BETWEEN 0 AND 2),
    target_id bigint NOT NULL,
    budget text NOT NULL,
    amount bigint NOT NULL CONSTRAINT requests_amount CHECK (amount > 0),
    refill_per_hour bigint NOT NULL
        CONSTRAINT requests_refill_per_hour CHECK (refill_per_hour >= 0),
    ends_at bigint NOT NULL,
    reason text NOT NULL,
    asked_by text NOT NULL,
    asked_at bigint NOT NULL,
    expires_at bigint NOT NULL CONSTRAINT requests_expires_at CHECK (expires_at > asked_at),
    state smallint NOT NULL CONSTRAINT requests_state CHECK (state BETWEEN 0 AND 5),
    decided_by text NOT NULL,
    -- the scope of that key
    decided_from smallint NOT NULL
        CONSTRAINT requests_decided_from CHECK (decided_from BETWEEN 0 AND 3),
    decided_at bigint NOT NULL,
    note text NOT NULL,
    given_amount bigint NOT NULL CONSTRAINT requests_given_amount CHECK (given_amount >= 0),
    given_refill_per_hour bigint NOT NULL
        CONSTRAINT requests_given_refill_per_hour CHECK (given_refill_per_hour >= 0),
    given_ends_at bigint NOT NULL,
    taken_from text NOT NULL COLLATE "C", -- the account that gives the credits, or '': new ones
    attempt integer NOT NULL CONSTRAINT requests_attempt CHECK (attempt >= 0),
    result text NOT NULL,
    refusal text NOT NULL,
    CONSTRAINT requests_pkey PRIMARY KEY (org_id, request_id)
);
CREATE INDEX requests_undecided ON requests (org_id, account, expires_at) WHERE state < 2;

-- What a postpaid account owes for a period, with its lines: opening + charges - payments - credits
-- = closing, owed if positive. A statement is paid by whatever came in since the account was opened,
-- oldest charge first, so that the balance alone says what is paid of it: nothing has to be kept up
-- to date here.
CREATE TABLE statements (
    org_id bigint NOT NULL,
    statement_id bigint NOT NULL,
    account_id bigint NOT NULL,
    period text NOT NULL COLLATE "C",
    amount bigint NOT NULL CONSTRAINT statements_amount CHECK (amount >= 0),
    due_at bigint NOT NULL,
    account text NOT NULL COLLATE "C",
    starts_at bigint NOT NULL,
    ends_at bigint NOT NULL CONSTRAINT statements_ends_at CHECK (ends_at > starts_at),
    closed_at bigint NOT NULL CONSTRAINT statements_closed_at CHECK (closed_at >= ends_at),
    opening bigint NOT NULL,
    charges bigint NOT NULL,
    payments bigint NOT NULL,
    credits bigint NOT NULL,
    closing bigint NOT NULL,
    charged_through bigint NOT NULL, -- all that was charged to the account by ends_at
    paid_through bigint NOT NULL, -- all payments by then
    CONSTRAINT statements_pkey PRIMARY KEY (org_id, statement_id),
    CONSTRAINT statements_period UNIQUE (org_id, account_id, period),
    CONSTRAINT statements_lines CHECK (opening + charges - payments - credits = closing)
);
CREATE INDEX statements_due ON statements (org_id, account_id, due_at);

-- What each account had spent in all at the end of an hour; hours in which that did not change
-- have no row.

CREATE TABLE spend_marks (
    org_id bigint NOT NULL,
    account_id bigint NOT NULL,
    hour bigint NOT NULL, -- since 1970
    spent bigint NOT NULL,
    CONSTRAINT spend_marks_pkey PRIMARY KEY (org_id, account_id, hour)
);

CREATE TABLE anomaly_terms (
    org_id bigint NOT NULL,
    account_id bigint NOT NULL,
    ratio_percent bigint NOT NULL
        CONSTRAINT anomaly_terms_ratio_percent CHECK (ratio_percent > 100),
    floor bigint NOT NULL CONSTRAINT anomaly_terms_floor CHECK (floor >= 0),
    auto_suspend boolean NOT NULL,
    -- as of quotas; 3 where all is default
    set_by smallint NOT NULL CONSTRAINT anomaly_terms_set_by CHECK (set_by BETWEEN 0 AND 3),
    CONSTRAINT anomaly_terms_pkey PRIMARY KEY (org_id, account_id)
);

CREATE TABLE anomalies (
    org_id bigint NOT NULL,
    anomaly_id bigint NOT NULL,
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
    -- none, to suspend, suspended, refused
    action smallint NOT NULL CONSTRAINT anomalies_action CHECK (action BETWEEN 0 AND 3),
    CONSTRAINT anomalies_pkey PRIMARY KEY (org_id, anomaly_id),
    CONSTRAINT anomalies_hour UNIQUE (org_id, account_id, starts_at)
);
CREATE INDEX anomalies_acting ON anomalies (org_id, anomaly_id) WHERE action = 1;
