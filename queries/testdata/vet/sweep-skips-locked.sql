-- name: ReclaimWaiting :many
-- ReclaimWaiting waits for every job that is just being settled.
WITH expired AS MATERIALIZED (
    SELECT
        job.id,
        job.partition_bucket
    FROM holdfast.inbox AS job
    WHERE job.status = 'processing'
        AND job.lease_expires_at < now()
    ORDER BY job.id
    LIMIT @batch::integer
    -- FOR UPDATE SKIP LOCKED
    FOR UPDATE
)
UPDATE holdfast.inbox AS job
SET claimed_by = NULL
FROM expired
WHERE job.id = expired.id
    AND job.partition_bucket = expired.partition_bucket
RETURNING job.id;
