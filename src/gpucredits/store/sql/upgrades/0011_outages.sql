-- Signs of life of servers, outages and the grace after them, and planned maintenance.

ALTER TABLE reservations ADD COLUMN extended_ms bigint NOT NULL DEFAULT 0
        CONSTRAINT reservations_extended_ms CHECK (extended_ms >= 0),
    ADD COLUMN reprieve_ms bigint NOT NULL DEFAULT 0
        CONSTRAINT reservations_reprieve_ms CHECK (reprieve_ms >= 0);
DROP FUNCTION IF EXISTS lease_beat_at(bigint, bigint, bigint, bigint);

CREATE TABLE server_life (
    only_row boolean CONSTRAINT server_life_pkey PRIMARY KEY DEFAULT true
        CONSTRAINT server_life_only_row CHECK (only_row),
    alive_at bigint NOT NULL DEFAULT 0
) WITH (fillfactor = 10);
INSERT INTO server_life DEFAULT VALUES;

CREATE TABLE outages (
    outage_id bigint GENERATED ALWAYS AS IDENTITY CONSTRAINT outages_pkey PRIMARY KEY,
    since bigint NOT NULL,
    until bigint NOT NULL CONSTRAINT outages_until CHECK (until > since),
    grace_ms bigint NOT NULL CONSTRAINT outages_grace_ms CHECK (grace_ms BETWEEN 0 AND 3600000)
);

CREATE TABLE maintenances (
    maintenance_id bigint GENERATED ALWAYS AS IDENTITY CONSTRAINT maintenances_pkey PRIMARY KEY,
    announced_at bigint NOT NULL,
    until bigint NOT NULL CONSTRAINT maintenances_until CHECK (until > announced_at),
    reason text NOT NULL,
    ended_at bigint NOT NULL DEFAULT 0
);
