-- The ledger's tables. Money is BIGINT micro-credits, instants are BIGINT microseconds since 1970
-- UTC, durations are BIGINT milliseconds; the views show timestamps.
--
-- Every table leads with org_id, and rows and joins stay within one org. Whoever changes rows of an
-- org first locks its row in orgs; that one lock covers everything the org has. A heartbeat updates
-- one row each of orgs, accounts, grants and reservations and inserts one into entries, so no
-- index may be on (or have in its predicate) a column that a heartbeat changes: all those updates
-- stay heap-only.

-- Time. The offset moves forward only and is 0 except on databases that a test clock has used.

CREATE TABLE clock (
    only_row boolean
        CONSTRAINT clock_pkey PRIMARY KEY DEFAULT true
        CONSTRAINT clock_only_row CHECK (only_row),
    offset_us bigint NOT NULL DEFAULT 0 CONSTRAINT clock_offset_us CHECK (offset_us >= 0)
);
INSERT INTO clock DEFAULT VALUES;

-- Orgs, accounts and what they hold. The directory gives an org its number and keeps paths unique.

CREATE TABLE orgs (
    org_id bigint CONSTRAINT orgs_pkey PRIMARY KEY CONSTRAINT orgs_org_id CHECK (org_id > 0),
    path text NOT NULL,
    next_id bigint NOT NULL DEFAULT 1,
    next_entry_id bigint NOT NULL DEFAULT 1,
    clock bigint NOT NULL DEFAULT 0,
    -- drawn, as by new_version()
    version bigint NOT NULL DEFAULT (random() * 4611686018427387904)::bigint,
    gated boolean NOT NULL DEFAULT false, -- it has a quota or a rate limit
    budgeted boolean NOT NULL DEFAULT false -- it has had a budget
) WITH (fillfactor = 50);

CREATE TABLE accounts (
    org_id bigint NOT NULL,
    account_id bigint NOT NULL,
    parent_id bigint NOT NULL,
    path text NOT NULL COLLATE "C",
    created_at bigint NOT NULL,
    model smallint NOT NULL CONSTRAINT accounts_model CHECK (model IN (0, 1)),
    credit_limit bigint NOT NULL CONSTRAINT accounts_credit_limit CHECK (credit_limit >= 0),
    credit_limit_max bigint NOT NULL, -- the furthest below zero it was ever allowed to go
    floor bigint NOT NULL DEFAULT 0, -- minus the limit, or where it stood when that was lowered
    status smallint NOT NULL CONSTRAINT accounts_status CHECK (status IN (0, 1)),
    -- scope of the key: 0 is the system
    suspended_by smallint NOT NULL DEFAULT 0
        CONSTRAINT accounts_suspended_by CHECK (suspended_by BETWEEN 0 AND 3),
    -- its own credits only, or its parent's too
    funding smallint NOT NULL DEFAULT 0 CONSTRAINT accounts_funding CHECK (funding IN (0, 1)),
    -- of its leases; 0: no bound
    window_max_ms bigint NOT NULL DEFAULT 0
        CONSTRAINT accounts_window_max_ms CHECK (window_max_ms >= 0),
    allocated boolean NOT NULL DEFAULT false, -- whether it was ever given credits of its own
    metadata jsonb NOT NULL,
    remaining bigint NOT NULL CONSTRAINT accounts_remaining CHECK (remaining >= 0),
    reserved bigint NOT NULL CONSTRAINT accounts_reserved CHECK (reserved >= 0),
    spent bigint NOT NULL CONSTRAINT accounts_spent CHECK (spent >= 0),
    debt bigint NOT NULL CONSTRAINT accounts_debt CHECK (debt >= 0),
    overrun bigint NOT NULL CONSTRAINT accounts_overrun CHECK (overrun >= 0),
    version bigint NOT NULL,
    due_at bigint NOT NULL,
    delinquent boolean NOT NULL DEFAULT false,
    overdraft_limit bigint NOT NULL DEFAULT 0
        CONSTRAINT accounts_overdraft_limit CHECK (overdraft_limit >= 0),
    -- to its live leases
    promised bigint NOT NULL DEFAULT 0 CONSTRAINT accounts_promised CHECK (promised >= 0),
    CONSTRAINT accounts_pkey PRIMARY KEY (org_id, account_id),
    CONSTRAINT accounts_path UNIQUE (org_id, path),
    CONSTRAINT accounts_floor CHECK (remaining - reserved - debt >= floor)
) WITH (fillfactor = 50);
CREATE INDEX accounts_suspended ON accounts (org_id) INCLUDE (path) -- or with a bound on leases
    WHERE status = 1 OR delinquent OR window_max_ms > 0;
