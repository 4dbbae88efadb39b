-- What was spent on each day before each of its hours.

CREATE TABLE spend_hours (
    org_id bigint NOT NULL,
    payer_id bigint NOT NULL,
    account_id bigint NOT NULL,
    gpu_type text NOT NULL,
    hour integer NOT NULL, -- since 1970
    before bigint NOT NULL,
    CONSTRAINT spend_hours_pkey PRIMARY KEY (org_id, payer_id, account_id, gpu_type, hour)
);
INSERT INTO spend_hours (org_id, payer_id, account_id, gpu_type, hour, before)
SELECT org_id, payer_id, account_id, gpu_type, hour, coalesce(sum(amount) OVER (
    PARTITION BY org_id, payer_id, account_id, gpu_type, hour / 24 ORDER BY hour
    ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), 0)::bigint
FROM (
    SELECT e.org_id, e.account_id AS payer_id, r.account_id, r.gpu_type,
        (least(e.effective_at, c.repaired_at) / 3600000000)::integer AS hour,
        sum(CASE e.type WHEN 7 THEN -e.amount ELSE e.amount END) AS amount
    FROM entries e
    JOIN reservations r ON r.org_id = e.org_id AND r.reservation_id = e.reservation_id
    LEFT JOIN clock_repairs c ON c.org_id = e.org_id AND e.entry_id >= c.first_entry_id
        AND e.entry_id < c.next_entry_id
    WHERE e.type IN (6, 7, 9) GROUP BY 1, 2, 3, 4, 5
) AS spent;
