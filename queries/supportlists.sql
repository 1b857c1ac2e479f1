-- name: ListPendingJobs :many
-- ListPendingJobs lists the jobs of a queue that are not ordered and due, or with @future those
-- that are not due yet, by the time they are or were due, from the place behind one job on. It
-- asks every bucket for its first job, then as many buckets as jobs are wanted, those that begin
-- first, for their places in the index, and reads the rows of the first of these only. An eighth
-- of the buckets is asked before: where these alone begin as many jobs as are wanted, what comes
-- after them is left out of the index's comparisons, which are else made for all places on a
-- page. Called by domain/supportsources.go. Index: inbox_claim_idx.
WITH few AS MATERIALIZED (
    SELECT first.available_at
    FROM generate_series(0, (SELECT meta.bucket_count FROM holdfast.meta AS meta WHERE meta.singleton) - 1, 8) AS bucket (number)
    CROSS JOIN LATERAL (
        SELECT job.available_at
        FROM holdfast.inbox AS job
        WHERE job.status = 'pending'
            AND NOT job.ordered
            AND job.queue = @queue::text
            AND job.partition_bucket = bucket.number
            AND (job.available_at, job.seq) > (CASE WHEN @future::boolean THEN GREATEST(@after_time::timestamptz, now()) ELSE @after_time::timestamptz END, @after_seq::bigint)
        ORDER BY
            job.available_at,
            job.seq
        LIMIT 1
    ) AS first
    ORDER BY first.available_at
    LIMIT @max_rows::integer
),
bound AS MATERIALIZED (
    SELECT LEAST(
        CASE WHEN @future::boolean THEN 'infinity' ELSE now() END,
        (SELECT max(few.available_at) FROM few HAVING count(*) = @max_rows::integer)
    ) AS last_at
),
head AS MATERIALIZED (
    SELECT
        bucket.number,
        first.available_at,
        first.seq
    FROM generate_series(0, (SELECT meta.bucket_count FROM holdfast.meta AS meta WHERE meta.singleton) - 1) AS bucket (number)
    CROSS JOIN LATERAL (
        SELECT
            job.available_at,
            job.seq
        FROM holdfast.inbox AS job
        WHERE job.status = 'pending'
            AND NOT job.ordered
            AND job.queue = @queue::text
            AND job.partition_bucket = bucket.number
            AND (job.available_at, job.seq) > (CASE WHEN @future::boolean THEN GREATEST(@after_time::timestamptz, now()) ELSE @after_time::timestamptz END, @after_seq::bigint)
            AND job.available_at <= (SELECT bound.last_at FROM bound)
        ORDER BY
            job.available_at,
            job.seq
        LIMIT 1
    ) AS first
    ORDER BY
        first.available_at,
        first.seq
    LIMIT @max_rows::integer
),
place AS MATERIALIZED (
    SELECT
        head.number,
        next.available_at,
        next.seq
    FROM head
    CROSS JOIN LATERAL (
        SELECT
            job.available_at,
            job.seq
        FROM holdfast.inbox AS job
        WHERE job.status = 'pending'
            AND NOT job.ordered
            AND job.queue = @queue::text
            AND job.partition_bucket = head.number
            AND (job.available_at, job.seq) >= (head.available_at, head.seq)
            -- Where there are as many heads as jobs are wanted, none of these is due after the last of them.
            AND job.available_at <= CASE
                WHEN (SELECT count(*) FROM head AS every_head) = @max_rows::integer THEN (SELECT max(last_head.available_at) FROM head AS last_head)
                ELSE (SELECT bound.last_at FROM bound)
            END
        ORDER BY
            job.available_at,
            job.seq
        LIMIT @max_rows::integer
    ) AS next
    ORDER BY
        next.available_at,
        next.seq
    LIMIT @max_rows::integer
)
SELECT
    listed.id,
    listed.seq,
    listed.queue,
    listed.kind,
    listed.partition_key,
    listed.partition_bucket,
    listed.ordered,
    listed.status,
    listed.attempts,
    listed.max_attempts,
    listed.lease_generation,
    listed.claimed_by,
    listed.claimed_at,
    listed.lease_expires_at,
    listed.available_at,
    listed.created_at,
    listed.finished_at,
    listed.idempotency_key,
    COALESCE(left(listed.last_error, 300), '')::text AS last_error,
    now()::timestamptz AS read_at
