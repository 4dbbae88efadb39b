CREATE OR REPLACE FUNCTION instant(us bigint) RETURNS timestamptz LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE WHEN us < 4611686018427387904
        THEN timestamptz '1970-01-01 00:00:00+00' + us * interval '1 microsecond' END
$$;

CREATE OR REPLACE FUNCTION refuse_going_back() RETURNS trigger LANGUAGE plpgsql
SET search_path FROM CURRENT AS $$
BEGIN
    IF TG_OP <> 'UPDATE' OR NEW.offset_us < OLD.offset_us THEN
        RAISE EXCEPTION 'the clock never goes back' USING ERRCODE = 'integrity_constraint_violation';
    END IF;
    RETURN NEW;
END $$;
CREATE OR REPLACE TRIGGER clock_forward_only BEFORE UPDATE OR DELETE ON clock
    FOR EACH ROW EXECUTE FUNCTION refuse_going_back();

-- Microseconds since 1970 by the one clock with authority, moved by the offset. It moves within a
-- transaction. Statements that know the offset ask for it so: this becomes a part of their plan, and
-- the time belongs to that offset. ledger_now() may see an offset that the statement does not.
CREATE OR REPLACE FUNCTION clock_us(offset_us bigint) RETURNS bigint LANGUAGE sql VOLATILE AS $$
    SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint + offset_us
$$;
CREATE OR REPLACE FUNCTION ledger_now() RETURNS bigint LANGUAGE sql VOLATILE
SET search_path FROM CURRENT AS $$
    SELECT clock_us(offset_us) FROM clock
$$;

-- A version that nothing has had before. Versions are drawn, not counted: a database that goes back
-- in time, by a restore or a failover, would count up to the same numbers again.
CREATE OR REPLACE FUNCTION new_version() RETURNS bigint LANGUAGE sql VOLATILE
SET search_path FROM CURRENT AS $$
    SELECT (random() * 4611686018427387904)::bigint
$$;
