-- A database as migrations 0001 to 0005 left it, with the rows of support.tampering.use_every_power
-- and a second org: what an upgrade begins with. Made by pg_dump --inserts, without owners, banners,
-- and the bodies of open_book and open_gates.
SET check_function_bodies = false;
CREATE TYPE book_row AS (
	kind integer,
	org_id integer,
	id bigint,
	n1 bigint,
	n2 bigint,
	n3 bigint,
	n4 bigint,
	n5 bigint,
	n6 bigint,
	n7 bigint,
	n8 bigint,
	n9 bigint,
	n10 bigint,
	n11 bigint,
	n12 bigint,
	n13 bigint,
	n14 bigint,
	n15 bigint,
	n16 bigint,
	n17 bigint,
	n18 bigint,
	t1 text,
	t2 text,
	t3 text,
	paid bigint[],
	b1 bytea,
	b2 bytea,
	terms bigint[]
);
CREATE TABLE audit_log (
    org_id integer NOT NULL, audit_id bigint NOT NULL, recorded_at bigint NOT NULL, actor text NOT NULL,
    action text NOT NULL, resource text NOT NULL, old jsonb, new jsonb, request_id text NOT NULL, place bigint
    NOT NULL, hash bytea NOT NULL
);
CREATE FUNCTION audit_hash(act audit_log, previous bytea) RETURNS bytea
    LANGUAGE sql IMMUTABLE
    AS $$
    SELECT sha256(previous || convert_to(jsonb_build_array(act.org_id, act.place, act.recorded_at,
        act.actor, act.action, act.resource, act.old, act.new, act.request_id)::text, 'UTF8'))
$$;
CREATE FUNCTION block_hash(org integer, first_id bigint, last_id bigint, previous bytea) RETURNS bytea
    LANGUAGE sql STABLE
    AS $$
    SELECT sha256(previous || int8send(first_id) || int8send(last_id)
        || sha256(coalesce(string_agg(array_send(ARRAY[
            e.org_id, e.entry_id, e.recorded_at, e.effective_at, e.type, e.account_id, e.amount,
            e.reserve, e.grant_id, e.other_id, e.other_grant_id, e.reservation_id, e.seq
        ]::bigint[]), ''::bytea ORDER BY e.entry_id), ''::bytea)))
    FROM entries e WHERE e.org_id = org AND e.entry_id BETWEEN first_id AND last_id
$$;
CREATE FUNCTION chain_audit() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
DECLARE
    head audit_heads;
BEGIN
    INSERT INTO audit_heads VALUES (NEW.org_id, 0, ''::bytea) ON CONFLICT DO NOTHING;
    SELECT * INTO head FROM audit_heads h WHERE h.org_id = NEW.org_id FOR UPDATE;
    NEW.place := head.place + 1;
    NEW.hash := audit_hash(NEW, head.hash);
    UPDATE audit_heads h SET place = NEW.place, hash = NEW.hash WHERE h.org_id = NEW.org_id;
    RETURN NEW;
END $$;
CREATE FUNCTION entry_after(org integer, account bigint, at bigint) RETURNS bigint
    LANGUAGE plpgsql STABLE
    SET enable_seqscan TO 'off'
    AS $$
DECLARE
    first_id bigint := entry_at(org, at);
BEGIN
    RETURN coalesce((
        SELECT entry_at(org, e.recorded_at + 1) FROM timed_entries e
        WHERE e.org_id = org AND e.account_id = account AND e.entry_id >= first_id
        ORDER BY e.entry_id LIMIT 1), first_id);
END $$;
CREATE FUNCTION entry_at(org integer, at bigint) RETURNS bigint
    LANGUAGE plpgsql STABLE
    SET enable_seqscan TO 'off'
    AS $$
DECLARE
    least bigint := 1;
    beyond bigint;
    middle bigint;
BEGIN
    SELECT o.next_entry_id INTO beyond FROM orgs o WHERE o.org_id = org;
    WHILE least < beyond LOOP
        middle := (least + beyond) / 2;
        IF (SELECT e.recorded_at FROM timed_entries e WHERE e.org_id = org AND e.entry_id = middle)
            < at
        THEN least := middle + 1;
        ELSE beyond := middle;
        END IF;
    END LOOP;
    RETURN least;
END $$;
CREATE FUNCTION instant(us bigint) RETURNS timestamp with time zone
    LANGUAGE sql IMMUTABLE
    AS $$
    SELECT CASE WHEN us < 4611686018427387904
        THEN timestamptz '1970-01-01 00:00:00+00' + us * interval '1 microsecond' END
$$;
CREATE FUNCTION lease_beat_at(beat_at bigint, expires_at bigint, window_ms bigint, escrow bigint) RETURNS bigint
    LANGUAGE sql IMMUTABLE
    AS $$
    SELECT greatest(beat_at, expires_at - window_ms * (1 + escrow) * 1000)
$$;
CREATE FUNCTION lease_payers(payer_id bigint, payers bigint[]) RETURNS SETOF bigint
    LANGUAGE sql IMMUTABLE
    AS $$
    SELECT payer_id UNION SELECT payers[place] FROM generate_series(1, cardinality(payers), 2) AS place
$$;
CREATE FUNCTION ledger_now() RETURNS bigint
    LANGUAGE sql
    AS $$
    SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint + offset_us FROM clock
$$;
CREATE FUNCTION new_version() RETURNS bigint
    LANGUAGE sql
    AS $$
    SELECT (random() * 4611686018427387904)::bigint
$$;
CREATE FUNCTION open_book(orgs_wanted integer[], lease_orgs integer[], lease_ids bigint[], path_orgs integer[], paths text[], account_orgs integer[], account_ids bigint[], topup_orgs integer[], topup_ids bigint[], corrected_orgs integer[], corrected_ids bigint[], price_orgs integer[], price_types text[], price_regions text[], price_accounts text[], key_orgs integer[], keys text[], anew_orgs integer[], count_orgs integer[], count_paths text[], limit_orgs integer[], limit_ids bigint[], job_orgs integer[], job_paths text[], job_ids text[], may_end boolean, reference_orgs integer[], reference_texts text[], chains boolean) RETURNS SETOF book_row
    LANGUAGE plpgsql STABLE ROWS 500
    AS $$
BEGIN -- left out: its text is replaced by the upgrade
END $$;
CREATE FUNCTION open_gates(instant_now bigint, gated_orgs integer[], budget_orgs integer[], anew_orgs integer[], count_orgs integer[], count_paths text[], lease_orgs integer[], lease_ids bigint[], path_orgs integer[], paths text[], account_orgs integer[], account_ids bigint[], topup_orgs integer[], topup_ids bigint[], limit_orgs integer[], limit_ids bigint[], job_orgs integer[], job_paths text[], job_ids text[], may_end boolean) RETURNS SETOF book_row
    LANGUAGE plpgsql STABLE ROWS 500
    AS $$
BEGIN -- left out: its text is replaced by the upgrade
END $$;
CREATE FUNCTION refuse_change() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
    RAISE EXCEPTION '% is insert-only: % is not allowed', TG_TABLE_NAME, TG_OP
        USING ERRCODE = 'integrity_constraint_violation';
END $$;
CREATE FUNCTION refuse_going_back() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
    IF TG_OP <> 'UPDATE' OR NEW.offset_us < OLD.offset_us THEN
        RAISE EXCEPTION 'the clock never goes back' USING ERRCODE = 'integrity_constraint_violation';
    END IF;
    RETURN NEW;
END $$;
CREATE FUNCTION sum_usage() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
    INSERT INTO usage_sums AS s (org_id, part, reports, digest)
    SELECT n.org_id, pg_backend_pid() % 16, count(*), sum(usage_digest(n.org_id, n.job_id, n.node,
        n.seq, n.reservation_id, n.account_id, n.is_late, n.used_ms, n.recorded_at, n.payload))
    FROM new_reports n GROUP BY n.org_id ORDER BY n.org_id
    ON CONFLICT (org_id, part) DO UPDATE SET reports = s.reports + excluded.reports,
        digest = s.digest + excluded.digest;
    RETURN NULL;
END $$;
CREATE FUNCTION usage_digest(org integer, job text, at_node text, number bigint, reservation bigint, account bigint, was_late boolean, used bigint, at bigint, told jsonb) RETURNS numeric
    LANGUAGE sql IMMUTABLE
    AS $$
    SELECT ('x' || encode(substr(sha256(convert_to(jsonb_build_array(
        org, job, at_node, number, reservation, account, was_late, used, at, told)::text,
        'UTF8')), 1, 7), 'hex'))::bit(56)::bigint::numeric
$$;
CREATE TABLE accounts (
    org_id integer NOT NULL, account_id bigint NOT NULL, parent_id bigint NOT NULL, path text NOT NULL COLLATE
    pg_catalog."C", created_at bigint NOT NULL, model smallint NOT NULL, credit_limit bigint NOT NULL,
    credit_limit_max bigint NOT NULL, floor bigint DEFAULT 0 NOT NULL, status smallint NOT NULL, suspended_by
    smallint DEFAULT 0 NOT NULL, funding smallint DEFAULT 0 NOT NULL, window_max_ms bigint DEFAULT 0 NOT NULL,
    allocated boolean DEFAULT false NOT NULL, metadata jsonb NOT NULL, remaining bigint NOT NULL, reserved
    bigint NOT NULL, spent bigint NOT NULL, debt bigint NOT NULL, overrun bigint NOT NULL, version bigint NOT
    NULL, due_at bigint NOT NULL, delinquent boolean DEFAULT false NOT NULL, overdraft_limit bigint DEFAULT 0
    NOT NULL, promised bigint DEFAULT 0 NOT NULL, CONSTRAINT accounts_credit_limit_check CHECK ((credit_limit
    >= 0)), CONSTRAINT accounts_debt_check CHECK ((debt >= 0)), CONSTRAINT accounts_floor CHECK ((((remaining
    - reserved) - debt) >= floor)), CONSTRAINT accounts_funding_check CHECK ((funding = ANY (ARRAY[0, 1]))),
    CONSTRAINT accounts_model_check CHECK ((model = ANY (ARRAY[0, 1]))), CONSTRAINT
    accounts_overdraft_limit_check CHECK ((overdraft_limit >= 0)), CONSTRAINT accounts_overrun_check CHECK
    ((overrun >= 0)), CONSTRAINT accounts_promised_check CHECK ((promised >= 0)), CONSTRAINT
    accounts_remaining_check CHECK ((remaining >= 0)), CONSTRAINT accounts_reserved_check CHECK ((reserved >=
    0)), CONSTRAINT accounts_spent_check CHECK ((spent >= 0)), CONSTRAINT accounts_status_check CHECK ((status
    = ANY (ARRAY[0, 1]))), CONSTRAINT accounts_suspended_by_check CHECK (((suspended_by >= 0) AND
    (suspended_by <= 3))), CONSTRAINT accounts_window_max_ms_check CHECK ((window_max_ms >= 0))
)
WITH (fillfactor='50');
CREATE TABLE anomalies (
    org_id integer NOT NULL, anomaly_id bigint NOT NULL, account_id bigint NOT NULL, account text NOT NULL
    COLLATE pg_catalog."C", starts_at bigint NOT NULL, ends_at bigint NOT NULL, observed bigint NOT NULL,
    baseline bigint NOT NULL, threshold bigint NOT NULL, ratio_percent bigint NOT NULL, floor bigint NOT NULL,
    hours integer NOT NULL, sentence text NOT NULL, found_at bigint NOT NULL, action smallint NOT NULL,
    CONSTRAINT anomalies_action_check CHECK (((action >= 0) AND (action <= 3)))
);
ALTER TABLE anomalies ALTER COLUMN anomaly_id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME anomalies_anomaly_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE anomaly_terms (
    org_id integer NOT NULL, account_id bigint NOT NULL, ratio_percent bigint NOT NULL, floor bigint NOT NULL,
    auto_suspend boolean NOT NULL, CONSTRAINT anomaly_terms_floor_check CHECK ((floor >= 0)), CONSTRAINT
    anomaly_terms_ratio_percent_check CHECK ((ratio_percent > 100))
);
CREATE TABLE api_keys (
    org_id integer NOT NULL, key_id bigint NOT NULL, hash bytea NOT NULL, name text NOT NULL, role text NOT
    NULL, scope text NOT NULL COLLATE pg_catalog."C", created_at bigint NOT NULL, expires_at bigint DEFAULT
    '4611686018427387904'::bigint NOT NULL, revoked_at bigint DEFAULT 0 NOT NULL
);
ALTER TABLE api_keys ALTER COLUMN key_id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME api_keys_key_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE audit_heads (
    org_id integer NOT NULL, place bigint NOT NULL, hash bytea NOT NULL
);
ALTER TABLE audit_log ALTER COLUMN audit_id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME audit_log_audit_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE blocks (
    org_id integer NOT NULL, block_id bigint NOT NULL, first_entry_id bigint NOT NULL, last_entry_id bigint
    NOT NULL, previous_hash bytea NOT NULL, hash bytea NOT NULL, sealed_at bigint NOT NULL, CONSTRAINT
    blocks_check CHECK ((last_entry_id >= first_entry_id))
);
CREATE TABLE boosts (
    org_id integer NOT NULL, boost_id bigint NOT NULL, account_id bigint NOT NULL, target_id bigint NOT NULL,
    amount bigint NOT NULL, refill_per_hour bigint NOT NULL, starts_at bigint NOT NULL, ends_at bigint NOT
    NULL, note text NOT NULL, created_at bigint NOT NULL, set_by smallint NOT NULL, CONSTRAINT
    boosts_amount_check CHECK ((amount >= 0)), CONSTRAINT boosts_check CHECK ((ends_at >= starts_at)),
    CONSTRAINT boosts_refill_per_hour_check CHECK ((refill_per_hour >= 0)), CONSTRAINT boosts_set_by_check
    CHECK (((set_by >= 0) AND (set_by <= 3)))
);
CREATE TABLE budget_periods (
    org_id integer NOT NULL, budget_id bigint NOT NULL, starts_at bigint NOT NULL, ends_at bigint NOT NULL,
    allowance bigint NOT NULL, grant_id bigint NOT NULL, rolled bigint NOT NULL, rolled_grant_id bigint NOT
    NULL, warned_percent smallint NOT NULL, rollover smallint NOT NULL, rollover_cap bigint NOT NULL,
    rollover_us bigint NOT NULL, calendar smallint NOT NULL, zone text NOT NULL, CONSTRAINT
    budget_periods_allowance_check CHECK ((allowance > 0)), CONSTRAINT budget_periods_calendar_check CHECK
    (((calendar >= '-1'::integer) AND (calendar <= 2))), CONSTRAINT budget_periods_check CHECK ((ends_at >
    starts_at)), CONSTRAINT budget_periods_check1 CHECK (((rolled >= 0) AND (rolled <= allowance))),
    CONSTRAINT budget_periods_rollover_cap_check CHECK ((rollover_cap >= 0)), CONSTRAINT
    budget_periods_rollover_check CHECK (((rollover >= 0) AND (rollover <= 2))), CONSTRAINT
    budget_periods_rollover_us_check CHECK ((rollover_us >= 0))
);
CREATE TABLE budgets (
    org_id integer NOT NULL, budget_id bigint NOT NULL, account_id bigint NOT NULL, name text NOT NULL,
    allowance bigint NOT NULL, next_at bigint NOT NULL, calendar smallint NOT NULL, zone text NOT NULL,
    ends_at bigint NOT NULL, rollover smallint NOT NULL, rollover_cap bigint NOT NULL, rollover_us bigint NOT
    NULL, priority integer NOT NULL, warn_percent smallint[] NOT NULL, created_at bigint NOT NULL, CONSTRAINT
    budgets_allowance_check CHECK ((allowance > 0)), CONSTRAINT budgets_calendar_check CHECK (((calendar >=
    '-1'::integer) AND (calendar <= 2))), CONSTRAINT budgets_rollover_cap_check CHECK ((rollover_cap >= 0)),
    CONSTRAINT budgets_rollover_check CHECK (((rollover >= 0) AND (rollover <= 2))), CONSTRAINT
    budgets_rollover_us_check CHECK ((rollover_us >= 0))
);
CREATE TABLE clock (
    only_row boolean DEFAULT true NOT NULL, offset_us bigint DEFAULT 0 NOT NULL, CONSTRAINT
    clock_offset_us_check CHECK ((offset_us >= 0)), CONSTRAINT clock_only_row_check CHECK (only_row)
);
CREATE TABLE clock_repairs (
    org_id integer NOT NULL, repaired_at bigint NOT NULL, clock bigint NOT NULL, first_entry_id bigint NOT
    NULL, next_entry_id bigint NOT NULL, CONSTRAINT clock_repairs_check CHECK ((clock > repaired_at)),
    CONSTRAINT clock_repairs_check1 CHECK ((next_entry_id >= first_entry_id))
);
CREATE TABLE meters (
    org_id integer NOT NULL, account_id bigint NOT NULL, windows bigint[] NOT NULL, level bigint NOT NULL,
    level_at bigint NOT NULL, fraction bigint NOT NULL, CONSTRAINT meters_fraction_check CHECK (((fraction >=
    0) AND (fraction < '3600000000'::bigint))), CONSTRAINT meters_windows_check CHECK (((cardinality(windows)
    % 6) = 0))
)
WITH (fillfactor='50');
CREATE TABLE slots (
    org_id integer NOT NULL, quota_id bigint NOT NULL, count bigint NOT NULL, leaving bigint NOT NULL,
    CONSTRAINT slots_count_check CHECK ((count >= 0)), CONSTRAINT slots_leaving CHECK (((leaving >= 0) AND
    (leaving <= count)))
)
WITH (fillfactor='50');
CREATE VIEW windows AS
 SELECT m.org_id,
    m.account_id,
    m.windows[i.i] AS quota_id,
    m.windows[(i.i + 1)] AS used,
    m.windows[(i.i + 2)] AS held,
    m.windows[(i.i + 3)] AS base,
    m.windows[(i.i + 4)] AS starts_at,
    m.windows[(i.i + 5)] AS ends_at
   FROM (meters m
     CROSS JOIN LATERAL generate_series(1, cardinality(m.windows), 6) i(i));
CREATE VIEW counters AS
 SELECT slots.org_id,
    slots.quota_id,
    slots.count,
    slots.leaving,
    (0)::bigint AS used,
    (0)::bigint AS held,
    (0)::bigint AS base,
    (0)::bigint AS starts_at,
    (0)::bigint AS ends_at
   FROM slots
UNION ALL
 SELECT windows.org_id,
    windows.quota_id,
    0 AS count,
    0 AS leaving,
    windows.used,
    windows.held,
    windows.base,
    windows.starts_at,
    windows.ends_at
   FROM windows;
CREATE TABLE decisions (
    org_id integer NOT NULL, decision_id bigint NOT NULL, decided_at bigint NOT NULL, command text NOT NULL,
    decision text NOT NULL, reason text NOT NULL, reservation_id bigint NOT NULL, actor text NOT NULL, detail
    jsonb NOT NULL
);
ALTER TABLE decisions ALTER COLUMN decision_id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME decisions_decision_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE entries (
    org_id integer NOT NULL, type smallint NOT NULL, entry_id bigint NOT NULL, recorded_at bigint NOT NULL,
    effective_at bigint NOT NULL, account_id bigint NOT NULL, amount bigint NOT NULL, reserve bigint NOT NULL,
    grant_id bigint NOT NULL, other_id bigint NOT NULL, other_grant_id bigint NOT NULL, reservation_id bigint
    NOT NULL, seq bigint NOT NULL, CONSTRAINT entries_amount_check CHECK ((amount >= 0)), CONSTRAINT
    entries_type_check CHECK (((type >= 1) AND (type <= 15)))
);
CREATE VIEW timed_entries AS
 SELECT e.org_id,
    e.type,
    e.entry_id,
    LEAST(e.recorded_at, r.repaired_at) AS recorded_at,
    LEAST(e.effective_at, r.repaired_at) AS effective_at,
    e.account_id,
    e.amount,
    e.reserve,
    e.grant_id,
    e.other_id,
    e.other_grant_id,
    e.reservation_id,
    e.seq,
    e.effective_at AS stamped_at
   FROM (entries e
     LEFT JOIN clock_repairs r ON (((r.org_id = e.org_id) AND (e.entry_id >= r.first_entry_id) AND (e.entry_id < r.next_entry_id))));
CREATE VIEW entry_moves AS
 SELECT timed_entries.org_id,
    timed_entries.account_id,
    timed_entries.entry_id,
    timed_entries.recorded_at,
    timed_entries.effective_at,
    (
        CASE
            WHEN (timed_entries.other_id = timed_entries.account_id) THEN (0)::bigint
            WHEN (timed_entries.type = ANY (ARRAY[1, 2, 5, 7, 10, 14])) THEN timed_entries.amount
            WHEN (timed_entries.type = ANY (ARRAY[3, 4, 8, 9, 11, 13, 15])) THEN (- timed_entries.amount)
            ELSE (0)::bigint
        END - timed_entries.reserve) AS available,
    (
        CASE
            WHEN (timed_entries.type = 4) THEN timed_entries.amount
            WHEN (timed_entries.type = ANY (ARRAY[5, 6])) THEN (- timed_entries.amount)
            ELSE (0)::bigint
        END + timed_entries.reserve) AS reserved,
        CASE
            WHEN (timed_entries.type = ANY (ARRAY[6, 9])) THEN timed_entries.amount
            WHEN (timed_entries.type = 7) THEN (- timed_entries.amount)
            ELSE (0)::bigint
        END AS spent
   FROM timed_entries
UNION ALL
 SELECT timed_entries.org_id,
    timed_entries.other_id AS account_id,
    timed_entries.entry_id,
    timed_entries.recorded_at,
    timed_entries.effective_at,
    timed_entries.amount AS available,
    0 AS reserved,
    0 AS spent
   FROM timed_entries
  WHERE ((timed_entries.other_id <> 0) AND (timed_entries.other_id <> timed_entries.account_id));
CREATE TABLE entry_types (
    type smallint NOT NULL, name text NOT NULL, debit text NOT NULL, credit text NOT NULL
);
CREATE TABLE grants (
    org_id integer NOT NULL, grant_id bigint NOT NULL, account_id bigint NOT NULL, amount bigint NOT NULL,
    starts_at bigint NOT NULL, expires_at bigint NOT NULL, priority integer NOT NULL, source smallint NOT
    NULL, origin_id bigint NOT NULL, created_at bigint NOT NULL, metadata jsonb NOT NULL, state smallint NOT
    NULL, is_open boolean NOT NULL, remaining bigint NOT NULL, claims bigint DEFAULT 0 NOT NULL, budget_id
    bigint DEFAULT 0 NOT NULL, CONSTRAINT grants_amount_check CHECK ((amount > 0)), CONSTRAINT grants_check
    CHECK ((expires_at > starts_at)), CONSTRAINT grants_claims_check CHECK ((claims >= 0)), CONSTRAINT
    grants_remaining CHECK (((remaining >= 0) AND (remaining <= amount)))
)
WITH (fillfactor='50');
CREATE TABLE idempotency (
    org_id integer NOT NULL, key text NOT NULL COLLATE pg_catalog."C", request_hash bytea NOT NULL, outcome
    bytea NOT NULL, created_at bigint NOT NULL
);
CREATE VIEW ledger_entries AS
 SELECT e.org_id,
    e.entry_id,
    pair.line,
    instant(e.recorded_at) AS recorded_at,
    instant(e.effective_at) AS effective_at,
    pair.type,
        CASE
            WHEN (pair.debit ~~ 'system:%'::text) THEN pair.debit
            ELSE own.path
        END AS debit_account,
        CASE
            WHEN (pair.debit ~~ 'system:%'::text) THEN 'available'::text
            ELSE pair.debit
        END AS debit_bucket,
        CASE
            WHEN (pair.credit ~~ 'system:%'::text) THEN pair.credit
            WHEN (pair.credit ~~ 'other:%'::text) THEN receiver.path
            ELSE own.path
        END AS credit_account,
        CASE
            WHEN ((pair.credit ~~ 'system:%'::text) OR (pair.credit ~~ 'other:%'::text)) THEN 'available'::text
            ELSE pair.credit
        END AS credit_bucket,
    pair.amount,
    e.grant_id,
    e.other_grant_id,
    e.reservation_id,
    e.seq
   FROM (((entries e
     JOIN accounts own ON (((own.org_id = e.org_id) AND (own.account_id = e.account_id))))
     LEFT JOIN accounts receiver ON (((receiver.org_id = e.org_id) AND (receiver.account_id = e.other_id))))
     CROSS JOIN LATERAL ( SELECT 1 AS line,
            t.name AS type,
            t.debit,
            t.credit,
            abs(e.reserve) AS amount
           FROM entry_types t
          WHERE ((e.reserve <> 0) AND (t.type =
                CASE
                    WHEN (e.reserve > 0) THEN 4
                    ELSE 5
                END))
        UNION ALL
         SELECT 2,
            t.name,
            t.debit,
            t.credit,
            e.amount
           FROM entry_types t
          WHERE ((e.amount <> 0) AND (t.type = e.type))) pair);
