-- Every constraint has a name of its own choice, as in schema/; the default of a version needs no
-- function, so that tables can be made before functions.

ALTER TABLE orgs ALTER COLUMN version SET DEFAULT (random() * 4611686018427387904)::bigint;

ALTER TABLE orgs RENAME CONSTRAINT orgs_path_key TO orgs_path;
ALTER TABLE api_keys RENAME CONSTRAINT api_keys_hash_key TO api_keys_hash;
ALTER TABLE pool_weights RENAME CONSTRAINT pool_weights_org_id_pool_id_fkey TO pool_weights_pool;
ALTER TABLE pool_dispatch RENAME CONSTRAINT pool_dispatch_org_id_pool_id_fkey TO pool_dispatch_pool;
ALTER TABLE pool_usage RENAME CONSTRAINT pool_usage_org_id_pool_id_fkey TO pool_usage_pool;
ALTER TABLE pool_snapshots
    RENAME CONSTRAINT pool_snapshots_org_id_pool_id_fkey TO pool_snapshots_pool;
-- Checks of several columns are named after the first of them.
ALTER TABLE grants RENAME CONSTRAINT grants_check TO grants_expires_at;
ALTER TABLE prices RENAME CONSTRAINT prices_check TO prices_effective_to;
ALTER TABLE blocks RENAME CONSTRAINT blocks_check TO blocks_last_entry_id;
ALTER TABLE clock_repairs RENAME CONSTRAINT clock_repairs_check TO clock_repairs_clock;
ALTER TABLE clock_repairs RENAME CONSTRAINT clock_repairs_check1 TO clock_repairs_next_entry_id;
ALTER TABLE tallies RENAME CONSTRAINT tallies_check TO tallies_ends_at;
ALTER TABLE boosts RENAME CONSTRAINT boosts_check TO boosts_ends_at;
ALTER TABLE budget_periods RENAME CONSTRAINT budget_periods_check TO budget_periods_ends_at;
ALTER TABLE budget_periods RENAME CONSTRAINT budget_periods_check1 TO budget_periods_rolled;
ALTER TABLE requests RENAME CONSTRAINT requests_check TO requests_expires_at;
ALTER TABLE statements RENAME CONSTRAINT statements_check TO statements_ends_at;
ALTER TABLE statements RENAME CONSTRAINT statements_check1 TO statements_closed_at;
DO $$
DECLARE
    found record;
BEGIN
    FOR found IN
        SELECT conrelid::regclass AS of_table, conname FROM pg_constraint
        WHERE connamespace = current_schema()::regnamespace AND conname LIKE '%\_check'
    LOOP
        EXECUTE format('ALTER TABLE %s RENAME CONSTRAINT %I TO %I', found.of_table, found.conname,
            left(found.conname, -length('_check')));
    END LOOP;
END $$;
