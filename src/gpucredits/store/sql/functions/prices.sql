-- List prices and discounts in one shape; a list price has no account and belongs to no org.
CREATE OR REPLACE VIEW prices AS
SELECT 0::bigint AS org_id, price_id, gpu_type, region, credits_per_gpu_hour, effective_from,
    ''::text COLLATE "C" AS account, created_at, effective_to, is_end
FROM list_prices
UNION ALL
SELECT org_id, price_id, gpu_type, region, credits_per_gpu_hour, effective_from, account, created_at,
    effective_to, is_end
FROM discounts;
