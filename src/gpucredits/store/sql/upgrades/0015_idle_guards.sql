-- Accounts say when a job leaves its GPUs unused; agents of nodes warn and drain it.

CREATE TABLE idle_guards (
    org_id bigint NOT NULL,
    account_id bigint NOT NULL,
    window_ms bigint NOT NULL CONSTRAINT idle_guards_window CHECK (window_ms >= 0),
    utilization_percent smallint NOT NULL
        CONSTRAINT idle_guards_utilization CHECK (utilization_percent BETWEEN 1 AND 100),
    memory_percent smallint NOT NULL
        CONSTRAINT idle_guards_memory CHECK (memory_percent BETWEEN 0 AND 100),
    startup_ms bigint NOT NULL CONSTRAINT idle_guards_startup CHECK (startup_ms >= 0),
    warning_ms bigint NOT NULL CONSTRAINT idle_guards_warning CHECK (warning_ms >= 0),
    grace_ms bigint NOT NULL CONSTRAINT idle_guards_grace CHECK (grace_ms >= 0),
    set_by smallint NOT NULL CONSTRAINT idle_guards_set_by CHECK (set_by BETWEEN 0 AND 3),
    CONSTRAINT idle_guards_pkey PRIMARY KEY (org_id, account_id)
);