CREATE TABLE orgs (
    org_id integer NOT NULL, path text NOT NULL, next_id bigint DEFAULT 1 NOT NULL, next_entry_id bigint
    DEFAULT 1 NOT NULL, clock bigint DEFAULT 0 NOT NULL, version bigint DEFAULT new_version() NOT NULL, gated
    boolean DEFAULT false NOT NULL, budgeted boolean DEFAULT false NOT NULL
)
WITH (fillfactor='50');
ALTER TABLE orgs ALTER COLUMN org_id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME orgs_org_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE outbox (
    org_id integer NOT NULL, event_id bigint NOT NULL, recorded_at bigint NOT NULL, type text NOT NULL,
    subject_id bigint NOT NULL, payload jsonb NOT NULL
);
ALTER TABLE outbox ALTER COLUMN event_id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME outbox_event_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE pool_dispatch (
    org_id integer DEFAULT 0 NOT NULL, pool_id integer NOT NULL, holder text DEFAULT ''::text NOT NULL,
    held_until bigint DEFAULT 0 NOT NULL, version bigint DEFAULT 0 NOT NULL, used_until bigint DEFAULT 0 NOT
    NULL, CONSTRAINT pool_dispatch_org_id_check CHECK ((org_id = 0))
)
WITH (fillfactor='50');
CREATE TABLE pool_snapshots (
    org_id integer DEFAULT 0 NOT NULL, pool_id integer NOT NULL, snapshot_id bigint NOT NULL, taken_at bigint
    NOT NULL, snapshot bytea NOT NULL, decision bytea NOT NULL, CONSTRAINT pool_snapshots_org_id_check CHECK
    ((org_id = 0))
);
ALTER TABLE pool_snapshots ALTER COLUMN snapshot_id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME pool_snapshots_snapshot_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE pool_usage (
    org_id integer DEFAULT 0 NOT NULL, pool_id integer NOT NULL, path text NOT NULL COLLATE pg_catalog."C",
    usage numeric NOT NULL, CONSTRAINT pool_usage_org_id_check CHECK ((org_id = 0)), CONSTRAINT
    pool_usage_usage_check CHECK ((usage >= (0)::numeric))
)
WITH (fillfactor='70');
CREATE TABLE pool_weights (
    org_id integer DEFAULT 0 NOT NULL, pool_id integer NOT NULL, path text NOT NULL COLLATE pg_catalog."C",
    weight integer NOT NULL, may_borrow boolean NOT NULL, CONSTRAINT pool_weights_org_id_check CHECK ((org_id
    = 0)), CONSTRAINT pool_weights_weight_check CHECK (((weight >= 0) AND (weight <= 1000000)))
);
CREATE TABLE pools (
    org_id integer DEFAULT 0 NOT NULL, pool_id integer NOT NULL, gpu_type text NOT NULL, region text NOT NULL,
    gpus bigint, cpus bigint, memory bigint, preemption boolean NOT NULL, grace_ms bigint NOT NULL,
    min_runtime_ms bigint NOT NULL, preemptions_max integer NOT NULL, backfill boolean NOT NULL,
    backfill_depth integer NOT NULL, hold_after_ms bigint NOT NULL, priority_scope text NOT NULL, usage_order
    text NOT NULL, half_life_ms bigint NOT NULL, borrowing boolean NOT NULL, window_max_ms bigint DEFAULT 0
    NOT NULL, updated_at bigint NOT NULL, CONSTRAINT pools_backfill_depth_check CHECK ((backfill_depth >= 0)),
    CONSTRAINT pools_capacity CHECK (((gpus IS NOT NULL) OR ((cpus IS NULL) AND (memory IS NULL)))),
    CONSTRAINT pools_cpus_check CHECK ((cpus > 0)), CONSTRAINT pools_gpus_check CHECK ((gpus >= 0)),
    CONSTRAINT pools_grace_ms_check CHECK ((grace_ms >= 0)), CONSTRAINT pools_half_life_ms_check CHECK
    ((half_life_ms >= 0)), CONSTRAINT pools_hold_after_ms_check CHECK ((hold_after_ms >= 0)), CONSTRAINT
    pools_memory_check CHECK ((memory > 0)), CONSTRAINT pools_min_runtime_ms_check CHECK ((min_runtime_ms >=
    0)), CONSTRAINT pools_org_id_check CHECK ((org_id = 0)), CONSTRAINT pools_preemptions_max_check CHECK
    ((preemptions_max >= 0)), CONSTRAINT pools_priority_scope_check CHECK ((priority_scope = ANY
    (ARRAY['user'::text, 'project'::text, 'org'::text, 'pool'::text]))), CONSTRAINT pools_usage_order_check
    CHECK ((usage_order = ANY (ARRAY['ignored'::text, 'ties'::text, 'first'::text]))), CONSTRAINT
    pools_window_max_ms_check CHECK ((window_max_ms >= 0))
);
ALTER TABLE pools ALTER COLUMN pool_id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME pools_pool_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE prices (
    org_id integer NOT NULL, price_id bigint NOT NULL, gpu_type text NOT NULL, region text NOT NULL,
    credits_per_gpu_hour bigint NOT NULL, effective_from bigint NOT NULL, account text DEFAULT ''::text NOT
    NULL COLLATE pg_catalog."C", created_at bigint NOT NULL, effective_to bigint DEFAULT
    '4611686018427387904'::bigint NOT NULL, is_end boolean DEFAULT false NOT NULL, CONSTRAINT prices_check
    CHECK ((effective_to > effective_from)), CONSTRAINT prices_credits_per_gpu_hour_check CHECK
    ((credits_per_gpu_hour >= 0))
);
CREATE TABLE queue (
    org_id integer NOT NULL, queue_id bigint NOT NULL, pool_id integer NOT NULL, account text NOT NULL COLLATE
    pg_catalog."C", command jsonb NOT NULL, gpus bigint NOT NULL, cpus bigint NOT NULL, memory bigint NOT
    NULL, priority integer NOT NULL, gang text NOT NULL, gang_size integer NOT NULL, expected_ms bigint NOT
    NULL, preemptible boolean NOT NULL, is_patient boolean NOT NULL, allow_partial boolean NOT NULL,
    submitted_at bigint NOT NULL, deadline bigint NOT NULL, actor text NOT NULL, request_id text NOT NULL,
    state smallint DEFAULT 0 NOT NULL, attempt integer DEFAULT 0 NOT NULL, granted bigint DEFAULT 0 NOT NULL,
    overtook boolean DEFAULT false NOT NULL, gpus_max bigint DEFAULT 0 NOT NULL, held_by text DEFAULT ''::text
    NOT NULL, held_sentence text DEFAULT ''::text NOT NULL, retry_at bigint DEFAULT 0 NOT NULL, retries
    integer DEFAULT 0 NOT NULL, "position" integer DEFAULT 0 NOT NULL, reason text DEFAULT ''::text NOT NULL,
    resource text DEFAULT ''::text NOT NULL, needed bigint DEFAULT 0 NOT NULL, available bigint DEFAULT 0 NOT
    NULL, behind text DEFAULT ''::text NOT NULL, starts_at bigint DEFAULT 0 NOT NULL, reservation_id bigint
    DEFAULT 0 NOT NULL, ended_at bigint DEFAULT 0 NOT NULL, outcome bytea, CONSTRAINT queue_cpus_check CHECK
    ((cpus >= 0)), CONSTRAINT queue_gang_size_check CHECK ((gang_size > 0)), CONSTRAINT queue_gpus_check CHECK
    ((gpus > 0)), CONSTRAINT queue_memory_check CHECK ((memory >= 0)), CONSTRAINT queue_state_check CHECK
    (((state >= 0) AND (state <= 5)))
)
WITH (fillfactor='60');
ALTER TABLE queue ALTER COLUMN queue_id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME queue_queue_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE quotas (
    org_id integer NOT NULL, quota_id bigint NOT NULL, account_id bigint NOT NULL, dimension smallint NOT
    NULL, amount bigint NOT NULL, gpu_type text NOT NULL, calendar smallint NOT NULL, zone text NOT NULL,
    rolling_hours integer NOT NULL, created_at bigint NOT NULL, ended_at bigint DEFAULT 0 NOT NULL, seeded
    bigint DEFAULT 0 NOT NULL, first_entry_id bigint DEFAULT 0 NOT NULL, set_by smallint NOT NULL, CONSTRAINT
    quotas_amount_check CHECK ((amount >= 0)), CONSTRAINT quotas_calendar_check CHECK (((calendar >=
    '-1'::integer) AND (calendar <= 2))), CONSTRAINT quotas_dimension_check CHECK (((dimension >= 0) AND
    (dimension <= 3))), CONSTRAINT quotas_rolling_hours_check CHECK ((rolling_hours >= 0)), CONSTRAINT
    quotas_set_by_check CHECK (((set_by >= 0) AND (set_by <= 3))), CONSTRAINT quotas_window CHECK
    (((((calendar >= 0))::integer + ((rolling_hours > 0))::integer) = ((dimension = 3))::integer))
);
CREATE TABLE request_buckets (
    org_id integer NOT NULL, holder smallint NOT NULL, number bigint NOT NULL, capacity bigint NOT NULL,
    refill_per_hour bigint NOT NULL, level bigint NOT NULL, fraction bigint NOT NULL, saved_at bigint NOT
    NULL, CONSTRAINT request_buckets_holder_check CHECK ((holder = ANY (ARRAY[1, 2])))
)
WITH (fillfactor='50');
CREATE TABLE request_limits (
    org_id integer NOT NULL, holder smallint NOT NULL, number bigint NOT NULL, capacity bigint NOT NULL,
    refill_per_hour bigint NOT NULL, set_at bigint NOT NULL, CONSTRAINT request_limits_capacity_check CHECK
    (((capacity >= 1) AND (capacity <= 1000000))), CONSTRAINT request_limits_holder_check CHECK ((holder = ANY
    (ARRAY[1, 2]))), CONSTRAINT request_limits_refill_per_hour_check CHECK (((refill_per_hour >= 1) AND
    (refill_per_hour <= '3600000000'::bigint)))
);
CREATE TABLE requests (
    org_id integer NOT NULL, request_id bigint NOT NULL, account text NOT NULL COLLATE pg_catalog."C", kind
    smallint NOT NULL, unit smallint NOT NULL, target_id bigint NOT NULL, budget text NOT NULL, amount bigint
    NOT NULL, refill_per_hour bigint NOT NULL, ends_at bigint NOT NULL, reason text NOT NULL, asked_by text
    NOT NULL, asked_at bigint NOT NULL, expires_at bigint NOT NULL, state smallint NOT NULL, decided_by text
    NOT NULL, decided_from smallint NOT NULL, decided_at bigint NOT NULL, note text NOT NULL, given_amount
    bigint NOT NULL, given_refill_per_hour bigint NOT NULL, given_ends_at bigint NOT NULL, taken_from text NOT
    NULL COLLATE pg_catalog."C", attempt integer NOT NULL, result text NOT NULL, refusal text NOT NULL,
    CONSTRAINT requests_amount_check CHECK ((amount > 0)), CONSTRAINT requests_attempt_check CHECK ((attempt
    >= 0)), CONSTRAINT requests_check CHECK ((expires_at > asked_at)), CONSTRAINT requests_decided_from_check
    CHECK (((decided_from >= 0) AND (decided_from <= 3))), CONSTRAINT requests_given_amount_check CHECK
    ((given_amount >= 0)), CONSTRAINT requests_given_refill_per_hour_check CHECK ((given_refill_per_hour >=
    0)), CONSTRAINT requests_kind_check CHECK (((kind >= 0) AND (kind <= 3))), CONSTRAINT
    requests_refill_per_hour_check CHECK ((refill_per_hour >= 0)), CONSTRAINT requests_state_check CHECK
    (((state >= 0) AND (state <= 5))), CONSTRAINT requests_unit_check CHECK (((unit >= 0) AND (unit <= 2)))
);
ALTER TABLE requests ALTER COLUMN request_id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME requests_request_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE reservations (
    org_id integer NOT NULL, reservation_id bigint NOT NULL, account text NOT NULL COLLATE pg_catalog."C",
    account_id bigint NOT NULL, payer_id bigint NOT NULL, job_id text NOT NULL, gpu_type text NOT NULL,
    gpu_count bigint NOT NULL, region text NOT NULL, node text NOT NULL, price bigint NOT NULL, price_id
    bigint NOT NULL, window_ms bigint NOT NULL, admitted_at bigint NOT NULL, escrow_windows bigint NOT NULL,
    max_amount bigint NOT NULL, first_entry_id bigint NOT NULL, metadata jsonb NOT NULL, state smallint NOT
    NULL, decision smallint NOT NULL, held bigint NOT NULL, settled bigint NOT NULL, adjusted bigint NOT NULL,
    refunded bigint NOT NULL, used_ms bigint NOT NULL, seq bigint NOT NULL, expires_at bigint NOT NULL,
    ended_at bigint NOT NULL, paid bigint[] NOT NULL, authorised bigint DEFAULT 0 NOT NULL, kept bigint[]
    DEFAULT '{}'::bigint[] NOT NULL, payers bigint[] DEFAULT '{}'::bigint[] NOT NULL, is_plain boolean DEFAULT
    true NOT NULL, beat_at bigint DEFAULT 0 NOT NULL, exhaustion smallint DEFAULT 1 NOT NULL, grace_ms bigint
    DEFAULT 0 NOT NULL, overdraft bigint DEFAULT 0 NOT NULL, overdrawn bigint DEFAULT 0 NOT NULL, leaving
    boolean DEFAULT false NOT NULL, stopping_at bigint DEFAULT 0 NOT NULL, stopping_for bigint DEFAULT 0 NOT
    NULL, why smallint DEFAULT 0 NOT NULL, clears_at bigint DEFAULT 0 NOT NULL, promised bigint DEFAULT 0 NOT
    NULL, cap_part bigint DEFAULT '-1'::integer NOT NULL, cap_seen bigint DEFAULT 0 NOT NULL, CONSTRAINT
    reservations_adjusted_check CHECK ((adjusted >= 0)), CONSTRAINT reservations_cap_part_check CHECK
    ((cap_part >= '-1'::integer)), CONSTRAINT reservations_exhaustion_check CHECK ((exhaustion = ANY (ARRAY[0,
    1, 2]))), CONSTRAINT reservations_gpu_count_check CHECK ((gpu_count > 0)), CONSTRAINT
    reservations_grace_ms_check CHECK ((grace_ms >= 0)), CONSTRAINT reservations_held_check CHECK ((held >=
    0)), CONSTRAINT reservations_overdraft_check CHECK ((overdraft >= 0)), CONSTRAINT
    reservations_overdrawn_check CHECK ((overdrawn >= 0)), CONSTRAINT reservations_price_check CHECK ((price
    >= 0)), CONSTRAINT reservations_promised_check CHECK ((promised >= 0)), CONSTRAINT
    reservations_refunded_check CHECK ((refunded >= 0)), CONSTRAINT reservations_settled_check CHECK ((settled
    >= 0)), CONSTRAINT reservations_used_ms_check CHECK ((used_ms >= 0))
)
WITH (fillfactor='45');
CREATE TABLE schema_migrations (
    number integer NOT NULL, name text NOT NULL, checksum text NOT NULL, applied_at timestamp with time zone
    DEFAULT clock_timestamp() NOT NULL, CONSTRAINT schema_migrations_number_check CHECK ((number > 0))
);
CREATE TABLE snapshot_marks (
    org_id integer NOT NULL, entry_id bigint NOT NULL, enough bigint DEFAULT 0 NOT NULL
);
CREATE TABLE snapshots (
    org_id integer NOT NULL, account_id bigint NOT NULL, entry_id bigint NOT NULL, recorded_at bigint NOT
    NULL, latest_effective_at bigint NOT NULL, earliest_effective_at bigint NOT NULL, available bigint NOT
    NULL, reserved bigint NOT NULL, spent bigint NOT NULL
);
CREATE TABLE spend_marks (
    org_id integer NOT NULL, account_id bigint NOT NULL, hour bigint NOT NULL, spent bigint NOT NULL
);
CREATE TABLE statements (
    org_id integer NOT NULL, statement_id bigint NOT NULL, account_id bigint NOT NULL, period text NOT NULL
    COLLATE pg_catalog."C", amount bigint NOT NULL, due_at bigint NOT NULL, account text NOT NULL COLLATE
    pg_catalog."C", starts_at bigint NOT NULL, ends_at bigint NOT NULL, closed_at bigint NOT NULL, opening
    bigint NOT NULL, charges bigint NOT NULL, payments bigint NOT NULL, credits bigint NOT NULL, closing
    bigint NOT NULL, charged_through bigint NOT NULL, paid_through bigint NOT NULL, CONSTRAINT
    statements_amount_check CHECK ((amount >= 0)), CONSTRAINT statements_check CHECK ((ends_at > starts_at)),
    CONSTRAINT statements_check1 CHECK ((closed_at >= ends_at)), CONSTRAINT statements_lines CHECK
    (((((opening + charges) - payments) - credits) = closing))
);
ALTER TABLE statements ALTER COLUMN statement_id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME statements_statement_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE tallies (
    org_id integer NOT NULL, quota_id bigint NOT NULL, starts_at bigint NOT NULL, ends_at bigint NOT NULL,
    used bigint NOT NULL, CONSTRAINT tallies_check CHECK ((ends_at > starts_at)), CONSTRAINT
    tallies_used_check CHECK ((used >= 0))
)
WITH (fillfactor='80');
CREATE TABLE token_buckets (
    org_id integer NOT NULL, bucket_id bigint NOT NULL, account_id bigint NOT NULL, kind smallint NOT NULL,
    capacity bigint NOT NULL, refill_per_hour bigint NOT NULL, level bigint NOT NULL, level_at bigint NOT
    NULL, fraction bigint NOT NULL, ended_at bigint DEFAULT 0 NOT NULL, set_by smallint NOT NULL, CONSTRAINT
    token_buckets_capacity_check CHECK ((capacity >= 0)), CONSTRAINT token_buckets_fraction_check CHECK
    (((fraction >= 0) AND (fraction < '3600000000'::bigint))), CONSTRAINT token_buckets_kind_check CHECK
    ((kind = ANY (ARRAY[0, 1]))), CONSTRAINT token_buckets_refill_per_hour_check CHECK ((refill_per_hour >=
    0)), CONSTRAINT token_buckets_set_by_check CHECK (((set_by >= 0) AND (set_by <= 3)))
);
CREATE TABLE topups (
    org_id integer NOT NULL, topup_id bigint NOT NULL, account_id bigint NOT NULL, amount bigint NOT NULL,
    payment_reference text NOT NULL, status smallint NOT NULL, grant_id bigint NOT NULL, expires_at bigint NOT
    NULL, priority integer NOT NULL, created_at bigint NOT NULL, metadata jsonb NOT NULL, CONSTRAINT
    topups_amount_check CHECK ((amount > 0))
);
CREATE TABLE usage_events (
    org_id integer NOT NULL, job_id text NOT NULL, node text NOT NULL, seq bigint NOT NULL, reservation_id
    bigint DEFAULT 0 NOT NULL, account_id bigint DEFAULT 0 NOT NULL, is_late boolean DEFAULT false NOT NULL,
    used_ms bigint NOT NULL, recorded_at bigint NOT NULL, payload jsonb DEFAULT '{}'::jsonb NOT NULL
);
CREATE TABLE usage_sums (
    org_id integer NOT NULL, part integer NOT NULL, reports bigint NOT NULL, digest numeric NOT NULL
)
WITH (fillfactor='50');
INSERT INTO accounts VALUES
	(1, 2, 1, 'acme/p', 1794999886826503, 0, 0, 0, 0, 0, 0, 0, 0, true, '{}', 102479500, 0, 32520500, 0, 0, 27, 1798761600000000, false, 0, 0),
	(1, 57, 1, 'acme/idle', 1798456162908051, 0, 0, 0, 0, 1, 1, 1, 0, false, '{}', 0, 0, 0, 0, 0, 2, 4611686018427387904, false, 0, 0),
	(1, 1, 0, 'acme', 1794999886795345, 0, 0, 0, 0, 0, 0, 0, 0, true, '{}', 210969000, 10000000, 9031000, 0, 0, 22, 1798456172930452, false, 0, 0),
	(1, 28, 2, 'acme/p/u', 1795000151257718, 0, 0, 0, 0, 0, 0, 1, 0, true, '{}', 3000000, 0, 2000000, 0, 0, 5, 4611686018427387904, false, 0, 0),
	(1, 3, 1, 'acme/q', 1794999886831750, 1, 50000000, 50000000, -50000000, 0, 0, 0, 0, true, '{}', 500000, 0, 500000, 0, 0, 12, 4611686018427387904, false, 1000000, 0),
	(2, 1, 0, 'globex', 1798456162952928, 0, 0, 0, 0, 0, 0, 0, 0, true, '{}', 100000000, 0, 0, 0, 0, 2, 4611686018427387904, false, 0, 0),
	(2, 3, 1, 'globex/nlp', 1798456162959132, 0, 0, 0, 0, 0, 0, 0, 0, true, '{}', 100000000, 0, 0, 0, 0, 2, 4611686018427387904, false, 0, 0);
INSERT INTO anomaly_terms VALUES
	(1, 1, 300, 1000000, false);
INSERT INTO api_keys OVERRIDING SYSTEM VALUE VALUES
	(0, 1, '\xd0205a20d20bb1b83d92d2e05b952d69ad49bd0e4458f20d87170107618702cf', 'staff', 'admin', '', 1798456162555023, 4611686018427387904, 0),
	(1, 2, '\xce2f6dfc1218e213392a962fd83b68622468b5f3a21f15d04c992c890cf4f578', 'member', 'member', 'acme/p', 1798456162557851, 4611686018427387904, 0),
	(1, 3, '\x2b4990184f3d3fab460750f5911f04859230a4af8edb03755c10211e95ef7bd8', 'ending', 'member', 'acme/p', 1798456162560026, 1798812562545838, 0),
	(1, 4, '\x3cb37c6ba7016d601ba0dac7943a213de7113fb94e8fd9ac32e2f728ca81de64', 'revoked', 'member', 'acme/p', 1798456162561836, 4611686018427387904, 1798456162563639);
INSERT INTO audit_heads VALUES
	(1, 77, '\x57ce8573af9a03c0449510aab4a2cd8c4c3f5a9c195c01d8c707713eb656a660'),
	(2, 5, '\xd372fd70f2950bb40258aed6633c7d21bf976790147f74e9fc32ab70f92aaff3'),
	(0, 25, '\x04df64916cb6e93423beb7fe0c0490396a5ed392663bc3790da2472e9751fd5a');
