-- Spending rolled up by day, and the charges of leases that run across days.

CREATE TABLE spend_days (
    org_id bigint NOT NULL,
    day integer NOT NULL,
    payer_id bigint NOT NULL,
    account_id bigint NOT NULL,
    gpu_type text NOT NULL,
    amount bigint NOT NULL,
    CONSTRAINT spend_days_pkey PRIMARY KEY (org_id, day, payer_id, account_id, gpu_type)
) WITH (fillfactor = 50);
CREATE TABLE lease_days (
    org_id bigint NOT NULL,
    reservation_id bigint NOT NULL,
    day integer NOT NULL,
    account_id bigint NOT NULL,
    charged bigint NOT NULL,
    CONSTRAINT lease_days_pkey PRIMARY KEY (org_id, reservation_id, day)
);
CREATE INDEX lease_days_day ON lease_days (org_id, day, reservation_id) INCLUDE (account_id);
CREATE INDEX lease_days_account ON lease_days (org_id, account_id, day, reservation_id);
CREATE TEMPORARY TABLE charges ON COMMIT DROP AS
SELECT e.org_id, e.reservation_id, e.account_id AS payer_id, r.account_id, r.gpu_type,
    r.admitted_at / 86400000000 AS admitted,
    (least(e.effective_at, c.repaired_at) / 86400000000)::integer AS day,
    sum(CASE e.type WHEN 7 THEN -e.amount ELSE e.amount END)::bigint AS amount
FROM entries e
JOIN reservations r ON r.org_id = e.org_id AND r.reservation_id = e.reservation_id
LEFT JOIN clock_repairs c ON c.org_id = e.org_id AND e.entry_id >= c.first_entry_id
    AND e.entry_id < c.next_entry_id
WHERE e.type IN (6, 7, 9) GROUP BY 1, 2, 3, 4, 5, 6, 7;
INSERT INTO spend_days (org_id, day, payer_id, account_id, gpu_type, amount)
SELECT org_id, day, payer_id, account_id, gpu_type, sum(amount) FROM charges GROUP BY 1, 2, 3, 4, 5;
INSERT INTO lease_days (org_id, reservation_id, day, account_id, charged)
SELECT org_id, reservation_id, day, account_id, before FROM (
    SELECT org_id, reservation_id, day, account_id, admitted,
        coalesce(sum(sum(amount)) OVER (PARTITION BY org_id, reservation_id ORDER BY day
            ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), 0)::bigint AS before
    FROM charges GROUP BY org_id, reservation_id, day, account_id, admitted
) AS d WHERE day <> admitted;

-- Indexes for lists by state, by label, and up to an instant.

DROP INDEX reservations_account;
CREATE INDEX reservations_account
    ON reservations ((org_id + 0), account_id, state, reservation_id);
CREATE INDEX reservations_labels ON reservations
    USING gin (jsonb_set('{}', ARRAY[org_id::text], metadata) jsonb_path_ops) WHERE metadata <> '{}';
CREATE INDEX entries_late ON entries USING gist (
    numrange(org_id * 1e19 + effective_at, org_id * 1e19 + recorded_at)
) WHERE effective_at < recorded_at;

DROP INDEX audit_log_transfers;
CREATE INDEX audit_log_transfers ON audit_log (org_id, recorded_at, audit_id)
    WHERE action = 'credits.transfer';
CREATE INDEX audit_log_sent ON audit_log (org_id, resource, recorded_at, audit_id)
    WHERE action = 'credits.transfer';
CREATE INDEX audit_log_received ON audit_log (org_id, (new ->> 'to'), recorded_at, audit_id)
    WHERE action = 'credits.transfer';