-- An org with limits asks for its due accounts in every batch. A heartbeat moves due_at once in the
-- time of a lease; the updates between, which leave it as it is, stay heap-only.
CREATE INDEX accounts_due ON accounts (org_id, due_at);
CREATE INDEX accounts_postpaid ON accounts (org_id, account_id)
    WHERE model = 1 OR delinquent;

CREATE TABLE grants (
    org_id bigint NOT NULL,
    grant_id bigint NOT NULL,
    account_id bigint NOT NULL,
    amount bigint NOT NULL CONSTRAINT grants_amount CHECK (amount > 0),
    starts_at bigint NOT NULL,
    expires_at bigint NOT NULL CONSTRAINT grants_expires_at CHECK (expires_at > starts_at),
    priority integer NOT NULL,
    source smallint NOT NULL,
    origin_id bigint NOT NULL,
    created_at bigint NOT NULL,
    metadata jsonb NOT NULL,
    state smallint NOT NULL,
    is_open boolean NOT NULL, -- something is left: kept apart from remaining for the index below
    remaining bigint NOT NULL,
    -- of live leases, after its end
    claims bigint NOT NULL DEFAULT 0 CONSTRAINT grants_claims CHECK (claims >= 0),
    budget_id bigint NOT NULL DEFAULT 0,
    CONSTRAINT grants_pkey PRIMARY KEY (org_id, grant_id),
    CONSTRAINT grants_remaining CHECK (remaining BETWEEN 0 AND amount)
) WITH (fillfactor = 50);
CREATE INDEX grants_open ON grants (org_id, account_id) WHERE is_open;
CREATE INDEX grants_account ON grants (org_id, account_id, grant_id);
CREATE INDEX grants_moved ON grants (org_id, origin_id) WHERE origin_id <> 0;

CREATE TABLE topups (
    org_id bigint NOT NULL,
    topup_id bigint NOT NULL,
    account_id bigint NOT NULL,
    amount bigint NOT NULL CONSTRAINT topups_amount CHECK (amount > 0),
    payment_reference text NOT NULL,
    status smallint NOT NULL,
    grant_id bigint NOT NULL,
    expires_at bigint NOT NULL,
    priority integer NOT NULL,
    created_at bigint NOT NULL,
    metadata jsonb NOT NULL,
    CONSTRAINT topups_pkey PRIMARY KEY (org_id, topup_id)
);
CREATE INDEX topups_account ON topups (org_id, account_id, topup_id);
CREATE UNIQUE INDEX topups_reference ON topups (org_id, payment_reference)
    WHERE status <> 2; -- one payment has one reference, unless it failed

