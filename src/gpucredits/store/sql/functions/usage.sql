CREATE OR REPLACE FUNCTION usage_digest(
    org bigint, job text, at_node text, number bigint, reservation bigint, account bigint,
    was_late boolean, used bigint, at bigint, told jsonb, attested boolean
) RETURNS numeric LANGUAGE sql IMMUTABLE AS $$
    SELECT ('x' || encode(substr(sha256(convert_to(jsonb_build_array(
        org, job, at_node, number, reservation, account, was_late, used, at, told)::text
        || CASE WHEN attested THEN '' ELSE 'not attested' END, 'UTF8')), 1, 7),
        'hex'))::bit(56)::bigint::numeric
$$;

CREATE OR REPLACE FUNCTION sum_usage() RETURNS trigger LANGUAGE plpgsql
SET search_path FROM CURRENT AS $$
BEGIN
    INSERT INTO usage_sums AS s (org_id, part, reports, digest)
    SELECT n.org_id, pg_backend_pid() % 16, count(*), sum(usage_digest(n.org_id, n.job_id, n.node,
        n.seq, n.reservation_id, n.account_id, n.is_late, n.used_ms, n.recorded_at, n.payload,
        n.is_attested))
    FROM new_reports n GROUP BY n.org_id ORDER BY n.org_id
    ON CONFLICT (org_id, part) DO UPDATE SET reports = s.reports + excluded.reports,
        digest = s.digest + excluded.digest;
    INSERT INTO measured AS m (org_id, reservation_id, node, events, used_ms, late_used_ms)
    SELECT n.org_id, n.reservation_id, n.node, count(*) FILTER (WHERE NOT n.is_late),
        coalesce(sum(n.used_ms) FILTER (WHERE NOT n.is_late), 0),
        coalesce(max(n.used_ms) FILTER (WHERE n.is_late), 0)
    FROM new_reports n WHERE n.reservation_id <> 0
    GROUP BY n.org_id, n.reservation_id, n.node ORDER BY n.org_id, n.reservation_id, n.node
    ON CONFLICT (org_id, reservation_id, node) DO UPDATE SET events = m.events + excluded.events,
        used_ms = m.used_ms + excluded.used_ms,
        late_used_ms = greatest(m.late_used_ms, excluded.late_used_ms);
    RETURN NULL;
END $$;
CREATE OR REPLACE TRIGGER usage_events_summed AFTER INSERT ON usage_events
    REFERENCING NEW TABLE AS new_reports FOR EACH STATEMENT EXECUTE FUNCTION sum_usage();
