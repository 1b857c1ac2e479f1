-- name: RenewWithoutTheGeneration :many
-- RenewWithoutTheGeneration lets a worker renew a claim that it lost and that the job's next
-- claim, by the same worker, took over.
UPDATE holdfast.inbox AS job
SET lease_expires_at = now() + @lease::interval
FROM (
    SELECT
        unnest(@partition_buckets::integer[]) AS partition_bucket,
        unnest(@ids::uuid[]) AS id,
        @worker_id::text AS worker_id
) AS held
WHERE job.id = held.id
    AND job.partition_bucket = held.partition_bucket
    -- AND job.lease_generation = held.lease_generation
    AND job.claimed_by = held.worker_id
RETURNING job.id;
