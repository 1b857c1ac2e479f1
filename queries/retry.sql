-- name: RetryJobs :many
-- RetryJobs ends the claims of the set without success: a job with attempts left waits for
-- its delay, one without is dead-lettered. Called by domain/retry.go. A job that does not
-- come back was not touched: the worker no longer holds that claim. The whole fence is a
-- join condition. Index: inbox_pkey. Locks: the rows it returns.
UPDATE holdfast.inbox AS job
SET
    status = CASE
        WHEN job.attempts < job.max_attempts THEN 'pending'::holdfast.inbox_status
        ELSE 'dead_letter'::holdfast.inbox_status
    END,
    available_at = now() + held.delay,
    finished_at = CASE WHEN job.attempts < job.max_attempts THEN NULL ELSE now() END,
    finished_by = CASE WHEN job.attempts < job.max_attempts THEN NULL ELSE job.claimed_by END,
    last_error = held.error,
    claimed_by = NULL,
    claimed_at = NULL,
    lease_expires_at = NULL
FROM (
    SELECT
        unnest(@partition_buckets::integer[]) AS partition_bucket,
        unnest(@ids::uuid[]) AS id,
        unnest(@lease_generations::bigint[]) AS lease_generation,
        unnest(@delays::interval[]) AS delay,
        unnest(@errors::text[]) AS error,
        @worker_id::text AS worker_id
) AS held
WHERE job.id = ANY(ARRAY[held.id])
    AND job.partition_bucket = held.partition_bucket
    AND job.lease_generation = held.lease_generation
    AND job.claimed_by = held.worker_id
RETURNING
    job.id,
    job.lease_generation,
    job.status;

-- name: FailJobs :many
-- FailJobs ends the claims of the set for good: their handlers said never to retry. Called
-- by domain/retry.go. A job that does not come back was not touched. The job stays as
-- failed until it is redriven or purged. Index: inbox_pkey. Locks: the rows it returns.
UPDATE holdfast.inbox AS job
SET
    status = 'failed',
    finished_at = now(),
    finished_by = job.claimed_by,
    last_error = held.error,
    claimed_by = NULL,
    claimed_at = NULL,
    lease_expires_at = NULL
FROM (
    SELECT
        unnest(@partition_buckets::integer[]) AS partition_bucket,
        unnest(@ids::uuid[]) AS id,
        unnest(@lease_generations::bigint[]) AS lease_generation,
        unnest(@errors::text[]) AS error,
        @worker_id::text AS worker_id
) AS held
WHERE job.id = ANY(ARRAY[held.id])
    AND job.partition_bucket = held.partition_bucket
    AND job.lease_generation = held.lease_generation
    AND job.claimed_by = held.worker_id
RETURNING
    job.id,
    job.lease_generation;

-- name: ReleaseJobs :many
-- ReleaseJobs gives the claims of the set back after a delay and refunds the attempt: a
-- snooze, a drain, a kind the worker does not know. Called by domain/retry.go. A job that
-- does not come back was not touched. Index: inbox_pkey. Locks: the rows it returns.
UPDATE holdfast.inbox AS job
SET
    status = 'pending',
    attempts = job.attempts - 1,
    available_at = now() + held.delay,
    claimed_by = NULL,
    claimed_at = NULL,
    lease_expires_at = NULL
FROM (
    SELECT
        unnest(@partition_buckets::integer[]) AS partition_bucket,
        unnest(@ids::uuid[]) AS id,
        unnest(@lease_generations::bigint[]) AS lease_generation,
        unnest(@delays::interval[]) AS delay,
        @worker_id::text AS worker_id
) AS held
WHERE job.id = ANY(ARRAY[held.id])
    AND job.partition_bucket = held.partition_bucket
    AND job.lease_generation = held.lease_generation
    AND job.claimed_by = held.worker_id
RETURNING
    job.id,
    job.lease_generation;