INSERT INTO audit_log OVERRIDING SYSTEM VALUE VALUES
	(0, 1, 1794999886765658, 'tester', 'price.set', 'prc_0_1', NULL, '{"region": "default", "account": "", "gpu_type": "h100", "price_id": "prc_0_1", "effective_to": null, "effective_from": "1970-01-01T00:00:00Z", "credits_per_gpu_hour": "3600"}', '', 1, '\x4270354206f09a75fae9579836fd47208dd285402b1f555c70a171a69b5fd843'),
	(1, 2, 1794999886795345, 'tester', 'account.create', 'acme', NULL, '{"model": "prepaid", "status": "active", "funding": "own", "metadata": {}, "delinquent": false, "credit_limit": "0", "overdraft_limit": "0", "suspended_by_scope": null, "window_max_seconds": 0}', '', 1, '\xeb2236a4c3cfd6f013e9ba6e623cea46f896787c798c3d559552e57bb8098055'),
	(1, 3, 1794999886826503, 'tester', 'account.create', 'acme/p', NULL, '{"model": "prepaid", "status": "active", "funding": "shared", "metadata": {}, "delinquent": false, "credit_limit": "0", "overdraft_limit": "0", "suspended_by_scope": null, "window_max_seconds": 0}', '', 2, '\x55341a62f28b5b6502bce409211131f9a5a47d05c6b97c8c8bea282af0e21c6c'),
	(1, 4, 1794999886831750, 'tester', 'account.create', 'acme/q', NULL, '{"model": "postpaid", "status": "active", "funding": "own", "metadata": {}, "delinquent": false, "credit_limit": "50", "overdraft_limit": "0", "suspended_by_scope": null, "window_max_seconds": 0}', '', 3, '\x15950d9124cc4834f0ed4304944a4d68e518b0f3efc0cccafa60a75a35deef08'),
	(0, 5, 1794999886882775, 'tester', 'price.set', 'prc_0_2', NULL, '{"region": "default", "account": "", "gpu_type": "b200", "price_id": "prc_0_2", "effective_to": null, "effective_from": "2026-11-18T11:04:46.880305Z", "credits_per_gpu_hour": "3600"}', 'r', 2, '\x3a03e63d289fdadc3f0a0d7a4d84543bdb5be26041c803f6c378f41bd17a8c8c'),
	(1, 6, 1794999886902675, 'tester', 'price.set', 'acme/p', NULL, '{"region": "default", "account": "acme/p", "gpu_type": "h100", "price_id": "prc_0_3", "effective_to": null, "effective_from": "1970-01-01T00:00:01Z", "credits_per_gpu_hour": "1800"}', 'r', 4, '\xff42fda07dc3335182c35930cfef62a59e9d4f6d1779af29e020560c31615c39'),
	(1, 7, 1794999886912860, 'tester', 'price.set', 'acme/p', NULL, '{"region": "default", "account": "acme/p", "gpu_type": "h100", "price_id": "prc_0_4", "effective_to": "2026-11-18T11:05:46.910850Z", "effective_from": "1970-01-01T00:00:01Z", "credits_per_gpu_hour": "0.000001"}', 'r', 5, '\x7b469b0597356a74ede5f1176b9611c41cefab18b848c1bdcbbb91e255fb9d3f'),
	(0, 8, 1794999886918922, 'tester', 'price.end', 'prc_0_2', NULL, '{"region": "default", "account": "", "gpu_type": "b200", "price_id": "prc_0_5", "effective_to": "2026-11-18T11:04:46.918186Z"}', 'r', 3, '\x5f44c4513cd954e364085285f74c919d59f8b3bc6608fc45bb5ef310cf436198'),
	(0, 9, 1795000006922565, 'system:', 'clock.advance', 'clock', '{"offset_us": 0}', '{"offset_us": 120000000}', '', 4, '\x56cb7f496352f4294d1840313b58761c507d3f677d1aeb6b6699d688a6fbda9c'),
	(1, 10, 1795000006947301, 'tester', 'credits.issue', 'acme', NULL, '{"amount": "4", "source": "allowance", "grant_id": "grt_1_4", "priority": 100, "starts_at": "2026-11-18T11:06:46.947301Z", "expires_at": null}', '', 6, '\xb6dd0b0b6bfba87c3eb364b8967728db02a23e867b30b9e38de659ccb0273cfa'),
	(1, 11, 1795000006955618, 'tester', 'credits.issue', 'acme', NULL, '{"amount": "200", "source": "allowance", "grant_id": "grt_1_5", "priority": 100, "starts_at": "2026-11-18T11:06:46.955618Z", "expires_at": null}', '', 7, '\x66eef6a2ee526a4ba70359c9387b02ff6f50dc946eecfdb001363e37920befd3'),
	(1, 12, 1795000006959363, 'tester', 'credits.issue', 'acme/p', NULL, '{"amount": "30", "source": "promo", "grant_id": "grt_1_6", "priority": 7, "starts_at": "2026-11-18T11:06:46.959363Z", "expires_at": "2026-11-19T07:06:46.937787Z"}', '', 8, '\xb6d7979379eba16fc5e4b849cd3b571427f200ff9f44cb5cb04538a505ea91bd'),
	(1, 13, 1795000006959363, 'tester', 'account.funding', 'acme/p', '{"funding": "shared"}', '{"because": "credits.issue", "funding": "own"}', '', 9, '\x9fb418cd8a21ab834a535d970ac719a624624121c8ed57b074a96a1b416e02fb'),
	(1, 14, 1795000006964067, 'tester', 'credits.issue', 'acme/p', NULL, '{"amount": "100", "source": "allowance", "grant_id": "grt_1_7", "priority": 100, "starts_at": "2026-11-18T11:06:46.964067Z", "expires_at": null}', '', 10, '\xc3c59691c59998a1e9723b2705c9c6c1997281be04a72fc847d0376c9391c656'),
	(1, 15, 1795000006971452, 'tester', 'credits.issue', 'acme/p', NULL, '{"amount": "1", "source": "allowance", "grant_id": "grt_1_8", "priority": 9, "starts_at": "2026-11-18T11:06:46.971452Z", "expires_at": "2026-11-18T11:06:55.937787Z"}', '', 11, '\x71e6e9866cb4bf0eb5edfaed023dc10dba3048a10415b6ea2e1cef79d8312109'),
	(1, 16, 1795000006980503, 'tester', 'credits.issue', 'acme/p', NULL, '{"amount": "1", "source": "allowance", "grant_id": "grt_1_9", "priority": 100, "starts_at": "2026-12-09T07:06:46.937787Z", "expires_at": null}', '', 12, '\x2bbd8a2721a3d4553bd976cf1a447019b22e9c9ab4ff06340b2401edecf66861'),
	(1, 17, 1795000006984819, 'tester', 'topup.record', 'acme', NULL, '{"amount": "5", "status": "pending", "topup_id": "top_1_a", "payment_reference": "payment-0"}', '', 13, '\xe25b1eab4b45d434076207991cddfb288049e2178b768e4a87bb57cca2044818'),
	(1, 18, 1795000006989952, 'tester', 'topup.record', 'acme', NULL, '{"amount": "6", "status": "pending", "topup_id": "top_1_b", "payment_reference": "payment-1"}', '', 14, '\x59c20436ecdfccaf1d09f3430add2091e67cd68a760abd1beff2b4bf58ebd96b'),
	(1, 19, 1795000006991658, 'tester', 'topup.confirm', 'acme', '{"status": "pending"}', '{"amount": "6", "status": "confirmed", "topup_id": "top_1_b", "payment_reference": "payment-1"}', '', 15, '\x007ab69340edead09f4d5274d575b52cf14681dfe520252bcf1d3a124ae14da8'),
	(1, 20, 1795000007003988, 'tester', 'topup.record', 'acme', NULL, '{"amount": "7", "status": "pending", "topup_id": "top_1_d", "payment_reference": "payment-2"}', '', 16, '\xb74d3d9d42b941d6495d9abd0a912a87f3556cf93a173991f3c9e7e3163245f1'),
	(1, 21, 1795000007005840, 'tester', 'topup.fail', 'acme', '{"status": "pending"}', '{"amount": "7", "status": "failed", "topup_id": "top_1_d", "payment_reference": "payment-2"}', '', 17, '\xc7da96726d7852a2d0f82108d697f5c6b70e3ceb1e946b2199f36e306e93e7eb'),
	(1, 22, 1795000007010545, 'tester', 'topup.record', 'acme', NULL, '{"amount": "8", "status": "pending", "topup_id": "top_1_e", "payment_reference": "payment-3"}', '', 18, '\xb87697f3c4c5e5aeb6c69251a4c99efa9e90e0bed25d69f03abb4bf4711379af'),
	(1, 23, 1795000007013093, 'tester', 'topup.confirm', 'acme', '{"status": "pending"}', '{"amount": "8", "status": "confirmed", "topup_id": "top_1_e", "payment_reference": "payment-3"}', '', 19, '\x2d4d0dcfbe31b79ce405bb2699ce95ff2f596d9a9771cc955dfa566fc19078d4'),
	(1, 24, 1795000007015087, 'tester', 'topup.reverse', 'acme', '{"status": "confirmed"}', '{"amount": "8", "status": "reversed", "topup_id": "top_1_e", "payment_reference": "payment-3"}', '', 20, '\xe3badc693a9185580a996962a61de93b7faf4ed5f19ea78d1ac5fde8cff2b5db'),
	(1, 25, 1795000007018920, 'tester', 'topup.record', 'acme', NULL, '{"amount": "9", "status": "pending", "topup_id": "top_1_g", "payment_reference": "payment-4"}', '', 21, '\x793c9fbbd1db3fe8f6fde9fb593acec18778901006731e29f3f614b058b53fdb'),
	(1, 26, 1795000007020344, 'tester', 'topup.confirm', 'acme', '{"status": "pending"}', '{"amount": "9", "status": "confirmed", "topup_id": "top_1_g", "payment_reference": "payment-4"}', '', 22, '\x8af764978a6942a4bd83ae80667537de3a2c8da13477a2ee622746ca0c0de779'),
	(0, 27, 1795000009031722, 'system:', 'clock.advance', 'clock', '{"offset_us": 120000000}', '{"offset_us": 122000000}', '', 5, '\x40bba4fa377f710ae3c90b9fcfda0c31829a3f8e309df1ccde2be2c4a1c7bbb3'),
	(1, 28, 1795000009038353, 'tester', 'reservation.settle', 'rsv_1_i', '{"payer": "acme/q", "account": "acme/q"}', '{"state": "settled", "settled": "2", "used_ms": 2000}', '', 23, '\xd23fa89f3e0b656c89e5e36a47050c96f267f90b426330df5d37e91fa3e3a5f9'),
	(1, 29, 1795000009047157, 'tester', 'credits.issue', 'acme/q', NULL, '{"amount": "1", "source": "allowance", "grant_id": "grt_1_j", "priority": 100, "starts_at": "2026-11-18T11:06:49.047157Z", "expires_at": null}', '', 24, '\x45dc684ecbbfeabcc23acc5dd2c07757babb8d5a80acdb51e3de7ebe9f7eb928'),
	(1, 30, 1795000009053662, 'tester', 'credits.refund', 'rsv_1_i', '{"payer": "acme/q", "account": "acme/q", "settled": "2", "adjusted": "0", "refunded": "0"}', '{"amount": "1.5"}', '', 25, '\xc277047eb3d1d5d05a8bcde5ab57a38c97efd9554a2a4f9a047a53073efcd5b1'),
	(1, 31, 1795000009066136, 'tester', 'credits.transfer', 'acme/p', NULL, '{"to": "acme/q", "amount": "3", "metadata": {}, "transfer_id": "trf_1_l"}', '', 26, '\xd2d3cb59ae068f7c73848004d3be693b15d73337393d72a8de57b302f24950f4'),
	(1, 33, 1795000015109265, 'tester', 'reservation.settle', 'rsv_1_m', '{"payer": "acme", "account": "acme"}', '{"state": "settled", "settled": "6.031", "used_ms": 6031}', '', 27, '\xab474cc0540c5fa9a43ff1164cc206f0ffa61b8a459d3e1443615763fdcddc53'),
	(1, 35, 1795000055163055, 'tester', 'reservation.settle', 'rsv_1_n', '{"payer": "acme/p", "account": "acme/p"}', '{"state": "settled", "settled": "20.0205", "used_ms": 40041}', '', 28, '\xb4d78f0d98ecc59354355c745bf1ebf43f23a5ca92f00d0f6926bbeac0b2089a'),
	(1, 36, 1795000055172362, 'tester', 'credits.adjust', 'rsv_1_n', '{"payer": "acme/p", "account": "acme/p", "settled": "20.0205", "adjusted": "0", "refunded": "0"}', '{"amount": "10"}', '', 29, '\x9fa7c7e9439fbd05ffa07585c994e53b0e35984f6d38c8fe49a7e88da2f5d6e4'),
	(1, 37, 1795000055177498, 'tester', 'credits.refund', 'rsv_1_n', '{"payer": "acme/p", "account": "acme/p", "settled": "20.0205", "adjusted": "10", "refunded": "0"}', '{"amount": "1"}', '', 30, '\x0f4611f51b8f6d394200fc602ed7c86e558022eb52be374a75b50797820ac534'),
	(1, 38, 1795000055185338, 'tester', 'reservation.cancel', 'rsv_1_o', '{"payer": "acme", "account": "acme"}', '{"state": "canceled", "settled": "0", "used_ms": 0}', '', 31, '\xef0a2b4b8bcbde265ca149a0f17a9addea74b9bb16ca587f6b7d231622839db7'),
	(1, 42, 1795000151257718, 'tester', 'account.create', 'acme/p/u', NULL, '{"model": "prepaid", "status": "active", "funding": "shared", "metadata": {}, "delinquent": false, "credit_limit": "0", "overdraft_limit": "0", "suspended_by_scope": null, "window_max_seconds": 0}', '', 32, '\x88e8c6e40eed38307971476f7c631f43d40f0a31b7c38481484d2a566956507e'),
	(1, 43, 1795000151263812, 'tester', 'credits.issue', 'acme/p/u', NULL, '{"amount": "5", "source": "allowance", "grant_id": "grt_1_t", "priority": 100, "starts_at": "2026-11-18T11:09:11.263812Z", "expires_at": null}', '', 33, '\x0fee9f4e14f1b561068dbb6f25a337e86b0fc3aee8f5cf87238f254d9fa8792c'),
	(1, 46, 1795000159349063, 'tester', 'quota.set', 'acme', NULL, '{"unit": "GPUs", "limit": "1000", "account": "acme", "quota_id": "qta_1_v", "dimension": "concurrent_gpus", "created_at": "2026-11-18T11:09:19.349063Z", "set_by_scope": "system"}', '', 34, '\x53bf6ca6fa3cc7e75671aa955520bb1eb75fd44102f665bb14215e2fc5e820aa'),
	(1, 47, 1795000159358877, 'tester', 'rate_limit.set', 'acme', NULL, '{"account": "acme", "capacity": "1000", "limit_id": "rtl_1_w", "set_by_scope": "system", "refill_per_hour": "1"}', '', 35, '\x583ef8386eac43786dc58c83dcbafe18db02d9d3adc3c0d103784517be9a166a'),
	(1, 48, 1795000159369887, 'tester', 'boost.add', 'acme', NULL, '{"note": "", "unit": "GPUs", "amount": "1", "account": "acme", "ends_at": "2026-11-18T12:06:46.937787Z", "boost_id": "bst_1_x", "starts_at": "2026-11-18T11:09:19.369887Z", "target_id": "qta_1_v", "created_at": "2026-11-18T11:09:19.369887Z", "set_by_scope": "system"}', '', 36, '\x8f405ab4f0ac53e0a39c6bf7a3737cfc688a83855f3b3441a13a93ae9f9ee99b'),
	(1, 49, 1795000159439621, 'tester', 'budget.set', 'acme/q', NULL, '{"name": "default", "account": "acme/q", "ends_at": "2026-11-18T11:09:21.396179Z", "priority": 100, "rollover": "all", "allowance": "1", "budget_id": "bgt_1_y", "created_at": "2026-11-18T11:09:19.439621Z", "warn_percent": [], "rollover_seconds": 3600}', '', 37, '\x32ef9b9a82f19025491afeb5482d21b9c41bb6cb2ed40f40065f1a774f77bf81'),
	(1, 50, 1795000159449598, 'tester', 'budget.set', 'acme', NULL, '{"name": "m", "zone": "UTC", "account": "acme", "next_at": "2026-12-01T00:00:00Z", "calendar": "month", "priority": 100, "rollover": "none", "allowance": "1", "budget_id": "bgt_1_10", "created_at": "2026-11-18T11:09:19.449598Z", "warn_percent": []}', '', 38, '\x81beb5823bee0f34dfed38814e8f07be47c9c73f91cbd4e5782ce1c249608fcc'),
	(1, 51, 1795000159459609, 'tester', 'account.update', 'acme/q', '{"model": "postpaid", "status": "active", "funding": "own", "metadata": {}, "delinquent": false, "credit_limit": "50", "overdraft_limit": "0", "suspended_by_scope": null, "window_max_seconds": 0}', '{"model": "postpaid", "status": "active", "funding": "own", "metadata": {}, "delinquent": false, "credit_limit": "50", "overdraft_limit": "1", "suspended_by_scope": null, "window_max_seconds": 0}', '', 39, '\x71d8d69e560a6a510c1b8061f280f03d02c122f8ddf412a110b0faf782764650'),
	(1, 77, 1798456162681564, 'tester', 'quota.set', 'acme/p', NULL, '{"unit": "jobs", "limit": "50", "account": "acme/p", "gpu_type": "h100", "quota_id": "qta_1_15", "dimension": "concurrent_jobs", "created_at": "2026-12-28T11:09:22.681564Z", "set_by_scope": "system"}', '', 52, '\x64a6ed7a5d799d40e75fb39e3c09de3e3ce70444fd5230cbec133782499688d0'),
	(1, 78, 1798456162695245, 'tester', 'quota.set', 'acme/p', '{"unit": "jobs", "limit": "50", "account": "acme/p", "gpu_type": "h100", "quota_id": "qta_1_15", "dimension": "concurrent_jobs", "created_at": "2026-12-28T11:09:22.681564Z", "set_by_scope": "system"}', '{"unit": "jobs", "limit": "60", "account": "acme/p", "gpu_type": "h100", "quota_id": "qta_1_15", "dimension": "concurrent_jobs", "created_at": "2026-12-28T11:09:22.681564Z", "set_by_scope": "system"}', '', 53, '\xd3a37c605d43c707072cd4169fcc1775ca3b5c12e3cbef31ab211dbcea5e4d8d'),
	(1, 79, 1798456162701793, 'tester', 'boost.add', 'acme/p', NULL, '{"note": "n", "unit": "jobs", "amount": "3", "account": "acme/p", "ends_at": "2026-12-28T12:09:22.654927Z", "boost_id": "bst_1_16", "starts_at": "2026-12-28T11:09:22.701793Z", "target_id": "qta_1_15", "created_at": "2026-12-28T11:09:22.701793Z", "set_by_scope": "system"}', '', 54, '\xdfa8a7d0413a66dce3b1d073bfeaffcc5ea82ebf25e971bbec346fef70a837ea'),
	(1, 80, 1798456162707343, 'tester', 'boost.end', 'acme/p', '{"note": "n", "unit": "jobs", "amount": "3", "account": "acme/p", "ends_at": "2026-12-28T12:09:22.654927Z", "boost_id": "bst_1_16", "starts_at": "2026-12-28T11:09:22.701793Z", "target_id": "qta_1_15", "created_at": "2026-12-28T11:09:22.701793Z", "set_by_scope": "system"}', '{"note": "n", "unit": "jobs", "amount": "3", "account": "acme/p", "ends_at": "2026-12-28T11:09:22.707343Z", "boost_id": "bst_1_16", "starts_at": "2026-12-28T11:09:22.701793Z", "target_id": "qta_1_15", "created_at": "2026-12-28T11:09:22.701793Z", "set_by_scope": "system"}', '', 55, '\xfa95d1685e9058dc658f4c5035af229e620b39a55c3a2ae5461d6b3659a48d3e'),
	(1, 81, 1798456162721733, 'tester', 'quota.replace', 'acme/p', '{"quotas": [{"unit": "jobs", "limit": "60", "account": "acme/p", "gpu_type": "h100", "quota_id": "qta_1_15", "dimension": "concurrent_jobs", "created_at": "2026-12-28T11:09:22.681564Z", "set_by_scope": "system"}]}', '{"ended": [{"unit": "jobs", "limit": "60", "account": "acme/p", "ended_at": "2026-12-28T11:09:22.721733Z", "gpu_type": "h100", "quota_id": "qta_1_15", "dimension": "concurrent_jobs", "created_at": "2026-12-28T11:09:22.681564Z", "set_by_scope": "system"}], "quotas": [{"unit": "credits", "zone": "Europe/Berlin", "limit": "900", "account": "acme/p", "calendar": "day", "quota_id": "qta_1_17", "dimension": "credits_per_window", "created_at": "2026-12-28T11:09:22.721733Z", "set_by_scope": "system"}, {"unit": "credits", "limit": "900", "account": "acme/p", "quota_id": "qta_1_18", "dimension": "credits_per_window", "created_at": "2026-12-28T11:09:22.721733Z", "set_by_scope": "system", "rolling_hours": 24}, {"unit": "credits", "limit": "900", "account": "acme/p", "quota_id": "qta_1_19", "dimension": "credits_per_job", "created_at": "2026-12-28T11:09:22.721733Z", "set_by_scope": "system"}]}', '', 56, '\x092a7d5d5112dda0847666fe47b79eac2b62b3c52c990dd20ad408ded5c206ee'),
	(0, 32, 1795000015085808, 'system:', 'clock.advance', 'clock', '{"offset_us": 122000000}', '{"offset_us": 128000000}', '', 6, '\x4f075d08c7c9c5877802466ff00777471bfabfc0cb34eef9acbf8722532f73ec'),
	(0, 34, 1795000055141881, 'system:', 'clock.advance', 'clock', '{"offset_us": 128000000}', '{"offset_us": 168000000}', '', 7, '\x967c55f408861b53ae64804b13bb3dcfb189c908ec77e8604b5c1bdaea1285c7'),
	(0, 39, 1795000145202104, 'system:', 'clock.advance', 'clock', '{"offset_us": 168000000}', '{"offset_us": 258000000}', '', 8, '\x7142b5fe8b217ccfb3c1a993046a05b0e9e7c45a2681678453d83881c6d05cdb'),
	(0, 40, 1795000148220459, 'system:', 'clock.advance', 'clock', '{"offset_us": 258000000}', '{"offset_us": 261000000}', '', 9, '\x745d1a6ded698fe2e324b8fdbf67c0cb9cfb7c938f3daaa9c54e4a005f292b95'),
	(0, 41, 1795000151243803, 'system:', 'clock.advance', 'clock', '{"offset_us": 261000000}', '{"offset_us": 264000000}', '', 10, '\x140493838693c51baeac6ba9099a98ccd859e7ddef523a78626e53f05818fc0b'),
	(0, 44, 1795000155277699, 'system:', 'clock.advance', 'clock', '{"offset_us": 264000000}', '{"offset_us": 268000000}', '', 11, '\x886f09b6e8810b4e5dd5844f7e732beba35a9042b9b0ac789f8d5379c8de4bd1'),
	(0, 45, 1795000159301451, 'system:', 'clock.advance', 'clock', '{"offset_us": 268000000}', '{"offset_us": 272000000}', '', 12, '\x7c39bc5aefd259750edd3e4197f4cfd94144177b3b9721f401fa3765469a9d49'),
	(0, 52, 1795000162465212, 'system:', 'clock.advance', 'clock', '{"offset_us": 272000000}', '{"offset_us": 275000000}', '', 13, '\x3108f552eafd94cf44b731e4f21053389539e399060e0c96f04204b5bc00ad60'),
	(0, 53, 1798456162478402, 'system:', 'clock.advance', 'clock', '{"offset_us": 275000000}', '{"offset_us": 3456275000000}', '', 14, '\xbf7c269fa1df073fd7a4075327a5b952773365d917a35eb3e9cc4b487f38585f'),
	(1, 54, 1798456162516455, 'system:', 'statement.close', 'acme/q', NULL, '{"amount": "0", "due_at": "2027-01-11T11:09:22.514150Z", "period": "2026-11", "closing": "-0.5", "statement_id": "stm_1_1"}', '', 40, '\x3209a8b243551af4e3365247f334af7811e7ce264f1ae0935666266c2c849982'),
	(0, 55, 1798456162539508, 'tester', 'price.set', 'prc_0_6', NULL, '{"region": "default", "account": "", "gpu_type": "l40", "price_id": "prc_0_6", "effective_to": "2026-12-28T12:09:22.523475Z", "effective_from": "2026-12-28T11:09:22.538198Z", "credits_per_gpu_hour": "1"}', 'r', 15, '\x9513ea8bbd38a2a346dc6d7ed551e94a76cdb2f913940c76f3bdcad3cb0e98ba'),
	(0, 56, 1798456162541850, 'tester', 'price.set', 'prc_0_7', NULL, '{"region": "default", "account": "", "gpu_type": "l40", "price_id": "prc_0_7", "effective_to": null, "effective_from": "2026-12-28T11:09:22.541074Z", "credits_per_gpu_hour": "1"}', 'r', 16, '\x6a36d70c25e6a0ca0bdee8a59570a7bd9b00ddd1e7dd02ee6f9217fc9bb9b312'),
	(0, 57, 1798456162543764, 'tester', 'price.end', 'prc_0_7', NULL, '{"region": "default", "account": "", "gpu_type": "l40", "price_id": "prc_0_8", "effective_to": "2026-12-28T11:09:22.542924Z"}', 'r', 17, '\xacef13a99dafc1df5b0ff90de08a028e3069d35a4ec78c0ff866f9e01e247391'),
	(0, 58, 1798456162555579, 'tester', 'key.create', 'key_0_1', NULL, '{"name": "staff", "role": "admin", "scope": "", "expires_at": null, "fingerprint": "5f658011a8cbcff4d29e3264290c09bd4ff50ccb10c660f7a8bd2dafac654d2e"}', 'r', 18, '\xf60563fcaa38e20e32c295c218de709c8a75bc2fb5ca20afbf3b630b13cd5b48'),
	(1, 59, 1798456162558489, 'tester', 'key.create', 'key_1_2', NULL, '{"name": "member", "role": "member", "scope": "acme/p", "expires_at": null, "fingerprint": "3d35fe4978e6051d528176c524c82976b7a03c0a7a7697ac7a56ef1e68ebd7fc"}', 'r', 41, '\xfa7ecfcd0a2bed0685befa03fb778b11d3799fe137c442d268f01636858442e5'),
	(1, 60, 1798456162560200, 'tester', 'key.create', 'key_1_3', NULL, '{"name": "ending", "role": "member", "scope": "acme/p", "expires_at": "2027-01-01T14:09:22.545838Z", "fingerprint": "77a4b0a33abd6ef7ffc1784c61b0986ab1779678e920e4dc0c7689b826853dd3"}', 'r', 42, '\xf6d310373aa1105020e96b103f4b0815b03a8a4b71e8e0bba806eabc5e4cc2f3'),
	(1, 61, 1798456162561993, 'tester', 'key.create', 'key_1_4', NULL, '{"name": "revoked", "role": "member", "scope": "acme/p", "expires_at": null, "fingerprint": "0f0c92f1ef5b821fb6bc917c115bba9e28c1dcdc00dbe7f8ec3e7b2c4c7c9186"}', 'r', 43, '\x8098d09f5eec45d6faf09b9cadbae1b8de0a6a807303dd3fb938bc4f821b8599'),
	(1, 62, 1798456162563885, 'tester', 'key.revoke', 'key_1_4', '{"name": "revoked", "role": "member", "scope": "acme/p"}', '{"revoked_at": "2026-12-28T11:09:22.563639Z"}', 'r', 44, '\xbea8477bed1a4299753b08d316ea48bb18ed1bf40c347c3d6904fde7e8a43ca8'),
	(1, 63, 1798456162565361, 'tester', 'key.revoke', 'key_1_4', '{"name": "revoked", "role": "member", "scope": "acme/p"}', '{"revoked_at": "2026-12-28T11:09:22.563639Z"}', 'r', 45, '\x7b6a136952f94a2fffd56404ea3ba782c115733b147361b60b4b3eaa4930e0a3'),
	(1, 64, 1798456162574665, 'tester', 'request_limit.set', 'key_1_2', NULL, '{"scope": "acme/p", "capacity": 10, "refill_per_hour": 3600}', 'r', 46, '\xd2681347a66343c9673bb1205477f0cb8a7766d235f95b9509a192651a3516c9'),
	(1, 65, 1798456162577178, 'tester', 'request_limit.end', 'key_1_2', '{"scope": "acme/p", "capacity": 10, "refill_per_hour": 3600}', NULL, 'r', 47, '\x62855982a32142522ebacb02ad65242c67f487dd2ad23f16396cb2eade957a0a'),
	(1, 66, 1798456162580965, 'tester', 'request_limit.set', 'key_1_2', NULL, '{"scope": "acme/p", "capacity": 20, "refill_per_hour": 7200}', 'r', 48, '\xf37994fa3e02c3f5a226d114d810e7079b0ede09c9220faa8a20aef091e5d7c3'),
	(1, 67, 1798456162585275, 'tester', 'request_limit.set', 'acme', NULL, '{"capacity": 10, "refill_per_hour": 3600}', 'r', 49, '\x6840d028ac6a5c24cce6ee0630f4d94dec86db67d1e8379f755a01814a8a354f'),
	(1, 68, 1798456162587199, 'tester', 'request_limit.end', 'acme', '{"capacity": 10, "refill_per_hour": 3600}', NULL, 'r', 50, '\x78ae9cefb593309f45f1f0de71b1edb0047ed6b0dd65db8d71fbed841d6d2677'),
	(1, 69, 1798456162589472, 'tester', 'request_limit.set', 'acme', NULL, '{"capacity": 20, "refill_per_hour": 7200}', 'r', 51, '\xff8faa9d9ffe07670e5ae5848510038e5f979d6fb341183d41393f93c2687b45'),
	(0, 70, 1798456162595447, 'tester', 'pool.set', 'pool:h100/default', NULL, '{"cpus": null, "gpus": 8, "memory": null, "region": "default", "backfill": true, "gpu_type": "h100", "grace_ms": 30000, "borrowing": true, "preemption": true, "updated_at": 1798456162592172, "usage_order": "ignored", "half_life_ms": 0, "hold_after_ms": 3600000, "window_max_ms": 0, "backfill_depth": 1000, "min_runtime_ms": 300000, "priority_scope": "user", "preemptions_max": 100}', 'r', 19, '\x50fecbffc6a2ef2dd0002c9ac09bf2be818fc2aca078df95d87ee7e4579cba4f'),
	(0, 71, 1798456162601897, 'tester', 'pool.set', 'pool:h100/default', '{"cpus": null, "gpus": 8, "memory": null, "region": "default", "backfill": true, "gpu_type": "h100", "grace_ms": 30000, "borrowing": true, "preemption": true, "updated_at": 1798456162592172, "usage_order": "ignored", "half_life_ms": 0, "hold_after_ms": 3600000, "window_max_ms": 0, "backfill_depth": 1000, "min_runtime_ms": 300000, "priority_scope": "user", "preemptions_max": 100}', '{"cpus": null, "gpus": 16, "memory": null, "region": "default", "backfill": true, "gpu_type": "h100", "grace_ms": 30000, "borrowing": true, "preemption": true, "updated_at": 1798456162601328, "usage_order": "ignored", "half_life_ms": 0, "hold_after_ms": 3600000, "window_max_ms": 0, "backfill_depth": 1000, "min_runtime_ms": 300000, "priority_scope": "user", "preemptions_max": 100}', 'r', 20, '\xbdab30be3d1d8385f69a8416a6da98e594f7b46db0274aecc55e63e0c8074c53'),
	(0, 72, 1798456162611899, 'tester', 'pool.weights', 'pool:h100/default', '[]', '[{"path": "acme/p", "weight": 3, "may_borrow": false}, {"path": "acme", "weight": 2, "may_borrow": true}]', 'r', 21, '\xa33b478529c264caf9c9c567248cdb9f72725d811228148b54b60a58a239d9b2'),
	(0, 73, 1798456162622450, 'tester', 'pool.set', 'pool:b200/default', NULL, '{"cpus": null, "gpus": 8, "memory": null, "region": "default", "backfill": true, "gpu_type": "b200", "grace_ms": 30000, "borrowing": true, "preemption": true, "updated_at": 1798456162618805, "usage_order": "ignored", "half_life_ms": 0, "hold_after_ms": 3600000, "window_max_ms": 0, "backfill_depth": 1000, "min_runtime_ms": 300000, "priority_scope": "user", "preemptions_max": 100}', 'r', 22, '\xb9a8caeadaa1c8dfb3af351fc601166edbd32822d34a1680b0fa85e02280acae'),
	(0, 74, 1798456162632293, 'tester', 'pool.set', 'pool:b200/default', '{"cpus": null, "gpus": 8, "memory": null, "region": "default", "backfill": true, "gpu_type": "b200", "grace_ms": 30000, "borrowing": true, "preemption": true, "updated_at": 1798456162618805, "usage_order": "ignored", "half_life_ms": 0, "hold_after_ms": 3600000, "window_max_ms": 0, "backfill_depth": 1000, "min_runtime_ms": 300000, "priority_scope": "user", "preemptions_max": 100}', '{"cpus": null, "gpus": 16, "memory": null, "region": "default", "backfill": true, "gpu_type": "b200", "grace_ms": 30000, "borrowing": true, "preemption": true, "updated_at": 1798456162629006, "usage_order": "ignored", "half_life_ms": 0, "hold_after_ms": 3600000, "window_max_ms": 0, "backfill_depth": 1000, "min_runtime_ms": 300000, "priority_scope": "user", "preemptions_max": 100}', 'r', 23, '\xe5f6131da41cb1e323e4fda7c14a5d7267b67e3e8d30b117ee5f5862def1429c'),
	(0, 75, 1798456162639619, 'tester', 'pool.weights', 'pool:b200/default', '[]', '[{"path": "acme/p", "weight": 3, "may_borrow": false}, {"path": "acme", "weight": 2, "may_borrow": true}]', 'r', 24, '\xa91d62315006051f70b3c38558e97bbdd514d0288f4baab5adf8610ef8e87232'),
	(0, 76, 1798456162649588, 'tester', 'pool.remove', 'pool:b200/default', '{"cpus": null, "gpus": 16, "memory": null, "region": "default", "backfill": true, "gpu_type": "b200", "grace_ms": 30000, "borrowing": true, "preemption": true, "updated_at": 1798456162629006, "usage_order": "ignored", "half_life_ms": 0, "hold_after_ms": 3600000, "window_max_ms": 0, "backfill_depth": 1000, "min_runtime_ms": 300000, "priority_scope": "user", "preemptions_max": 100}', NULL, 'r', 25, '\x04df64916cb6e93423beb7fe0c0490396a5ed392663bc3790da2472e9751fd5a'),
	(1, 93, 1798456162835356, 'key_0_2', 'request.ask', 'acme/p', NULL, '{"kind": "credits", "state": "open", "amount": "5", "reason": "why not", "ends_at": null, "asked_by": "key_1_2", "expires_at": "2027-01-11T11:09:22.829386Z", "request_id": "ask_1_1"}', '', 68, '\x20db8756c1dc73ca05b70952b7a924eb8abc0bebee4b703d8921782b42696d4d'),
	(1, 94, 1798456162864237, 'key_0_2', 'request.ask', 'acme/p', NULL, '{"kind": "credits", "state": "open", "amount": "5", "reason": "why not", "ends_at": null, "asked_by": "key_1_2", "expires_at": "2027-01-11T11:09:22.862132Z", "request_id": "ask_1_2"}', '', 69, '\x10cef5d12fac0165a368ff3f1ce67881ae4fca867e95767391a4a58a720e7a1d'),
	(1, 95, 1798456162873285, 'key_0_2', 'request.ask', 'acme/p', NULL, '{"kind": "credits", "state": "open", "amount": "5", "reason": "why not", "ends_at": null, "asked_by": "key_1_2", "expires_at": "2027-01-11T11:09:22.871525Z", "request_id": "ask_1_3"}', '', 70, '\xa4fdd3ac525c8ea33289ffd3fdf1c8c63571ab232731cacd85709206f06999c6'),
	(1, 96, 1798456162885634, 'key_0_2', 'request.approve', 'acme/p', '{"kind": "credits", "state": "open", "amount": "5", "reason": "why not", "ends_at": null, "asked_by": "key_1_2", "expires_at": "2027-01-11T11:09:22.862132Z", "request_id": "ask_1_2"}', '{"kind": "credits", "note": "fine", "state": "approving", "amount": "5", "reason": "why not", "attempt": 1, "ends_at": null, "asked_by": "key_1_2", "decided_by": "key_0_2", "expires_at": "2027-01-11T11:09:22.862132Z", "request_id": "ask_1_2", "taken_from": "", "decided_from": "system", "given_amount": "4", "given_ends_at": null}', '', 71, '\x857675c2c8ffbd1bca192e44aa7f88a44bc63250c358ea58260b8ba4c679b506'),
	(1, 98, 1798456162901393, 'key_0_2', 'request.apply', 'acme/p', '{"kind": "credits", "note": "fine", "state": "approving", "amount": "5", "reason": "why not", "attempt": 1, "ends_at": null, "asked_by": "key_1_2", "decided_by": "key_0_2", "expires_at": "2027-01-11T11:09:22.862132Z", "request_id": "ask_1_2", "taken_from": "", "decided_from": "system", "given_amount": "4", "given_ends_at": null}', '{"kind": "credits", "note": "fine", "state": "approved", "amount": "5", "reason": "why not", "result": "grt_1_1k", "attempt": 1, "ends_at": null, "asked_by": "key_1_2", "decided_by": "key_0_2", "expires_at": "2027-01-11T11:09:22.862132Z", "request_id": "ask_1_2", "taken_from": "", "decided_from": "system", "given_amount": "4", "given_ends_at": null}', '', 73, '\x54554415f480e8a88cad8b6fbc1d1338256a8847677d4e54461bce342635a590'),
	(1, 99, 1798456162905853, 'key_0_2', 'request.decline', 'acme/p', '{"kind": "credits", "state": "open", "amount": "5", "reason": "why not", "ends_at": null, "asked_by": "key_1_2", "expires_at": "2027-01-11T11:09:22.871525Z", "request_id": "ask_1_3"}', '{"kind": "credits", "note": "no", "state": "declined", "amount": "5", "reason": "why not", "ends_at": null, "asked_by": "key_1_2", "decided_by": "key_0_2", "expires_at": "2027-01-11T11:09:22.871525Z", "request_id": "ask_1_3", "decided_from": "system"}', '', 74, '\xf0283526b93c39a5dc12c51e4ab049777e93d45e4472e4e2fe7af533275fa70a'),
	(1, 102, 1798456162928645, 'tester', 'anomaly_terms.set', 'acme', '{"floor": "100", "auto_suspend": false, "ratio_percent": 400}', '{"floor": "1", "auto_suspend": false, "ratio_percent": 300}', 'r', 77, '\x57ce8573af9a03c0449510aab4a2cd8c4c3f5a9c195c01d8c707713eb656a660'),
	(1, 82, 1798456162741455, 'tester', 'quota.set', 'acme/q', NULL, '{"unit": "jobs", "limit": "7", "account": "acme/q", "quota_id": "qta_1_1a", "dimension": "concurrent_jobs", "created_at": "2026-12-28T11:09:22.741455Z", "set_by_scope": "system"}', '', 57, '\x9c1367a722eb70993cbf4398f075f8c1574a874a8e2e4be18f51d91cb8d0c68b'),
	(1, 83, 1798456162754869, 'tester', 'quota.end', 'acme/q', '{"unit": "jobs", "limit": "7", "account": "acme/q", "quota_id": "qta_1_1a", "dimension": "concurrent_jobs", "created_at": "2026-12-28T11:09:22.741455Z", "set_by_scope": "system"}', '{"unit": "jobs", "limit": "7", "account": "acme/q", "ended_at": "2026-12-28T11:09:22.754869Z", "quota_id": "qta_1_1a", "dimension": "concurrent_jobs", "created_at": "2026-12-28T11:09:22.741455Z", "set_by_scope": "system"}', '', 58, '\xb4af3857c9172c07e891fd71e53d0b77105cbfd5334972d9f028e605c760d834'),
	(1, 84, 1798456162764140, 'tester', 'rate_limit.set', 'acme/p', NULL, '{"account": "acme/p", "capacity": "500", "limit_id": "rtl_1_1b", "set_by_scope": "system", "refill_per_hour": "5"}', '', 59, '\xe29c5363a1170137006f5d7d4329060e386cd5666004111f433c4648b79471e0'),
	(1, 85, 1798456162769287, 'tester', 'boost.add', 'acme/p', NULL, '{"note": "", "unit": "credits", "amount": "1", "account": "acme/p", "ends_at": "2026-12-28T12:09:22.654927Z", "boost_id": "bst_1_1c", "starts_at": "2026-12-28T11:09:22.769287Z", "target_id": "rtl_1_1b", "created_at": "2026-12-28T11:09:22.769287Z", "set_by_scope": "system", "refill_per_hour": "1"}', '', 60, '\x23fcdbce723e4df02c41100b7c1e15cc7cf35516c2d3c8852c35160318770d53'),
	(1, 86, 1798456162772033, 'tester', 'rate_limit.end', 'acme/p', '{"account": "acme/p", "capacity": "500", "limit_id": "rtl_1_1b", "set_by_scope": "system", "refill_per_hour": "5"}', '{"account": "acme/p", "capacity": "500", "ended_at": "2026-12-28T11:09:22.772033Z", "limit_id": "rtl_1_1b", "set_by_scope": "system", "refill_per_hour": "5"}', '', 61, '\x723146c219f227cada3f4d572fb0da220be3b0adf42673976f7c81c267ae7654'),
	(1, 87, 1798456162781279, 'tester', 'rate_limit.set', 'acme/p', NULL, '{"account": "acme/p", "capacity": "500", "limit_id": "rtl_1_1d", "set_by_scope": "system", "refill_per_hour": "5"}', '', 62, '\x9d66606fd11b929ab9fd0fffd9f3a8132ca550fe335baa734c92361bd9047ac8'),
	(1, 88, 1798456162787044, 'tester', 'budget.replace', 'acme/p', '{"budgets": []}', '{"ended": [], "budgets": [{"name": "kept", "zone": "UTC", "account": "acme/p", "next_at": "2027-01-01T00:00:00Z", "calendar": "month", "priority": 100, "rollover": "none", "allowance": "1", "budget_id": "bgt_1_1e", "created_at": "2026-12-28T11:09:22.787044Z", "warn_percent": [50, 90]}, {"name": "over", "zone": "UTC", "account": "acme/p", "next_at": "2027-01-01T00:00:00Z", "calendar": "month", "priority": 100, "rollover": "none", "allowance": "1", "budget_id": "bgt_1_1g", "created_at": "2026-12-28T11:09:22.787044Z", "warn_percent": []}]}', '', 63, '\xfb230721e085abdb8d3a18420b84742194fcc8e3706e6c57e0d6ff75dcc5e94e'),
	(1, 89, 1798456162792290, 'tester', 'budget.replace', 'acme/p', '{"budgets": [{"name": "kept", "zone": "UTC", "account": "acme/p", "next_at": "2027-01-01T00:00:00Z", "calendar": "month", "priority": 100, "rollover": "none", "allowance": "1", "budget_id": "bgt_1_1e", "created_at": "2026-12-28T11:09:22.787044Z", "warn_percent": [50, 90]}, {"name": "over", "zone": "UTC", "account": "acme/p", "next_at": "2027-01-01T00:00:00Z", "calendar": "month", "priority": 100, "rollover": "none", "allowance": "1", "budget_id": "bgt_1_1g", "created_at": "2026-12-28T11:09:22.787044Z", "warn_percent": []}]}', '{"ended": [{"name": "over", "zone": "UTC", "account": "acme/p", "ends_at": "2027-01-01T00:00:00Z", "calendar": "month", "priority": 100, "rollover": "none", "allowance": "1", "budget_id": "bgt_1_1g", "created_at": "2026-12-28T11:09:22.787044Z", "warn_percent": []}], "budgets": [{"name": "kept", "zone": "UTC", "account": "acme/p", "next_at": "2027-01-01T00:00:00Z", "calendar": "month", "priority": 100, "rollover": "none", "allowance": "1", "budget_id": "bgt_1_1e", "created_at": "2026-12-28T11:09:22.787044Z", "warn_percent": [50, 90]}]}', '', 64, '\xee909d3b3f458292f95d2a59f18ae11d2e66b791990d41eca5acedb8924e0cc7'),
	(1, 90, 1798456162801498, 'tester', 'budget.set', 'acme/p', '{"name": "kept", "zone": "UTC", "account": "acme/p", "next_at": "2027-01-01T00:00:00Z", "calendar": "month", "priority": 100, "rollover": "none", "allowance": "1", "budget_id": "bgt_1_1e", "created_at": "2026-12-28T11:09:22.787044Z", "warn_percent": [50, 90]}', '{"name": "kept", "zone": "UTC", "account": "acme/p", "next_at": "2027-01-01T00:00:00Z", "calendar": "month", "priority": 100, "rollover": "none", "allowance": "2", "budget_id": "bgt_1_1e", "created_at": "2026-12-28T11:09:22.787044Z", "warn_percent": []}', '', 65, '\x6fdd27b39883888484246f0a22e57ca9ada4c2b1ac9fceedfbe8dfc547b82ff0'),
	(1, 91, 1798456162807332, 'tester', 'budget.set', 'acme/p', NULL, '{"name": "ended", "zone": "UTC", "account": "acme/p", "next_at": "2027-01-01T00:00:00Z", "calendar": "month", "priority": 100, "rollover": "none", "allowance": "1", "budget_id": "bgt_1_1i", "created_at": "2026-12-28T11:09:22.807332Z", "warn_percent": []}', '', 66, '\x197f0afe3a4774dc1e389f84f92ba8b222d46561ad1bc82c71ad9754856bb007'),
	(1, 92, 1798456162810743, 'tester', 'budget.end', 'acme/p', '{"name": "ended", "zone": "UTC", "account": "acme/p", "next_at": "2027-01-01T00:00:00Z", "calendar": "month", "priority": 100, "rollover": "none", "allowance": "1", "budget_id": "bgt_1_1i", "created_at": "2026-12-28T11:09:22.807332Z", "warn_percent": []}', '{"name": "ended", "zone": "UTC", "account": "acme/p", "ends_at": "2027-01-01T00:00:00Z", "calendar": "month", "priority": 100, "rollover": "none", "allowance": "1", "budget_id": "bgt_1_1i", "created_at": "2026-12-28T11:09:22.807332Z", "warn_percent": []}', '', 67, '\x178726f4a3af298cb61e7142c07419f0c7e8696f40a270616e84d9e36a66e37a'),
	(1, 97, 1798456162890471, 'key_0_2', 'credits.issue', 'acme/p', NULL, '{"amount": "4", "source": "allowance", "grant_id": "grt_1_1k", "priority": 100, "starts_at": "2026-12-28T11:09:22.890471Z", "expires_at": null}', '', 72, '\x67fbb881463b96a9018545a25c4b6e4308febc89a366dc7ee250612dc0ca9cb1'),
	(1, 100, 1798456162908051, 'tester', 'account.create', 'acme/idle', NULL, '{"model": "prepaid", "status": "active", "funding": "shared", "metadata": {}, "delinquent": false, "credit_limit": "0", "overdraft_limit": "0", "suspended_by_scope": null, "window_max_seconds": 0}', '', 75, '\xd77e9468fd8cbff3fcf7ff79d9d6237590afa48861975d74ee1c7bf9caa51a76'),
	(1, 101, 1798456162918356, 'tester', 'account.update', 'acme/idle', '{"model": "prepaid", "status": "active", "funding": "shared", "metadata": {}, "delinquent": false, "credit_limit": "0", "overdraft_limit": "0", "suspended_by_scope": null, "window_max_seconds": 0}', '{"model": "prepaid", "status": "suspended", "funding": "shared", "metadata": {}, "delinquent": false, "credit_limit": "0", "overdraft_limit": "0", "suspended_by_scope": "org", "window_max_seconds": 0}', '', 76, '\x6218ce47e26d2708effaf92b86a062e2b9022ae0595d3de8e3befb167d47d168'),
	(2, 103, 1798456162952928, 'tester', 'account.create', 'globex', NULL, '{"model": "prepaid", "status": "active", "funding": "own", "metadata": {}, "delinquent": false, "credit_limit": "0", "overdraft_limit": "0", "suspended_by_scope": null, "window_max_seconds": 0}', '', 1, '\x5d1078ca607aa72b44765fa1984d058815e79b7066dd7e4381f9ebad06487ce3'),
	(2, 104, 1798456162955779, 'tester', 'credits.issue', 'globex', NULL, '{"amount": "100", "source": "allowance", "grant_id": "grt_2_2", "priority": 100, "starts_at": "2026-12-28T11:09:22.955779Z", "expires_at": null}', '', 2, '\x6a8cd12293d2742181e891fac1f55d6ba073c6512ea09b7c4a001486dc45ed96'),
	(2, 105, 1798456162959132, 'tester', 'account.create', 'globex/nlp', NULL, '{"model": "prepaid", "status": "active", "funding": "shared", "metadata": {}, "delinquent": false, "credit_limit": "0", "overdraft_limit": "0", "suspended_by_scope": null, "window_max_seconds": 0}', '', 3, '\x95b85f1f4e6b4ea66bd579aa6b0618b8250b48720180512f0fd6abbfb916c541'),
	(2, 106, 1798456162966711, 'tester', 'credits.issue', 'globex/nlp', NULL, '{"amount": "100", "source": "allowance", "grant_id": "grt_2_4", "priority": 100, "starts_at": "2026-12-28T11:09:22.966711Z", "expires_at": null}', '', 4, '\x18e3a495591c4a1d190112a8f9dee91d93008e3999b11bdd134aca63001786a6'),
	(2, 107, 1798456162966711, 'tester', 'account.funding', 'globex/nlp', '{"funding": "shared"}', '{"because": "credits.issue", "funding": "own"}', '', 5, '\xd372fd70f2950bb40258aed6633c7d21bf976790147f74e9fc32ab70f92aaff3');
