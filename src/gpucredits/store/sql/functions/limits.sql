CREATE OR REPLACE VIEW windows AS
SELECT m.org_id, m.account_id, m.windows[i] AS quota_id, m.windows[i + 1] AS used,
    m.windows[i + 2] AS held, m.windows[i + 3] AS base, m.windows[i + 4] AS starts_at,
    m.windows[i + 5] AS ends_at
FROM meters m CROSS JOIN LATERAL generate_series(1, cardinality(m.windows), 6) AS i;

-- What every quota counts, however it is kept.
CREATE OR REPLACE VIEW counters AS
SELECT org_id, quota_id, count, leaving, 0::bigint AS used, 0::bigint AS held, 0::bigint AS base,
    0::bigint AS starts_at, 0::bigint AS ends_at
FROM slots
UNION ALL
SELECT org_id, quota_id, 0, 0, used, held, base, starts_at, ends_at FROM windows;
