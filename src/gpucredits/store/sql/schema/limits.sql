-- What limits an org: quotas and what they count, rate limits, boosts, budgets.
--
-- Every table leads with org_id and is changed under the org's lock only, and no index is on a column
-- that a heartbeat changes. Hot tables, which heartbeats update, are half empty.

CREATE TABLE quotas (
    org_id bigint NOT NULL,
    quota_id bigint NOT NULL,
    account_id bigint NOT NULL,
    dimension smallint NOT NULL CONSTRAINT quotas_dimension CHECK (dimension BETWEEN 0 AND 3),
    amount bigint NOT NULL CONSTRAINT quotas_amount CHECK (amount >= 0), -- the limit itself
    gpu_type text NOT NULL,
    -- -1: none
    calendar smallint NOT NULL CONSTRAINT quotas_calendar CHECK (calendar BETWEEN -1 AND 2),
    zone text NOT NULL,
    rolling_hours integer NOT NULL CONSTRAINT quotas_rolling_hours CHECK (rolling_hours >= 0),
    created_at bigint NOT NULL,
    ended_at bigint NOT NULL DEFAULT 0,
    seeded bigint NOT NULL DEFAULT 0, -- what was spent in its window before it was set
    first_entry_id bigint NOT NULL DEFAULT 0, -- the first entry that it has counted
    -- scope of the key: 0 is the system
    set_by smallint NOT NULL CONSTRAINT quotas_set_by CHECK (set_by BETWEEN 0 AND 3),
    CONSTRAINT quotas_pkey PRIMARY KEY (org_id, quota_id),
    CONSTRAINT quotas_window CHECK (
        (calendar >= 0)::integer + (rolling_hours > 0)::integer = (dimension = 3)::integer)
);
CREATE UNIQUE INDEX quotas_live
    ON quotas (org_id, account_id, dimension, gpu_type, calendar, zone, rolling_hours, set_by)
    WHERE ended_at = 0;
CREATE INDEX quotas_account ON quotas (org_id, account_id, quota_id);

CREATE TABLE slots ( -- what runs at once, for quotas on that
    org_id bigint NOT NULL,
    quota_id bigint NOT NULL,
    count bigint NOT NULL CONSTRAINT slots_count CHECK (count >= 0),
    leaving bigint NOT NULL,
    CONSTRAINT slots_pkey PRIMARY KEY (org_id, quota_id),
    CONSTRAINT slots_leaving CHECK (leaving BETWEEN 0 AND count)
) WITH (fillfactor = 50);

-- What heartbeats move of an account's limits, in one row because they do so in every batch: for
-- each quota on credits per window its number, used, held, base, starts_at and ends_at, and the
-- tokens of its rate limit while it has one.
CREATE TABLE meters ( -- hot
    org_id bigint NOT NULL,
    account_id bigint NOT NULL,
    windows bigint[] NOT NULL CONSTRAINT meters_windows CHECK (cardinality(windows) % 6 = 0),
    level bigint NOT NULL,
    level_at bigint NOT NULL,
    fraction bigint NOT NULL
        CONSTRAINT meters_fraction CHECK (fraction >= 0 AND fraction < 3600000000),
    CONSTRAINT meters_pkey PRIMARY KEY (org_id, account_id)
) WITH (fillfactor = 50);

CREATE TABLE tallies (
    org_id bigint NOT NULL,
    quota_id bigint NOT NULL,
    starts_at bigint NOT NULL,
    ends_at bigint NOT NULL CONSTRAINT tallies_ends_at CHECK (ends_at > starts_at),
    used bigint NOT NULL CONSTRAINT tallies_used CHECK (used >= 0),
    CONSTRAINT tallies_pkey PRIMARY KEY (org_id, quota_id, starts_at)
) WITH (fillfactor = 80);

CREATE TABLE token_buckets ( -- the level is that of when its terms last changed: see meters
    org_id bigint NOT NULL,
    bucket_id bigint NOT NULL,
    account_id bigint NOT NULL,
    kind smallint NOT NULL CONSTRAINT token_buckets_kind CHECK (kind IN (0, 1)),
    capacity bigint NOT NULL CONSTRAINT token_buckets_capacity CHECK (capacity >= 0),
    refill_per_hour bigint NOT NULL
        CONSTRAINT token_buckets_refill_per_hour CHECK (refill_per_hour >= 0),
    level bigint NOT NULL,
    level_at bigint NOT NULL,
    fraction bigint NOT NULL
        CONSTRAINT token_buckets_fraction CHECK (fraction >= 0 AND fraction < 3600000000),
    ended_at bigint NOT NULL DEFAULT 0,
    -- as of quotas
    set_by smallint NOT NULL CONSTRAINT token_buckets_set_by CHECK (set_by BETWEEN 0 AND 3),
    CONSTRAINT token_buckets_pkey PRIMARY KEY (org_id, bucket_id)
);
CREATE UNIQUE INDEX token_buckets_live ON token_buckets (org_id, account_id, kind)
    WHERE ended_at = 0;
CREATE INDEX token_buckets_ended ON token_buckets (org_id, account_id, bucket_id)
    WHERE ended_at > 0;