INSERT INTO blocks VALUES
	(1, 1, 1, 61, '\x', '\xcef712257b869a162ff31ae1dce1364fcf47c685e8f3fb6f2b682dba909a678b', 1798456162981560),
	(2, 1, 1, 2, '\x', '\x39013e9c13e512ff580cf3a1f7db2bc1f7d08039c2923a14a2b40ddb13bd96cc', 1798456162981560);
INSERT INTO boosts VALUES
	(1, 33, 1, 31, 1, 0, 1795000159369887, 1795003606937787, '', 1795000159369887, 0),
	(1, 42, 2, 41, 3, 0, 1798456162701793, 1798456162707343, 'n', 1798456162701793, 0),
	(1, 48, 2, 47, 1000000, 1000000, 1798456162769287, 1798459762654927, '', 1798456162769287, 0);
INSERT INTO budget_periods VALUES
	(1, 36, 1795000159449598, 1796083200000000, 1000000, 37, 0, 0, 0, 0, 0, 0, 2, 'UTC'),
	(1, 34, 1795000159439621, 1795000161396179, 1000000, 35, 1000000, 38, 0, 1, 0, 3600000000, -1, 'UTC'),
	(1, 36, 1796083200000000, 1798761600000000, 1000000, 40, 0, 0, 0, 0, 0, 0, 2, 'UTC'),
	(1, 50, 1798456162787044, 1798761600000000, 1000000, 51, 0, 0, 0, 0, 0, 0, 2, 'UTC'),
	(1, 52, 1798456162787044, 1798761600000000, 1000000, 53, 0, 0, 0, 0, 0, 0, 2, 'UTC'),
	(1, 54, 1798456162807332, 1798761600000000, 1000000, 55, 0, 0, 0, 0, 0, 0, 2, 'UTC');
INSERT INTO budgets VALUES
	(1, 34, 3, 'default', 1000000, 1795000161396179, -1, 'UTC', 1795000161396179, 1, 0, 3600000000, 100, '{}', 1795000159439621),
	(1, 36, 1, 'm', 1000000, 1798761600000000, 2, 'UTC', 4611686018427387904, 0, 0, 0, 100, '{}', 1795000159449598),
	(1, 52, 2, 'over', 1000000, 1798761600000000, 2, 'UTC', 1798761600000000, 0, 0, 0, 100, '{}', 1798456162787044),
	(1, 50, 2, 'kept', 2000000, 1798761600000000, 2, 'UTC', 4611686018427387904, 0, 0, 0, 100, '{}', 1798456162787044),
	(1, 54, 2, 'ended', 1000000, 1798761600000000, 2, 'UTC', 1798761600000000, 0, 0, 0, 100, '{}', 1798456162807332);
INSERT INTO clock VALUES
	(true, 3456275000000);
INSERT INTO decisions OVERRIDING SYSTEM VALUE VALUES
	(1, 1, 1795000155287662, 'Beat', 'change_payer', 'insufficient_credits', 30, '', '{"to": "acme/p", "from": "acme/p/u", "held": "5"}');
INSERT INTO entries VALUES
	(1, 1, 1, 1795000006947301, 1795000006947301, 1, 4000000, 0, 4, 0, 0, 0, 0),
	(1, 1, 2, 1795000006955618, 1795000006955618, 1, 200000000, 0, 5, 0, 0, 0, 0),
	(1, 1, 3, 1795000006959363, 1795000006959363, 2, 30000000, 0, 6, 0, 0, 0, 0),
	(1, 1, 4, 1795000006964067, 1795000006964067, 2, 100000000, 0, 7, 0, 0, 0, 0),
	(1, 1, 5, 1795000006971452, 1795000006971452, 2, 1000000, 0, 8, 0, 0, 0, 0),
	(1, 2, 6, 1795000006991658, 1795000006991658, 1, 6000000, 0, 12, 0, 0, 0, 0),
	(1, 2, 7, 1795000007013093, 1795000007013093, 1, 8000000, 0, 15, 0, 0, 0, 0),
	(1, 13, 8, 1795000007015087, 1795000007015087, 1, 8000000, 0, 15, 0, 0, 0, 0),
	(1, 2, 9, 1795000007020344, 1795000007020344, 1, 9000000, 0, 17, 0, 0, 0, 0),
	(1, 4, 10, 1795000007022844, 1795000007022844, 3, 5000000, 0, 0, 0, 0, 18, 0),
	(1, 6, 11, 1795000009038353, 1795000009038353, 3, 2000000, 0, 0, 0, 0, 18, 2),
	(1, 5, 12, 1795000009038353, 1795000009038353, 3, 3000000, 0, 0, 0, 0, 18, 2),
	(1, 1, 13, 1795000009047157, 1795000009047157, 3, 1000000, 0, 19, 0, 0, 0, 0),
	(1, 12, 14, 1795000009047157, 1795000009047157, 3, 1000000, 0, 19, 0, 0, 0, 0),
	(1, 7, 15, 1795000009053662, 1795000009053662, 3, 1000000, 0, 0, 0, 0, 18, 0),
	(1, 7, 16, 1795000009053662, 1795000009053662, 3, 500000, 0, 0, 0, 19, 18, 0),
	(1, 3, 17, 1795000009066136, 1795000009066136, 2, 3000000, 0, 6, 3, 20, 0, 0),
	(1, 4, 18, 1795000009078184, 1795000009078184, 1, 20000000, 0, 0, 0, 0, 22, 0),
	(1, 6, 19, 1795000015097514, 1795000015097514, 1, 4000000, 6000000, 4, 0, 0, 22, 1),
	(1, 6, 20, 1795000015097514, 1795000015097514, 1, 2000000, 0, 5, 0, 0, 22, 1),
	(1, 6, 21, 1795000015109265, 1795000015109265, 1, 31000, 0, 5, 0, 0, 22, 2),
	(1, 5, 22, 1795000015109265, 1795000015109265, 1, 19969000, 0, 0, 0, 0, 22, 2),
	(1, 4, 23, 1795000015121923, 1795000015121923, 2, 30000000, 0, 0, 0, 0, 23, 0),
	(1, 6, 25, 1795000055153915, 1795000055153915, 2, 20000000, 20000000, 6, 0, 0, 23, 1),
	(1, 8, 24, 1795000055153915, 1795000015937787, 2, 1000000, 0, 8, 0, 0, 0, 0),
	(1, 6, 26, 1795000055163055, 1795000055163055, 2, 20500, 0, 6, 0, 0, 23, 2),
	(1, 5, 27, 1795000055163055, 1795000055163055, 2, 29979500, 0, 0, 0, 0, 23, 2),
	(1, 9, 28, 1795000055172362, 1795000055172362, 2, 6979500, 0, 6, 0, 0, 23, 0),
	(1, 9, 29, 1795000055172362, 1795000055172362, 2, 3020500, 0, 7, 0, 0, 23, 0),
	(1, 7, 30, 1795000055177498, 1795000055177498, 2, 1000000, 0, 7, 0, 0, 23, 0),
	(1, 4, 31, 1795000055182210, 1795000055182210, 1, 10000000, 0, 0, 0, 0, 24, 0),
	(1, 5, 32, 1795000055185338, 1795000055185338, 1, 10000000, 0, 0, 0, 0, 24, 0),
	(1, 4, 33, 1795000055194331, 1795000055194331, 1, 5000000, 0, 0, 0, 0, 25, 0),
	(1, 5, 34, 1795000145206291, 1795000060194331, 1, 5000000, 0, 0, 0, 0, 25, 0),
	(1, 4, 35, 1795000145208709, 1795000145208709, 1, 100000000, 0, 0, 0, 0, 26, 0),
	(1, 6, 36, 1795000148229172, 1795000148229172, 1, 3000000, 3000000, 5, 0, 0, 26, 1),
	(1, 4, 37, 1795000148238429, 1795000148238429, 2, 50000000, 0, 0, 0, 0, 27, 0),
	(1, 6, 38, 1795000151253890, 1795000151253890, 2, 1500000, 1500000, 7, 0, 0, 27, 1),
	(1, 1, 39, 1795000151263812, 1795000151263812, 28, 5000000, 0, 29, 0, 0, 0, 0),
	(1, 4, 40, 1795000151269491, 1795000151269491, 28, 5000000, 0, 0, 0, 0, 30, 0),
	(1, 6, 41, 1795000155287662, 1795000155287662, 28, 2000000, -3000000, 29, 0, 0, 30, 1),
	(1, 4, 42, 1795000155287662, 1795000155287662, 2, 5000000, 0, 0, 0, 0, 30, 1),
	(1, 6, 43, 1795000159310458, 1795000159310458, 2, 2000000, 2000000, 7, 0, 0, 30, 2),
	(1, 1, 44, 1795000159439621, 1795000159439621, 3, 1000000, 0, 35, 0, 0, 0, 0),
	(1, 1, 45, 1795000159449598, 1795000159449598, 1, 1000000, 0, 37, 0, 0, 0, 0),
	(1, 3, 46, 1795000162467125, 1795000161396179, 3, 1000000, 0, 35, 3, 38, 0, 0),
	(1, 4, 47, 1795000162472353, 1795000162472353, 1, 5000000, 0, 0, 0, 0, 39, 0),
	(1, 8, 48, 1798456162504187, 1795003761396179, 3, 1000000, 0, 38, 0, 0, 0, 0),
	(1, 8, 49, 1798456162504187, 1795072006937787, 3, 3000000, 0, 20, 0, 0, 0, 0),
	(1, 5, 50, 1798456162681564, 1795000167472353, 1, 5000000, 0, 0, 0, 0, 39, 0),
	(1, 5, 51, 1798456162681564, 1795000248229172, 1, 100000000, 0, 0, 0, 0, 26, 0),
	(1, 8, 52, 1798456162681564, 1796083200000000, 1, 1000000, 0, 37, 0, 0, 0, 0),
	(1, 1, 53, 1798456162681564, 1796083200000000, 1, 1000000, 0, 40, 0, 0, 0, 0),
	(1, 5, 54, 1798456162681564, 1795000169310458, 2, 5000000, 0, 0, 0, 0, 30, 0),
	(1, 5, 55, 1798456162681564, 1795000251253890, 2, 50000000, 0, 0, 0, 0, 27, 0),
	(1, 1, 56, 1798456162681564, 1796800006937787, 2, 1000000, 0, 9, 0, 0, 0, 0),
	(1, 1, 57, 1798456162787044, 1798456162787044, 2, 1000000, 0, 51, 0, 0, 0, 0),
	(1, 1, 58, 1798456162787044, 1798456162787044, 2, 1000000, 0, 53, 0, 0, 0, 0),
	(1, 1, 59, 1798456162807332, 1798456162807332, 2, 1000000, 0, 55, 0, 0, 0, 0),
	(1, 1, 60, 1798456162890471, 1798456162890471, 2, 4000000, 0, 56, 0, 0, 0, 0),
	(1, 4, 61, 1798456162930452, 1798456162930452, 1, 10000000, 0, 0, 0, 0, 58, 0),
	(2, 1, 1, 1798456162955779, 1798456162955779, 1, 100000000, 0, 2, 0, 0, 0, 0),
	(2, 1, 2, 1798456162966711, 1798456162966711, 3, 100000000, 0, 4, 0, 0, 0, 0);
INSERT INTO entry_types VALUES
	(1, 'issue', 'system:issuance', 'available'),
	(2, 'topup', 'system:payments', 'available'),
	(3, 'transfer', 'available', 'other:available'),
	(4, 'reserve', 'available', 'reserved'),
	(5, 'release', 'reserved', 'available'),
	(6, 'settle', 'reserved', 'spent'),
	(7, 'refund', 'spent', 'available'),
	(8, 'expire', 'available', 'system:expired'),
	(9, 'adjust', 'available', 'spent'),
	(10, 'overrun', 'system:overrun', 'available'),
	(11, 'collect', 'available', 'system:overrun'),
	(12, 'repay', 'available', 'available'),
	(13, 'reverse', 'available', 'system:payments'),
	(14, 'restore', 'system:expired', 'available'),
	(15, 'withdraw', 'available', 'system:issuance');
INSERT INTO grants VALUES
	(1, 12, 1, 6000000, 1795000006991658, 4611686018427387904, 100, 3, 0, 1795000006991658, '{}', 1, true, 6000000, 0, 0),
	(1, 15, 1, 8000000, 1795000007013093, 4611686018427387904, 100, 3, 0, 1795000007013093, '{}', 1, false, 0, 0, 0),
	(1, 17, 1, 9000000, 1795000007020344, 4611686018427387904, 100, 3, 0, 1795000007020344, '{}', 1, true, 9000000, 0, 0),
	(1, 19, 3, 1000000, 1795000009047157, 4611686018427387904, 100, 1, 0, 1795000009047157, '{}', 1, true, 500000, 0, 0),
	(1, 20, 3, 3000000, 1795000006959363, 1795072006937787, 7, 0, 6, 1795000009066136, '{}', 3, false, 0, 0, 0),
	(1, 4, 1, 4000000, 1795000006947301, 4611686018427387904, 100, 1, 0, 1795000006947301, '{}', 1, false, 0, 0, 0),
	(1, 9, 2, 1000000, 1796800006937787, 4611686018427387904, 100, 1, 0, 1795000006980503, '{}', 1, true, 1000000, 0, 0),
	(1, 8, 2, 1000000, 1795000006971452, 1795000015937787, 9, 1, 0, 1795000006971452, '{}', 3, false, 0, 0, 0),
	(1, 6, 2, 30000000, 1795000006959363, 1795072006937787, 7, 0, 0, 1795000006959363, '{}', 1, false, 0, 0, 0),
	(1, 5, 1, 200000000, 1795000006955618, 4611686018427387904, 100, 1, 0, 1795000006955618, '{}', 1, true, 194969000, 0, 0),
	(1, 29, 28, 5000000, 1795000151263812, 4611686018427387904, 100, 1, 0, 1795000151263812, '{}', 1, true, 3000000, 0, 0),
	(1, 7, 2, 100000000, 1795000006964067, 4611686018427387904, 100, 1, 0, 1795000006964067, '{}', 1, true, 94479500, 0, 0),
	(1, 35, 3, 1000000, 1795000159439621, 1795000161396179, 100, 1, 0, 1795000159439621, '{}', 3, false, 0, 0, 34),
	(1, 38, 3, 1000000, 1795000161396179, 1795003761396179, 100, 1, 35, 1795000161396179, '{}', 3, false, 0, 0, 0),
	(1, 40, 1, 1000000, 1796083200000000, 1798761600000000, 100, 1, 0, 1796083200000000, '{}', 1, true, 1000000, 0, 36),
	(1, 37, 1, 1000000, 1795000159449598, 1796083200000000, 100, 1, 0, 1795000159449598, '{}', 3, false, 0, 0, 36),
	(1, 51, 2, 1000000, 1798456162787044, 1798761600000000, 100, 1, 0, 1798456162787044, '{}', 1, true, 1000000, 0, 50),
	(1, 53, 2, 1000000, 1798456162787044, 1798761600000000, 100, 1, 0, 1798456162787044, '{}', 1, true, 1000000, 0, 52),
	(1, 55, 2, 1000000, 1798456162807332, 1798761600000000, 100, 1, 0, 1798456162807332, '{}', 1, true, 1000000, 0, 54),
	(1, 56, 2, 4000000, 1798456162890471, 4611686018427387904, 100, 1, 0, 1798456162890471, '{"request": "ask_1_2"}', 1, true, 4000000, 0, 0),
	(2, 2, 1, 100000000, 1798456162955779, 4611686018427387904, 100, 1, 0, 1798456162955779, '{}', 1, true, 100000000, 0, 0),
	(2, 4, 3, 100000000, 1798456162966711, 4611686018427387904, 100, 1, 0, 1798456162966711, '{}', 1, true, 100000000, 0, 0);
