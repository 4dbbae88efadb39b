-- Numbers of GPUs become thousandths: in leases, pools, the queue, and quotas on concurrent GPUs.

ALTER TABLE reservations RENAME COLUMN gpu_count TO milli_gpus;
ALTER TABLE reservations RENAME CONSTRAINT reservations_gpu_count TO reservations_milli_gpus;
UPDATE reservations SET milli_gpus = milli_gpus * 1000;

ALTER TABLE pools RENAME COLUMN gpus TO milli_gpus;
ALTER TABLE pools RENAME CONSTRAINT pools_gpus TO pools_milli_gpus;
UPDATE pools SET milli_gpus = milli_gpus * 1000 WHERE milli_gpus IS NOT NULL;

ALTER TABLE queue RENAME COLUMN gpus TO milli_gpus;
ALTER TABLE queue RENAME COLUMN gpus_max TO milli_gpus_max;
ALTER TABLE queue RENAME CONSTRAINT queue_gpus TO queue_milli_gpus;
UPDATE queue SET milli_gpus = milli_gpus * 1000, milli_gpus_max = milli_gpus_max * 1000,
    granted = granted * 1000, command = command - 'gpu_count'
        || jsonb_build_object('milli_gpus', (command ->> 'gpu_count')::bigint * 1000);

UPDATE boosts SET amount = boosts.amount * 1000 FROM quotas q
WHERE q.org_id = boosts.org_id AND q.quota_id = boosts.target_id AND q.dimension = 1;
UPDATE slots SET count = slots.count * 1000, leaving = slots.leaving * 1000 FROM quotas q
WHERE q.org_id = slots.org_id AND q.quota_id = slots.quota_id AND q.dimension = 1;
UPDATE requests SET amount = amount * 1000, given_amount = given_amount * 1000 WHERE unit = 1;
UPDATE quotas SET amount = amount * 1000 WHERE dimension = 1;

-- Answers kept for keys hold whole rows. A number follows its name directly only in a row: labels
-- are texts.
UPDATE idempotency SET outcome = convert_to(regexp_replace(regexp_replace(
    convert_from(outcome, 'UTF8'), '"gpu_count":(\d+)', '"milli_gpus":\1000', 'g'),
    '("dimension":1,"limit":[1-9]\d*)', '\1000', 'g'), 'UTF8');
UPDATE queue SET outcome = convert_to(regexp_replace(
    convert_from(outcome, 'UTF8'), '"gpu_count":(\d+)', '"milli_gpus":\1000', 'g'), 'UTF8')
WHERE outcome IS NOT NULL;