-- Of a live lease that is_plain nothing here but gpu_type and job_id says more than its other columns:
-- it drains, without a grace or an overdraft, nobody told it to go or why it is not renewed in full, it shares no cap with other
-- leases of its job, and its last beat was taken one full lease before it expires. Beats renew plain leases without writing any of these columns,
-- so beat_at is kept for the others only: lease_beat_at() knows it of all.
CREATE TABLE reservations (
    org_id bigint NOT NULL,
    reservation_id bigint NOT NULL,
    account text NOT NULL COLLATE "C",
    account_id bigint NOT NULL,
    payer_id bigint NOT NULL,
    job_id text NOT NULL,
    gpu_type text NOT NULL,
    milli_gpus bigint NOT NULL CONSTRAINT reservations_milli_gpus CHECK (milli_gpus > 0),
    region text NOT NULL,
    node text NOT NULL,
    price bigint NOT NULL CONSTRAINT reservations_price CHECK (price >= 0),
    price_id bigint NOT NULL,
    window_ms bigint NOT NULL,
    admitted_at bigint NOT NULL,
    escrow_windows bigint NOT NULL,
    max_amount bigint NOT NULL,
    first_entry_id bigint NOT NULL, -- none of its entries is before this one
    metadata jsonb NOT NULL,
    state smallint NOT NULL,
    decision smallint NOT NULL,
    held bigint NOT NULL CONSTRAINT reservations_held CHECK (held >= 0),
    settled bigint NOT NULL CONSTRAINT reservations_settled CHECK (settled >= 0),
    adjusted bigint NOT NULL CONSTRAINT reservations_adjusted CHECK (adjusted >= 0),
    refunded bigint NOT NULL CONSTRAINT reservations_refunded CHECK (refunded >= 0),
    used_ms bigint NOT NULL CONSTRAINT reservations_used_ms CHECK (used_ms >= 0),
    seq bigint NOT NULL,
    expires_at bigint NOT NULL,
    ended_at bigint NOT NULL,
    paid bigint[] NOT NULL, -- grant, amount, grant, amount and so on, in recorded order
    authorised bigint NOT NULL DEFAULT 0, -- lapsed: the most it may have cost
    kept bigint[] NOT NULL DEFAULT '{}', -- grant, claim, until and so on: of grants that have ended
    payers bigint[] NOT NULL DEFAULT '{}', -- who paid before: account, items of paid and so on
    -- The terms that a plain lease has not.
    is_plain boolean NOT NULL DEFAULT true,
    beat_at bigint NOT NULL DEFAULT 0,
    exhaustion smallint NOT NULL DEFAULT 1
        CONSTRAINT reservations_exhaustion CHECK (exhaustion IN (0, 1, 2)),
    grace_ms bigint NOT NULL DEFAULT 0 CONSTRAINT reservations_grace_ms CHECK (grace_ms >= 0),
    overdraft bigint NOT NULL DEFAULT 0 CONSTRAINT reservations_overdraft CHECK (overdraft >= 0),
    overdrawn bigint NOT NULL DEFAULT 0 CONSTRAINT reservations_overdrawn CHECK (overdrawn >= 0),
    leaving boolean NOT NULL DEFAULT false,
    stopping_at bigint NOT NULL DEFAULT 0, -- preempted: no renewal goes beyond it, or 0
    -- and the number of the request that it makes room for, or 0
    stopping_for bigint NOT NULL DEFAULT 0,
    why smallint NOT NULL DEFAULT 0, -- it is not simply renewed: core/reservation.py, Why
    clears_at bigint NOT NULL DEFAULT 0, -- throttled: when it could go on
    promised bigint NOT NULL DEFAULT 0 CONSTRAINT reservations_promised CHECK (promised >= 0),
    -- of a job with several leases: how much of the job's cap this one may use, or -1; and the sum
    -- of the caps of which that is a part
    cap_part bigint NOT NULL DEFAULT -1 CONSTRAINT reservations_cap_part CHECK (cap_part >= -1),
    cap_seen bigint NOT NULL DEFAULT 0,
    -- by how much its end was moved since its last report: for a maintenance, and for an outage
    extended_ms bigint NOT NULL DEFAULT 0
        CONSTRAINT reservations_extended_ms CHECK (extended_ms >= 0),
    reprieve_ms bigint NOT NULL DEFAULT 0
        CONSTRAINT reservations_reprieve_ms CHECK (reprieve_ms >= 0),
    -- what the reconciler has charged in addition, or given back (negative)
    reconciled bigint NOT NULL DEFAULT 0,
    -- use that was refunded as lost work
    lost_ms bigint NOT NULL DEFAULT 0
        CONSTRAINT reservations_lost_ms CHECK (lost_ms >= 0),
    CONSTRAINT reservations_pkey PRIMARY KEY (org_id, reservation_id)
) WITH (fillfactor = 45); -- all leases of a page may report in one transaction: room for both
CREATE INDEX reservations_live ON reservations (org_id, payer_id) WHERE state = 0;
CREATE INDEX reservations_live_account ON reservations (org_id, account) WHERE state = 0;
CREATE INDEX reservations_ended ON reservations (org_id, ended_at) WHERE state <> 0;
-- Asked for by (org_id + 0), as the index of jobs below is. Lists by state need the state; lists
-- without one look at each state.
CREATE INDEX reservations_account
    ON reservations ((org_id + 0), account_id, state, reservation_id);
-- Labels, within their org.
CREATE INDEX reservations_labels ON reservations
    USING gin (jsonb_set('{}', ARRAY[org_id::text], metadata) jsonb_path_ops) WHERE metadata <> '{}';
CREATE INDEX reservations_node ON reservations (org_id, node, reservation_id) WHERE node <> '';
-- Asked for by (org_id + 0), (account_id + 0) and (state + 0), so that no other index serves: another
-- would read every live lease of the org, and the planner cannot tell before it has statistics. For
-- the same reason jobs are looked up one by one (LATERAL with OFFSET 0): joined, all leases would be
-- read.
CREATE INDEX reservations_job
    ON reservations ((org_id + 0), job_id, (account_id + 0), (state + 0));