INSERT INTO idempotency VALUES
	(1, 'key-1', '\x4372656174654163636f756e7428706174683d2761636d65272c206d6f64656c3d3c4d6f64656c2e505245504149443a20303e2c206372656469745f6c696d69743d302c206d657461646174613d7b7d2c2066756e64696e673d4e6f6e6529', '\x7b226b696e64223a224163636f756e745361766564222c2276616c7565223a7b226163636f756e74223a7b226163636f756e745f6964223a312c2270617468223a2261636d65222c226d6f64656c223a302c226372656469745f6c696d6974223a302c22737461747573223a302c2272656d61696e696e67223a302c227265736572766564223a302c227370656e74223a302c2264656274223a302c226f76657272756e223a302c2276657273696f6e223a312c226475655f6174223a343631313638363031383432373338373930342c22616c6c6f6361746564223a66616c73652c22637265617465645f6174223a313739343939393838363739353334352c226d65746164617461223a7b7d2c2264656c696e7175656e74223a66616c73652c226f76657264726166745f6c696d6974223a302c2270726f6d69736564223a302c2266756e64696e67223a302c2277696e646f775f6d61785f6d73223a302c2273757370656e6465645f6279223a307d2c227374616e6473223a6e756c6c7d7d', 1794999886795345),
	(1, 'key-2', '\x4372656174654163636f756e7428706174683d2761636d652f70272c206d6f64656c3d3c4d6f64656c2e505245504149443a20303e2c206372656469745f6c696d69743d302c206d657461646174613d7b7d2c2066756e64696e673d4e6f6e6529', '\x7b226b696e64223a224163636f756e745361766564222c2276616c7565223a7b226163636f756e74223a7b226163636f756e745f6964223a322c2270617468223a2261636d652f70222c226d6f64656c223a302c226372656469745f6c696d6974223a302c22737461747573223a302c2272656d61696e696e67223a302c227265736572766564223a302c227370656e74223a302c2264656274223a302c226f76657272756e223a302c2276657273696f6e223a312c226475655f6174223a343631313638363031383432373338373930342c22616c6c6f6361746564223a66616c73652c22637265617465645f6174223a313739343939393838363832363530332c226d65746164617461223a7b7d2c2264656c696e7175656e74223a66616c73652c226f76657264726166745f6c696d6974223a302c2270726f6d69736564223a302c2266756e64696e67223a312c2277696e646f775f6d61785f6d73223a302c2273757370656e6465645f6279223a307d2c227374616e6473223a6e756c6c7d7d', 1794999886826503),
	(1, 'key-3', '\x4372656174654163636f756e7428706174683d2761636d652f71272c206d6f64656c3d3c4d6f64656c2e504f5354504149443a20313e2c206372656469745f6c696d69743d35303030303030302c206d657461646174613d7b7d2c2066756e64696e673d4e6f6e6529', '\x7b226b696e64223a224163636f756e745361766564222c2276616c7565223a7b226163636f756e74223a7b226163636f756e745f6964223a332c2270617468223a2261636d652f71222c226d6f64656c223a312c226372656469745f6c696d6974223a35303030303030302c22737461747573223a302c2272656d61696e696e67223a302c227265736572766564223a302c227370656e74223a302c2264656274223a302c226f76657272756e223a302c2276657273696f6e223a312c226475655f6174223a343631313638363031383432373338373930342c22616c6c6f6361746564223a747275652c22637265617465645f6174223a313739343939393838363833313735302c226d65746164617461223a7b7d2c2264656c696e7175656e74223a66616c73652c226f76657264726166745f6c696d6974223a302c2270726f6d69736564223a302c2266756e64696e67223a302c2277696e646f775f6d61785f6d73223a302c2273757370656e6465645f6279223a307d2c227374616e6473223a6e756c6c7d7d', 1794999886831750),
	(0, 'list', '\x', '\x7b227072696365223a7b2270726963655f6964223a322c226770755f74797065223a2262323030222c22726567696f6e223a2264656661756c74222c22637265646974735f7065725f6770755f686f7572223a333630303030303030302c226566666563746976655f66726f6d223a313739343939393838363838303330352c226163636f756e74223a22222c226566666563746976655f746f223a343631313638363031383432373338373930342c2269735f656e64223a66616c73657d2c2269735f6261636b6461746564223a66616c73652c2269735f626568696e64223a66616c73657d', 1794999886887264),
	(1, 'less', '\x', '\x7b227072696365223a7b2270726963655f6964223a332c226770755f74797065223a2268313030222c22726567696f6e223a2264656661756c74222c22637265646974735f7065725f6770755f686f7572223a313830303030303030302c226566666563746976655f66726f6d223a313030303030302c226163636f756e74223a2261636d652f70222c226566666563746976655f746f223a343631313638363031383432373338373930342c2269735f656e64223a66616c73657d2c2269735f6261636b6461746564223a747275652c2269735f626568696e64223a66616c73657d', 1794999886903484),
	(1, 'brief', '\x', '\x7b227072696365223a7b2270726963655f6964223a342c226770755f74797065223a2268313030222c22726567696f6e223a2264656661756c74222c22637265646974735f7065725f6770755f686f7572223a312c226566666563746976655f66726f6d223a313030303030302c226163636f756e74223a2261636d652f70222c226566666563746976655f746f223a313739343939393934363931303835302c2269735f656e64223a66616c73657d2c2269735f6261636b6461746564223a747275652c2269735f626568696e64223a66616c73657d', 1794999886913213),
	(0, 'end', '\x', '\x7b2270726963655f6964223a322c226770755f74797065223a2262323030222c22726567696f6e223a2264656661756c74222c22637265646974735f7065725f6770755f686f7572223a333630303030303030302c226566666563746976655f66726f6d223a313739343939393838363838303330352c226163636f756e74223a22222c226566666563746976655f746f223a313739343939393838363931383138362c2269735f656e64223a66616c73657d', 1794999886919660),
	(1, 'key-4', '\x4973737565286163636f756e743d2761636d65272c20616d6f756e743d343030303030302c207374617274735f61743d4e6f6e652c20657870697265735f61743d343631313638363031383432373338373930342c207072696f726974793d3130302c20736f757263653d3c536f757263652e414c4c4f57414e43453a20313e2c206d657461646174613d7b7d29', '\x7b226b696e64223a224772616e746564222c2276616c7565223a7b226772616e74223a7b226772616e745f6964223a342c226163636f756e745f6964223a312c22616d6f756e74223a343030303030302c2272656d61696e696e67223a343030303030302c227374617274735f6174223a313739353030303030363934373330312c22657870697265735f6174223a343631313638363031383432373338373930342c227072696f72697479223a3130302c22736f75726365223a312c227374617465223a312c226f726967696e5f6964223a302c22637265617465645f6174223a313739353030303030363934373330312c226d65746164617461223a7b7d2c226275646765745f6964223a302c22636c61696d73223a307d2c2270617468223a2261636d65227d7d', 1795000006947301),
	(1, 'key-5', '\x4973737565286163636f756e743d2761636d65272c20616d6f756e743d3230303030303030302c207374617274735f61743d4e6f6e652c20657870697265735f61743d343631313638363031383432373338373930342c207072696f726974793d3130302c20736f757263653d3c536f757263652e414c4c4f57414e43453a20313e2c206d657461646174613d7b7d29', '\x7b226b696e64223a224772616e746564222c2276616c7565223a7b226772616e74223a7b226772616e745f6964223a352c226163636f756e745f6964223a312c22616d6f756e74223a3230303030303030302c2272656d61696e696e67223a3230303030303030302c227374617274735f6174223a313739353030303030363935353631382c22657870697265735f6174223a343631313638363031383432373338373930342c227072696f72697479223a3130302c22736f75726365223a312c227374617465223a312c226f726967696e5f6964223a302c22637265617465645f6174223a313739353030303030363935353631382c226d65746164617461223a7b7d2c226275646765745f6964223a302c22636c61696d73223a307d2c2270617468223a2261636d65227d7d', 1795000006955618),
	(1, 'key-6', '\x4973737565286163636f756e743d2761636d652f70272c20616d6f756e743d33303030303030302c207374617274735f61743d4e6f6e652c20657870697265735f61743d313739353037323030363933373738372c207072696f726974793d372c20736f757263653d3c536f757263652e50524f4d4f3a20303e2c206d657461646174613d7b7d29', '\x7b226b696e64223a224772616e746564222c2276616c7565223a7b226772616e74223a7b226772616e745f6964223a362c226163636f756e745f6964223a322c22616d6f756e74223a33303030303030302c2272656d61696e696e67223a33303030303030302c227374617274735f6174223a313739353030303030363935393336332c22657870697265735f6174223a313739353037323030363933373738372c227072696f72697479223a372c22736f75726365223a302c227374617465223a312c226f726967696e5f6964223a302c22637265617465645f6174223a313739353030303030363935393336332c226d65746164617461223a7b7d2c226275646765745f6964223a302c22636c61696d73223a307d2c2270617468223a2261636d652f70227d7d', 1795000006959363),
	(1, 'key-7', '\x4973737565286163636f756e743d2761636d652f70272c20616d6f756e743d3130303030303030302c207374617274735f61743d4e6f6e652c20657870697265735f61743d343631313638363031383432373338373930342c207072696f726974793d3130302c20736f757263653d3c536f757263652e414c4c4f57414e43453a20313e2c206d657461646174613d7b7d29', '\x7b226b696e64223a224772616e746564222c2276616c7565223a7b226772616e74223a7b226772616e745f6964223a372c226163636f756e745f6964223a322c22616d6f756e74223a3130303030303030302c2272656d61696e696e67223a3130303030303030302c227374617274735f6174223a313739353030303030363936343036372c22657870697265735f6174223a343631313638363031383432373338373930342c227072696f72697479223a3130302c22736f75726365223a312c227374617465223a312c226f726967696e5f6964223a302c22637265617465645f6174223a313739353030303030363936343036372c226d65746164617461223a7b7d2c226275646765745f6964223a302c22636c61696d73223a307d2c2270617468223a2261636d652f70227d7d', 1795000006964067),
	(1, 'key-8', '\x4973737565286163636f756e743d2761636d652f70272c20616d6f756e743d313030303030302c207374617274735f61743d4e6f6e652c20657870697265735f61743d313739353030303031353933373738372c207072696f726974793d392c20736f757263653d3c536f757263652e414c4c4f57414e43453a20313e2c206d657461646174613d7b7d29', '\x7b226b696e64223a224772616e746564222c2276616c7565223a7b226772616e74223a7b226772616e745f6964223a382c226163636f756e745f6964223a322c22616d6f756e74223a313030303030302c2272656d61696e696e67223a313030303030302c227374617274735f6174223a313739353030303030363937313435322c22657870697265735f6174223a313739353030303031353933373738372c227072696f72697479223a392c22736f75726365223a312c227374617465223a312c226f726967696e5f6964223a302c22637265617465645f6174223a313739353030303030363937313435322c226d65746164617461223a7b7d2c226275646765745f6964223a302c22636c61696d73223a307d2c2270617468223a2261636d652f70227d7d', 1795000006971452),
	(1, 'key-9', '\x4973737565286163636f756e743d2761636d652f70272c20616d6f756e743d313030303030302c207374617274735f61743d313739363830303030363933373738372c20657870697265735f61743d343631313638363031383432373338373930342c207072696f726974793d3130302c20736f757263653d3c536f757263652e414c4c4f57414e43453a20313e2c206d657461646174613d7b7d29', '\x7b226b696e64223a224772616e746564222c2276616c7565223a7b226772616e74223a7b226772616e745f6964223a392c226163636f756e745f6964223a322c22616d6f756e74223a313030303030302c2272656d61696e696e67223a313030303030302c227374617274735f6174223a313739363830303030363933373738372c22657870697265735f6174223a343631313638363031383432373338373930342c227072696f72697479223a3130302c22736f75726365223a312c227374617465223a322c226f726967696e5f6964223a302c22637265617465645f6174223a313739353030303030363938303530332c226d65746164617461223a7b7d2c226275646765745f6964223a302c22636c61696d73223a307d2c2270617468223a2261636d652f70227d7d', 1795000006980503),
	(1, 'key-10', '\x546f705570286163636f756e743d2761636d65272c20616d6f756e743d353030303030302c207061796d656e745f7265666572656e63653d277061796d656e742d30272c20636f6e6669726d65643d46616c73652c20657870697265735f61743d343631313638363031383432373338373930342c207072696f726974793d3130302c206d657461646174613d7b7d2c2062696c6c3d4e6f6e652c20726566756e6465643d3029', '\x7b226b696e64223a22546f707065645570222c2276616c7565223a7b22746f707570223a7b22746f7075705f6964223a31302c226163636f756e745f6964223a312c22616d6f756e74223a353030303030302c227061796d656e745f7265666572656e6365223a227061796d656e742d30222c22737461747573223a302c226772616e745f6964223a302c22657870697265735f6174223a343631313638363031383432373338373930342c227072696f72697479223a3130302c22637265617465645f6174223a313739353030303030363938343831392c226d65746164617461223a7b7d7d2c2270617468223a2261636d65222c226772616e74223a6e756c6c7d7d', 1795000006984819),
	(1, 'key-11', '\x546f705570286163636f756e743d2761636d65272c20616d6f756e743d363030303030302c207061796d656e745f7265666572656e63653d277061796d656e742d31272c20636f6e6669726d65643d46616c73652c20657870697265735f61743d343631313638363031383432373338373930342c207072696f726974793d3130302c206d657461646174613d7b7d2c2062696c6c3d4e6f6e652c20726566756e6465643d3029', '\x7b226b696e64223a22546f707065645570222c2276616c7565223a7b22746f707570223a7b22746f7075705f6964223a31312c226163636f756e745f6964223a312c22616d6f756e74223a363030303030302c227061796d656e745f7265666572656e6365223a227061796d656e742d31222c22737461747573223a302c226772616e745f6964223a302c22657870697265735f6174223a343631313638363031383432373338373930342c227072696f72697479223a3130302c22637265617465645f6174223a313739353030303030363938393935322c226d65746164617461223a7b7d7d2c2270617468223a2261636d65222c226772616e74223a6e756c6c7d7d', 1795000006989952),
	(1, 'key-12', '\x436f6e6669726d546f70557028746f7075705f69643d313129', '\x7b226b696e64223a22546f707065645570222c2276616c7565223a7b22746f707570223a7b22746f7075705f6964223a31312c226163636f756e745f6964223a312c22616d6f756e74223a363030303030302c227061796d656e745f7265666572656e6365223a227061796d656e742d31222c22737461747573223a312c226772616e745f6964223a31322c22657870697265735f6174223a343631313638363031383432373338373930342c227072696f72697479223a3130302c22637265617465645f6174223a313739353030303030363938393935322c226d65746164617461223a7b7d7d2c2270617468223a2261636d65222c226772616e74223a7b226772616e745f6964223a31322c226163636f756e745f6964223a312c22616d6f756e74223a363030303030302c2272656d61696e696e67223a363030303030302c227374617274735f6174223a313739353030303030363939313635382c22657870697265735f6174223a343631313638363031383432373338373930342c227072696f72697479223a3130302c22736f75726365223a332c227374617465223a312c226f726967696e5f6964223a302c22637265617465645f6174223a313739353030303030363939313635382c226d65746164617461223a7b7d2c226275646765745f6964223a302c22636c61696d73223a307d7d7d', 1795000006991658),
	(1, 'key-13', '\x546f705570286163636f756e743d2761636d65272c20616d6f756e743d373030303030302c207061796d656e745f7265666572656e63653d277061796d656e742d32272c20636f6e6669726d65643d46616c73652c20657870697265735f61743d343631313638363031383432373338373930342c207072696f726974793d3130302c206d657461646174613d7b7d2c2062696c6c3d4e6f6e652c20726566756e6465643d3029', '\x7b226b696e64223a22546f707065645570222c2276616c7565223a7b22746f707570223a7b22746f7075705f6964223a31332c226163636f756e745f6964223a312c22616d6f756e74223a373030303030302c227061796d656e745f7265666572656e6365223a227061796d656e742d32222c22737461747573223a302c226772616e745f6964223a302c22657870697265735f6174223a343631313638363031383432373338373930342c227072696f72697479223a3130302c22637265617465645f6174223a313739353030303030373030333938382c226d65746164617461223a7b7d7d2c2270617468223a2261636d65222c226772616e74223a6e756c6c7d7d', 1795000007003988),
	(1, 'key-14', '\x4661696c546f70557028746f7075705f69643d313329', '\x7b226b696e64223a22546f707065645570222c2276616c7565223a7b22746f707570223a7b22746f7075705f6964223a31332c226163636f756e745f6964223a312c22616d6f756e74223a373030303030302c227061796d656e745f7265666572656e6365223a227061796d656e742d32222c22737461747573223a322c226772616e745f6964223a302c22657870697265735f6174223a343631313638363031383432373338373930342c227072696f72697479223a3130302c22637265617465645f6174223a313739353030303030373030333938382c226d65746164617461223a7b7d7d2c2270617468223a2261636d65222c226772616e74223a6e756c6c7d7d', 1795000007005840),
	(1, 'key-15', '\x546f705570286163636f756e743d2761636d65272c20616d6f756e743d383030303030302c207061796d656e745f7265666572656e63653d277061796d656e742d33272c20636f6e6669726d65643d46616c73652c20657870697265735f61743d343631313638363031383432373338373930342c207072696f726974793d3130302c206d657461646174613d7b7d2c2062696c6c3d4e6f6e652c20726566756e6465643d3029', '\x7b226b696e64223a22546f707065645570222c2276616c7565223a7b22746f707570223a7b22746f7075705f6964223a31342c226163636f756e745f6964223a312c22616d6f756e74223a383030303030302c227061796d656e745f7265666572656e6365223a227061796d656e742d33222c22737461747573223a302c226772616e745f6964223a302c22657870697265735f6174223a343631313638363031383432373338373930342c227072696f72697479223a3130302c22637265617465645f6174223a313739353030303030373031303534352c226d65746164617461223a7b7d7d2c2270617468223a2261636d65222c226772616e74223a6e756c6c7d7d', 1795000007010545),
	(1, 'key-16', '\x436f6e6669726d546f70557028746f7075705f69643d313429', '\x7b226b696e64223a22546f707065645570222c2276616c7565223a7b22746f707570223a7b22746f7075705f6964223a31342c226163636f756e745f6964223a312c22616d6f756e74223a383030303030302c227061796d656e745f7265666572656e6365223a227061796d656e742d33222c22737461747573223a312c226772616e745f6964223a31352c22657870697265735f6174223a343631313638363031383432373338373930342c227072696f72697479223a3130302c22637265617465645f6174223a313739353030303030373031303534352c226d65746164617461223a7b7d7d2c2270617468223a2261636d65222c226772616e74223a7b226772616e745f6964223a31352c226163636f756e745f6964223a312c22616d6f756e74223a383030303030302c2272656d61696e696e67223a383030303030302c227374617274735f6174223a313739353030303030373031333039332c22657870697265735f6174223a343631313638363031383432373338373930342c227072696f72697479223a3130302c22736f75726365223a332c227374617465223a312c226f726967696e5f6964223a302c22637265617465645f6174223a313739353030303030373031333039332c226d65746164617461223a7b7d2c226275646765745f6964223a302c22636c61696d73223a307d7d7d', 1795000007013093),
	(1, 'key-17', '\x52657665727365546f70557028746f7075705f69643d313429', '\x7b226b696e64223a22546f707065645570222c2276616c7565223a7b22746f707570223a7b22746f7075705f6964223a31342c226163636f756e745f6964223a312c22616d6f756e74223a383030303030302c227061796d656e745f7265666572656e6365223a227061796d656e742d33222c22737461747573223a332c226772616e745f6964223a31352c22657870697265735f6174223a343631313638363031383432373338373930342c227072696f72697479223a3130302c22637265617465645f6174223a313739353030303030373031303534352c226d65746164617461223a7b7d7d2c2270617468223a2261636d65222c226772616e74223a7b226772616e745f6964223a31352c226163636f756e745f6964223a312c22616d6f756e74223a383030303030302c2272656d61696e696e67223a302c227374617274735f6174223a313739353030303030373031333039332c22657870697265735f6174223a343631313638363031383432373338373930342c227072696f72697479223a3130302c22736f75726365223a332c227374617465223a312c226f726967696e5f6964223a302c22637265617465645f6174223a313739353030303030373031333039332c226d65746164617461223a7b7d2c226275646765745f6964223a302c22636c61696d73223a307d7d7d', 1795000007015087),
	(1, 'key-18', '\x546f705570286163636f756e743d2761636d65272c20616d6f756e743d393030303030302c207061796d656e745f7265666572656e63653d277061796d656e742d34272c20636f6e6669726d65643d46616c73652c20657870697265735f61743d343631313638363031383432373338373930342c207072696f726974793d3130302c206d657461646174613d7b7d2c2062696c6c3d4e6f6e652c20726566756e6465643d3029', '\x7b226b696e64223a22546f707065645570222c2276616c7565223a7b22746f707570223a7b22746f7075705f6964223a31362c226163636f756e745f6964223a312c22616d6f756e74223a393030303030302c227061796d656e745f7265666572656e6365223a227061796d656e742d34222c22737461747573223a302c226772616e745f6964223a302c22657870697265735f6174223a343631313638363031383432373338373930342c227072696f72697479223a3130302c22637265617465645f6174223a313739353030303030373031383932302c226d65746164617461223a7b7d7d2c2270617468223a2261636d65222c226772616e74223a6e756c6c7d7d', 1795000007018920),
	(1, 'key-19', '\x436f6e6669726d546f70557028746f7075705f69643d313629', '\x7b226b696e64223a22546f707065645570222c2276616c7565223a7b22746f707570223a7b22746f7075705f6964223a31362c226163636f756e745f6964223a312c22616d6f756e74223a393030303030302c227061796d656e745f7265666572656e6365223a227061796d656e742d34222c22737461747573223a312c226772616e745f6964223a31372c22657870697265735f6174223a343631313638363031383432373338373930342c227072696f72697479223a3130302c22637265617465645f6174223a313739353030303030373031383932302c226d65746164617461223a7b7d7d2c2270617468223a2261636d65222c226772616e74223a7b226772616e745f6964223a31372c226163636f756e745f6964223a312c22616d6f756e74223a393030303030302c2272656d61696e696e67223a393030303030302c227374617274735f6174223a313739353030303030373032303334342c22657870697265735f6174223a343631313638363031383432373338373930342c227072696f72697479223a3130302c22736f75726365223a332c227374617465223a312c226f726967696e5f6964223a302c22637265617465645f6174223a313739353030303030373032303334342c226d65746164617461223a7b7d2c226275646765745f6964223a302c22636c61696d73223a307d7d7d', 1795000007020344),
	(1, 'key-21', '\x52657365727665286163636f756e743d2761636d652f71272c206a6f625f69643d276a6f62272c206770755f747970653d2768313030272c206770755f636f756e743d312c20726567696f6e3d2764656661756c74272c206e6f64653d276e6f64652d3230272c2077696e646f775f6d733d353030302c20657363726f775f77696e646f77733d302c206d61785f616d6f756e743d302c2070617965723d27272c2065786861757374696f6e3d3c45786861757374696f6e2e445241494e3a20313e2c2067726163655f6d733d302c206f76657264726166743d302c20666169725f73686172653d4e6f6e652c206d657461646174613d7b7d2c2073636f70653d272729', '\x7b226b696e64223a225265736572766564222c2276616c7565223a7b227265736572766174696f6e223a7b227265736572766174696f6e5f6964223a31382c226163636f756e74223a2261636d652f71222c226163636f756e745f6964223a332c2270617965725f6964223a332c226a6f625f6964223a226a6f62222c226770755f74797065223a2268313030222c226770755f636f756e74223a312c22726567696f6e223a2264656661756c74222c226e6f6465223a226e6f64652d3230222c227072696365223a333630303030303030302c2270726963655f6964223a312c2277696e646f775f6d73223a353030302c2261646d69747465645f6174223a313739353030303030373032323834342c22657870697265735f6174223a313739353030303031323032323834342c22657363726f775f77696e646f7773223a302c226d61785f616d6f756e74223a302c2268656c64223a353030303030302c22736574746c6564223a302c2261646a7573746564223a302c22726566756e646564223a302c22757365645f6d73223a302c22736571223a302c227374617465223a302c226465636973696f6e223a22636f6e74696e7565222c22656e6465645f6174223a302c2270616964223a5b5d2c226d65746164617461223a7b7d2c22626561745f6174223a313739353030303030373032323834342c2265786861757374696f6e223a312c2267726163655f6d73223a302c226f7665726472616674223a302c226f766572647261776e223a302c226c656176696e67223a66616c73652c2273746f7070696e675f6174223a302c22776879223a22222c2270726f6d69736564223a302c226361705f70617274223a2d312c226361705f7365656e223a302c22636c656172735f6174223a302c2273746f7070696e675f666f72223a302c22617574686f7269736564223a302c226b657074223a5b5d2c22706179657273223a5b5d7d2c226163636f756e74223a2261636d652f71222c227061796572223a2261636d652f71222c22657870697265735f696e5f6d73223a353030307d7d', 1795000007022844),
	(1, 'key-22', '\x536574746c65287265736572766174696f6e5f69643d31382c207365713d322c20757365645f6d733d3230303029', '\x7b226b696e64223a22436c6f736564222c2276616c7565223a7b227265736572766174696f6e5f6964223a31382c227374617465223a312c22736574746c6564223a323030303030302c2272656c6561736564223a333030303030302c22757365645f6d73223a323030302c22666c6167676564223a22227d7d', 1795000009038353),
	(1, 'key-23', '\x4973737565286163636f756e743d2761636d652f71272c20616d6f756e743d313030303030302c207374617274735f61743d4e6f6e652c20657870697265735f61743d343631313638363031383432373338373930342c207072696f726974793d3130302c20736f757263653d3c536f757263652e414c4c4f57414e43453a20313e2c206d657461646174613d7b7d29', '\x7b226b696e64223a224772616e746564222c2276616c7565223a7b226772616e74223a7b226772616e745f6964223a31392c226163636f756e745f6964223a332c22616d6f756e74223a313030303030302c2272656d61696e696e67223a302c227374617274735f6174223a313739353030303030393034373135372c22657870697265735f6174223a343631313638363031383432373338373930342c227072696f72697479223a3130302c22736f75726365223a312c227374617465223a312c226f726967696e5f6964223a302c22637265617465645f6174223a313739353030303030393034373135372c226d65746164617461223a7b7d2c226275646765745f6964223a302c22636c61696d73223a307d2c2270617468223a2261636d652f71227d7d', 1795000009047157),
	(1, 'key-24', '\x526566756e64287265736572766174696f6e5f69643d31382c20616d6f756e743d313530303030302c206e6f74653d272729', '\x7b226b696e64223a22526566756e646564222c2276616c7565223a7b227265736572766174696f6e5f6964223a31382c22616d6f756e74223a313530303030302c226c6f7473223a5b5b302c313030303030305d2c5b31392c3530303030305d5d7d7d', 1795000009053662),
	(1, 'key-25', '\x5472616e7366657228736f757263653d2761636d652f70272c207461726765743d2761636d652f71272c20616d6f756e743d333030303030302c206d657461646174613d7b7d29', '\x7b226b696e64223a225472616e73666572726564222c2276616c7565223a7b227472616e736665725f6964223a32312c22736f75726365223a2261636d652f70222c22746172676574223a2261636d652f71222c22616d6f756e74223a333030303030302c226c6f7473223a5b5b362c32302c333030303030305d5d2c226d65746164617461223a7b7d7d7d', 1795000009066136),
	(1, 'key-27', '\x52657365727665286163636f756e743d2761636d65272c206a6f625f69643d276a6f62272c206770755f747970653d2768313030272c206770755f636f756e743d312c20726567696f6e3d2764656661756c74272c206e6f64653d276e6f64652d3236272c2077696e646f775f6d733d32303030302c20657363726f775f77696e646f77733d302c206d61785f616d6f756e743d302c2070617965723d27272c2065786861757374696f6e3d3c45786861757374696f6e2e445241494e3a20313e2c2067726163655f6d733d302c206f76657264726166743d302c20666169725f73686172653d4e6f6e652c206d657461646174613d7b7d2c2073636f70653d272729', '\x7b226b696e64223a225265736572766564222c2276616c7565223a7b227265736572766174696f6e223a7b227265736572766174696f6e5f6964223a32322c226163636f756e74223a2261636d65222c226163636f756e745f6964223a312c2270617965725f6964223a312c226a6f625f6964223a226a6f62222c226770755f74797065223a2268313030222c226770755f636f756e74223a312c22726567696f6e223a2264656661756c74222c226e6f6465223a226e6f64652d3236222c227072696365223a333630303030303030302c2270726963655f6964223a312c2277696e646f775f6d73223a32303030302c2261646d69747465645f6174223a313739353030303030393037383138342c22657870697265735f6174223a313739353030303032393037383138342c22657363726f775f77696e646f7773223a302c226d61785f616d6f756e74223a302c2268656c64223a32303030303030302c22736574746c6564223a302c2261646a7573746564223a302c22726566756e646564223a302c22757365645f6d73223a302c22736571223a302c227374617465223a302c226465636973696f6e223a22636f6e74696e7565222c22656e6465645f6174223a302c2270616964223a5b5d2c226d65746164617461223a7b7d2c22626561745f6174223a313739353030303030393037383138342c2265786861757374696f6e223a312c2267726163655f6d73223a302c226f7665726472616674223a302c226f766572647261776e223a302c226c656176696e67223a66616c73652c2273746f7070696e675f6174223a302c22776879223a22222c2270726f6d69736564223a302c226361705f70617274223a2d312c226361705f7365656e223a302c22636c656172735f6174223a302c2273746f7070696e675f666f72223a302c22617574686f7269736564223a302c226b657074223a5b5d2c22706179657273223a5b5d7d2c226163636f756e74223a2261636d65222c227061796572223a2261636d65222c22657870697265735f696e5f6d73223a32303030307d7d', 1795000009078184),
	(1, 'key-28', '\x536574746c65287265736572766174696f6e5f69643d32322c207365713d322c20757365645f6d733d3730303029', '\x7b226b696e64223a22436c6f736564222c2276616c7565223a7b227265736572766174696f6e5f6964223a32322c227374617465223a312c22736574746c6564223a363033313030302c2272656c6561736564223a31393936393030302c22757365645f6d73223a363033312c22666c6167676564223a22227d7d', 1795000015109265),
	(1, 'key-30', '\x52657365727665286163636f756e743d2761636d652f70272c206a6f625f69643d276a6f62272c206770755f747970653d2768313030272c206770755f636f756e743d312c20726567696f6e3d2764656661756c74272c206e6f64653d276e6f64652d3239272c2077696e646f775f6d733d36303030302c20657363726f775f77696e646f77733d302c206d61785f616d6f756e743d302c2070617965723d27272c2065786861757374696f6e3d3c45786861757374696f6e2e445241494e3a20313e2c2067726163655f6d733d302c206f76657264726166743d302c20666169725f73686172653d4e6f6e652c206d657461646174613d7b7d2c2073636f70653d272729', '\x7b226b696e64223a225265736572766564222c2276616c7565223a7b227265736572766174696f6e223a7b227265736572766174696f6e5f6964223a32332c226163636f756e74223a2261636d652f70222c226163636f756e745f6964223a322c2270617965725f6964223a322c226a6f625f6964223a226a6f62222c226770755f74797065223a2268313030222c226770755f636f756e74223a312c22726567696f6e223a2264656661756c74222c226e6f6465223a226e6f64652d3239222c227072696365223a313830303030303030302c2270726963655f6964223a332c2277696e646f775f6d73223a36303030302c2261646d69747465645f6174223a313739353030303031353132313932332c22657870697265735f6174223a313739353030303037353132313932332c22657363726f775f77696e646f7773223a302c226d61785f616d6f756e74223a302c2268656c64223a33303030303030302c22736574746c6564223a302c2261646a7573746564223a302c22726566756e646564223a302c22757365645f6d73223a302c22736571223a302c227374617465223a302c226465636973696f6e223a22636f6e74696e7565222c22656e6465645f6174223a302c2270616964223a5b5d2c226d65746164617461223a7b7d2c22626561745f6174223a313739353030303031353132313932332c2265786861757374696f6e223a312c2267726163655f6d73223a302c226f7665726472616674223a302c226f766572647261776e223a302c226c656176696e67223a66616c73652c2273746f7070696e675f6174223a302c22776879223a22222c2270726f6d69736564223a302c226361705f70617274223a2d312c226361705f7365656e223a302c22636c656172735f6174223a302c2273746f7070696e675f666f72223a302c22617574686f7269736564223a302c226b657074223a5b5d2c22706179657273223a5b5d7d2c226163636f756e74223a2261636d652f70222c227061796572223a2261636d652f70222c22657870697265735f696e5f6d73223a36303030307d7d', 1795000015121923),
	(1, 'key-31', '\x536574746c65287265736572766174696f6e5f69643d32332c207365713d322c20757365645f6d733d343530303029', '\x7b226b696e64223a22436c6f736564222c2276616c7565223a7b227265736572766174696f6e5f6964223a32332c227374617465223a312c22736574746c6564223a32303032303530302c2272656c6561736564223a32393937393530302c22757365645f6d73223a34303034312c22666c6167676564223a22757365645f6d735f6265796f6e645f656c6170736564227d7d', 1795000055163055),
	(1, 'key-32', '\x41646a757374287265736572766174696f6e5f69643d32332c20616d6f756e743d31303030303030302c206e6f74653d272729', '\x7b226b696e64223a2241646a7573746564222c2276616c7565223a7b227265736572766174696f6e5f6964223a32332c22616d6f756e74223a31303030303030302c226c6f7473223a5b5b362c363937393530305d2c5b372c333032303530305d5d7d7d', 1795000055172362),
	(1, 'key-33', '\x526566756e64287265736572766174696f6e5f69643d32332c20616d6f756e743d313030303030302c206e6f74653d272729', '\x7b226b696e64223a22526566756e646564222c2276616c7565223a7b227265736572766174696f6e5f6964223a32332c22616d6f756e74223a313030303030302c226c6f7473223a5b5b372c313030303030305d5d7d7d', 1795000055177498),
	(1, 'key-35', '\x52657365727665286163636f756e743d2761636d65272c206a6f625f69643d276a6f62272c206770755f747970653d2768313030272c206770755f636f756e743d312c20726567696f6e3d2764656661756c74272c206e6f64653d276e6f64652d3334272c2077696e646f775f6d733d31303030302c20657363726f775f77696e646f77733d302c206d61785f616d6f756e743d302c2070617965723d27272c2065786861757374696f6e3d3c45786861757374696f6e2e445241494e3a20313e2c2067726163655f6d733d302c206f76657264726166743d302c20666169725f73686172653d4e6f6e652c206d657461646174613d7b7d2c2073636f70653d272729', '\x7b226b696e64223a225265736572766564222c2276616c7565223a7b227265736572766174696f6e223a7b227265736572766174696f6e5f6964223a32342c226163636f756e74223a2261636d65222c226163636f756e745f6964223a312c2270617965725f6964223a312c226a6f625f6964223a226a6f62222c226770755f74797065223a2268313030222c226770755f636f756e74223a312c22726567696f6e223a2264656661756c74222c226e6f6465223a226e6f64652d3334222c227072696365223a333630303030303030302c2270726963655f6964223a312c2277696e646f775f6d73223a31303030302c2261646d69747465645f6174223a313739353030303035353138323231302c22657870697265735f6174223a313739353030303036353138323231302c22657363726f775f77696e646f7773223a302c226d61785f616d6f756e74223a302c2268656c64223a31303030303030302c22736574746c6564223a302c2261646a7573746564223a302c22726566756e646564223a302c22757365645f6d73223a302c22736571223a302c227374617465223a302c226465636973696f6e223a22636f6e74696e7565222c22656e6465645f6174223a302c2270616964223a5b5d2c226d65746164617461223a7b7d2c22626561745f6174223a313739353030303035353138323231302c2265786861757374696f6e223a312c2267726163655f6d73223a302c226f7665726472616674223a302c226f766572647261776e223a302c226c656176696e67223a66616c73652c2273746f7070696e675f6174223a302c22776879223a22222c2270726f6d69736564223a302c226361705f70617274223a2d312c226361705f7365656e223a302c22636c656172735f6174223a302c2273746f7070696e675f666f72223a302c22617574686f7269736564223a302c226b657074223a5b5d2c22706179657273223a5b5d7d2c226163636f756e74223a2261636d65222c227061796572223a2261636d65222c22657870697265735f696e5f6d73223a31303030307d7d', 1795000055182210),
	(1, 'key-36', '\x43616e63656c287265736572766174696f6e5f69643d323429', '\x7b226b696e64223a22436c6f736564222c2276616c7565223a7b227265736572766174696f6e5f6964223a32342c227374617465223a322c22736574746c6564223a302c2272656c6561736564223a31303030303030302c22757365645f6d73223a302c22666c6167676564223a22227d7d', 1795000055185338),
	(1, 'key-38', '\x52657365727665286163636f756e743d2761636d65272c206a6f625f69643d276a6f62272c206770755f747970653d2768313030272c206770755f636f756e743d312c20726567696f6e3d2764656661756c74272c206e6f64653d276e6f64652d3337272c2077696e646f775f6d733d353030302c20657363726f775f77696e646f77733d302c206d61785f616d6f756e743d302c2070617965723d27272c2065786861757374696f6e3d3c45786861757374696f6e2e445241494e3a20313e2c2067726163655f6d733d302c206f76657264726166743d302c20666169725f73686172653d4e6f6e652c206d657461646174613d7b7d2c2073636f70653d272729', '\x7b226b696e64223a225265736572766564222c2276616c7565223a7b227265736572766174696f6e223a7b227265736572766174696f6e5f6964223a32352c226163636f756e74223a2261636d65222c226163636f756e745f6964223a312c2270617965725f6964223a312c226a6f625f6964223a226a6f62222c226770755f74797065223a2268313030222c226770755f636f756e74223a312c22726567696f6e223a2264656661756c74222c226e6f6465223a226e6f64652d3337222c227072696365223a333630303030303030302c2270726963655f6964223a312c2277696e646f775f6d73223a353030302c2261646d69747465645f6174223a313739353030303035353139343333312c22657870697265735f6174223a313739353030303036303139343333312c22657363726f775f77696e646f7773223a302c226d61785f616d6f756e74223a302c2268656c64223a353030303030302c22736574746c6564223a302c2261646a7573746564223a302c22726566756e646564223a302c22757365645f6d73223a302c22736571223a302c227374617465223a302c226465636973696f6e223a22636f6e74696e7565222c22656e6465645f6174223a302c2270616964223a5b5d2c226d65746164617461223a7b7d2c22626561745f6174223a313739353030303035353139343333312c2265786861757374696f6e223a312c2267726163655f6d73223a302c226f7665726472616674223a302c226f766572647261776e223a302c226c656176696e67223a66616c73652c2273746f7070696e675f6174223a302c22776879223a22222c2270726f6d69736564223a302c226361705f70617274223a2d312c226361705f7365656e223a302c22636c656172735f6174223a302c2273746f7070696e675f666f72223a302c22617574686f7269736564223a302c226b657074223a5b5d2c22706179657273223a5b5d7d2c226163636f756e74223a2261636d65222c227061796572223a2261636d65222c22657870697265735f696e5f6d73223a353030307d7d', 1795000055194331),
	(1, 'key-39', '\x5377656570286163636f756e745f69643d3129', '\x7b226b696e64223a225377657074222c2276616c7565223a7b22656e7472696573223a312c226d6f7665645f6f6e223a747275657d7d', 1795000145206291),
	(1, 'key-41', '\x52657365727665286163636f756e743d2761636d65272c206a6f625f69643d276a6f62272c206770755f747970653d2768313030272c206770755f636f756e743d312c20726567696f6e3d2764656661756c74272c206e6f64653d276e6f64652d3430272c2077696e646f775f6d733d3130303030302c20657363726f775f77696e646f77733d302c206d61785f616d6f756e743d302c2070617965723d27272c2065786861757374696f6e3d3c45786861757374696f6e2e445241494e3a20313e2c2067726163655f6d733d302c206f76657264726166743d302c20666169725f73686172653d4e6f6e652c206d657461646174613d7b7d2c2073636f70653d272729', '\x7b226b696e64223a225265736572766564222c2276616c7565223a7b227265736572766174696f6e223a7b227265736572766174696f6e5f6964223a32362c226163636f756e74223a2261636d65222c226163636f756e745f6964223a312c2270617965725f6964223a312c226a6f625f6964223a226a6f62222c226770755f74797065223a2268313030222c226770755f636f756e74223a312c22726567696f6e223a2264656661756c74222c226e6f6465223a226e6f64652d3430222c227072696365223a333630303030303030302c2270726963655f6964223a312c2277696e646f775f6d73223a3130303030302c2261646d69747465645f6174223a313739353030303134353230383730392c22657870697265735f6174223a313739353030303234353230383730392c22657363726f775f77696e646f7773223a302c226d61785f616d6f756e74223a302c2268656c64223a3130303030303030302c22736574746c6564223a302c2261646a7573746564223a302c22726566756e646564223a302c22757365645f6d73223a302c22736571223a302c227374617465223a302c226465636973696f6e223a22636f6e74696e7565222c22656e6465645f6174223a302c2270616964223a5b5d2c226d65746164617461223a7b7d2c22626561745f6174223a313739353030303134353230383730392c2265786861757374696f6e223a312c2267726163655f6d73223a302c226f7665726472616674223a302c226f766572647261776e223a302c226c656176696e67223a66616c73652c2273746f7070696e675f6174223a302c22776879223a22222c2270726f6d69736564223a302c226361705f70617274223a2d312c226361705f7365656e223a302c22636c656172735f6174223a302c2273746f7070696e675f666f72223a302c22617574686f7269736564223a302c226b657074223a5b5d2c22706179657273223a5b5d7d2c226163636f756e74223a2261636d65222c227061796572223a2261636d65222c22657870697265735f696e5f6d73223a3130303030307d7d', 1795000145208709),
	(1, 'key-43', '\x52657365727665286163636f756e743d2761636d652f70272c206a6f625f69643d276a6f62272c206770755f747970653d2768313030272c206770755f636f756e743d312c20726567696f6e3d2764656661756c74272c206e6f64653d276e6f64652d3432272c2077696e646f775f6d733d3130303030302c20657363726f775f77696e646f77733d302c206d61785f616d6f756e743d302c2070617965723d27272c2065786861757374696f6e3d3c45786861757374696f6e2e445241494e3a20313e2c2067726163655f6d733d302c206f76657264726166743d302c20666169725f73686172653d4e6f6e652c206d657461646174613d7b7d2c2073636f70653d272729', '\x7b226b696e64223a225265736572766564222c2276616c7565223a7b227265736572766174696f6e223a7b227265736572766174696f6e5f6964223a32372c226163636f756e74223a2261636d652f70222c226163636f756e745f6964223a322c2270617965725f6964223a322c226a6f625f6964223a226a6f62222c226770755f74797065223a2268313030222c226770755f636f756e74223a312c22726567696f6e223a2264656661756c74222c226e6f6465223a226e6f64652d3432222c227072696365223a313830303030303030302c2270726963655f6964223a332c2277696e646f775f6d73223a3130303030302c2261646d69747465645f6174223a313739353030303134383233383432392c22657870697265735f6174223a313739353030303234383233383432392c22657363726f775f77696e646f7773223a302c226d61785f616d6f756e74223a302c2268656c64223a35303030303030302c22736574746c6564223a302c2261646a7573746564223a302c22726566756e646564223a302c22757365645f6d73223a302c22736571223a302c227374617465223a302c226465636973696f6e223a22636f6e74696e7565222c22656e6465645f6174223a302c2270616964223a5b5d2c226d65746164617461223a7b7d2c22626561745f6174223a313739353030303134383233383432392c2265786861757374696f6e223a312c2267726163655f6d73223a302c226f7665726472616674223a302c226f766572647261776e223a302c226c656176696e67223a66616c73652c2273746f7070696e675f6174223a302c22776879223a22222c2270726f6d69736564223a302c226361705f70617274223a2d312c226361705f7365656e223a302c22636c656172735f6174223a302c2273746f7070696e675f666f72223a302c22617574686f7269736564223a302c226b657074223a5b5d2c22706179657273223a5b5d7d2c226163636f756e74223a2261636d652f70222c227061796572223a2261636d652f70222c22657870697265735f696e5f6d73223a3130303030307d7d', 1795000148238429),
	(1, 'key-44', '\x4372656174654163636f756e7428706174683d2761636d652f702f75272c206d6f64656c3d3c4d6f64656c2e505245504149443a20303e2c206372656469745f6c696d69743d302c206d657461646174613d7b7d2c2066756e64696e673d4e6f6e6529', '\x7b226b696e64223a224163636f756e745361766564222c2276616c7565223a7b226163636f756e74223a7b226163636f756e745f6964223a32382c2270617468223a2261636d652f702f75222c226d6f64656c223a302c226372656469745f6c696d6974223a302c22737461747573223a302c2272656d61696e696e67223a302c227265736572766564223a302c227370656e74223a302c2264656274223a302c226f76657272756e223a302c2276657273696f6e223a312c226475655f6174223a343631313638363031383432373338373930342c22616c6c6f6361746564223a66616c73652c22637265617465645f6174223a313739353030303135313235373731382c226d65746164617461223a7b7d2c2264656c696e7175656e74223a66616c73652c226f76657264726166745f6c696d6974223a302c2270726f6d69736564223a302c2266756e64696e67223a312c2277696e646f775f6d61785f6d73223a302c2273757370656e6465645f6279223a307d2c227374616e6473223a6e756c6c7d7d', 1795000151257718),
	(1, 'key-45', '\x4973737565286163636f756e743d2761636d652f702f75272c20616d6f756e743d353030303030302c207374617274735f61743d4e6f6e652c20657870697265735f61743d343631313638363031383432373338373930342c207072696f726974793d3130302c20736f757263653d3c536f757263652e414c4c4f57414e43453a20313e2c206d657461646174613d7b7d29', '\x7b226b696e64223a224772616e746564222c2276616c7565223a7b226772616e74223a7b226772616e745f6964223a32392c226163636f756e745f6964223a32382c22616d6f756e74223a353030303030302c2272656d61696e696e67223a353030303030302c227374617274735f6174223a313739353030303135313236333831322c22657870697265735f6174223a343631313638363031383432373338373930342c227072696f72697479223a3130302c22736f75726365223a312c227374617465223a312c226f726967696e5f6964223a302c22637265617465645f6174223a313739353030303135313236333831322c226d65746164617461223a7b7d2c226275646765745f6964223a302c22636c61696d73223a307d2c2270617468223a2261636d652f702f75227d7d', 1795000151263812),
	(1, 'key-47', '\x52657365727665286163636f756e743d2761636d652f702f75272c206a6f625f69643d276a6f62272c206770755f747970653d2768313030272c206770755f636f756e743d312c20726567696f6e3d2764656661756c74272c206e6f64653d276e6f64652d3436272c2077696e646f775f6d733d31303030302c20657363726f775f77696e646f77733d302c206d61785f616d6f756e743d302c2070617965723d27272c2065786861757374696f6e3d3c45786861757374696f6e2e445241494e3a20313e2c2067726163655f6d733d302c206f76657264726166743d302c20666169725f73686172653d4e6f6e652c206d657461646174613d7b7d2c2073636f70653d272729', '\x7b226b696e64223a225265736572766564222c2276616c7565223a7b227265736572766174696f6e223a7b227265736572766174696f6e5f6964223a33302c226163636f756e74223a2261636d652f702f75222c226163636f756e745f6964223a32382c2270617965725f6964223a32382c226a6f625f6964223a226a6f62222c226770755f74797065223a2268313030222c226770755f636f756e74223a312c22726567696f6e223a2264656661756c74222c226e6f6465223a226e6f64652d3436222c227072696365223a313830303030303030302c2270726963655f6964223a332c2277696e646f775f6d73223a31303030302c2261646d69747465645f6174223a313739353030303135313236393439312c22657870697265735f6174223a313739353030303136313236393439312c22657363726f775f77696e646f7773223a302c226d61785f616d6f756e74223a302c2268656c64223a353030303030302c22736574746c6564223a302c2261646a7573746564223a302c22726566756e646564223a302c22757365645f6d73223a302c22736571223a302c227374617465223a302c226465636973696f6e223a22636f6e74696e7565222c22656e6465645f6174223a302c2270616964223a5b5d2c226d65746164617461223a7b7d2c22626561745f6174223a313739353030303135313236393439312c2265786861757374696f6e223a312c2267726163655f6d73223a302c226f7665726472616674223a302c226f766572647261776e223a302c226c656176696e67223a66616c73652c2273746f7070696e675f6174223a302c22776879223a22222c2270726f6d69736564223a302c226361705f70617274223a2d312c226361705f7365656e223a302c22636c656172735f6174223a302c2273746f7070696e675f666f72223a302c22617574686f7269736564223a302c226b657074223a5b5d2c22706179657273223a5b5d7d2c226163636f756e74223a2261636d652f702f75222c227061796572223a2261636d652f702f75222c22657870697265735f696e5f6d73223a31303030307d7d', 1795000151269491),
	(1, 'key-48', '\x53657451756f7461286163636f756e743d2761636d65272c2064696d656e73696f6e3d3c44696d656e73696f6e2e434f4e43555252454e545f475055533a20313e2c206c696d69743d313030302c206770755f747970653d27272c2063616c656e6461723d4e6f6e652c207a6f6e653d27555443272c20726f6c6c696e675f686f7572733d302c20757365643d302c20706173743d28292c2062793d3c417574686f726974792e53595354454d3a20303e29', '\x7b226b696e64223a2251756f74615361766564222c2276616c7565223a7b2271756f7461223a7b2271756f74615f6964223a33312c226163636f756e745f6964223a312c2264696d656e73696f6e223a312c226c696d6974223a313030302c226770755f74797065223a22222c2263616c656e646172223a6e756c6c2c227a6f6e65223a22555443222c22726f6c6c696e675f686f757273223a302c22637265617465645f6174223a313739353030303135393334393036332c22656e6465645f6174223a302c22736565646564223a302c2266697273745f656e7472795f6964223a34342c227365745f6279223a307d2c2270617468223a2261636d65227d7d', 1795000159349063),
	(1, 'key-49', '\x536574526174654c696d6974286163636f756e743d2761636d65272c2063617061636974793d313030303030303030302c20726566696c6c5f7065725f686f75723d313030303030302c206e616d65643d4e6f6e652c2062793d3c417574686f726974792e53595354454d3a20303e29', '\x7b226b696e64223a22526174654c696d69745361766564222c2276616c7565223a7b226275636b6574223a7b226275636b65745f6964223a33322c226163636f756e745f6964223a312c226361706163697479223a313030303030303030302c22726566696c6c5f7065725f686f7572223a313030303030302c226c6576656c223a313030303030303030302c226c6576656c5f6174223a313739353030303135393335383837372c226672616374696f6e223a302c226b696e64223a302c22656e6465645f6174223a302c227365745f6279223a307d2c2270617468223a2261636d65227d7d', 1795000159358877),
	(1, 'key-64', '\x536574526174654c696d6974286163636f756e743d2761636d652f70272c2063617061636974793d3530303030303030302c20726566696c6c5f7065725f686f75723d353030303030302c206e616d65643d4e6f6e652c2062793d3c417574686f726974792e53595354454d3a20303e29', '\x7b226b696e64223a22526174654c696d69745361766564222c2276616c7565223a7b226275636b6574223a7b226275636b65745f6964223a34372c226163636f756e745f6964223a322c226361706163697479223a3530303030303030302c22726566696c6c5f7065725f686f7572223a353030303030302c226c6576656c223a3530303030303030302c226c6576656c5f6174223a313739383435363136323736343134302c226672616374696f6e223a302c226b696e64223a302c22656e6465645f6174223a302c227365745f6279223a307d2c2270617468223a2261636d652f70227d7d', 1798456162764140),
	(1, 'key-50', '\x416464426f6f7374287461726765745f69643d33312c20616d6f756e743d312c20656e64735f61743d313739353030333630363933373738372c207374617274735f61743d4e6f6e652c20726566696c6c5f7065725f686f75723d302c206e6f74653d27272c2062793d3c417574686f726974792e53595354454d3a20303e29', '\x7b226b696e64223a22426f6f73746564222c2276616c7565223a7b22626f6f7374223a7b22626f6f73745f6964223a33332c226163636f756e745f6964223a312c227461726765745f6964223a33312c22616d6f756e74223a312c227374617274735f6174223a313739353030303135393336393838372c22656e64735f6174223a313739353030333630363933373738372c22726566696c6c5f7065725f686f7572223a302c226e6f7465223a22222c22637265617465645f6174223a313739353030303135393336393838372c227365745f6279223a307d2c2270617468223a2261636d65222c22756e6974223a2247505573222c2269735f726174655f6c696d6974223a66616c73657d7d', 1795000159369887),
	(1, 'key-51', '\x536574427564676574286163636f756e743d2761636d652f71272c20616c6c6f77616e63653d313030303030302c206e616d653d2764656661756c74272c2063616c656e6461723d4e6f6e652c207a6f6e653d27555443272c207374617274735f61743d4e6f6e652c20656e64735f61743d313739353030303136313339363137392c20726f6c6c6f7665723d3c526f6c6c6f7665722e414c4c3a20313e2c20726f6c6c6f7665725f6361703d302c20726f6c6c6f7665725f75733d333630303030303030302c207072696f726974793d3130302c207761726e5f70657263656e743d28292c206e616d65643d4e6f6e6529', '\x7b226b696e64223a224275646765745361766564222c2276616c7565223a7b22627564676574223a7b226275646765745f6964223a33342c226163636f756e745f6964223a332c226e616d65223a2264656661756c74222c22616c6c6f77616e6365223a313030303030302c226e6578745f6174223a313739353030303136313339363137392c2263616c656e646172223a6e756c6c2c227a6f6e65223a22555443222c22656e64735f6174223a313739353030303136313339363137392c22726f6c6c6f766572223a312c22726f6c6c6f7665725f636170223a302c22726f6c6c6f7665725f7573223a333630303030303030302c227072696f72697479223a3130302c227761726e5f70657263656e74223a5b5d2c22637265617465645f6174223a313739353030303135393433393632317d2c2270617468223a2261636d652f71227d7d', 1795000159439621),
	(1, 'key-52', '\x536574427564676574286163636f756e743d2761636d65272c20616c6c6f77616e63653d313030303030302c206e616d653d276d272c2063616c656e6461723d3c43616c656e6461722e4d4f4e54483a20323e2c207a6f6e653d27555443272c207374617274735f61743d4e6f6e652c20656e64735f61743d343631313638363031383432373338373930342c20726f6c6c6f7665723d3c526f6c6c6f7665722e4e4f4e453a20303e2c20726f6c6c6f7665725f6361703d302c20726f6c6c6f7665725f75733d302c207072696f726974793d3130302c207761726e5f70657263656e743d28292c206e616d65643d4e6f6e6529', '\x7b226b696e64223a224275646765745361766564222c2276616c7565223a7b22627564676574223a7b226275646765745f6964223a33362c226163636f756e745f6964223a312c226e616d65223a226d222c22616c6c6f77616e6365223a313030303030302c226e6578745f6174223a313739363038333230303030303030302c2263616c656e646172223a322c227a6f6e65223a22555443222c22656e64735f6174223a343631313638363031383432373338373930342c22726f6c6c6f766572223a302c22726f6c6c6f7665725f636170223a302c22726f6c6c6f7665725f7573223a302c227072696f72697479223a3130302c227761726e5f70657263656e74223a5b5d2c22637265617465645f6174223a313739353030303135393434393539387d2c2270617468223a2261636d65227d7d', 1795000159449598),
	(1, 'key-53', '\x5570646174654163636f756e7428706174683d2761636d652f71272c207374617475733d4e6f6e652c206d6f64656c3d4e6f6e652c206372656469745f6c696d69743d4e6f6e652c206d657461646174613d4e6f6e652c206c6162656c733d4e6f6e652c206f76657264726166745f6c696d69743d313030303030302c2064656c696e7175656e743d4e6f6e652c2066756e64696e673d4e6f6e652c2077696e646f775f6d61785f6d733d4e6f6e652c2062793d3c417574686f726974792e53595354454d3a20303e29', '\x7b226b696e64223a224163636f756e745361766564222c2276616c7565223a7b226163636f756e74223a7b226163636f756e745f6964223a332c2270617468223a2261636d652f71222c226d6f64656c223a312c226372656469745f6c696d6974223a35303030303030302c22737461747573223a302c2272656d61696e696e67223a343530303030302c227265736572766564223a302c227370656e74223a3530303030302c2264656274223a302c226f76657272756e223a302c2276657273696f6e223a31302c226475655f6174223a313739353030303136313339363137392c22616c6c6f6361746564223a747275652c22637265617465645f6174223a313739343939393838363833313735302c226d65746164617461223a7b7d2c2264656c696e7175656e74223a66616c73652c226f76657264726166745f6c696d6974223a313030303030302c2270726f6d69736564223a302c2266756e64696e67223a302c2277696e646f775f6d61785f6d73223a302c2273757370656e6465645f6279223a307d2c227374616e6473223a6e756c6c7d7d', 1795000159459609),
	(1, 'key-54', '\x5377656570286163636f756e745f69643d3329', '\x7b226b696e64223a225377657074222c2276616c7565223a7b22656e7472696573223a312c226d6f7665645f6f6e223a747275657d7d', 1795000162467125),
	(1, 'key-56', '\x52657365727665286163636f756e743d2761636d65272c206a6f625f69643d276a6f62272c206770755f747970653d2768313030272c206770755f636f756e743d312c20726567696f6e3d2764656661756c74272c206e6f64653d276e6f64652d3535272c2077696e646f775f6d733d31303030302c20657363726f775f77696e646f77733d302c206d61785f616d6f756e743d353030303030302c2070617965723d27272c2065786861757374696f6e3d3c45786861757374696f6e2e445241494e3a20313e2c2067726163655f6d733d302c206f76657264726166743d302c20666169725f73686172653d4e6f6e652c206d657461646174613d7b7d2c2073636f70653d272729', '\x7b226b696e64223a225265736572766564222c2276616c7565223a7b227265736572766174696f6e223a7b227265736572766174696f6e5f6964223a33392c226163636f756e74223a2261636d65222c226163636f756e745f6964223a312c2270617965725f6964223a312c226a6f625f6964223a226a6f62222c226770755f74797065223a2268313030222c226770755f636f756e74223a312c22726567696f6e223a2264656661756c74222c226e6f6465223a226e6f64652d3535222c227072696365223a333630303030303030302c2270726963655f6964223a312c2277696e646f775f6d73223a31303030302c2261646d69747465645f6174223a313739353030303136323437323335332c22657870697265735f6174223a313739353030303136373437323335332c22657363726f775f77696e646f7773223a302c226d61785f616d6f756e74223a353030303030302c2268656c64223a353030303030302c22736574746c6564223a302c2261646a7573746564223a302c22726566756e646564223a302c22757365645f6d73223a302c22736571223a302c227374617465223a302c226465636973696f6e223a22636f6e74696e7565222c22656e6465645f6174223a302c2270616964223a5b5d2c226d65746164617461223a7b7d2c22626561745f6174223a313739353030303136323437323335332c2265786861757374696f6e223a312c2267726163655f6d73223a302c226f7665726472616674223a302c226f766572647261776e223a302c226c656176696e67223a66616c73652c2273746f7070696e675f6174223a302c22776879223a22222c2270726f6d69736564223a302c226361705f70617274223a2d312c226361705f7365656e223a302c22636c656172735f6174223a302c2273746f7070696e675f666f72223a302c22617574686f7269736564223a302c226b657074223a5b5d2c22706179657273223a5b5d7d2c226163636f756e74223a2261636d65222c227061796572223a2261636d65222c22657870697265735f696e5f6d73223a353030307d7d', 1795000162472353),
	(1, 'key-57', '\x53657451756f7461286163636f756e743d2761636d652f70272c2064696d656e73696f6e3d3c44696d656e73696f6e2e434f4e43555252454e545f4a4f42533a20323e2c206c696d69743d35302c206770755f747970653d2768313030272c2063616c656e6461723d4e6f6e652c207a6f6e653d27555443272c20726f6c6c696e675f686f7572733d302c20757365643d302c20706173743d28292c2062793d3c417574686f726974792e53595354454d3a20303e29', '\x7b226b696e64223a2251756f74615361766564222c2276616c7565223a7b2271756f7461223a7b2271756f74615f6964223a34312c226163636f756e745f6964223a322c2264696d656e73696f6e223a322c226c696d6974223a35302c226770755f74797065223a2268313030222c2263616c656e646172223a6e756c6c2c227a6f6e65223a22555443222c22726f6c6c696e675f686f757273223a302c22637265617465645f6174223a313739383435363136323638313536342c22656e6465645f6174223a302c22736565646564223a302c2266697273745f656e7472795f6964223a35372c227365745f6279223a307d2c2270617468223a2261636d652f70227d7d', 1798456162681564),
	(1, 'key-58', '\x53657451756f7461286163636f756e743d2761636d652f70272c2064696d656e73696f6e3d3c44696d656e73696f6e2e434f4e43555252454e545f4a4f42533a20323e2c206c696d69743d36302c206770755f747970653d2768313030272c2063616c656e6461723d4e6f6e652c207a6f6e653d27555443272c20726f6c6c696e675f686f7572733d302c20757365643d302c20706173743d28292c2062793d3c417574686f726974792e53595354454d3a20303e29', '\x7b226b696e64223a2251756f74615361766564222c2276616c7565223a7b2271756f7461223a7b2271756f74615f6964223a34312c226163636f756e745f6964223a322c2264696d656e73696f6e223a322c226c696d6974223a36302c226770755f74797065223a2268313030222c2263616c656e646172223a6e756c6c2c227a6f6e65223a22555443222c22726f6c6c696e675f686f757273223a302c22637265617465645f6174223a313739383435363136323638313536342c22656e6465645f6174223a302c22736565646564223a302c2266697273745f656e7472795f6964223a35372c227365745f6279223a307d2c2270617468223a2261636d652f70227d7d', 1798456162695245),
	(1, 'key-59', '\x416464426f6f7374287461726765745f69643d34312c20616d6f756e743d332c20656e64735f61743d313739383435393736323635343932372c207374617274735f61743d4e6f6e652c20726566696c6c5f7065725f686f75723d302c206e6f74653d276e272c2062793d3c417574686f726974792e53595354454d3a20303e29', '\x7b226b696e64223a22426f6f73746564222c2276616c7565223a7b22626f6f7374223a7b22626f6f73745f6964223a34322c226163636f756e745f6964223a322c227461726765745f6964223a34312c22616d6f756e74223a332c227374617274735f6174223a313739383435363136323730313739332c22656e64735f6174223a313739383435393736323635343932372c22726566696c6c5f7065725f686f7572223a302c226e6f7465223a226e222c22637265617465645f6174223a313739383435363136323730313739332c227365745f6279223a307d2c2270617468223a2261636d652f70222c22756e6974223a226a6f6273222c2269735f726174655f6c696d6974223a66616c73657d7d', 1798456162701793),
	(1, 'key-60', '\x456e64426f6f7374287461726765745f69643d34312c20626f6f73745f69643d34322c2062793d3c417574686f726974792e53595354454d3a20303e29', '\x7b226b696e64223a22426f6f73746564222c2276616c7565223a7b22626f6f7374223a7b22626f6f73745f6964223a34322c226163636f756e745f6964223a322c227461726765745f6964223a34312c22616d6f756e74223a332c227374617274735f6174223a313739383435363136323730313739332c22656e64735f6174223a313739383435363136323730373334332c22726566696c6c5f7065725f686f7572223a302c226e6f7465223a226e222c22637265617465645f6174223a313739383435363136323730313739332c227365745f6279223a307d2c2270617468223a2261636d652f70222c22756e6974223a226a6f6273222c2269735f726174655f6c696d6974223a66616c73657d7d', 1798456162707343),
	(1, 'key-61', '\x5265706c61636551756f746173286163636f756e743d2761636d652f70272c2071756f7461733d2853657451756f7461286163636f756e743d2761636d652f70272c2064696d656e73696f6e3d3c44696d656e73696f6e2e435245444954535f5045525f57494e444f573a20333e2c206c696d69743d3930303030303030302c206770755f747970653d27272c2063616c656e6461723d3c43616c656e6461722e4441593a20303e2c207a6f6e653d274575726f70652f4265726c696e272c20726f6c6c696e675f686f7572733d302c20757365643d302c20706173743d28292c2062793d3c417574686f726974792e53595354454d3a20303e292c2053657451756f7461286163636f756e743d2761636d652f70272c2064696d656e73696f6e3d3c44696d656e73696f6e2e435245444954535f5045525f57494e444f573a20333e2c206c696d69743d3930303030303030302c206770755f747970653d27272c2063616c656e6461723d4e6f6e652c207a6f6e653d27555443272c20726f6c6c696e675f686f7572733d32342c20757365643d302c20706173743d28292c2062793d3c417574686f726974792e53595354454d3a20303e292c2053657451756f7461286163636f756e743d2761636d652f70272c2064696d656e73696f6e3d3c44696d656e73696f6e2e435245444954535f5045525f4a4f423a20303e2c206c696d69743d3930303030303030302c206770755f747970653d27272c2063616c656e6461723d4e6f6e652c207a6f6e653d27555443272c20726f6c6c696e675f686f7572733d302c20757365643d302c20706173743d28292c2062793d3c417574686f726974792e53595354454d3a20303e29292c2062793d3c417574686f726974792e53595354454d3a20303e29', '\x7b226b696e64223a2251756f7461735265706c61636564222c2276616c7565223a7b2270617468223a2261636d652f70222c2271756f746173223a5b7b2271756f74615f6964223a34332c226163636f756e745f6964223a322c2264696d656e73696f6e223a332c226c696d6974223a3930303030303030302c226770755f74797065223a22222c2263616c656e646172223a302c227a6f6e65223a224575726f70652f4265726c696e222c22726f6c6c696e675f686f757273223a302c22637265617465645f6174223a313739383435363136323732313733332c22656e6465645f6174223a302c22736565646564223a302c2266697273745f656e7472795f6964223a35372c227365745f6279223a307d2c7b2271756f74615f6964223a34342c226163636f756e745f6964223a322c2264696d656e73696f6e223a332c226c696d6974223a3930303030303030302c226770755f74797065223a22222c2263616c656e646172223a6e756c6c2c227a6f6e65223a22555443222c22726f6c6c696e675f686f757273223a32342c22637265617465645f6174223a313739383435363136323732313733332c22656e6465645f6174223a302c22736565646564223a302c2266697273745f656e7472795f6964223a35372c227365745f6279223a307d2c7b2271756f74615f6964223a34352c226163636f756e745f6964223a322c2264696d656e73696f6e223a302c226c696d6974223a3930303030303030302c226770755f74797065223a22222c2263616c656e646172223a6e756c6c2c227a6f6e65223a22555443222c22726f6c6c696e675f686f757273223a302c22637265617465645f6174223a313739383435363136323732313733332c22656e6465645f6174223a302c22736565646564223a302c2266697273745f656e7472795f6964223a35372c227365745f6279223a307d5d2c22656e646564223a5b7b2271756f74615f6964223a34312c226163636f756e745f6964223a322c2264696d656e73696f6e223a322c226c696d6974223a36302c226770755f74797065223a2268313030222c2263616c656e646172223a6e756c6c2c227a6f6e65223a22555443222c22726f6c6c696e675f686f757273223a302c22637265617465645f6174223a313739383435363136323638313536342c22656e6465645f6174223a313739383435363136323732313733332c22736565646564223a302c2266697273745f656e7472795f6964223a35372c227365745f6279223a307d5d7d7d', 1798456162721733),
	(1, 'key-62', '\x53657451756f7461286163636f756e743d2761636d652f71272c2064696d656e73696f6e3d3c44696d656e73696f6e2e434f4e43555252454e545f4a4f42533a20323e2c206c696d69743d372c206770755f747970653d27272c2063616c656e6461723d4e6f6e652c207a6f6e653d27555443272c20726f6c6c696e675f686f7572733d302c20757365643d302c20706173743d28292c2062793d3c417574686f726974792e53595354454d3a20303e29', '\x7b226b696e64223a2251756f74615361766564222c2276616c7565223a7b2271756f7461223a7b2271756f74615f6964223a34362c226163636f756e745f6964223a332c2264696d656e73696f6e223a322c226c696d6974223a372c226770755f74797065223a22222c2263616c656e646172223a6e756c6c2c227a6f6e65223a22555443222c22726f6c6c696e675f686f757273223a302c22637265617465645f6174223a313739383435363136323734313435352c22656e6465645f6174223a302c22736565646564223a302c2266697273745f656e7472795f6964223a35372c227365745f6279223a307d2c2270617468223a2261636d652f71227d7d', 1798456162741455),
	(1, 'key-63', '\x456e6451756f74612871756f74615f69643d34362c2062793d3c417574686f726974792e53595354454d3a20303e29', '\x7b226b696e64223a2251756f74615361766564222c2276616c7565223a7b2271756f7461223a7b2271756f74615f6964223a34362c226163636f756e745f6964223a332c2264696d656e73696f6e223a322c226c696d6974223a372c226770755f74797065223a22222c2263616c656e646172223a6e756c6c2c227a6f6e65223a22555443222c22726f6c6c696e675f686f757273223a302c22637265617465645f6174223a313739383435363136323734313435352c22656e6465645f6174223a313739383435363136323735343836392c22736565646564223a302c2266697273745f656e7472795f6964223a35372c227365745f6279223a307d2c2270617468223a2261636d652f71227d7d', 1798456162754869),
	(1, 'key-65', '\x416464426f6f7374287461726765745f69643d34372c20616d6f756e743d313030303030302c20656e64735f61743d313739383435393736323635343932372c207374617274735f61743d4e6f6e652c20726566696c6c5f7065725f686f75723d313030303030302c206e6f74653d27272c2062793d3c417574686f726974792e53595354454d3a20303e29', '\x7b226b696e64223a22426f6f73746564222c2276616c7565223a7b22626f6f7374223a7b22626f6f73745f6964223a34382c226163636f756e745f6964223a322c227461726765745f6964223a34372c22616d6f756e74223a313030303030302c227374617274735f6174223a313739383435363136323736393238372c22656e64735f6174223a313739383435393736323635343932372c22726566696c6c5f7065725f686f7572223a313030303030302c226e6f7465223a22222c22637265617465645f6174223a313739383435363136323736393238372c227365745f6279223a307d2c2270617468223a2261636d652f70222c22756e6974223a2263726564697473222c2269735f726174655f6c696d6974223a747275657d7d', 1798456162769287),
	(1, 'key-66', '\x456e64526174654c696d6974286163636f756e743d2761636d652f70272c2062793d3c417574686f726974792e53595354454d3a20303e29', '\x7b226b696e64223a22526174654c696d69745361766564222c2276616c7565223a7b226275636b6574223a7b226275636b65745f6964223a34372c226163636f756e745f6964223a322c226361706163697479223a3530303030303030302c22726566696c6c5f7065725f686f7572223a353030303030302c226c6576656c223a3530303030303030302c226c6576656c5f6174223a313739383435363136323736343134302c226672616374696f6e223a302c226b696e64223a302c22656e6465645f6174223a313739383435363136323737323033332c227365745f6279223a307d2c2270617468223a2261636d652f70227d7d', 1798456162772033),
	(1, 'key-67', '\x536574526174654c696d6974286163636f756e743d2761636d652f70272c2063617061636974793d3530303030303030302c20726566696c6c5f7065725f686f75723d353030303030302c206e616d65643d4e6f6e652c2062793d3c417574686f726974792e53595354454d3a20303e29', '\x7b226b696e64223a22526174654c696d69745361766564222c2276616c7565223a7b226275636b6574223a7b226275636b65745f6964223a34392c226163636f756e745f6964223a322c226361706163697479223a3530303030303030302c22726566696c6c5f7065725f686f7572223a353030303030302c226c6576656c223a3530303030303030302c226c6576656c5f6174223a313739383435363136323738313237392c226672616374696f6e223a302c226b696e64223a302c22656e6465645f6174223a302c227365745f6279223a307d2c2270617468223a2261636d652f70227d7d', 1798456162781279),
	(1, 'key-68', '\x5265706c61636542756467657473286163636f756e743d2761636d652f70272c20627564676574733d28536574427564676574286163636f756e743d2761636d652f70272c20616c6c6f77616e63653d313030303030302c206e616d653d276b657074272c2063616c656e6461723d3c43616c656e6461722e4d4f4e54483a20323e2c207a6f6e653d27555443272c207374617274735f61743d4e6f6e652c20656e64735f61743d343631313638363031383432373338373930342c20726f6c6c6f7665723d3c526f6c6c6f7665722e4e4f4e453a20303e2c20726f6c6c6f7665725f6361703d302c20726f6c6c6f7665725f75733d302c207072696f726974793d3130302c207761726e5f70657263656e743d2835302c203930292c206e616d65643d4e6f6e65292c20536574427564676574286163636f756e743d2761636d652f70272c20616c6c6f77616e63653d313030303030302c206e616d653d276f766572272c2063616c656e6461723d3c43616c656e6461722e4d4f4e54483a20323e2c207a6f6e653d27555443272c207374617274735f61743d4e6f6e652c20656e64735f61743d343631313638363031383432373338373930342c20726f6c6c6f7665723d3c526f6c6c6f7665722e4e4f4e453a20303e2c20726f6c6c6f7665725f6361703d302c20726f6c6c6f7665725f75733d302c207072696f726974793d3130302c207761726e5f70657263656e743d28292c206e616d65643d4e6f6e65292929', '\x7b226b696e64223a22427564676574735265706c61636564222c2276616c7565223a7b2270617468223a2261636d652f70222c2262756467657473223a5b7b226275646765745f6964223a35302c226163636f756e745f6964223a322c226e616d65223a226b657074222c22616c6c6f77616e6365223a313030303030302c226e6578745f6174223a313739383736313630303030303030302c2263616c656e646172223a322c227a6f6e65223a22555443222c22656e64735f6174223a343631313638363031383432373338373930342c22726f6c6c6f766572223a302c22726f6c6c6f7665725f636170223a302c22726f6c6c6f7665725f7573223a302c227072696f72697479223a3130302c227761726e5f70657263656e74223a5b35302c39305d2c22637265617465645f6174223a313739383435363136323738373034347d2c7b226275646765745f6964223a35322c226163636f756e745f6964223a322c226e616d65223a226f766572222c22616c6c6f77616e6365223a313030303030302c226e6578745f6174223a313739383736313630303030303030302c2263616c656e646172223a322c227a6f6e65223a22555443222c22656e64735f6174223a343631313638363031383432373338373930342c22726f6c6c6f766572223a302c22726f6c6c6f7665725f636170223a302c22726f6c6c6f7665725f7573223a302c227072696f72697479223a3130302c227761726e5f70657263656e74223a5b5d2c22637265617465645f6174223a313739383435363136323738373034347d5d2c22656e646564223a5b5d7d7d', 1798456162787044),
	(1, 'key-69', '\x5265706c61636542756467657473286163636f756e743d2761636d652f70272c20627564676574733d28536574427564676574286163636f756e743d2761636d652f70272c20616c6c6f77616e63653d313030303030302c206e616d653d276b657074272c2063616c656e6461723d3c43616c656e6461722e4d4f4e54483a20323e2c207a6f6e653d27555443272c207374617274735f61743d4e6f6e652c20656e64735f61743d343631313638363031383432373338373930342c20726f6c6c6f7665723d3c526f6c6c6f7665722e4e4f4e453a20303e2c20726f6c6c6f7665725f6361703d302c20726f6c6c6f7665725f75733d302c207072696f726974793d3130302c207761726e5f70657263656e743d2835302c203930292c206e616d65643d4e6f6e65292c2929', '\x7b226b696e64223a22427564676574735265706c61636564222c2276616c7565223a7b2270617468223a2261636d652f70222c2262756467657473223a5b7b226275646765745f6964223a35302c226163636f756e745f6964223a322c226e616d65223a226b657074222c22616c6c6f77616e6365223a313030303030302c226e6578745f6174223a313739383736313630303030303030302c2263616c656e646172223a322c227a6f6e65223a22555443222c22656e64735f6174223a343631313638363031383432373338373930342c22726f6c6c6f766572223a302c22726f6c6c6f7665725f636170223a302c22726f6c6c6f7665725f7573223a302c227072696f72697479223a3130302c227761726e5f70657263656e74223a5b35302c39305d2c22637265617465645f6174223a313739383435363136323738373034347d5d2c22656e646564223a5b7b226275646765745f6964223a35322c226163636f756e745f6964223a322c226e616d65223a226f766572222c22616c6c6f77616e6365223a313030303030302c226e6578745f6174223a313739383736313630303030303030302c2263616c656e646172223a322c227a6f6e65223a22555443222c22656e64735f6174223a313739383736313630303030303030302c22726f6c6c6f766572223a302c22726f6c6c6f7665725f636170223a302c22726f6c6c6f7665725f7573223a302c227072696f72697479223a3130302c227761726e5f70657263656e74223a5b5d2c22637265617465645f6174223a313739383435363136323738373034347d5d7d7d', 1798456162792290),
	(1, 'key-70', '\x536574427564676574286163636f756e743d2761636d652f70272c20616c6c6f77616e63653d323030303030302c206e616d653d276b657074272c2063616c656e6461723d3c43616c656e6461722e4d4f4e54483a20323e2c207a6f6e653d27555443272c207374617274735f61743d4e6f6e652c20656e64735f61743d343631313638363031383432373338373930342c20726f6c6c6f7665723d3c526f6c6c6f7665722e4e4f4e453a20303e2c20726f6c6c6f7665725f6361703d302c20726f6c6c6f7665725f75733d302c207072696f726974793d3130302c207761726e5f70657263656e743d28292c206e616d65643d4e6f6e6529', '\x7b226b696e64223a224275646765745361766564222c2276616c7565223a7b22627564676574223a7b226275646765745f6964223a35302c226163636f756e745f6964223a322c226e616d65223a226b657074222c22616c6c6f77616e6365223a323030303030302c226e6578745f6174223a313739383736313630303030303030302c2263616c656e646172223a322c227a6f6e65223a22555443222c22656e64735f6174223a343631313638363031383432373338373930342c22726f6c6c6f766572223a302c22726f6c6c6f7665725f636170223a302c22726f6c6c6f7665725f7573223a302c227072696f72697479223a3130302c227761726e5f70657263656e74223a5b5d2c22637265617465645f6174223a313739383435363136323738373034347d2c2270617468223a2261636d652f70227d7d', 1798456162801498),
	(1, 'key-71', '\x536574427564676574286163636f756e743d2761636d652f70272c20616c6c6f77616e63653d313030303030302c206e616d653d27656e646564272c2063616c656e6461723d3c43616c656e6461722e4d4f4e54483a20323e2c207a6f6e653d27555443272c207374617274735f61743d4e6f6e652c20656e64735f61743d343631313638363031383432373338373930342c20726f6c6c6f7665723d3c526f6c6c6f7665722e4e4f4e453a20303e2c20726f6c6c6f7665725f6361703d302c20726f6c6c6f7665725f75733d302c207072696f726974793d3130302c207761726e5f70657263656e743d28292c206e616d65643d4e6f6e6529', '\x7b226b696e64223a224275646765745361766564222c2276616c7565223a7b22627564676574223a7b226275646765745f6964223a35342c226163636f756e745f6964223a322c226e616d65223a22656e646564222c22616c6c6f77616e6365223a313030303030302c226e6578745f6174223a313739383736313630303030303030302c2263616c656e646172223a322c227a6f6e65223a22555443222c22656e64735f6174223a343631313638363031383432373338373930342c22726f6c6c6f766572223a302c22726f6c6c6f7665725f636170223a302c22726f6c6c6f7665725f7573223a302c227072696f72697479223a3130302c227761726e5f70657263656e74223a5b5d2c22637265617465645f6174223a313739383435363136323830373333327d2c2270617468223a2261636d652f70227d7d', 1798456162807332),
	(1, 'key-72', '\x456e64427564676574286163636f756e743d2761636d652f70272c206e616d653d27656e6465642729', '\x7b226b696e64223a224275646765745361766564222c2276616c7565223a7b22627564676574223a7b226275646765745f6964223a35342c226163636f756e745f6964223a322c226e616d65223a22656e646564222c22616c6c6f77616e6365223a313030303030302c226e6578745f6174223a313739383736313630303030303030302c2263616c656e646172223a322c227a6f6e65223a22555443222c22656e64735f6174223a313739383736313630303030303030302c22726f6c6c6f766572223a302c22726f6c6c6f7665725f636170223a302c22726f6c6c6f7665725f7573223a302c227072696f72697479223a3130302c227761726e5f70657263656e74223a5b5d2c22637265617465645f6174223a313739383435363136323830373333327d2c2270617468223a2261636d652f70227d7d', 1798456162810743),
	(1, 'request 2 1', '\x03bb850057d3dc0ad35320b2e6b0e5877084192d2489e9b8aeabc441ef3e2a37', '\x7b226b696e64223a224772616e746564222c2276616c7565223a7b226772616e74223a7b226772616e745f6964223a35362c226163636f756e745f6964223a322c22616d6f756e74223a343030303030302c2272656d61696e696e67223a343030303030302c227374617274735f6174223a313739383435363136323839303437312c22657870697265735f6174223a343631313638363031383432373338373930342c227072696f72697479223a3130302c22736f75726365223a312c227374617465223a312c226f726967696e5f6964223a302c22637265617465645f6174223a313739383435363136323839303437312c226d65746164617461223a7b2272657175657374223a2261736b5f315f32227d2c226275646765745f6964223a302c22636c61696d73223a307d2c2270617468223a2261636d652f70227d7d', 1798456162890471),
	(1, 'key-73', '\x4372656174654163636f756e7428706174683d2761636d652f69646c65272c206d6f64656c3d3c4d6f64656c2e505245504149443a20303e2c206372656469745f6c696d69743d302c206d657461646174613d7b7d2c2066756e64696e673d4e6f6e6529', '\x7b226b696e64223a224163636f756e745361766564222c2276616c7565223a7b226163636f756e74223a7b226163636f756e745f6964223a35372c2270617468223a2261636d652f69646c65222c226d6f64656c223a302c226372656469745f6c696d6974223a302c22737461747573223a302c2272656d61696e696e67223a302c227265736572766564223a302c227370656e74223a302c2264656274223a302c226f76657272756e223a302c2276657273696f6e223a312c226475655f6174223a343631313638363031383432373338373930342c22616c6c6f6361746564223a66616c73652c22637265617465645f6174223a313739383435363136323930383035312c226d65746164617461223a7b7d2c2264656c696e7175656e74223a66616c73652c226f76657264726166745f6c696d6974223a302c2270726f6d69736564223a302c2266756e64696e67223a312c2277696e646f775f6d61785f6d73223a302c2273757370656e6465645f6279223a307d2c227374616e6473223a6e756c6c7d7d', 1798456162908051),
	(1, 'key-74', '\x5570646174654163636f756e7428706174683d2761636d652f69646c65272c207374617475733d3c5374617475732e53555350454e4445443a20313e2c206d6f64656c3d4e6f6e652c206372656469745f6c696d69743d4e6f6e652c206d657461646174613d4e6f6e652c206c6162656c733d4e6f6e652c206f76657264726166745f6c696d69743d4e6f6e652c2064656c696e7175656e743d4e6f6e652c2066756e64696e673d4e6f6e652c2077696e646f775f6d61785f6d733d4e6f6e652c2062793d3c417574686f726974792e4f52473a20313e29', '\x7b226b696e64223a224163636f756e745361766564222c2276616c7565223a7b226163636f756e74223a7b226163636f756e745f6964223a35372c2270617468223a2261636d652f69646c65222c226d6f64656c223a302c226372656469745f6c696d6974223a302c22737461747573223a312c2272656d61696e696e67223a302c227265736572766564223a302c227370656e74223a302c2264656274223a302c226f76657272756e223a302c2276657273696f6e223a322c226475655f6174223a343631313638363031383432373338373930342c22616c6c6f6361746564223a66616c73652c22637265617465645f6174223a313739383435363136323930383035312c226d65746164617461223a7b7d2c2264656c696e7175656e74223a66616c73652c226f76657264726166745f6c696d6974223a302c2270726f6d69736564223a302c2266756e64696e67223a312c2277696e646f775f6d61785f6d73223a302c2273757370656e6465645f6279223a317d2c227374616e6473223a6e756c6c7d7d', 1798456162918356),
	(1, 'key-76', '\x52657365727665286163636f756e743d2761636d65272c206a6f625f69643d276d65617375726564272c206770755f747970653d2768313030272c206770755f636f756e743d312c20726567696f6e3d2764656661756c74272c206e6f64653d276e272c2077696e646f775f6d733d31303030302c20657363726f775f77696e646f77733d302c206d61785f616d6f756e743d302c2070617965723d27272c2065786861757374696f6e3d3c45786861757374696f6e2e445241494e3a20313e2c2067726163655f6d733d302c206f76657264726166743d302c20666169725f73686172653d4e6f6e652c206d657461646174613d7b7d2c2073636f70653d272729', '\x7b226b696e64223a225265736572766564222c2276616c7565223a7b227265736572766174696f6e223a7b227265736572766174696f6e5f6964223a35382c226163636f756e74223a2261636d65222c226163636f756e745f6964223a312c2270617965725f6964223a312c226a6f625f6964223a226d65617375726564222c226770755f74797065223a2268313030222c226770755f636f756e74223a312c22726567696f6e223a2264656661756c74222c226e6f6465223a226e222c227072696365223a333630303030303030302c2270726963655f6964223a312c2277696e646f775f6d73223a31303030302c2261646d69747465645f6174223a313739383435363136323933303435322c22657870697265735f6174223a313739383435363137323933303435322c22657363726f775f77696e646f7773223a302c226d61785f616d6f756e74223a302c2268656c64223a31303030303030302c22736574746c6564223a302c2261646a7573746564223a302c22726566756e646564223a302c22757365645f6d73223a302c22736571223a302c227374617465223a302c226465636973696f6e223a22636f6e74696e7565222c22656e6465645f6174223a302c2270616964223a5b5d2c226d65746164617461223a7b7d2c22626561745f6174223a313739383435363136323933303435322c2265786861757374696f6e223a312c2267726163655f6d73223a302c226f7665726472616674223a302c226f766572647261776e223a302c226c656176696e67223a66616c73652c2273746f7070696e675f6174223a302c22776879223a22222c2270726f6d69736564223a302c226361705f70617274223a2d312c226361705f7365656e223a302c22636c656172735f6174223a302c2273746f7070696e675f666f72223a302c22617574686f7269736564223a302c226b657074223a5b5d2c22706179657273223a5b5d7d2c226163636f756e74223a2261636d65222c227061796572223a2261636d65222c22657870697265735f696e5f6d73223a31303030307d7d', 1798456162930452),
	(2, 'key-77', '\x4372656174654163636f756e7428706174683d27676c6f626578272c206d6f64656c3d3c4d6f64656c2e505245504149443a20303e2c206372656469745f6c696d69743d302c206d657461646174613d7b7d2c2066756e64696e673d4e6f6e6529', '\x7b226b696e64223a224163636f756e745361766564222c2276616c7565223a7b226163636f756e74223a7b226163636f756e745f6964223a312c2270617468223a22676c6f626578222c226d6f64656c223a302c226372656469745f6c696d6974223a302c22737461747573223a302c2272656d61696e696e67223a302c227265736572766564223a302c227370656e74223a302c2264656274223a302c226f76657272756e223a302c2276657273696f6e223a312c226475655f6174223a343631313638363031383432373338373930342c22616c6c6f6361746564223a66616c73652c22637265617465645f6174223a313739383435363136323935323932382c226d65746164617461223a7b7d2c2264656c696e7175656e74223a66616c73652c226f76657264726166745f6c696d6974223a302c2270726f6d69736564223a302c2266756e64696e67223a302c2277696e646f775f6d61785f6d73223a302c2273757370656e6465645f6279223a307d2c227374616e6473223a6e756c6c7d7d', 1798456162952928),
	(2, 'key-78', '\x4973737565286163636f756e743d27676c6f626578272c20616d6f756e743d3130303030303030302c207374617274735f61743d4e6f6e652c20657870697265735f61743d343631313638363031383432373338373930342c207072696f726974793d3130302c20736f757263653d3c536f757263652e414c4c4f57414e43453a20313e2c206d657461646174613d7b7d29', '\x7b226b696e64223a224772616e746564222c2276616c7565223a7b226772616e74223a7b226772616e745f6964223a322c226163636f756e745f6964223a312c22616d6f756e74223a3130303030303030302c2272656d61696e696e67223a3130303030303030302c227374617274735f6174223a313739383435363136323935353737392c22657870697265735f6174223a343631313638363031383432373338373930342c227072696f72697479223a3130302c22736f75726365223a312c227374617465223a312c226f726967696e5f6964223a302c22637265617465645f6174223a313739383435363136323935353737392c226d65746164617461223a7b7d2c226275646765745f6964223a302c22636c61696d73223a307d2c2270617468223a22676c6f626578227d7d', 1798456162955779),
	(2, 'key-79', '\x4372656174654163636f756e7428706174683d27676c6f6265782f6e6c70272c206d6f64656c3d3c4d6f64656c2e505245504149443a20303e2c206372656469745f6c696d69743d302c206d657461646174613d7b7d2c2066756e64696e673d4e6f6e6529', '\x7b226b696e64223a224163636f756e745361766564222c2276616c7565223a7b226163636f756e74223a7b226163636f756e745f6964223a332c2270617468223a22676c6f6265782f6e6c70222c226d6f64656c223a302c226372656469745f6c696d6974223a302c22737461747573223a302c2272656d61696e696e67223a302c227265736572766564223a302c227370656e74223a302c2264656274223a302c226f76657272756e223a302c2276657273696f6e223a312c226475655f6174223a343631313638363031383432373338373930342c22616c6c6f6361746564223a66616c73652c22637265617465645f6174223a313739383435363136323935393133322c226d65746164617461223a7b7d2c2264656c696e7175656e74223a66616c73652c226f76657264726166745f6c696d6974223a302c2270726f6d69736564223a302c2266756e64696e67223a312c2277696e646f775f6d61785f6d73223a302c2273757370656e6465645f6279223a307d2c227374616e6473223a6e756c6c7d7d', 1798456162959132),
	(2, 'key-80', '\x4973737565286163636f756e743d27676c6f6265782f6e6c70272c20616d6f756e743d3130303030303030302c207374617274735f61743d4e6f6e652c20657870697265735f61743d343631313638363031383432373338373930342c207072696f726974793d3130302c20736f757263653d3c536f757263652e414c4c4f57414e43453a20313e2c206d657461646174613d7b7d29', '\x7b226b696e64223a224772616e746564222c2276616c7565223a7b226772616e74223a7b226772616e745f6964223a342c226163636f756e745f6964223a332c22616d6f756e74223a3130303030303030302c2272656d61696e696e67223a3130303030303030302c227374617274735f6174223a313739383435363136323936363731312c22657870697265735f6174223a343631313638363031383432373338373930342c227072696f72697479223a3130302c22736f75726365223a312c227374617465223a312c226f726967696e5f6964223a302c22637265617465645f6174223a313739383435363136323936363731312c226d65746164617461223a7b7d2c226275646765745f6964223a302c22636c61696d73223a307d2c2270617468223a22676c6f6265782f6e6c70227d7d', 1798456162966711);
