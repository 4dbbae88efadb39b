-- Pools of GPUs and the queue in front of them. A pool belongs to no org, and the directory gives it
-- its number and keeps its name unique; a waiting request belongs to its org. Everything that adds to what a pool holds first moves the pool's
-- version on (pool_dispatch), so that two dispatchers can never fill the same room.

CREATE TABLE pools (
    pool_id bigint NOT NULL,
    gpu_type text NOT NULL,
    region text NOT NULL,
    -- without it the pool does not gate; 0: it is being drained
    milli_gpus bigint CONSTRAINT pools_milli_gpus CHECK (milli_gpus >= 0),
    cpus bigint CONSTRAINT pools_cpus CHECK (cpus > 0),
    memory bigint CONSTRAINT pools_memory CHECK (memory > 0),
    preemption boolean NOT NULL,
    grace_ms bigint NOT NULL CONSTRAINT pools_grace_ms CHECK (grace_ms >= 0),
    min_runtime_ms bigint NOT NULL CONSTRAINT pools_min_runtime_ms CHECK (min_runtime_ms >= 0),
    preemptions_max integer NOT NULL CONSTRAINT pools_preemptions_max CHECK (preemptions_max >= 0),
    backfill boolean NOT NULL,
    backfill_depth integer NOT NULL CONSTRAINT pools_backfill_depth CHECK (backfill_depth >= 0),
    hold_after_ms bigint NOT NULL CONSTRAINT pools_hold_after_ms CHECK (hold_after_ms >= 0),
    priority_scope text NOT NULL
        CONSTRAINT pools_priority_scope CHECK (priority_scope IN ('user', 'project', 'org', 'pool')),
    usage_order text NOT NULL
        CONSTRAINT pools_usage_order CHECK (usage_order IN ('ignored', 'ties', 'first')),
    -- 0: past use is not kept
    half_life_ms bigint NOT NULL CONSTRAINT pools_half_life_ms CHECK (half_life_ms >= 0),
    borrowing boolean NOT NULL,
    -- of its leases; 0: no bound
    window_max_ms bigint NOT NULL DEFAULT 0
        CONSTRAINT pools_window_max_ms CHECK (window_max_ms >= 0),
    updated_at bigint NOT NULL,
    CONSTRAINT pools_pkey PRIMARY KEY (pool_id),
    CONSTRAINT pools_capacity CHECK (milli_gpus IS NOT NULL OR (cpus IS NULL AND memory IS NULL))
);
CREATE INDEX pools_name ON pools (gpu_type, region);
-- Whoever waits for credits or quota only: every type of GPU that has no pool.
INSERT INTO pools (pool_id, gpu_type, region, preemption, grace_ms, min_runtime_ms,
    preemptions_max, backfill, backfill_depth, hold_after_ms, priority_scope, usage_order,
    half_life_ms, borrowing, updated_at)
VALUES (0, '', '', false, 0, 0, 0, false, 0, 0, 'user', 'ignored', 0, true, 0);

CREATE TABLE pool_weights (
    pool_id bigint NOT NULL,
    path text NOT NULL COLLATE "C",
    weight integer NOT NULL CONSTRAINT pool_weights_weight CHECK (weight BETWEEN 0 AND 1000000),
    may_borrow boolean NOT NULL,
    CONSTRAINT pool_weights_pkey PRIMARY KEY (pool_id, path),
    CONSTRAINT pool_weights_pool FOREIGN KEY (pool_id) REFERENCES pools ON DELETE CASCADE
);

-- Who dispatches a pool, and until when without a word. The version counts what was let in.
CREATE TABLE pool_dispatch (
    pool_id bigint NOT NULL,
    holder text NOT NULL DEFAULT '',
    held_until bigint NOT NULL DEFAULT 0,
    version bigint NOT NULL DEFAULT 0,
    used_until bigint NOT NULL DEFAULT 0, -- up to when past use is counted
    CONSTRAINT pool_dispatch_pkey PRIMARY KEY (pool_id),
    CONSTRAINT pool_dispatch_pool FOREIGN KEY (pool_id) REFERENCES pools ON DELETE CASCADE
) WITH (fillfactor = 50);
INSERT INTO pool_dispatch (pool_id) VALUES (0);

