-- Measured use beside the bill: what was compared, what differs, what belongs to no lease, and what
-- was given back for lost work.

CREATE TABLE reconcile_policies (
    org_id bigint NOT NULL,
    account_id bigint NOT NULL,
    -- off, report, post
    mode smallint NOT NULL CONSTRAINT reconcile_policies_mode CHECK (mode BETWEEN 0 AND 2),
    tolerance_ms bigint NOT NULL
        CONSTRAINT reconcile_policies_tolerance_ms CHECK (tolerance_ms >= 0),
    alarm_percent bigint NOT NULL
        CONSTRAINT reconcile_policies_alarm_percent CHECK (alarm_percent BETWEEN 0 AND 100),
    alarm_floor bigint NOT NULL
        CONSTRAINT reconcile_policies_alarm_floor CHECK (alarm_floor >= 0),
    quiet_ms bigint NOT NULL DEFAULT 900000
        CONSTRAINT reconcile_policies_quiet_ms CHECK (quiet_ms >= 0),
    CONSTRAINT reconcile_policies_pkey PRIMARY KEY (org_id, account_id)
);

-- Up to which instant measured use was looked at. There is one row.
CREATE TABLE reconcile_progress (
    is_only boolean NOT NULL DEFAULT true CONSTRAINT reconcile_progress_pkey PRIMARY KEY
        CONSTRAINT reconcile_progress_is_only CHECK (is_only),
    seen_to bigint NOT NULL
);

-- A lease with measured use, and how it compared when it was last looked at.
CREATE TABLE reconciliations (
    org_id bigint NOT NULL,
    reservation_id bigint NOT NULL,
    account_id bigint NOT NULL,
    account text NOT NULL COLLATE "C",
    job_id text NOT NULL,
    seen_at bigint NOT NULL, -- when its newest event was stored
    due_at bigint NOT NULL, -- when to compare it; 2^62 where nothing is new
    -- waiting, agrees, differs, posted, unmeasured, final
    state smallint NOT NULL DEFAULT 0
        CONSTRAINT reconciliations_state CHECK (state BETWEEN 0 AND 5),
    ended_at bigint NOT NULL DEFAULT 0,
    checked_at bigint NOT NULL DEFAULT 0,
    events bigint NOT NULL DEFAULT 0,
    used_ms bigint NOT NULL DEFAULT 0,
    measured_ms bigint NOT NULL DEFAULT 0,
    beyond_ms bigint NOT NULL DEFAULT 0, -- measured after the end of the lease
    settled bigint NOT NULL DEFAULT 0,
    cost bigint NOT NULL DEFAULT 0, -- of measured_ms, at the pinned price
    reconciled bigint NOT NULL DEFAULT 0,
    is_attested boolean NOT NULL DEFAULT true, -- the lease's own node measured it
    CONSTRAINT reconciliations_pkey PRIMARY KEY (org_id, reservation_id)
);
CREATE INDEX reconciliations_due ON reconciliations (due_at) WHERE due_at < 4611686018427387904;
CREATE INDEX reconciliations_ended ON reconciliations (org_id, account_id, ended_at);

CREATE TABLE drift_alarms (
    org_id bigint NOT NULL,
    alarm_id bigint NOT NULL,
    account_id bigint NOT NULL,
    account text NOT NULL COLLATE "C",
    reservation_id bigint NOT NULL, -- 0 where the alarm is about an account's day
    job_id text NOT NULL,
    starts_at bigint NOT NULL, -- of the day, or when the lease began
    drift bigint NOT NULL,
    settled bigint NOT NULL,
    sentence text NOT NULL,
    evidence jsonb NOT NULL,
    raised_at bigint NOT NULL,
    is_open boolean NOT NULL DEFAULT true,
    acknowledged_by text NOT NULL DEFAULT '',
    acknowledged_at bigint NOT NULL DEFAULT 0,
    note text NOT NULL DEFAULT '',
    CONSTRAINT drift_alarms_pkey PRIMARY KEY (org_id, alarm_id),
    CONSTRAINT drift_alarms_once UNIQUE (org_id, account_id, reservation_id, starts_at)
);
CREATE INDEX drift_alarms_open ON drift_alarms (org_id, alarm_id) WHERE is_open;

