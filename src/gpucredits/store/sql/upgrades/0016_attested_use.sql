-- Measured use says whether a node itself told it, and keys whether the system made them. Policies
-- say how long a lease is quiet, terms of lost work how much an account gets in 30 days.

-- What was stored before counts as it did: whoever set a policy that posts trusted its reporters.
ALTER TABLE usage_events ADD COLUMN is_attested boolean NOT NULL DEFAULT true;
ALTER TABLE usage_events ALTER COLUMN is_attested SET DEFAULT false;
ALTER TABLE usage_events DROP CONSTRAINT usage_events_pkey;
ALTER TABLE usage_events ADD CONSTRAINT usage_events_pkey
    PRIMARY KEY (org_id, job_id, node, reservation_id, account_id, is_late, is_attested, seq);
DROP TRIGGER IF EXISTS usage_events_summed ON usage_events;
DROP FUNCTION IF EXISTS sum_usage();
DROP FUNCTION IF EXISTS usage_digest(bigint, text, text, bigint, bigint, bigint, boolean, bigint, bigint,
    jsonb);

ALTER TABLE api_keys ADD COLUMN by_system boolean NOT NULL DEFAULT false;
CREATE FUNCTION pg_temp.base36(number bigint) RETURNS text LANGUAGE sql AS $$
    SELECT coalesce(nullif(ltrim(string_agg(substr('0123456789abcdefghijklmnopqrstuvwxyz',
        (number / (36::numeric ^ place)::bigint % 36)::integer + 1, 1), '' ORDER BY place DESC),
        '0'), ''), '0') FROM generate_series(0, 9) AS place
$$;
UPDATE api_keys k SET by_system = true FROM audit_log l
WHERE l.org_id = k.org_id AND l.action = 'key.create' AND l.actor LIKE 'key\_0\_%'
    AND l.resource = 'key_' || pg_temp.base36(k.org_id) || '_' || pg_temp.base36(k.key_id);
DROP FUNCTION pg_temp.base36(bigint);

ALTER TABLE reconcile_policies ADD COLUMN quiet_ms bigint NOT NULL DEFAULT 900000
    CONSTRAINT reconcile_policies_quiet_ms CHECK (quiet_ms >= 0);
ALTER TABLE reconciliations ADD COLUMN is_attested boolean NOT NULL DEFAULT true;
ALTER TABLE loss_terms ADD COLUMN hours_per_account bigint NOT NULL DEFAULT 24
    CONSTRAINT loss_terms_hours_per_account CHECK (hours_per_account >= 0);
CREATE INDEX lost_work_recent ON lost_work (org_id, claimed_at);

-- Measured use without a lease that was not kept, because its org had too much of it.
CREATE TABLE unmatched_drops (
    org_id bigint CONSTRAINT unmatched_drops_pkey PRIMARY KEY,
    events bigint NOT NULL CONSTRAINT unmatched_drops_events CHECK (events > 0),
    last_at bigint NOT NULL
) WITH (fillfactor = 50);
