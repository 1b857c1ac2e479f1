-- name: ArchiveCompletedJobs :many
-- ArchiveCompletedJobs moves completed rows of queues in mode keep to the archive when their
-- time in the inbox has passed. Called by domain/archive.go in batches; fewer rows than the
-- batch: nothing more is due. Index: inbox_completed_idx, then inbox_pkey. Locks: the rows
-- it moves; skips locked ones.
WITH due AS MATERIALIZED (
    SELECT
        job.id,
        job.partition_bucket
    FROM holdfast.inbox AS job
    JOIN holdfast.queues AS queue ON queue.name = job.queue
    WHERE job.status = 'completed'
        AND job.completed_at < now() - queue.keep_for
        -- Where the walk ends: otherwise it passes by every completed row that is not due.
        AND job.completed_at < (SELECT max(now() - shortest.keep_for) FROM holdfast.queues AS shortest)
    ORDER BY
        job.completed_at,
        job.id
    LIMIT @batch::integer
    FOR UPDATE OF job SKIP LOCKED
),
moved AS (
    DELETE FROM holdfast.inbox AS job
    USING due
    WHERE job.id = ANY(ARRAY[due.id])
        AND job.partition_bucket = due.partition_bucket
    RETURNING
        job.id,
        job.seq,
        job.lease_generation,
        job.available_at,
        job.created_at,
        job.completed_at,
        job.partition_bucket,
        job.attempts,
        job.max_attempts,
        job.ordered,
        job.queue,
        job.kind,
        job.partition_key,
        job.finished_by,
        job.idempotency_key,
        job.last_error,
        job.headers,
        job.payload
)
INSERT INTO holdfast.inbox_archive (
    id,
    seq,
    lease_generation,
    available_at,
    created_at,
    completed_at,
    partition_bucket,
    attempts,
    max_attempts,
    ordered,
    queue,
    kind,
    partition_key,
    finished_by,
    idempotency_key,
    last_error,
    headers,
    payload
)
SELECT
    moved.id,
    moved.seq,
    moved.lease_generation,
    moved.available_at,
    moved.created_at,
    moved.completed_at,
    moved.partition_bucket,
    moved.attempts,
    moved.max_attempts,
    moved.ordered,
    moved.queue,
    moved.kind,
    moved.partition_key,
    moved.finished_by,
    moved.idempotency_key,
    moved.last_error,
    moved.headers,
    moved.payload
FROM moved
RETURNING id;

-- name: CreateArchiveDays :one
-- CreateArchiveDays makes the archive partitions that are missing from today to so many
-- days ahead and tells how many; 0 also when a reader holds the default partition, and the
-- next cycle tries again. Called by domain/archive.go.
-- Locks: the default partition, strongly, for 100 ms at most, when a day is missing.
SELECT holdfast.create_archive_days(@days_ahead::integer)::integer AS created;

-- name: DropArchiveDays :one
-- DropArchiveDays drops the archive days that every queue's retention has passed and tells
-- how many; 0 also when a reader holds the archive. Called by domain/archive.go.
-- Locks: the archive, strongly, for 100 ms at most, when a day is due.
SELECT holdfast.drop_archive_days()::integer AS dropped;

-- name: DeleteExpiredKeys :execrows
-- DeleteExpiredKeys frees idempotency keys whose window has passed. Called by
-- domain/archive.go in batches. Index: idempotency_keys_expiry_idx, then
-- idempotency_keys_pkey. Locks: the rows it deletes; skips locked ones, such as a key that
-- an enqueue is just taking again.
WITH expired AS MATERIALIZED (
    SELECT
        keys.queue,
        keys.key
    FROM holdfast.idempotency_keys AS keys
    WHERE keys.expires_at < now()
    ORDER BY
        keys.queue,
        keys.key
    LIMIT @batch::integer
    FOR UPDATE SKIP LOCKED
)
DELETE FROM holdfast.idempotency_keys AS entry
USING expired
WHERE entry.queue = ANY(ARRAY[expired.queue])
    AND entry.key = ANY(ARRAY[expired.key]);

-- name: DeleteOldMarks :execrows
-- DeleteOldMarks forgets marks of a certain age whose job has left the inbox: a mark must
-- outlive every run of its job, also one after a late redrive. Called by domain/archive.go
-- in batches. Index: handled_expiry_idx, handled_pkey, inbox_pkey. Locks: the rows it
-- deletes; skips locked ones.
WITH old AS MATERIALIZED (
    SELECT
        handled.scope,
        handled.key
    FROM holdfast.handled AS handled
    -- Looked up for each mark, and so a subquery with a limit: NOT EXISTS becomes a join, which
    -- with the statistics of a drained queue is a walk through the inbox for each mark.
    LEFT JOIN LATERAL (
        SELECT job.id
        FROM holdfast.inbox AS job
        WHERE job.id = handled.job_id
        LIMIT 1
    ) AS job
        ON true
    WHERE handled.handled_at < now() - @age::interval
        AND job.id IS NULL
    ORDER BY
        handled.scope,
        handled.key
    LIMIT @batch::integer
    FOR UPDATE OF handled SKIP LOCKED
)
DELETE FROM holdfast.handled AS mark
USING old
WHERE mark.scope = ANY(ARRAY[old.scope])
    AND mark.key = ANY(ARRAY[old.key]);

-- name: DeleteUnusedFences :execrows
-- DeleteUnusedFences forgets resources that nobody guarded for longer than any handler can
-- live. Called by domain/archive.go in batches. Index: fences_pkey. Locks: the rows it
-- deletes; skips locked ones.
WITH old AS MATERIALIZED (
    SELECT unused.resource
    FROM holdfast.fences AS unused
    WHERE unused.touched_at < now() - @age::interval
    ORDER BY unused.resource
    LIMIT @batch::integer
    FOR UPDATE SKIP LOCKED
)
DELETE FROM holdfast.fences AS fence
USING old
WHERE fence.resource = ANY(ARRAY[old.resource]);

-- name: DeleteOldEvents :execrows
-- DeleteOldEvents forgets events of a certain age. Called by domain/archive.go in batches.
-- Looks at the oldest so many only, in the order in which they were written, so that it costs
-- no more when nothing is old. Index: events_pkey. Locks: the rows it deletes; skips locked ones.
WITH oldest AS MATERIALIZED (
    SELECT
        event.id,
        event.at
    FROM holdfast.events AS event
    ORDER BY event.id
    LIMIT @batch::integer
),
old AS MATERIALIZED (
    SELECT event.id
    FROM oldest
    JOIN holdfast.events AS event ON event.id = ANY(ARRAY[oldest.id])
    WHERE oldest.at < now() - @age::interval
    ORDER BY oldest.id
    LIMIT @batch::integer
    FOR UPDATE OF event SKIP LOCKED
)
DELETE FROM holdfast.events AS event
USING old
WHERE event.id = ANY(ARRAY[old.id]);
