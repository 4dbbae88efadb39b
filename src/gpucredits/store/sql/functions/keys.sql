-- Every key in one shape; one for the whole system belongs to no org and has no scope.
CREATE OR REPLACE VIEW all_keys AS
SELECT 0::bigint AS org_id, key_id, hash, name, role, ''::text COLLATE "C" AS scope, created_at,
    expires_at, revoked_at, node, true AS by_system
FROM system_keys
UNION ALL
SELECT org_id, key_id, hash, name, role, scope, created_at, expires_at, revoked_at,
    node, by_system
FROM api_keys;
