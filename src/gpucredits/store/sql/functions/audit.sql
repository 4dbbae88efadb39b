-- The hash of an act covers the act before it and every column that says something.
CREATE OR REPLACE FUNCTION audit_hash(
    org bigint, at_place bigint, at bigint, by_actor text, did text, on_resource text,
    before jsonb, after jsonb, request text, previous bytea
) RETURNS bytea LANGUAGE sql IMMUTABLE AS $$
    SELECT sha256(previous || convert_to(jsonb_build_array(
        org, at_place, at, by_actor, did, on_resource, before, after, request)::text, 'UTF8'))
$$;

-- One statement locks the newest link, moves it on and tells the new one; only the first act of an
-- org finds none.
CREATE OR REPLACE FUNCTION chain_audit() RETURNS trigger LANGUAGE plpgsql
SET search_path FROM CURRENT AS $$
BEGIN
    LOOP
        UPDATE audit_heads h SET place = h.place + 1, hash = audit_hash(NEW.org_id, h.place + 1,
            NEW.recorded_at, NEW.actor, NEW.action, NEW.resource, NEW.old, NEW.new, NEW.request_id,
            h.hash)
        WHERE h.org_id = NEW.org_id RETURNING h.place, h.hash INTO NEW.place, NEW.hash;
        EXIT WHEN FOUND;
        INSERT INTO audit_heads (org_id, place, hash) VALUES (NEW.org_id, 0, ''::bytea)
        ON CONFLICT DO NOTHING;
    END LOOP;
    RETURN NEW;
END $$;
CREATE OR REPLACE TRIGGER audit_log_chained BEFORE INSERT ON audit_log
    FOR EACH ROW EXECUTE FUNCTION chain_audit();
