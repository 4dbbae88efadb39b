-- What was asked and answered, decided and announced. Number 0 is the system, which is no org.

CREATE TABLE idempotency (
    org_id bigint NOT NULL,
    key text NOT NULL COLLATE "C",
    request_hash bytea NOT NULL,
    outcome bytea NOT NULL,
    created_at bigint NOT NULL,
    CONSTRAINT idempotency_pkey PRIMARY KEY (org_id, key)
);
CREATE INDEX idempotency_age ON idempotency (created_at);

CREATE TABLE decisions (
    org_id bigint NOT NULL,
    decision_id bigint GENERATED ALWAYS AS IDENTITY,
    decided_at bigint NOT NULL,
    command text NOT NULL,
    decision text NOT NULL,
    reason text NOT NULL,
    reservation_id bigint NOT NULL,
    actor text NOT NULL,
    detail jsonb NOT NULL,
    CONSTRAINT decisions_pkey PRIMARY KEY (org_id, decision_id)
);
CREATE INDEX decisions_age ON decisions (decided_at);

-- Events are delivered in the order of their numbers, up to the one that event_stream names: a number
-- is drawn before its transaction ends, so a later one may be seen first.
CREATE TABLE outbox (
    org_id bigint NOT NULL,
    event_id bigint GENERATED ALWAYS AS IDENTITY,
    recorded_at bigint NOT NULL,
    type text NOT NULL,
    subject_id bigint NOT NULL,
    payload jsonb NOT NULL,
    CONSTRAINT outbox_pkey PRIMARY KEY (org_id, event_id)
);
CREATE INDEX outbox_order ON outbox (event_id); -- for readers of all orgs

CREATE TABLE usage_events (
    org_id bigint NOT NULL,
    job_id text NOT NULL,
    node text NOT NULL,
    seq bigint NOT NULL,
    reservation_id bigint NOT NULL DEFAULT 0,
    account_id bigint NOT NULL DEFAULT 0, -- of the job, where no reservation is named
    is_late boolean NOT NULL DEFAULT false, -- reported by a beat after its lease had lapsed
    used_ms bigint NOT NULL,
    recorded_at bigint NOT NULL,
    payload jsonb NOT NULL DEFAULT '{}',
    is_attested boolean NOT NULL DEFAULT false, -- told by a node that the system vouches for
    CONSTRAINT usage_events_pkey
        PRIMARY KEY (org_id, job_id, node, reservation_id, account_id, is_late, is_attested, seq)
);

CREATE INDEX usage_events_seen ON usage_events USING brin (recorded_at); -- the reconciler goes by it

-- How many reports there are, and the sum of their digests: verify sees a report that was changed,
-- added or taken away. Writers of one org use different parts of the sum, so that they need not
-- wait for one another.
CREATE TABLE usage_sums (
    org_id bigint NOT NULL,
    part integer NOT NULL,
    reports bigint NOT NULL,
    digest numeric NOT NULL,
    CONSTRAINT usage_sums_pkey PRIMARY KEY (org_id, part)
) WITH (fillfactor = 50);

-- The last numbers that an org has given to rows which are not numbered by its ledger (next_id).
CREATE TABLE org_numbers (
    org_id bigint CONSTRAINT org_numbers_pkey PRIMARY KEY
        CONSTRAINT org_numbers_org_id CHECK (org_id > 0),
    keys bigint NOT NULL DEFAULT 0,
    requests bigint NOT NULL DEFAULT 0,
    statements bigint NOT NULL DEFAULT 0,
    anomalies bigint NOT NULL DEFAULT 0,
    unmatched bigint NOT NULL DEFAULT 0,
    alarms bigint NOT NULL DEFAULT 0
) WITH (fillfactor = 50);