FROM place
CROSS JOIN LATERAL (
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
        job.finished_at,
        job.idempotency_key,
        job.last_error
    FROM holdfast.inbox AS job
    WHERE job.status = 'pending'
        AND NOT job.ordered
        AND job.queue = @queue::text
        AND job.partition_bucket = place.number
        AND job.available_at = place.available_at
        AND job.seq = place.seq
    LIMIT 1
) AS listed
ORDER BY
    listed.available_at,
    listed.seq
LIMIT @max_rows::integer;

-- name: ListLaneJobs :many
-- ListLaneJobs lists the ordered jobs that wait in a queue, lane by lane and in their order, from
-- the place behind one job on. Called by domain/supportsources.go. Index: inbox_lane_idx.
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
    job.finished_at,
    job.idempotency_key,
    COALESCE(left(job.last_error, 300), '')::text AS last_error,
    now()::timestamptz AS read_at
FROM holdfast.inbox AS job
WHERE job.status = 'pending'
    AND job.ordered
    AND job.queue = @queue::text
    AND (job.partition_bucket, job.partition_key, job.seq) > (@after_bucket::integer, @after_key::text, @after_seq::bigint)
ORDER BY
    job.partition_bucket,
    job.partition_key,
    job.seq
LIMIT @max_rows::integer;

-- name: ListRetryingJobs :many
-- ListRetryingJobs lists the jobs of a queue that were tried and wait for their next attempt, by
-- when that is due, from the place behind one job on. Called by domain/supportsources.go.
-- Index: inbox_retrying_idx.
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
    job.finished_at,
    job.idempotency_key,
    COALESCE(left(job.last_error, 300), '')::text AS last_error,
    now()::timestamptz AS read_at
FROM holdfast.inbox AS job
WHERE job.status = 'pending'
    AND job.attempts > 0
    AND job.queue = @queue::text
    AND (job.available_at, job.id) > (GREATEST(@after_time::timestamptz, now()), @after_id::uuid)
ORDER BY
    job.available_at,
    job.id
LIMIT @max_rows::integer;

-- name: ListClaims :many
-- ListClaims lists the work in flight of all queues, oldest claim first, from the place behind
-- one generation on. Called by domain/supportsources.go. Index: inbox_processing_idx.
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
    job.finished_at,
    job.idempotency_key,
    COALESCE(left(job.last_error, 300), '')::text AS last_error,
    now()::timestamptz AS read_at
FROM holdfast.inbox AS job
WHERE job.claimed_at IS NOT NULL
    AND job.lease_generation > @after_generation::bigint
ORDER BY job.lease_generation
LIMIT @max_rows::integer;

-- name: ListKeptJobs :many
-- ListKeptJobs lists the completed jobs of all queues that are kept in the inbox, newest first,
-- from the place behind one job on. Called by domain/supportsources.go.
-- Index: inbox_completed_idx.
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
    job.finished_at,
    job.idempotency_key,
    COALESCE(left(job.last_error, 300), '')::text AS last_error,
    now()::timestamptz AS read_at
FROM holdfast.inbox AS job
WHERE job.status = 'completed'
    AND (job.completed_at, job.id) < (@before_time::timestamptz, @before_id::uuid)
ORDER BY
    job.completed_at DESC,
    job.id DESC
LIMIT @max_rows::integer;

-- name: ListArchivedJobs :many
-- ListArchivedJobs lists the archived jobs of all queues by the time of their enqueue, newest
-- first, from the place behind one job on: the archive has no other order. Called by
-- domain/supportsources.go. Index: inbox_archive_id_idx.
SELECT
    job.id,
    job.seq,
    job.queue,
    job.kind,
    job.partition_key,
    job.partition_bucket,
    job.ordered,
    job.attempts,
    job.max_attempts,
    job.lease_generation,
    job.available_at,
    job.created_at,
    job.completed_at,
    job.idempotency_key,
    COALESCE(left(job.last_error, 300), '')::text AS last_error,
    now()::timestamptz AS read_at
FROM holdfast.inbox_archive AS job
WHERE job.id < @before_id::uuid
ORDER BY job.id DESC
LIMIT @max_rows::integer;

-- name: ListNewestJobs :many
-- ListNewestJobs lists the jobs of all queues that are in the inbox, in any state, newest first,
-- from the place behind one job on. Called by domain/supportsources.go. Index: inbox_pkey.
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
    job.finished_at,
    job.idempotency_key,
    COALESCE(left(job.last_error, 300), '')::text AS last_error,
    now()::timestamptz AS read_at
FROM holdfast.inbox AS job
WHERE job.id < @before_id::uuid
ORDER BY job.id DESC
LIMIT @max_rows::integer;
