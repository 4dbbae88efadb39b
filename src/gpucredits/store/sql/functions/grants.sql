-- Whether a grant holds credits of a payment that was taken back: its own, or one that transfers
-- have made of it.
CREATE OR REPLACE FUNCTION is_reversed_grant(org bigint, number bigint) RETURNS boolean
LANGUAGE sql STABLE SET search_path FROM CURRENT AS $$
    WITH RECURSIVE origins AS (
        SELECT g.grant_id, g.origin_id FROM grants g WHERE g.org_id = org AND g.grant_id = number
        UNION
        SELECT g.grant_id, g.origin_id FROM origins o
        JOIN grants g ON g.org_id = org AND g.grant_id = o.origin_id
    )
    SELECT EXISTS (
        SELECT FROM topups t JOIN origins o ON o.grant_id = t.grant_id
        WHERE t.org_id = org AND t.status = 3)
$$;
