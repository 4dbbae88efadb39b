-- What belongs to no org, and of which every shard can hold a copy: see also prices and pools.

-- Locked by whoever acts for the whole system, as an org is by whoever acts for the org. The version
-- is drawn anew whenever a price is added that holds for rows of this shard.
CREATE TABLE system_state (
    only_row boolean CONSTRAINT system_state_pkey PRIMARY KEY DEFAULT true
        CONSTRAINT system_state_only_row CHECK (only_row),
    prices_version bigint NOT NULL DEFAULT (random() * 4611686018427387904)::bigint
);
INSERT INTO system_state DEFAULT VALUES;

-- The last sign of life of any server, by the database's own clock without the test clock's offset.
CREATE TABLE server_life (
    only_row boolean CONSTRAINT server_life_pkey PRIMARY KEY DEFAULT true
        CONSTRAINT server_life_only_row CHECK (only_row),
    alive_at bigint NOT NULL DEFAULT 0
) WITH (fillfactor = 10); -- written every second
INSERT INTO server_life DEFAULT VALUES;

-- Times at which no server was alive. Leases that were live then may report for a while after them.
CREATE TABLE outages (
    outage_id bigint GENERATED ALWAYS AS IDENTITY CONSTRAINT outages_pkey PRIMARY KEY,
    since bigint NOT NULL,
    until bigint NOT NULL CONSTRAINT outages_until CHECK (until > since),
    grace_ms bigint NOT NULL CONSTRAINT outages_grace_ms CHECK (grace_ms BETWEEN 0 AND 3600000)
);

-- Planned stops. Reports until then extend their leases, unless it was ended before.
CREATE TABLE maintenances (
    maintenance_id bigint GENERATED ALWAYS AS IDENTITY CONSTRAINT maintenances_pkey PRIMARY KEY,
    announced_at bigint NOT NULL,
    until bigint NOT NULL CONSTRAINT maintenances_until CHECK (until > announced_at),
    reason text NOT NULL,
    ended_at bigint NOT NULL DEFAULT 0
);

-- Keys for the whole system; those of an org are in api_keys.
CREATE TABLE system_keys (
    key_id bigint GENERATED ALWAYS AS IDENTITY CONSTRAINT system_keys_pkey PRIMARY KEY,
    hash bytea NOT NULL CONSTRAINT system_keys_hash UNIQUE,
    name text NOT NULL,
    role text NOT NULL,
    created_at bigint NOT NULL,
    expires_at bigint NOT NULL DEFAULT 4611686018427387904,
    revoked_at bigint NOT NULL DEFAULT 0,
    node text NOT NULL DEFAULT '' -- as in api_keys
);

-- Keys that sign lease tokens. Only servers open the private half: it is sealed with their secret.
CREATE TABLE signing_keys (
    key_id text COLLATE "C" CONSTRAINT signing_keys_pkey PRIMARY KEY,
    public_key bytea NOT NULL CONSTRAINT signing_keys_length CHECK (length(public_key) = 32),
    sealed bytea NOT NULL,
    created_at bigint NOT NULL,
    signs_from bigint NOT NULL,
    revoked_at bigint NOT NULL DEFAULT 0
);