INSERT INTO meters VALUES
	(1, 2, '{43,0,0,0,1798412400000000,1798498800000000,44,0,0,0,1798454880000000,1798456320000000}', 500000000, 1798456162781279, 0),
	(1, 1, '{}', 990000000, 1798456162930452, 0);
INSERT INTO orgs VALUES
	(0, 'system:', 9, 1, 0, 1618793328819063808, false, false),
	(1, 'acme', 59, 62, 1798456162930452, 1428026267383755751, true, true),
	(2, 'globex', 5, 3, 1798456162966711, 2278773702187426825, false, false);
INSERT INTO outbox OVERRIDING SYSTEM VALUE VALUES
	(1, 1, 1794999886795345, 'account.opened', 1, '{"path": "acme"}'),
	(1, 2, 1794999886826503, 'account.opened', 2, '{"path": "acme/p"}'),
	(1, 3, 1794999886831750, 'account.opened', 3, '{"path": "acme/q"}'),
	(1, 4, 1795000006947301, 'grant.issued', 4, '{"amount": "4", "account_id": 1}'),
	(1, 5, 1795000006955618, 'grant.issued', 5, '{"amount": "200", "account_id": 1}'),
	(1, 6, 1795000006959363, 'account.funding_changed', 2, '{"path": "acme/p", "funding": "own"}'),
	(1, 7, 1795000006959363, 'grant.issued', 6, '{"amount": "30", "account_id": 2}'),
	(1, 8, 1795000006964067, 'grant.issued', 7, '{"amount": "100", "account_id": 2}'),
	(1, 9, 1795000006971452, 'grant.issued', 8, '{"amount": "1", "account_id": 2}'),
	(1, 10, 1795000006980503, 'grant.issued', 9, '{"amount": "1", "account_id": 2}'),
	(1, 11, 1795000006984819, 'topup.pending', 10, '{"grant": 0, "amount": "5"}'),
	(1, 12, 1795000006989952, 'topup.pending', 11, '{"grant": 0, "amount": "6"}'),
	(1, 13, 1795000006991658, 'topup.confirmed', 11, '{"grant": 12, "amount": "6"}'),
	(1, 14, 1795000006991658, 'grant.issued', 12, '{"amount": "6", "account_id": 1}'),
	(1, 15, 1795000007003988, 'topup.pending', 13, '{"grant": 0, "amount": "7"}'),
	(1, 16, 1795000007005840, 'topup.failed', 13, '{"grant": 0, "amount": "7"}'),
	(1, 17, 1795000007010545, 'topup.pending', 14, '{"grant": 0, "amount": "8"}'),
	(1, 18, 1795000007013093, 'topup.confirmed', 14, '{"grant": 15, "amount": "8"}'),
	(1, 19, 1795000007013093, 'grant.issued', 15, '{"amount": "8", "account_id": 1}'),
	(1, 20, 1795000007015087, 'topup.reversed', 14, '{"grant": 15, "amount": "8"}'),
	(1, 21, 1795000007018920, 'topup.pending', 16, '{"grant": 0, "amount": "9"}'),
	(1, 22, 1795000007020344, 'topup.confirmed', 16, '{"grant": 17, "amount": "9"}'),
	(1, 23, 1795000007020344, 'grant.issued', 17, '{"amount": "9", "account_id": 1}'),
	(1, 24, 1795000007022844, 'reservation.opened', 18, '{"held": "5", "job_id": "job", "account": "acme/q", "settled": "0"}'),
	(1, 25, 1795000009038353, 'reservation.settled', 18, '{"account": "acme/q", "settled": "2"}'),
	(1, 26, 1795000009047157, 'grant.issued', 19, '{"amount": "1", "account_id": 3}'),
	(1, 27, 1795000009066136, 'grant.issued', 20, '{"amount": "3", "account_id": 3}'),
	(1, 28, 1795000009078184, 'reservation.opened', 22, '{"held": "20", "job_id": "job", "account": "acme", "settled": "0"}'),
	(1, 29, 1795000015109265, 'reservation.settled', 22, '{"account": "acme", "settled": "6.031"}'),
	(1, 30, 1795000015121923, 'reservation.opened', 23, '{"held": "30", "job_id": "job", "account": "acme/p", "settled": "0"}'),
	(1, 31, 1795000055153915, 'grant.expired', 8, '{"amount": "1", "held_over": "0", "account_id": 2}'),
	(1, 32, 1795000055163055, 'reservation.settled', 23, '{"account": "acme/p", "settled": "20.0205"}'),
	(1, 33, 1795000055182210, 'reservation.opened', 24, '{"held": "10", "job_id": "job", "account": "acme", "settled": "0"}'),
	(1, 34, 1795000055185338, 'reservation.canceled', 24, '{"account": "acme", "settled": "0"}'),
	(1, 35, 1795000055194331, 'reservation.opened', 25, '{"held": "5", "job_id": "job", "account": "acme", "settled": "0"}'),
	(1, 36, 1795000145206291, 'reservation.lapsed', 25, '{"account": "acme", "settled": "0"}'),
	(1, 37, 1795000145208709, 'reservation.opened', 26, '{"held": "100", "job_id": "job", "account": "acme", "settled": "0"}'),
	(1, 38, 1795000148238429, 'reservation.opened', 27, '{"held": "50", "job_id": "job", "account": "acme/p", "settled": "0"}'),
	(1, 39, 1795000151257718, 'account.opened', 28, '{"path": "acme/p/u"}'),
	(1, 40, 1795000151263812, 'grant.issued', 29, '{"amount": "5", "account_id": 28}'),
	(1, 41, 1795000151269491, 'reservation.opened', 30, '{"held": "5", "job_id": "job", "account": "acme/p/u", "settled": "0"}'),
	(1, 42, 1795000155287662, 'reservation.payer_changed', 30, '{"to": "acme/p", "from": "acme/p/u", "held": "5"}'),
	(1, 43, 1795000159439621, 'grant.issued', 35, '{"amount": "1", "account_id": 3}'),
	(1, 44, 1795000159449598, 'grant.issued', 37, '{"amount": "1", "account_id": 1}'),
	(1, 45, 1795000162467125, 'grant.expired', 35, '{"amount": "1", "held_over": "0", "account_id": 3}'),
	(1, 46, 1795000162467125, 'grant.issued', 38, '{"amount": "1", "account_id": 3}'),
	(1, 47, 1795000162472353, 'reservation.opened', 39, '{"held": "5", "job_id": "job", "account": "acme", "settled": "0"}'),
	(1, 48, 1798456162504187, 'grant.expired', 38, '{"amount": "1", "held_over": "0", "account_id": 3}'),
	(1, 49, 1798456162504187, 'grant.expired', 20, '{"amount": "3", "held_over": "0", "account_id": 3}'),
	(1, 50, 1798456162517031, 'statement.closed', 1, '{"amount": "0", "due_at": "2027-01-11T11:09:22.514150Z", "period": "2026-11", "account": "acme/q", "closing": "-0.5", "statement_id": "stm_1_1"}'),
	(1, 51, 1798456162681564, 'reservation.lapsed', 39, '{"account": "acme", "settled": "0"}'),
	(1, 52, 1798456162681564, 'reservation.lapsed', 26, '{"account": "acme", "settled": "3"}'),
	(1, 53, 1798456162681564, 'grant.expired', 37, '{"amount": "1", "held_over": "0", "account_id": 1}'),
	(1, 54, 1798456162681564, 'grant.issued', 40, '{"amount": "1", "account_id": 1}'),
	(1, 55, 1798456162681564, 'reservation.lapsed', 30, '{"account": "acme/p/u", "settled": "4"}'),
	(1, 56, 1798456162681564, 'reservation.lapsed', 27, '{"account": "acme/p", "settled": "1.5"}'),
	(1, 57, 1798456162787044, 'grant.issued', 51, '{"amount": "1", "account_id": 2}'),
	(1, 58, 1798456162787044, 'grant.issued', 53, '{"amount": "1", "account_id": 2}'),
	(1, 59, 1798456162807332, 'grant.issued', 55, '{"amount": "1", "account_id": 2}'),
	(1, 60, 1798456162834487, 'request.asked', 1, '{"kind": "credits", "state": "open", "amount": "5", "account": "acme/p"}'),
	(1, 61, 1798456162863091, 'request.asked', 2, '{"kind": "credits", "state": "open", "amount": "5", "account": "acme/p"}'),
	(1, 62, 1798456162873058, 'request.asked', 3, '{"kind": "credits", "state": "open", "amount": "5", "account": "acme/p"}'),
	(1, 63, 1798456162885379, 'request.approving', 2, '{"kind": "credits", "state": "approving", "amount": "5", "account": "acme/p"}'),
	(1, 65, 1798456162900890, 'request.approved', 2, '{"kind": "credits", "state": "approved", "amount": "5", "account": "acme/p"}'),
	(1, 66, 1798456162905654, 'request.declined', 3, '{"kind": "credits", "state": "declined", "amount": "5", "account": "acme/p"}'),
	(1, 64, 1798456162890471, 'grant.issued', 56, '{"amount": "4", "account_id": 2}'),
	(1, 67, 1798456162908051, 'account.opened', 57, '{"path": "acme/idle"}'),
	(1, 68, 1798456162930452, 'reservation.opened', 58, '{"held": "10", "job_id": "measured", "account": "acme", "settled": "0"}'),
	(2, 69, 1798456162952928, 'account.opened', 1, '{"path": "globex"}'),
	(2, 70, 1798456162955779, 'grant.issued', 2, '{"amount": "100", "account_id": 1}'),
	(2, 71, 1798456162959132, 'account.opened', 3, '{"path": "globex/nlp"}'),
	(2, 72, 1798456162966711, 'account.funding_changed', 3, '{"path": "globex/nlp", "funding": "own"}'),
	(2, 73, 1798456162966711, 'grant.issued', 4, '{"amount": "100", "account_id": 3}');