-- Past use of each account in GPU-milliseconds, faded up to pool_dispatch.used_until.
CREATE TABLE pool_usage (
    pool_id bigint NOT NULL,
    path text NOT NULL COLLATE "C",
    usage numeric NOT NULL CONSTRAINT pool_usage_usage CHECK (usage >= 0),
    CONSTRAINT pool_usage_pkey PRIMARY KEY (pool_id, path),
    CONSTRAINT pool_usage_pool FOREIGN KEY (pool_id) REFERENCES pools ON DELETE CASCADE
) WITH (fillfactor = 70);

-- The last decisions of each pool with what they were made from, as compressed JSON.
CREATE TABLE pool_snapshots (
    pool_id bigint NOT NULL,
    snapshot_id bigint GENERATED ALWAYS AS IDENTITY,
    taken_at bigint NOT NULL,
    snapshot bytea NOT NULL,
    decision bytea NOT NULL,
    CONSTRAINT pool_snapshots_pkey PRIMARY KEY (pool_id, snapshot_id),
    CONSTRAINT pool_snapshots_pool FOREIGN KEY (pool_id) REFERENCES pools ON DELETE CASCADE
);

-- One row for each request. State: 0 waiting, 1 admitting (it has its room, and the ledger is
-- being asked), 2 admitted, 3 canceled, 4 expired, 5 refused.
CREATE TABLE queue (
    org_id bigint NOT NULL,
    queue_id bigint GENERATED ALWAYS AS IDENTITY,
    pool_id bigint NOT NULL,
    account text NOT NULL COLLATE "C",
    command jsonb NOT NULL, -- the fields of the reserve
    milli_gpus bigint NOT NULL CONSTRAINT queue_milli_gpus CHECK (milli_gpus > 0),
    cpus bigint NOT NULL CONSTRAINT queue_cpus CHECK (cpus >= 0),
    memory bigint NOT NULL CONSTRAINT queue_memory CHECK (memory >= 0),
    priority integer NOT NULL,
    gang text NOT NULL,
    gang_size integer NOT NULL CONSTRAINT queue_gang_size CHECK (gang_size > 0),
    expected_ms bigint NOT NULL, -- 0: unknown
    preemptible boolean NOT NULL,
    is_patient boolean NOT NULL, -- false: it takes its first answer
    allow_partial boolean NOT NULL,
    submitted_at bigint NOT NULL,
    deadline bigint NOT NULL,
    actor text NOT NULL,
    request_id text NOT NULL,
    state smallint NOT NULL DEFAULT 0 CONSTRAINT queue_state CHECK (state BETWEEN 0 AND 5),
    attempt integer NOT NULL DEFAULT 0,
    granted bigint NOT NULL DEFAULT 0, -- thousandths of GPUs of the attempt under way, or admitted
    overtook boolean NOT NULL DEFAULT false, -- it was let in before somebody who came earlier
    milli_gpus_max bigint NOT NULL DEFAULT 0, -- the most that another gate leaves; 0: no bound known
    held_by text NOT NULL DEFAULT '', -- the gate, other than fair share, that said no
    held_sentence text NOT NULL DEFAULT '',
    retry_at bigint NOT NULL DEFAULT 0,
    retries integer NOT NULL DEFAULT 0,
    position integer NOT NULL DEFAULT 0,
    reason text NOT NULL DEFAULT '',
    resource text NOT NULL DEFAULT '',
    needed bigint NOT NULL DEFAULT 0,
    available bigint NOT NULL DEFAULT 0,
    behind text NOT NULL DEFAULT '',
    starts_at bigint NOT NULL DEFAULT 0,
    reservation_id bigint NOT NULL DEFAULT 0,
    ended_at bigint NOT NULL DEFAULT 0,
    outcome bytea, -- what the ledger answered in the end
    CONSTRAINT queue_pkey PRIMARY KEY (org_id, queue_id)
) WITH (fillfactor = 60);
CREATE INDEX queue_open ON queue (pool_id, org_id, queue_id) WHERE state < 2;
CREATE INDEX queue_lease ON queue (org_id, reservation_id) WHERE reservation_id <> 0;
CREATE INDEX queue_ended ON queue (ended_at) WHERE state >= 2;
