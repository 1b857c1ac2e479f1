-- name: ClaimByParameter :many
-- ClaimByParameter passes the status: a generic plan cannot use the partial index.
WITH picked AS MATERIALIZED (
    SELECT
        job.id,
        job.partition_bucket
    FROM holdfast.inbox AS job
    WHERE job.status = @status::holdfast.inbox_status
        AND job.queue = @queue::text
    ORDER BY
        job.available_at,
        job.seq
    LIMIT @batch::integer
    FOR UPDATE SKIP LOCKED
)
UPDATE holdfast.inbox AS job
SET attempts = job.attempts + 1
FROM picked
WHERE job.id = picked.id
    AND job.partition_bucket = picked.partition_bucket
RETURNING job.id;
