-- name: ReleaseByConstant :many
-- ReleaseByConstant compares the status with a constant: with statistics taken while the
-- table was empty the planner walks every job in flight.
UPDATE holdfast.inbox AS job
SET
    status = 'pending',
    claimed_by = NULL,
    claimed_at = NULL,
    lease_expires_at = NULL
FROM (
    SELECT
        unnest(@partition_buckets::integer[]) AS partition_bucket,
        unnest(@ids::uuid[]) AS id,
        unnest(@lease_generations::bigint[]) AS lease_generation,
        @worker_id::text AS worker_id
) AS held
WHERE job.status = 'processing'
    AND job.id = held.id
    AND job.partition_bucket = held.partition_bucket
    AND job.lease_generation = held.lease_generation
    AND job.claimed_by = held.worker_id
RETURNING job.id;
