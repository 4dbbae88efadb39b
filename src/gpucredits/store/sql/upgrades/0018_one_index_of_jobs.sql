-- One index finds the leases of a job, live and ended, where three did.

DROP INDEX reservations_job;
DROP INDEX reservations_live_job;
DROP INDEX reservations_ended_job;
CREATE INDEX reservations_job
    ON reservations ((org_id + 0), job_id, (account_id + 0), (state + 0));
