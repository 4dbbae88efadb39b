-- The textbook's tables: text ids, one projection row for each account, two ledger rows for each
-- heartbeat with a unique text key each, and grants with what is left.

CREATE TABLE accounts (
    account_id text PRIMARY KEY,
    scope_type text NOT NULL,
    scope_ref text NOT NULL,
    parent_account_id text REFERENCES accounts,
    status text NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now()
);
CREATE TABLE balances (
    account_id text NOT NULL REFERENCES accounts,
    period text NOT NULL,
    available bigint NOT NULL CHECK (available >= 0),
    reserved bigint NOT NULL CHECK (reserved >= 0),
    spent bigint NOT NULL CHECK (spent >= 0),
    version bigint NOT NULL,
    PRIMARY KEY (account_id, period)
);
CREATE TABLE grants (
    grant_id text PRIMARY KEY,
    account_id text NOT NULL REFERENCES accounts,
    amount bigint NOT NULL,
    remaining bigint NOT NULL CHECK (remaining BETWEEN 0 AND amount),
    priority integer NOT NULL,
    starts_at timestamptz NOT NULL,
    expires_at timestamptz NOT NULL
);
CREATE INDEX ON grants (account_id);
CREATE TABLE reservations (
    reservation_id text PRIMARY KEY,
    account_id text NOT NULL REFERENCES accounts,
    job_id text NOT NULL,
    gpu_type text NOT NULL,
    gpu_count integer NOT NULL,
    rate_per_hour bigint NOT NULL,
    amount_held bigint NOT NULL CHECK (amount_held >= 0),
    amount_settled bigint NOT NULL,
    state text NOT NULL,
    expires_at timestamptz NOT NULL,
    idempotency_key text NOT NULL UNIQUE
);
CREATE TABLE ledger_entries (
    entry_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    ts timestamptz NOT NULL DEFAULT now(),
    debit_account_id text NOT NULL,
    credit_account_id text NOT NULL,
    amount bigint NOT NULL,
    type text NOT NULL,
    job_id text,
    reservation_id text,
    idempotency_key text NOT NULL UNIQUE,
    metadata jsonb
);
CREATE INDEX ON ledger_entries (debit_account_id, ts);
CREATE INDEX ON ledger_entries (credit_account_id, ts);
