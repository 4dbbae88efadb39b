-- Measured use, the bus that carries it, and how far readers of events have come.

-- What nodes measured of each lease: the sums of its usage events, kept by their trigger.
CREATE TABLE measured (
    org_id bigint NOT NULL,
    reservation_id bigint NOT NULL,
    node text NOT NULL,
    events bigint NOT NULL CONSTRAINT measured_events CHECK (events >= 0),
    used_ms bigint NOT NULL CONSTRAINT measured_used_ms CHECK (used_ms >= 0),
    late_used_ms bigint NOT NULL CONSTRAINT measured_late_used_ms CHECK (late_used_ms >= 0),
    CONSTRAINT measured_pkey PRIMARY KEY (org_id, reservation_id, node)
) WITH (fillfactor = 50);

-- How far this database has read each partition of a topic: written in the transaction of what the
-- messages did. The stream is the one that the positions belong to.
CREATE TABLE bus_progress (
    topic text NOT NULL COLLATE "C",
    partition integer NOT NULL CONSTRAINT bus_progress_partition CHECK (partition >= 0),
    position bigint NOT NULL CONSTRAINT bus_progress_position CHECK (position >= 0),
    stream text NOT NULL,
    moved_at bigint NOT NULL,
    CONSTRAINT bus_progress_pkey PRIMARY KEY (topic, partition)
) WITH (fillfactor = 50);

-- The bus that is this database: the last position of each partition, and messages not yet read.
CREATE TABLE bus_ends (
    topic text NOT NULL COLLATE "C",
    partition integer NOT NULL CONSTRAINT bus_ends_partition CHECK (partition >= 0),
    position bigint NOT NULL CONSTRAINT bus_ends_position CHECK (position >= 0),
    CONSTRAINT bus_ends_pkey PRIMARY KEY (topic, partition)
) WITH (fillfactor = 50);

CREATE TABLE bus_messages (
    topic text NOT NULL COLLATE "C",
    partition integer NOT NULL,
    position bigint NOT NULL,
    body bytea NOT NULL,
    CONSTRAINT bus_messages_pkey PRIMARY KEY (topic, partition, position)
);

-- Messages that could not be used, until somebody replays or drops them.
CREATE TABLE dead_letters (
    letter_id bigint GENERATED ALWAYS AS IDENTITY CONSTRAINT dead_letters_pkey PRIMARY KEY,
    topic text NOT NULL COLLATE "C",
    partition integer NOT NULL,
    position bigint NOT NULL,
    received_at bigint NOT NULL,
    reason text NOT NULL,
    detail text NOT NULL,
    body bytea NOT NULL,
    -- waiting, replayed, dropped
    state smallint NOT NULL DEFAULT 0 CONSTRAINT dead_letters_state CHECK (state BETWEEN 0 AND 2),
    decided_at bigint NOT NULL DEFAULT 0,
    decided_by text NOT NULL DEFAULT ''
);
CREATE INDEX dead_letters_waiting ON dead_letters (letter_id) WHERE state = 0;

-- The newest event that readers are shown: no event with a lower number can still come.
CREATE TABLE event_stream (
    only_row boolean CONSTRAINT event_stream_pkey PRIMARY KEY DEFAULT true
        CONSTRAINT event_stream_only_row CHECK (only_row),
    position bigint NOT NULL DEFAULT 0 CONSTRAINT event_stream_position CHECK (position >= 0)
) WITH (fillfactor = 50);
INSERT INTO event_stream DEFAULT VALUES;

-- How far each reader of events has come: readers of an org, or (org 0) of all. What a reader has
-- not read is kept for it.
CREATE TABLE event_consumers (
    org_id bigint NOT NULL,
    name text NOT NULL COLLATE "C",
    position bigint NOT NULL CONSTRAINT event_consumers_position CHECK (position >= 0),
    moved_at bigint NOT NULL,
    CONSTRAINT event_consumers_pkey PRIMARY KEY (org_id, name)
) WITH (fillfactor = 50);
