-- name: RedriveJobs :many
-- RedriveJobs puts failed and dead-lettered jobs of the set back to pending with all their
-- attempts. Called by domain/operate.go for a person. A job that does not come back was
-- neither failed nor dead-lettered. Order across a redrive is not promised.
-- Index: inbox_pkey. Locks: the rows it returns.
UPDATE holdfast.inbox AS job
SET
    status = 'pending',
    attempts = 0,
    available_at = now(),
    finished_at = NULL,
    finished_by = NULL
FROM (
    SELECT
        unnest(@partition_buckets::integer[]) AS partition_bucket,
        unnest(@ids::uuid[]) AS id
) AS chosen
WHERE job.id = chosen.id
    AND job.partition_bucket = chosen.partition_bucket
    AND job.status IN ('failed', 'dead_letter')
RETURNING job.id;
