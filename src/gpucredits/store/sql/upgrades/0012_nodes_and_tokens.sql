-- Keys may be bound to a node; servers sign lease tokens, each of which starts a job once.

ALTER TABLE api_keys ADD COLUMN node text NOT NULL DEFAULT '';
ALTER TABLE system_keys ADD COLUMN node text NOT NULL DEFAULT '';

CREATE UNIQUE INDEX audit_log_redeemed ON audit_log (org_id, resource)
    WHERE action = 'token.redeem';

CREATE TABLE signing_keys (
    key_id text COLLATE "C" CONSTRAINT signing_keys_pkey PRIMARY KEY,
    public_key bytea NOT NULL CONSTRAINT signing_keys_length CHECK (length(public_key) = 32),
    sealed bytea NOT NULL,
    created_at bigint NOT NULL,
    signs_from bigint NOT NULL,
    revoked_at bigint NOT NULL DEFAULT 0
);
