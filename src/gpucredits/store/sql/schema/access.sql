-- Kept for the edge: the keys of orgs, and who did what.

CREATE TABLE api_keys (
    org_id bigint NOT NULL CONSTRAINT api_keys_org_id CHECK (org_id > 0),
    key_id bigint NOT NULL,
    hash bytea NOT NULL,
    name text NOT NULL,
    role text NOT NULL,
    scope text NOT NULL COLLATE "C" CONSTRAINT api_keys_scope CHECK (scope <> ''),
    created_at bigint NOT NULL,
    expires_at bigint NOT NULL DEFAULT 4611686018427387904,
    revoked_at bigint NOT NULL DEFAULT 0,
    node text NOT NULL DEFAULT '', -- the only node that the key may act for; empty for any
    by_system boolean NOT NULL DEFAULT false, -- made by staff of the system, not of the org
    CONSTRAINT api_keys_pkey PRIMARY KEY (org_id, key_id),
    CONSTRAINT api_keys_hash UNIQUE (org_id, hash)
);

-- The acts of an org are a chain: each has its place, without a gap, and a hash that covers the act
-- before it. The newest link is kept apart, under a lock of its own, so that acts take their places
-- in the order in which they are written. Acts for the whole system are the chain of number 0.
CREATE TABLE audit_log (
    org_id bigint NOT NULL,
    audit_id bigint GENERATED ALWAYS AS IDENTITY,
    recorded_at bigint NOT NULL,
    actor text NOT NULL,
    action text NOT NULL,
    resource text NOT NULL,
    old jsonb,
    new jsonb,
    request_id text NOT NULL,
    place bigint NOT NULL,
    hash bytea NOT NULL,
    CONSTRAINT audit_log_pkey PRIMARY KEY (org_id, audit_id),
    CONSTRAINT audit_log_place UNIQUE (org_id, place)
);
-- Transfers by time, of an org, and of an account on either side.
CREATE INDEX audit_log_transfers ON audit_log (org_id, recorded_at, audit_id)
    WHERE action = 'credits.transfer';
CREATE INDEX audit_log_sent ON audit_log (org_id, resource, recorded_at, audit_id)
    WHERE action = 'credits.transfer';
CREATE INDEX audit_log_received ON audit_log (org_id, (new ->> 'to'), recorded_at, audit_id)
    WHERE action = 'credits.transfer';
CREATE INDEX audit_log_ends ON audit_log (org_id, resource)
    WHERE action IN ('reservation.settle', 'reservation.cancel');

-- A lease token starts a job once.
CREATE UNIQUE INDEX audit_log_redeemed ON audit_log (org_id, resource)
    WHERE action = 'token.redeem';

CREATE TABLE audit_heads (
    org_id bigint CONSTRAINT audit_heads_pkey PRIMARY KEY,
    place bigint NOT NULL,
    hash bytea NOT NULL
);
