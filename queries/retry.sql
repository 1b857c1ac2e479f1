-- name: RetryJobs :many
-- RetryJobs ends the claims of the set without success: a job with attempts left waits for
-- its delay, one without is dead-lettered. Either leaves an event with the error. Called by
-- domain/retry.go. A job that does not come back was not touched: the worker no longer holds
-- that claim. The whole fence is a join condition. Index: inbox_pkey. Locks: the rows it
-- returns.
WITH settled AS (
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
        job.status,
        job.attempts,
        job.queue,
        job.kind,
        job.partition_key,
        held.worker_id,
        held.error
),
noted AS (
    INSERT INTO holdfast.events (
        job_id,
        lease_generation,
        attempt,
        event,
        queue,
        kind,
        partition_key,
        worker_id,
        detail
    )
    SELECT
        settled.id,
        settled.lease_generation,
        settled.attempts,
        CASE WHEN settled.status = 'pending' THEN 'retried'::holdfast.event_kind ELSE 'dead_lettered'::holdfast.event_kind END,
        settled.queue,
        settled.kind,
        settled.partition_key,
        settled.worker_id,
        holdfast.event_detail(settled.error)
    FROM settled
)
SELECT
    settled.id,
    settled.lease_generation,
    settled.status
FROM settled;

-- name: FailJobs :many
-- FailJobs ends the claims of the set for good: their handlers said never to retry. Each
-- leaves an event with the error. Called by domain/retry.go. A job that does not come back
-- was not touched. The job stays as failed until it is redriven or purged.
-- Index: inbox_pkey. Locks: the rows it returns.
WITH settled AS (
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
        job.lease_generation,
        job.attempts,
        job.queue,
        job.kind,
        job.partition_key,
        held.worker_id,
        held.error
),
noted AS (
    INSERT INTO holdfast.events (
        job_id,
        lease_generation,
        attempt,
        event,
        queue,
        kind,
        partition_key,
        worker_id,
        detail
    )
    SELECT
        settled.id,
        settled.lease_generation,
        settled.attempts,
        'failed',
        settled.queue,
        settled.kind,
        settled.partition_key,
        settled.worker_id,
        holdfast.event_detail(settled.error)
    FROM settled
)
SELECT
    settled.id,
    settled.lease_generation
FROM settled;

-- name: ReleaseJobs :many
-- ReleaseJobs gives the claims of the set back after a delay and refunds the attempt: a
-- snooze, a drain, a kind the worker does not know. Those with a name in @events leave such
-- an event with its detail, but one only for each attempt and worker: a job of a kind that
-- nobody handles comes back every half minute, a fenced one every second, and neither spends
-- an attempt. Those with '' leave none: a snooze is what the handler wants. Called by
-- domain/retry.go. A job that does not come back was not touched.
-- Index: inbox_pkey, events_job_idx. Locks: the rows it returns.
WITH settled AS (
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
            unnest(@events::text[]) AS event,
            unnest(@details::text[]) AS detail,
            @worker_id::text AS worker_id
    ) AS held
    WHERE job.id = ANY(ARRAY[held.id])
        AND job.partition_bucket = held.partition_bucket
        AND job.lease_generation = held.lease_generation
        AND job.claimed_by = held.worker_id
    RETURNING
        job.id,
        job.lease_generation,
        job.attempts + 1 AS attempt,
        job.queue,
        job.kind,
        job.partition_key,
        held.worker_id,
        nullif(held.event, '')::holdfast.event_kind AS event,
        held.detail
),
noted AS (
    INSERT INTO holdfast.events (
        job_id,
        lease_generation,
        attempt,
        event,
        queue,
        kind,
        partition_key,
        worker_id,
        detail
    )
    SELECT
        settled.id,
        settled.lease_generation,
        settled.attempt,
        settled.event,
        settled.queue,
        settled.kind,
        settled.partition_key,
        settled.worker_id,
        holdfast.event_detail(settled.detail)
    FROM settled
    -- A subquery with a limit, because NOT EXISTS becomes a join, which with wrong statistics
    -- is a walk through all events.
    LEFT JOIN LATERAL (
        SELECT told.id
        FROM holdfast.events AS told
        WHERE told.job_id = ANY(ARRAY[settled.id])
            AND told.attempt = settled.attempt
            AND told.event = settled.event
            AND told.worker_id = settled.worker_id
        LIMIT 1
    ) AS before
        ON true
    WHERE settled.event IS NOT NULL
        AND before.id IS NULL
)
SELECT
    settled.id,
    settled.lease_generation
FROM settled;