CREATE INDEX reservations_sharing ON reservations (org_id) WHERE state = 0 AND cap_part >= 0;
-- What runs in a pool. Heartbeats change none of its columns.
CREATE INDEX reservations_pool ON reservations (gpu_type, region) WHERE state = 0;
-- What was told to stop for a request in the queue.
CREATE INDEX reservations_stopping ON reservations (gpu_type, region)
    WHERE state = 0 AND stopping_for <> 0;

-- The ledger. Ids are without a gap within an org and in the order of commits, because they are
-- given under the org's lock.

CREATE TABLE entries (
    org_id bigint NOT NULL,
    type smallint NOT NULL CONSTRAINT entries_type CHECK (type BETWEEN 1 AND 17),
    entry_id bigint NOT NULL,
    recorded_at bigint NOT NULL,
    effective_at bigint NOT NULL,
    account_id bigint NOT NULL,
    amount bigint NOT NULL CONSTRAINT entries_amount CHECK (amount >= 0),
    reserve bigint NOT NULL,
    grant_id bigint NOT NULL,
    other_id bigint NOT NULL,
    other_grant_id bigint NOT NULL,
    reservation_id bigint NOT NULL,
    seq bigint NOT NULL,
    CONSTRAINT entries_pkey PRIMARY KEY (org_id, entry_id)
);
CREATE INDEX entries_account ON entries (org_id, account_id, entry_id);
CREATE INDEX entries_repaid ON entries (org_id, account_id, entry_id) -- of what an account owed
    WHERE type IN (11, 12) OR (type = 7 AND other_grant_id <> 0);
CREATE INDEX entries_receiver ON entries (org_id, other_id, entry_id) WHERE other_id <> 0;
-- What has expired of each grant and was not restored, for what a closed period of a budget has used.
CREATE INDEX entries_expired ON entries (org_id, grant_id) INCLUDE (type, amount)
    WHERE type IN (8, 14);
-- Payments, their reversals and refunds: few, and looked for among very many entries.
CREATE INDEX entries_paid ON entries (org_id, account_id, type)
    INCLUDE (amount, effective_at, entry_id) WHERE type IN (2, 7, 13);

-- Entries that were recorded after they took effect: which had done so by an instant, and were
-- recorded later. One number holds the org and the time.
CREATE INDEX entries_late ON entries USING gist (
    numrange(org_id * 1e19 + effective_at, org_id * 1e19 + recorded_at)
) WHERE effective_at < recorded_at;

-- The type of each entry: its name and the two buckets its amount moves between.
CREATE TABLE entry_types (
    type smallint CONSTRAINT entry_types_pkey PRIMARY KEY,
    name text NOT NULL,
    debit text NOT NULL,
    credit text NOT NULL
);

-- Reserved for transfers between orgs, which nothing makes yet. Such a transfer touches one org at a
-- time: an entry of type 16 takes the credits from the sender into transit, one of type 17 gives them
-- to the receiver or back, and each side has a row of its own that says how far it is.
CREATE TABLE transit (
    org_id bigint NOT NULL CONSTRAINT transit_org_id CHECK (org_id > 0),
    transit_id bigint NOT NULL,
    is_sender boolean NOT NULL,
    other_org_id bigint NOT NULL CONSTRAINT transit_other_org_id CHECK (other_org_id > 0),
    other_transit_id bigint NOT NULL, -- the number that the other side has given it
    account_id bigint NOT NULL,
    amount bigint NOT NULL CONSTRAINT transit_amount CHECK (amount > 0),
    entry_id bigint NOT NULL,
    recorded_at bigint NOT NULL,
    -- sent, arrived, returned
    state smallint NOT NULL CONSTRAINT transit_state CHECK (state BETWEEN 0 AND 2),
    CONSTRAINT transit_pkey PRIMARY KEY (org_id, transit_id),
    CONSTRAINT transit_once UNIQUE (org_id, other_org_id, other_transit_id, is_sender),
    CONSTRAINT transit_orgs CHECK (other_org_id <> org_id)
);

