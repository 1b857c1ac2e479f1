-- name: ReleaseEach :batchone
-- ReleaseEach sends a statement a job.
UPDATE holdfast.inbox AS job
SET claimed_by = NULL
FROM (
    SELECT
        @partition_bucket::integer AS partition_bucket,
        @id::uuid AS id,
        @lease_generation::bigint AS lease_generation,
        @worker_id::text AS worker_id
) AS held
WHERE job.id = held.id
    AND job.partition_bucket = held.partition_bucket
    AND job.lease_generation = held.lease_generation
    AND job.claimed_by = held.worker_id
RETURNING job.id;
