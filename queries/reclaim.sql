-- name: OldestClaim :one
-- OldestClaim tells the generation of the oldest claim in flight after the one given: where a
-- walk over them can begin. Called by domain/reclaim.go. No row: none is in flight. It steps
-- over the index entries of the claims that were settled since, for as long as a transaction
-- keeps vacuum from them. Index: inbox_processing_idx.
SELECT job.lease_generation
FROM holdfast.inbox AS job
WHERE job.claimed_at IS NOT NULL
    AND job.lease_generation > @after_generation::bigint
ORDER BY job.lease_generation
LIMIT 1;

-- name: ReclaimExpiredLeases :many
-- ReclaimExpiredLeases takes back claims whose lease has ended by the database's clock: a
-- job with attempts left waits for its backoff, one without is dead-lettered. Either leaves
-- an event that names the worker. Called by domain/reclaim.go in batches, each starting
-- after the last row of the one before; fewer rows than the batch: the walk is at its end.
-- Walks the claims in the order in which they began, because ordering by lease_expires_at
-- would sort everything in flight for each batch. Harmless when two run.
-- Index: inbox_processing_idx, then inbox_pkey. Locks: the rows it returns; skips locked
-- ones, such as a job that is just being settled or renewed.
WITH expired AS MATERIALIZED (
    SELECT
        job.id,
        job.partition_bucket,
        job.claimed_by
    FROM holdfast.inbox AS job
    WHERE job.claimed_at IS NOT NULL
        AND job.lease_generation > @after_generation::bigint
        AND job.lease_expires_at < now()
    ORDER BY job.lease_generation
    LIMIT @batch::integer
    FOR UPDATE SKIP LOCKED
),
reclaimed AS (
    UPDATE holdfast.inbox AS job
    SET
        status = CASE
            WHEN job.attempts < job.max_attempts THEN 'pending'::holdfast.inbox_status
            ELSE 'dead_letter'::holdfast.inbox_status
        END,
        available_at = now() + holdfast.backoff(job.attempts),
        finished_at = CASE WHEN job.attempts < job.max_attempts THEN NULL ELSE now() END,
        finished_by = CASE WHEN job.attempts < job.max_attempts THEN NULL ELSE job.claimed_by END,
        last_error = CASE
            WHEN job.attempts < job.max_attempts THEN job.last_error
            ELSE 'the lease of worker ' || job.claimed_by || ' ended at the last attempt' || COALESCE('; the error before: ' || job.last_error, '')
        END,
        claimed_by = NULL,
        claimed_at = NULL,
        lease_expires_at = NULL
    FROM expired
    WHERE job.id = ANY(ARRAY[expired.id])
        AND job.partition_bucket = expired.partition_bucket
    RETURNING
        job.id,
        job.queue,
        job.kind,
        job.partition_key,
        job.partition_bucket,
        job.lease_generation,
        job.attempts,
        job.status,
        job.last_error,
        expired.claimed_by
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
        reclaimed.id,
        reclaimed.lease_generation,
        reclaimed.attempts,
        CASE WHEN reclaimed.status = 'pending' THEN 'reclaimed'::holdfast.event_kind ELSE 'dead_lettered'::holdfast.event_kind END,
        reclaimed.queue,
        reclaimed.kind,
        reclaimed.partition_key,
        reclaimed.claimed_by,
        CASE WHEN reclaimed.status = 'pending' THEN NULL ELSE holdfast.event_detail(reclaimed.last_error) END
    FROM reclaimed
)
SELECT
    reclaimed.id,
    reclaimed.queue,
    reclaimed.kind,
    reclaimed.partition_bucket,
    reclaimed.lease_generation,
    reclaimed.attempts,
    reclaimed.status,
    reclaimed.claimed_by::text AS claimed_by
FROM reclaimed;