-- Orgs whose clock stood ahead of the database's, and were brought back to the present by an
-- operator. The repair covers the entries from first_entry_id up to next_entry_id: a stamp of these
-- that is later than repaired_at is of the wrong clock, and counts as repaired_at.
CREATE TABLE clock_repairs (
    org_id bigint NOT NULL,
    repaired_at bigint NOT NULL,
    -- where the org's clock stood
    clock bigint NOT NULL CONSTRAINT clock_repairs_clock CHECK (clock > repaired_at),
    first_entry_id bigint NOT NULL,
    next_entry_id bigint NOT NULL
        CONSTRAINT clock_repairs_next_entry_id CHECK (next_entry_id >= first_entry_id),
    CONSTRAINT clock_repairs_pkey PRIMARY KEY (org_id, repaired_at)
);

-- History and seals.

CREATE TABLE blocks (
    org_id bigint NOT NULL,
    block_id bigint NOT NULL,
    first_entry_id bigint NOT NULL,
    last_entry_id bigint NOT NULL
        CONSTRAINT blocks_last_entry_id CHECK (last_entry_id >= first_entry_id),
    previous_hash bytea NOT NULL,
    hash bytea NOT NULL,
    sealed_at bigint NOT NULL,
    CONSTRAINT blocks_pkey PRIMARY KEY (org_id, block_id)
);

-- The sums of an account's entries up to and with entry_id. latest_effective_at covers all of
-- them; earliest_effective_at only those since the account's snapshot before.
CREATE TABLE snapshots (
    org_id bigint NOT NULL,
    account_id bigint NOT NULL,
    entry_id bigint NOT NULL,
    recorded_at bigint NOT NULL,
    latest_effective_at bigint NOT NULL,
    earliest_effective_at bigint NOT NULL,
    available bigint NOT NULL,
    reserved bigint NOT NULL,
    spent bigint NOT NULL,
    CONSTRAINT snapshots_pkey PRIMARY KEY (org_id, account_id, entry_id)
);
-- How far an org's history is in snapshots, and how many more entries the next ones are worth.
CREATE TABLE snapshot_marks (
    org_id bigint CONSTRAINT snapshot_marks_pkey PRIMARY KEY,
    entry_id bigint NOT NULL,
    enough bigint NOT NULL DEFAULT 0
);

-- Spending by UTC day (days since 1970), so that reads need no entries but those of days that the
-- time asked for cuts in two. The batch that posts entries writes both tables.

-- What each payer spent on jobs of an account on each GPU type: settlements and adjustments, less
-- refunds. A batch updates a row once. No index has the amount, so that updates stay heap-only.
CREATE TABLE spend_days (
    org_id bigint NOT NULL,
    day integer NOT NULL,
    payer_id bigint NOT NULL,
    account_id bigint NOT NULL,
    gpu_type text NOT NULL,
    amount bigint NOT NULL,
    CONSTRAINT spend_days_pkey PRIMARY KEY (org_id, day, payer_id, account_id, gpu_type)
) WITH (fillfactor = 50);
-- What a row of spend_days had come to before the first charge or refund of an hour. It is written
-- once, and hours without any have no row.
CREATE TABLE spend_hours (
    org_id bigint NOT NULL,
    payer_id bigint NOT NULL,
    account_id bigint NOT NULL,
    gpu_type text NOT NULL,
    hour integer NOT NULL, -- since 1970
    before bigint NOT NULL,
    CONSTRAINT spend_hours_pkey PRIMARY KEY (org_id, payer_id, account_id, gpu_type, hour)
);
-- What a lease had been charged in all before the first charge or refund of a day. The day of its
-- admission has no row: nothing was charged before.
CREATE TABLE lease_days (
    org_id bigint NOT NULL,
    reservation_id bigint NOT NULL,
    day integer NOT NULL,
    account_id bigint NOT NULL,
    charged bigint NOT NULL,
    CONSTRAINT lease_days_pkey PRIMARY KEY (org_id, reservation_id, day)
);
CREATE INDEX lease_days_day ON lease_days (org_id, day, reservation_id) INCLUDE (account_id);
CREATE INDEX lease_days_account ON lease_days (org_id, account_id, day, reservation_id);

-- The shape that rows of all kinds share where a book is filled: store/book/tables.py names the
-- columns of each kind.
CREATE TYPE book_row AS (
    kind integer, org_id bigint, id bigint,
    n1 bigint, n2 bigint, n3 bigint, n4 bigint, n5 bigint, n6 bigint, n7 bigint, n8 bigint,
    n9 bigint, n10 bigint, n11 bigint, n12 bigint, n13 bigint, n14 bigint, n15 bigint,
    n16 bigint, n17 bigint, n18 bigint, t1 text, t2 text, t3 text, paid bigint[],
    b1 bytea, b2 bytea, terms bigint[]
);
