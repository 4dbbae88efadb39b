-- A server lives: note it, and write an outage down if none has lived for longer than away_us.
-- Signs are compared by the database's own clock, which no test clock moves. A sign from ahead of
-- the present was given by a clock that was wrong, and says nothing.
CREATE OR REPLACE FUNCTION sign_of_life(away_us bigint, grace bigint) RETURNS boolean LANGUAGE plpgsql
SET search_path FROM CURRENT AS $$
DECLARE
    before bigint;
    present bigint;
    moved bigint;
BEGIN
    SELECT s.alive_at INTO before FROM server_life s FOR UPDATE;
    SELECT c.offset_us INTO moved FROM clock c;
    present := clock_us(0);
    UPDATE server_life s SET alive_at = present;
    IF before = 0 OR present - before <= away_us THEN
        RETURN false;
    END IF;
    INSERT INTO outages (since, until, grace_ms)
    VALUES (before + moved, present + moved, grace);
    INSERT INTO audit_log (org_id, recorded_at, actor, action, resource, old, new, request_id)
    VALUES (0, present + moved, 'system:', 'outage.record', 'outage', NULL, jsonb_build_object(
        'since', before + moved, 'until', present + moved, 'grace_ms', grace), '');
    RETURN true;
END $$;