INSERT INTO pool_dispatch VALUES
	(0, 1, '', 0, 2037442395055476736, 0),
	(0, 0, '', 0, 1898983963991144448, 0);
INSERT INTO pool_weights VALUES
	(0, 1, 'acme/p', 3, false),
	(0, 1, 'acme', 2, true);
INSERT INTO pools VALUES
	(0, 0, '', '', NULL, NULL, NULL, false, 0, 0, 0, false, 0, 0, 'user', 'ignored', 0, true, 0, 0),
	(0, 1, 'h100', 'default', 16, NULL, NULL, true, 30000, 300000, 100, true, 1000, 3600000, 'user', 'ignored', 0, true, 0, 1798456162601328);
INSERT INTO prices VALUES
	(0, 1, 'h100', 'default', 3600000000, 0, '', 0, 4611686018427387904, false),
	(0, 2, 'b200', 'default', 3600000000, 1794999886880305, '', 1794999886881304, 4611686018427387904, false),
	(1, 3, 'h100', 'default', 1800000000, 1000000, 'acme/p', 1794999886901658, 4611686018427387904, false),
	(1, 4, 'h100', 'default', 1, 1000000, 'acme/p', 1794999886912138, 1794999946910850, false),
	(0, 5, 'b200', 'default', 0, 1794999886918186, '', 1794999886918633, 4611686018427387904, true),
	(0, 6, 'l40', 'default', 1000000, 1798456162538198, '', 1798456162538962, 1798459762523475, false),
	(0, 7, 'l40', 'default', 1000000, 1798456162541074, '', 1798456162541592, 4611686018427387904, false),
	(0, 8, 'l40', 'default', 0, 1798456162542924, '', 1798456162543510, 4611686018427387904, true);
