-- name: GetJob :one
-- GetJob finds one job, archived or not. No row: no such job, or it was dropped on
-- completion, purged, or its archive day has gone. Index: inbox_pkey, inbox_archive_id_idx.
SELECT
    job.id,
    job.seq,
    job.queue,
    job.kind,
    job.partition_key,
    job.partition_bucket,
    job.ordered,
    job.status,
    job.attempts,
    job.max_attempts,
    job.lease_generation,
    job.claimed_by,
    job.claimed_at,
    job.lease_expires_at,
    job.available_at,
    job.created_at,
    job.completed_at,
    job.finished_at,
    job.finished_by,
    job.idempotency_key,
    job.last_error,
    job.headers,
    job.payload,
    job.archived
FROM holdfast.jobs AS job
WHERE job.id = @id::uuid
LIMIT 1;

-- name: ListJobStates :many
-- ListJobStates tells how each job of a set stands: its state and its latest generation.
-- Called by domain/enqueue.go for duplicates, and by domain/complete.go for settlements that
-- got no reply. A job that is missing was purged, dropped on completion, or expired with its
-- archive day. Index: inbox_pkey, inbox_archive_id_idx.
SELECT
    job.id,
    job.status,
    job.lease_generation
FROM holdfast.jobs AS job
WHERE job.id = ANY(@ids::uuid[])
ORDER BY job.id
LIMIT cardinality(@ids::uuid[]);

-- name: OldestPendingJob :one
-- OldestPendingJob tells how long the oldest due job of a queue has been waiting since it
-- could first run: the lag that users feel. No row: nothing is waiting. Asks every bucket
-- for its first job, so that the cost does not grow with the backlog.
-- Index: inbox_claim_idx.
SELECT
    oldest.id,
    oldest.kind,
    oldest.partition_key,
    oldest.available_at,
    (now() - oldest.available_at)::interval AS age
FROM generate_series(0, (SELECT meta.bucket_count FROM holdfast.meta AS meta WHERE meta.singleton) - 1) AS bucket (number)
CROSS JOIN LATERAL (
    SELECT
        job.id,
        job.kind,
        job.partition_key,
        job.available_at
    FROM holdfast.inbox AS job
    WHERE job.status = 'pending'
        AND NOT job.ordered
        AND job.queue = @queue::text
        AND job.partition_bucket = bucket.number
        AND job.available_at <= now()
    ORDER BY
        job.available_at,
        job.seq
    LIMIT 1
) AS oldest
ORDER BY
    oldest.available_at,
    oldest.id
LIMIT 1;

-- name: ListExpiredLeases :many
-- ListExpiredLeases lists claims that are past their lease and not reclaimed yet. Rows that
-- stay here for more than two housekeeping intervals mean that no worker keeps house.
-- Index: inbox_processing_idx.
SELECT
    job.id,
    job.queue,
    job.kind,
    job.partition_key,
    job.claimed_by,
    job.lease_expires_at,
    job.attempts,
    job.max_attempts,
    job.last_error
FROM holdfast.inbox AS job
WHERE job.status = 'processing'
    AND job.lease_expires_at < now()
ORDER BY
    job.lease_expires_at,
    job.id
LIMIT @max_rows::integer;

-- name: CountDeadLettersPerKey :many
-- CountDeadLettersPerKey counts the failed and dead-lettered jobs of a queue by partition
-- key, most first, with the latest error of each. Index: inbox_dead_idx.
SELECT
    job.partition_key,
    count(*) AS jobs,
    COALESCE((array_agg(job.last_error ORDER BY job.finished_at DESC, job.id))[1], '')::text AS sample_error
FROM holdfast.inbox AS job
WHERE job.status IN ('failed', 'dead_letter')
    AND job.queue = @queue::text
GROUP BY job.partition_key
ORDER BY
    jobs DESC,
    job.partition_key
LIMIT @max_rows::integer;