CREATE TABLE boosts (
    org_id bigint NOT NULL,
    boost_id bigint NOT NULL,
    account_id bigint NOT NULL,
    target_id bigint NOT NULL, -- a quota or a bucket
    amount bigint NOT NULL CONSTRAINT boosts_amount CHECK (amount >= 0),
    refill_per_hour bigint NOT NULL CONSTRAINT boosts_refill_per_hour CHECK (refill_per_hour >= 0),
    starts_at bigint NOT NULL,
    -- equal: ended before it began
    ends_at bigint NOT NULL CONSTRAINT boosts_ends_at CHECK (ends_at >= starts_at),
    note text NOT NULL,
    created_at bigint NOT NULL,
    -- as of quotas
    set_by smallint NOT NULL CONSTRAINT boosts_set_by CHECK (set_by BETWEEN 0 AND 3),
    CONSTRAINT boosts_pkey PRIMARY KEY (org_id, boost_id)
);
CREATE INDEX boosts_target ON boosts (org_id, target_id, ends_at);
CREATE INDEX boosts_account ON boosts (org_id, account_id, boost_id);

CREATE TABLE budgets (
    org_id bigint NOT NULL,
    budget_id bigint NOT NULL,
    account_id bigint NOT NULL,
    name text NOT NULL,
    allowance bigint NOT NULL CONSTRAINT budgets_allowance CHECK (allowance > 0),
    next_at bigint NOT NULL, -- when the next period begins, if the budget has not ended by then
    calendar smallint NOT NULL CONSTRAINT budgets_calendar CHECK (calendar BETWEEN -1 AND 2),
    zone text NOT NULL,
    ends_at bigint NOT NULL,
    rollover smallint NOT NULL CONSTRAINT budgets_rollover CHECK (rollover BETWEEN 0 AND 2),
    rollover_cap bigint NOT NULL CONSTRAINT budgets_rollover_cap CHECK (rollover_cap >= 0),
    rollover_us bigint NOT NULL CONSTRAINT budgets_rollover_us CHECK (rollover_us >= 0),
    priority integer NOT NULL,
    warn_percent smallint[] NOT NULL,
    created_at bigint NOT NULL,
    CONSTRAINT budgets_pkey PRIMARY KEY (org_id, budget_id),
    CONSTRAINT budgets_name UNIQUE (org_id, account_id, name)
);

CREATE TABLE budget_periods (
    org_id bigint NOT NULL,
    budget_id bigint NOT NULL,
    starts_at bigint NOT NULL,
    ends_at bigint NOT NULL CONSTRAINT budget_periods_ends_at CHECK (ends_at > starts_at),
    allowance bigint NOT NULL CONSTRAINT budget_periods_allowance CHECK (allowance > 0),
    grant_id bigint NOT NULL,
    rolled bigint NOT NULL CONSTRAINT budget_periods_rolled CHECK (rolled BETWEEN 0 AND allowance),
    rolled_grant_id bigint NOT NULL,
    warned_percent smallint NOT NULL,
    -- as agreed when it began
    rollover smallint NOT NULL CONSTRAINT budget_periods_rollover CHECK (rollover BETWEEN 0 AND 2),
    rollover_cap bigint NOT NULL CONSTRAINT budget_periods_rollover_cap CHECK (rollover_cap >= 0),
    rollover_us bigint NOT NULL CONSTRAINT budget_periods_rollover_us CHECK (rollover_us >= 0),
    calendar smallint NOT NULL CONSTRAINT budget_periods_calendar CHECK (calendar BETWEEN -1 AND 2),
    zone text NOT NULL,
    CONSTRAINT budget_periods_pkey PRIMARY KEY (org_id, budget_id, starts_at)
);

-- How many requests keys and orgs may make, and what their buckets held when they were last saved.
-- Nothing here is money: no command of the ledger reads or writes it, and no lock of it is needed.

-- Who may make how many. holder 1: a key, number is its key_id; 2: all keys of an org, number 0.
CREATE TABLE request_limits (
    org_id bigint NOT NULL, -- 0: keys for the whole system
    holder smallint NOT NULL CONSTRAINT request_limits_holder CHECK (holder IN (1, 2)),
    number bigint NOT NULL,
    capacity bigint NOT NULL
        CONSTRAINT request_limits_capacity CHECK (capacity BETWEEN 1 AND 1000000),
    refill_per_hour bigint NOT NULL
        CONSTRAINT request_limits_refill_per_hour CHECK (refill_per_hour BETWEEN 1 AND 3600000000),
    set_at bigint NOT NULL,
    CONSTRAINT request_limits_pkey PRIMARY KEY (org_id, holder, number)
);

-- The last known level of each bucket, saved every few seconds: what it held at saved_at, by the
-- database's clock. The terms are those it was filled by. No index beyond the key, so updates stay
-- heap-only.
CREATE TABLE request_buckets (
    org_id bigint NOT NULL,
    holder smallint NOT NULL CONSTRAINT request_buckets_holder CHECK (holder IN (1, 2)),
    number bigint NOT NULL,
    capacity bigint NOT NULL,
    refill_per_hour bigint NOT NULL,
    level bigint NOT NULL,
    fraction bigint NOT NULL,
    saved_at bigint NOT NULL,
    CONSTRAINT request_buckets_pkey PRIMARY KEY (org_id, holder, number)
) WITH (fillfactor = 50);

-- When a job leaves its GPUs unused; a window of 0 switches an inherited guard off.
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
    -- as of quotas
    set_by smallint NOT NULL CONSTRAINT idle_guards_set_by CHECK (set_by BETWEEN 0 AND 3),
    CONSTRAINT idle_guards_pkey PRIMARY KEY (org_id, account_id)
);