INSERT INTO quotas VALUES
	(1, 31, 1, 1, 1000, '', -1, 'UTC', 0, 1795000159349063, 0, 0, 44, 0),
	(1, 43, 2, 3, 900000000, '', 0, 'Europe/Berlin', 0, 1798456162721733, 0, 0, 57, 0),
	(1, 44, 2, 3, 900000000, '', -1, 'UTC', 24, 1798456162721733, 0, 0, 57, 0),
	(1, 45, 2, 0, 900000000, '', -1, 'UTC', 0, 1798456162721733, 0, 0, 57, 0),
	(1, 41, 2, 2, 60, 'h100', -1, 'UTC', 0, 1798456162681564, 1798456162721733, 0, 57, 0),
	(1, 46, 3, 2, 7, '', -1, 'UTC', 0, 1798456162741455, 1798456162754869, 0, 57, 0);
INSERT INTO request_limits VALUES
	(1, 1, 2, 20, 7200, 1798456162580781),
	(1, 2, 0, 20, 7200, 1798456162589284);
INSERT INTO requests OVERRIDING SYSTEM VALUE VALUES
	(1, 1, 'acme/p', 0, 0, 0, '', 5000000, 0, 4611686018427387904, 'why not', 'key_1_2', 1798456162829386, 1799665762829386, 0, '', 0, 0, '', 0, 0, 4611686018427387904, '', 0, '', ''),
	(1, 2, 'acme/p', 0, 0, 0, '', 5000000, 0, 4611686018427387904, 'why not', 'key_1_2', 1798456162862132, 1799665762862132, 2, 'key_0_2', 0, 1798456162884593, 'fine', 4000000, 0, 4611686018427387904, '', 1, 'grt_1_1k', ''),
	(1, 3, 'acme/p', 0, 0, 0, '', 5000000, 0, 4611686018427387904, 'why not', 'key_1_2', 1798456162871525, 1799665762871525, 3, 'key_0_2', 0, 1798456162904609, 'no', 0, 0, 4611686018427387904, '', 0, '', '');
INSERT INTO reservations VALUES
	(1, 18, 'acme/q', 3, 3, 'job', 'h100', 1, 'default', 'node-20', 3600000000, 1, 5000, 1795000007022844, 0, 0, 10, '{}', 1, 0, 0, 2000000, 0, 1500000, 2000, 2, 1795000009038353, 1795000009038353, '{0,500000}', 0, '{}', '{}', false, 1795000009038353, 1, 0, 0, 0, false, 0, 0, 0, 0, 0, -1, 0),
	(1, 22, 'acme', 1, 1, 'job', 'h100', 1, 'default', 'node-26', 3600000000, 1, 20000, 1795000009078184, 0, 0, 18, '{}', 1, 0, 0, 6031000, 0, 0, 6031, 2, 1795000015109265, 1795000015109265, '{4,4000000,5,2031000}', 0, '{}', '{}', false, 1795000015109265, 1, 0, 0, 0, false, 0, 0, 0, 0, 0, -1, 0),
	(1, 23, 'acme/p', 2, 2, 'job', 'h100', 1, 'default', 'node-29', 1800000000, 3, 60000, 1795000015121923, 0, 0, 23, '{}', 1, 0, 0, 20020500, 10000000, 1000000, 40041, 2, 1795000055163055, 1795000055163055, '{6,27000000,7,2020500}', 0, '{}', '{}', false, 1795000055163055, 1, 0, 0, 0, false, 0, 0, 0, 0, 0, -1, 0),
	(1, 24, 'acme', 1, 1, 'job', 'h100', 1, 'default', 'node-34', 3600000000, 1, 10000, 1795000055182210, 0, 0, 31, '{}', 2, 0, 0, 0, 0, 0, 0, 0, 1795000055185338, 1795000055185338, '{}', 0, '{}', '{}', false, 1795000055182210, 1, 0, 0, 0, false, 0, 0, 0, 0, 0, -1, 0),
	(1, 25, 'acme', 1, 1, 'job', 'h100', 1, 'default', 'node-37', 3600000000, 1, 5000, 1795000055194331, 0, 0, 33, '{}', 3, 0, 0, 0, 0, 0, 0, 0, 1795000060194331, 1795000060194331, '{}', 5000000, '{}', '{}', false, 1795000055194331, 1, 0, 0, 0, false, 0, 0, 0, 0, 0, -1, 0),
	(1, 26, 'acme', 1, 1, 'job', 'h100', 1, 'default', 'node-40', 3600000000, 1, 100000, 1795000145208709, 0, 0, 35, '{}', 3, 0, 0, 3000000, 0, 0, 3000, 1, 1795000248229172, 1795000248229172, '{5,3000000}', 103000000, '{}', '{}', false, 1795000148229172, 1, 0, 0, 0, false, 0, 0, 0, 0, 0, -1, 0),
	(1, 27, 'acme/p', 2, 2, 'job', 'h100', 1, 'default', 'node-42', 1800000000, 3, 100000, 1795000148238429, 0, 0, 37, '{}', 3, 0, 0, 1500000, 0, 0, 3000, 1, 1795000251253890, 1795000251253890, '{7,1500000}', 51500000, '{}', '{}', false, 1795000151253890, 1, 0, 0, 0, false, 0, 0, 0, 0, 0, -1, 0),
	(1, 39, 'acme', 1, 1, 'job', 'h100', 1, 'default', 'node-55', 3600000000, 1, 10000, 1795000162472353, 0, 5000000, 47, '{}', 3, 0, 0, 0, 0, 0, 0, 0, 1795000167472353, 1795000167472353, '{}', 5000000, '{}', '{}', false, 1795000162472353, 1, 0, 0, 0, false, 0, 0, 0, 0, 0, -1, 0),
	(1, 30, 'acme/p/u', 28, 2, 'job', 'h100', 1, 'default', 'node-46', 1800000000, 3, 10000, 1795000151269491, 0, 0, 40, '{}', 3, 0, 0, 4000000, 0, 0, 8000, 2, 1795000169310458, 1795000169310458, '{29,2000000,7,2000000}', 9000000, '{}', '{28,1}', false, 1795000159310458, 1, 0, 0, 0, false, 0, 0, 0, 0, 0, -1, 0),
	(1, 58, 'acme', 1, 1, 'measured', 'h100', 1, 'default', 'n', 3600000000, 1, 10000, 1798456162930452, 0, 0, 61, '{}', 0, 0, 10000000, 0, 0, 0, 0, 0, 1798456172930452, 0, '{}', 0, '{}', '{}', true, 1798456162930452, 1, 0, 0, 0, false, 0, 0, 0, 0, 0, -1, 0);
INSERT INTO schema_migrations VALUES
	(1, 'ledger', '874e95c0cbc8512781ba2983214210629d0311b57e07cc3f5fe96f3b802d2483', '2026-11-18 11:04:45.787616+00'),
	(2, 'gates', '57bdc927cddf4e5ce1938c0b5a1052155c7ff9284936082fb1d4405e6e786a38', '2026-11-18 11:04:45.910272+00'),
	(3, 'pools', 'b3711098a62991e9d65cc6beb22bf02ee6c9f39c54b156e572d7120d40a5742f', '2026-11-18 11:04:45.9997+00'),
	(4, 'requests', 'db0aa7bb2cc253c950d344ab6cd3ebb17916ae3b7d81743a9dbd4343fc53df93', '2026-11-18 11:04:46.037386+00'),
	(5, 'request_buckets', '6d8a03b9992db2e4e45f2e0700cfeaba29f0104a9c2f812ede54a647ed6e569e', '2026-11-18 11:04:46.047193+00');
INSERT INTO slots VALUES
	(1, 41, 0, 0),
	(1, 46, 0, 0),
	(1, 31, 1, 0);
INSERT INTO statements OVERRIDING SYSTEM VALUE VALUES
	(1, 1, 3, '2026-11', 0, 1799665762514150, 'acme/q', 1793491200000000, 1796083200000000, 1798456162514150, 0, 2000000, 0, 2500000, -500000, 2000000, 0);
INSERT INTO token_buckets VALUES
	(1, 32, 1, 0, 1000000000, 1000000, 1000000000, 1795000159358877, 0, 0, 0),
	(1, 47, 2, 0, 500000000, 5000000, 500000000, 1798456162764140, 0, 1798456162772033, 0),
	(1, 49, 2, 0, 500000000, 5000000, 500000000, 1798456162781279, 0, 0, 0);
INSERT INTO topups VALUES
	(1, 10, 1, 5000000, 'payment-0', 0, 0, 4611686018427387904, 100, 1795000006984819, '{}'),
	(1, 11, 1, 6000000, 'payment-1', 1, 12, 4611686018427387904, 100, 1795000006989952, '{}'),
	(1, 13, 1, 7000000, 'payment-2', 2, 0, 4611686018427387904, 100, 1795000007003988, '{}'),
	(1, 14, 1, 8000000, 'payment-3', 3, 15, 4611686018427387904, 100, 1795000007010545, '{}'),
	(1, 16, 1, 9000000, 'payment-4', 1, 17, 4611686018427387904, 100, 1795000007018920, '{}');
INSERT INTO usage_events VALUES
	(1, 'measured', 'n', 1, 58, 0, false, 1000, 1798456162936115, '{"gpu": 1}'),
	(1, 'measured', 'n', 2, 58, 0, false, 1000, 1798456162939075, '{"gpu": 2}'),
	(1, 'apart', 'n', 1, 0, 1, false, 1000, 1798456162945283, '{}');
INSERT INTO usage_sums VALUES
	(1, 10, 3, 142868585726853219);
SELECT pg_catalog.setval('anomalies_anomaly_id_seq', 1, false);
SELECT pg_catalog.setval('api_keys_key_id_seq', 4, true);
SELECT pg_catalog.setval('audit_log_audit_id_seq', 107, true);
SELECT pg_catalog.setval('decisions_decision_id_seq', 1, true);
SELECT pg_catalog.setval('orgs_org_id_seq', 2, true);
SELECT pg_catalog.setval('outbox_event_id_seq', 73, true);
SELECT pg_catalog.setval('pool_snapshots_snapshot_id_seq', 1, false);
SELECT pg_catalog.setval('pools_pool_id_seq', 4, true);
SELECT pg_catalog.setval('queue_queue_id_seq', 1, false);
SELECT pg_catalog.setval('requests_request_id_seq', 3, true);
SELECT pg_catalog.setval('statements_statement_id_seq', 1, true);
ALTER TABLE accounts ADD CONSTRAINT accounts_path UNIQUE (org_id, path);
ALTER TABLE accounts ADD CONSTRAINT accounts_pkey PRIMARY KEY (org_id, account_id);
ALTER TABLE anomalies ADD CONSTRAINT anomalies_hour UNIQUE (org_id, account_id, starts_at);
ALTER TABLE anomalies ADD CONSTRAINT anomalies_pkey PRIMARY KEY (org_id, anomaly_id);
ALTER TABLE anomaly_terms ADD CONSTRAINT anomaly_terms_pkey PRIMARY KEY (org_id, account_id);
ALTER TABLE api_keys ADD CONSTRAINT api_keys_hash_key UNIQUE (hash);
ALTER TABLE api_keys ADD CONSTRAINT api_keys_pkey PRIMARY KEY (org_id, key_id);
ALTER TABLE audit_heads ADD CONSTRAINT audit_heads_pkey PRIMARY KEY (org_id);
ALTER TABLE audit_log ADD CONSTRAINT audit_log_pkey PRIMARY KEY (org_id, audit_id);
ALTER TABLE audit_log ADD CONSTRAINT audit_log_place UNIQUE (org_id, place);
ALTER TABLE blocks ADD CONSTRAINT blocks_pkey PRIMARY KEY (org_id, block_id);
ALTER TABLE boosts ADD CONSTRAINT boosts_pkey PRIMARY KEY (org_id, boost_id);
ALTER TABLE budget_periods ADD CONSTRAINT budget_periods_pkey PRIMARY KEY (org_id, budget_id, starts_at);
ALTER TABLE budgets ADD CONSTRAINT budgets_name UNIQUE (org_id, account_id, name);
ALTER TABLE budgets ADD CONSTRAINT budgets_pkey PRIMARY KEY (org_id, budget_id);
ALTER TABLE clock ADD CONSTRAINT clock_pkey PRIMARY KEY (only_row);
ALTER TABLE clock_repairs ADD CONSTRAINT clock_repairs_pkey PRIMARY KEY (org_id, repaired_at);
ALTER TABLE decisions ADD CONSTRAINT decisions_pkey PRIMARY KEY (org_id, decision_id);
ALTER TABLE entries ADD CONSTRAINT entries_pkey PRIMARY KEY (org_id, entry_id);
ALTER TABLE entry_types ADD CONSTRAINT entry_types_pkey PRIMARY KEY (type);
ALTER TABLE grants ADD CONSTRAINT grants_pkey PRIMARY KEY (org_id, grant_id);
ALTER TABLE idempotency ADD CONSTRAINT idempotency_pkey PRIMARY KEY (org_id, key);
ALTER TABLE meters ADD CONSTRAINT meters_pkey PRIMARY KEY (org_id, account_id);
ALTER TABLE orgs ADD CONSTRAINT orgs_path_key UNIQUE (path);
ALTER TABLE orgs ADD CONSTRAINT orgs_pkey PRIMARY KEY (org_id);
ALTER TABLE outbox ADD CONSTRAINT outbox_pkey PRIMARY KEY (org_id, event_id);
ALTER TABLE pool_dispatch ADD CONSTRAINT pool_dispatch_pkey PRIMARY KEY (org_id, pool_id);
ALTER TABLE pool_snapshots ADD CONSTRAINT pool_snapshots_pkey PRIMARY KEY (org_id, pool_id, snapshot_id);
ALTER TABLE pool_usage ADD CONSTRAINT pool_usage_pkey PRIMARY KEY (org_id, pool_id, path);
ALTER TABLE pool_weights ADD CONSTRAINT pool_weights_pkey PRIMARY KEY (org_id, pool_id, path);
ALTER TABLE pools ADD CONSTRAINT pools_name UNIQUE (org_id, gpu_type, region);
ALTER TABLE pools ADD CONSTRAINT pools_pkey PRIMARY KEY (org_id, pool_id);
ALTER TABLE prices ADD CONSTRAINT prices_pkey PRIMARY KEY (org_id, price_id);
ALTER TABLE queue ADD CONSTRAINT queue_pkey PRIMARY KEY (org_id, queue_id);
ALTER TABLE quotas ADD CONSTRAINT quotas_pkey PRIMARY KEY (org_id, quota_id);
ALTER TABLE request_buckets ADD CONSTRAINT request_buckets_pkey PRIMARY KEY (org_id, holder, number);
ALTER TABLE request_limits ADD CONSTRAINT request_limits_pkey PRIMARY KEY (org_id, holder, number);
ALTER TABLE requests ADD CONSTRAINT requests_pkey PRIMARY KEY (org_id, request_id);
ALTER TABLE reservations ADD CONSTRAINT reservations_pkey PRIMARY KEY (org_id, reservation_id);
ALTER TABLE schema_migrations ADD CONSTRAINT schema_migrations_pkey PRIMARY KEY (number);
ALTER TABLE slots ADD CONSTRAINT slots_pkey PRIMARY KEY (org_id, quota_id);
ALTER TABLE snapshot_marks ADD CONSTRAINT snapshot_marks_pkey PRIMARY KEY (org_id);
ALTER TABLE snapshots ADD CONSTRAINT snapshots_pkey PRIMARY KEY (org_id, account_id, entry_id);
ALTER TABLE spend_marks ADD CONSTRAINT spend_marks_pkey PRIMARY KEY (org_id, account_id, hour);
ALTER TABLE statements ADD CONSTRAINT statements_period UNIQUE (org_id, account_id, period);
ALTER TABLE statements ADD CONSTRAINT statements_pkey PRIMARY KEY (org_id, statement_id);
ALTER TABLE tallies ADD CONSTRAINT tallies_pkey PRIMARY KEY (org_id, quota_id, starts_at);
ALTER TABLE token_buckets ADD CONSTRAINT token_buckets_pkey PRIMARY KEY (org_id, bucket_id);
ALTER TABLE topups ADD CONSTRAINT topups_pkey PRIMARY KEY (org_id, topup_id);
ALTER TABLE usage_events ADD CONSTRAINT usage_events_pkey PRIMARY KEY (org_id, job_id, node, reservation_id, account_id, is_late, seq);
ALTER TABLE usage_sums ADD CONSTRAINT usage_sums_pkey PRIMARY KEY (org_id, part);
CREATE INDEX accounts_due ON accounts USING btree (org_id, due_at);
CREATE INDEX accounts_postpaid ON accounts USING btree (org_id, account_id) WHERE ((model = 1) OR delinquent);
CREATE INDEX accounts_suspended ON accounts USING btree (org_id) INCLUDE (path) WHERE ((status = 1) OR delinquent OR (window_max_ms > 0));
CREATE INDEX anomalies_acting ON anomalies USING btree (anomaly_id) WHERE (action = 1);
CREATE UNIQUE INDEX anomalies_number ON anomalies USING btree (anomaly_id);
CREATE INDEX audit_log_ends ON audit_log USING btree (org_id, resource) WHERE (action = ANY (ARRAY['reservation.settle'::text, 'reservation.cancel'::text]));
CREATE INDEX audit_log_transfers ON audit_log USING btree (org_id, audit_id) WHERE (action = 'credits.transfer'::text);
CREATE INDEX boosts_account ON boosts USING btree (org_id, account_id, boost_id);
CREATE INDEX boosts_target ON boosts USING btree (org_id, target_id, ends_at);
CREATE INDEX decisions_age ON decisions USING btree (decided_at);
CREATE INDEX entries_account ON entries USING btree (org_id, account_id, entry_id);
CREATE INDEX entries_expired ON entries USING btree (org_id, grant_id) INCLUDE (type, amount) WHERE (type = ANY (ARRAY[8, 14]));
CREATE INDEX entries_paid ON entries USING btree (org_id, account_id, type) INCLUDE (amount, effective_at, entry_id) WHERE (type = ANY (ARRAY[2, 7, 13]));
CREATE INDEX entries_receiver ON entries USING btree (org_id, other_id, entry_id) WHERE (other_id <> 0);
CREATE INDEX entries_repaid ON entries USING btree (org_id, account_id, entry_id) WHERE ((type = ANY (ARRAY[11, 12])) OR ((type = 7) AND (other_grant_id <> 0)));
CREATE INDEX grants_account ON grants USING btree (org_id, account_id, grant_id);
CREATE INDEX grants_moved ON grants USING btree (org_id, origin_id) WHERE (origin_id <> 0);
CREATE INDEX grants_open ON grants USING btree (org_id, account_id) WHERE is_open;
CREATE INDEX idempotency_age ON idempotency USING btree (created_at);
CREATE INDEX outbox_age ON outbox USING btree (recorded_at);
CREATE INDEX prices_lookup ON prices USING btree (org_id, gpu_type, region, account, effective_from);
CREATE INDEX prices_to_come ON prices USING btree (effective_from);
CREATE INDEX prices_to_end ON prices USING btree (effective_to) WHERE (effective_to < '4611686018427387904'::bigint);
CREATE INDEX queue_ended ON queue USING btree (ended_at) WHERE (state >= 2);
CREATE INDEX queue_lease ON queue USING btree (org_id, reservation_id) WHERE (reservation_id <> 0);
CREATE INDEX queue_open ON queue USING btree (pool_id, org_id, queue_id) WHERE (state < 2);
CREATE INDEX quotas_account ON quotas USING btree (org_id, account_id, quota_id);
CREATE UNIQUE INDEX quotas_live ON quotas USING btree (org_id, account_id, dimension, gpu_type, calendar, zone, rolling_hours, set_by) WHERE (ended_at = 0);
CREATE UNIQUE INDEX requests_number ON requests USING btree (request_id);
CREATE INDEX requests_undecided ON requests USING btree (org_id, account, expires_at) WHERE (state < 2);
CREATE INDEX reservations_account ON reservations USING btree (org_id, account_id, reservation_id);
CREATE INDEX reservations_ended ON reservations USING btree (org_id, ended_at) WHERE (state <> 0);
CREATE INDEX reservations_ended_job ON reservations USING btree (((org_id + 0)), account_id, job_id) WHERE (state <> 0);
CREATE INDEX reservations_job ON reservations USING btree (org_id, job_id);
CREATE INDEX reservations_live ON reservations USING btree (org_id, payer_id) WHERE (state = 0);
CREATE INDEX reservations_live_account ON reservations USING btree (org_id, account) WHERE (state = 0);
CREATE INDEX reservations_live_job ON reservations USING btree (((org_id + 0)), account_id, job_id) WHERE (state = 0);
CREATE INDEX reservations_node ON reservations USING btree (org_id, node, reservation_id) WHERE (node <> ''::text);
CREATE INDEX reservations_pool ON reservations USING btree (gpu_type, region) WHERE (state = 0);
CREATE INDEX reservations_sharing ON reservations USING btree (org_id) WHERE ((state = 0) AND (cap_part >= 0));
CREATE INDEX reservations_stopping ON reservations USING btree (gpu_type, region) WHERE ((state = 0) AND (stopping_for <> 0));
CREATE INDEX statements_due ON statements USING btree (org_id, account_id, due_at);
CREATE UNIQUE INDEX statements_number ON statements USING btree (statement_id);
CREATE INDEX token_buckets_ended ON token_buckets USING btree (org_id, account_id, bucket_id) WHERE (ended_at > 0);
CREATE UNIQUE INDEX token_buckets_live ON token_buckets USING btree (org_id, account_id, kind) WHERE (ended_at = 0);
CREATE INDEX topups_account ON topups USING btree (org_id, account_id, topup_id);
CREATE UNIQUE INDEX topups_reference ON topups USING btree (org_id, payment_reference) WHERE (status <> 2);
CREATE TRIGGER audit_log_chained BEFORE INSERT ON audit_log FOR EACH ROW EXECUTE FUNCTION chain_audit();
CREATE TRIGGER audit_log_insert_only BEFORE DELETE OR UPDATE OR TRUNCATE ON audit_log FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
CREATE TRIGGER blocks_insert_only BEFORE DELETE OR UPDATE OR TRUNCATE ON blocks FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
CREATE TRIGGER clock_forward_only BEFORE DELETE OR UPDATE ON clock FOR EACH ROW EXECUTE FUNCTION refuse_going_back();
CREATE TRIGGER clock_repairs_insert_only BEFORE DELETE OR UPDATE OR TRUNCATE ON clock_repairs FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
CREATE TRIGGER entries_insert_only BEFORE DELETE OR UPDATE OR TRUNCATE ON entries FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
CREATE TRIGGER prices_insert_only BEFORE DELETE OR UPDATE OR TRUNCATE ON prices FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
CREATE TRIGGER statements_insert_only BEFORE DELETE OR UPDATE OR TRUNCATE ON statements FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
CREATE TRIGGER usage_events_insert_only BEFORE DELETE OR UPDATE OR TRUNCATE ON usage_events FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
CREATE TRIGGER usage_events_summed AFTER INSERT ON usage_events REFERENCING NEW TABLE AS new_reports FOR EACH STATEMENT EXECUTE FUNCTION sum_usage();
ALTER TABLE pool_dispatch ADD CONSTRAINT pool_dispatch_org_id_pool_id_fkey FOREIGN KEY (org_id, pool_id) REFERENCES pools(org_id, pool_id) ON DELETE CASCADE;
ALTER TABLE pool_snapshots ADD CONSTRAINT pool_snapshots_org_id_pool_id_fkey FOREIGN KEY (org_id, pool_id) REFERENCES pools(org_id, pool_id) ON DELETE CASCADE;
ALTER TABLE pool_usage ADD CONSTRAINT pool_usage_org_id_pool_id_fkey FOREIGN KEY (org_id, pool_id) REFERENCES pools(org_id, pool_id) ON DELETE CASCADE;
ALTER TABLE pool_weights ADD CONSTRAINT pool_weights_org_id_pool_id_fkey FOREIGN KEY (org_id, pool_id) REFERENCES pools(org_id, pool_id) ON DELETE CASCADE;