-- Measured use of a job on a node that names no lease (account_id), or a lease that does not exist
-- (account 0, and the id that was named as the job).
CREATE TABLE unmatched_use (
    org_id bigint NOT NULL,
    unmatched_id bigint NOT NULL,
    account_id bigint NOT NULL,
    account text NOT NULL COLLATE "C",
    job_id text NOT NULL,
    node text NOT NULL,
    -- open, matched, dismissed
    state smallint NOT NULL CONSTRAINT unmatched_use_state CHECK (state BETWEEN 0 AND 2),
    reservation_id bigint NOT NULL, -- that the use was matched to
    first_at bigint NOT NULL,
    last_at bigint NOT NULL,
    decided_by text NOT NULL DEFAULT '',
    decided_at bigint NOT NULL DEFAULT 0,
    note text NOT NULL DEFAULT '',
    CONSTRAINT unmatched_use_pkey PRIMARY KEY (org_id, unmatched_id),
    CONSTRAINT unmatched_use_once UNIQUE (org_id, account_id, job_id, node),
    CONSTRAINT unmatched_use_matched CHECK ((state = 1) = (reservation_id <> 0))
);
CREATE INDEX unmatched_use_open ON unmatched_use (org_id, unmatched_id) WHERE state = 0;
CREATE INDEX unmatched_use_lease ON unmatched_use (org_id, reservation_id) WHERE state = 1;

-- Measured use without a lease that was not kept, because its org had too much of it.
CREATE TABLE unmatched_drops (
    org_id bigint CONSTRAINT unmatched_drops_pkey PRIMARY KEY,
    events bigint NOT NULL CONSTRAINT unmatched_drops_events CHECK (events > 0),
    last_at bigint NOT NULL
) WITH (fillfactor = 50);

CREATE TABLE loss_terms (
    org_id bigint NOT NULL,
    account_id bigint NOT NULL,
    hours_per_job bigint NOT NULL CONSTRAINT loss_terms_hours_per_job CHECK (hours_per_job >= 0),
    window_hours bigint NOT NULL CONSTRAINT loss_terms_window_hours CHECK (window_hours > 0),
    unreported_hours bigint NOT NULL
        CONSTRAINT loss_terms_unreported_hours CHECK (unreported_hours >= 0),
    hours_per_account bigint NOT NULL DEFAULT 24
        CONSTRAINT loss_terms_hours_per_account CHECK (hours_per_account >= 0),
    CONSTRAINT loss_terms_pkey PRIMARY KEY (org_id, account_id)
);

-- The last checkpoint that was reported while a lease ran, in milliseconds since its admission.
CREATE TABLE checkpoints (
    org_id bigint NOT NULL,
    reservation_id bigint NOT NULL,
    checkpoint_ms bigint NOT NULL
        CONSTRAINT checkpoints_checkpoint_ms CHECK (checkpoint_ms >= 0),
    reported_at bigint NOT NULL,
    CONSTRAINT checkpoints_pkey PRIMARY KEY (org_id, reservation_id)
);

CREATE TABLE lost_work (
    org_id bigint NOT NULL,
    reservation_id bigint NOT NULL,
    account_id bigint NOT NULL,
    account text NOT NULL COLLATE "C",
    job_id text NOT NULL,
    -- node failure, preemption
    cause smallint NOT NULL CONSTRAINT lost_work_cause CHECK (cause BETWEEN 0 AND 1),
    checkpoint_ms bigint NOT NULL,
    is_reported boolean NOT NULL,
    limit_ms bigint NOT NULL CONSTRAINT lost_work_limit_ms CHECK (limit_ms > 0),
    -- claimed, refunded, refused
    state smallint NOT NULL CONSTRAINT lost_work_state CHECK (state BETWEEN 0 AND 2),
    lost_ms bigint NOT NULL CONSTRAINT lost_work_lost_ms CHECK (lost_ms BETWEEN 0 AND limit_ms),
    amount bigint NOT NULL CONSTRAINT lost_work_amount CHECK (amount >= 0),
    claimed_by text NOT NULL,
    claimed_at bigint NOT NULL,
    note text NOT NULL,
    CONSTRAINT lost_work_pkey PRIMARY KEY (org_id, reservation_id)
);
CREATE INDEX lost_work_job ON lost_work (org_id, account_id, job_id);
CREATE INDEX lost_work_claimed ON lost_work (claimed_at) WHERE state = 0;
CREATE INDEX lost_work_recent ON lost_work (org_id, claimed_at);
