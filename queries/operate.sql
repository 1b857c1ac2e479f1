-- name: CancelJobs :many
-- CancelJobs ends jobs of the set that are not finished: they are failed, with who and why in
-- last_error. Called by domain/operate.go for a person. A claim of such a job is over: its
-- holder can neither renew nor settle it, and its handler's context ends. A job that does not
-- come back is finished, or somebody has its row locked, such as a handler's transaction.
-- Index: inbox_pkey. Locks: the rows it returns; skips locked ones.
WITH chosen AS (
    SELECT
        unnest(@partition_buckets::integer[]) AS partition_bucket,
        unnest(@ids::uuid[]) AS id
),
picked AS MATERIALIZED (
    SELECT
        job.id,
        job.partition_bucket,
        job.claimed_by,
        CASE WHEN job.claimed_by IS NOT NULL THEN job.lease_generation END AS lease_generation,
        CASE WHEN job.claimed_by IS NOT NULL THEN job.attempts END AS attempt
    FROM chosen
    CROSS JOIN holdfast.inbox AS job
    WHERE job.id = ANY(ARRAY[chosen.id])
        AND job.partition_bucket = chosen.partition_bucket
        AND job.finished_at IS NULL
    FOR UPDATE OF job SKIP LOCKED
),
cancelled AS (
    UPDATE holdfast.inbox AS job
    SET
        status = 'failed',
        finished_at = now(),
        finished_by = @actor::text,
        -- The texts before it are long, and a job may be cancelled again.
        last_error = left(
            'cancelled by ' || @actor::text || COALESCE(': ' || NULLIF(@reason::text, ''), '') || COALESCE('; the error before: ' || job.last_error, ''),
            2000
        ),
        claimed_by = NULL,
        claimed_at = NULL,
        lease_expires_at = NULL
    FROM picked
    WHERE job.id = ANY(ARRAY[picked.id])
        AND job.partition_bucket = picked.partition_bucket
    RETURNING
        job.id,
        job.queue,
        job.kind,
        job.partition_key,
        picked.claimed_by,
        picked.lease_generation,
        picked.attempt
),
noted AS (
    INSERT INTO holdfast.events (job_id, lease_generation, attempt, event, queue, kind, partition_key, worker_id, actor, detail)
    SELECT
        cancelled.id,
        cancelled.lease_generation,
        cancelled.attempt,
        'cancelled'::holdfast.event_kind,
        cancelled.queue,
        cancelled.kind,
        cancelled.partition_key,
        cancelled.claimed_by,
        @actor::text,
        NULLIF(@reason::text, '')
    FROM cancelled
)
SELECT cancelled.id
FROM cancelled;

-- name: ReleaseClaims :many
-- ReleaseClaims takes the claims of the set from their workers: each job is pending at once,
-- its attempt refunded, as if its worker had released it. Called by domain/operate.go for a
-- person, and by domain/evict.go. The claim is over with that, before anybody makes the next:
-- claimed_by is null, so its holder can neither renew nor settle it. The whole fence is
-- compared, so that a claim which the person has not seen is left alone. A job that does not
-- come back is no longer under that claim, or somebody has its row locked.
-- Index: inbox_pkey. Locks: the rows it returns; skips locked ones.
WITH held AS (
    SELECT
        unnest(@partition_buckets::integer[]) AS partition_bucket,
        unnest(@ids::uuid[]) AS id,
        unnest(@lease_generations::bigint[]) AS lease_generation,
        unnest(@worker_ids::text[]) AS worker_id
),
picked AS MATERIALIZED (
    SELECT
        job.id,
        job.partition_bucket,
        job.claimed_by,
        job.attempts
    FROM held
    CROSS JOIN holdfast.inbox AS job
    WHERE job.id = ANY(ARRAY[held.id])
        AND job.partition_bucket = held.partition_bucket
        AND job.lease_generation = held.lease_generation
        AND job.claimed_by = held.worker_id
    FOR UPDATE OF job SKIP LOCKED
),
released AS (
    UPDATE holdfast.inbox AS job
    SET
        status = 'pending',
        attempts = job.attempts - 1,
        available_at = now(),
        claimed_by = NULL,
        claimed_at = NULL,
        lease_expires_at = NULL
    FROM picked
    WHERE job.id = ANY(ARRAY[picked.id])
        AND job.partition_bucket = picked.partition_bucket
    RETURNING
        job.id,
        job.lease_generation,
        job.queue,
        job.kind,
        job.partition_key,
        picked.claimed_by,
        picked.attempts AS attempt
),
noted AS (
    INSERT INTO holdfast.events (job_id, lease_generation, attempt, event, queue, kind, partition_key, worker_id, actor, detail)
    SELECT
        released.id,
        released.lease_generation,
        released.attempt,
        'released'::holdfast.event_kind,
        released.queue,
        released.kind,
        released.partition_key,
        released.claimed_by,
        @actor::text,
        NULLIF(@reason::text, '')
    FROM released
)
SELECT released.id
FROM released;

-- name: RedriveJobs :many
-- RedriveJobs puts failed and dead-lettered jobs of the set back to pending with all their
-- attempts, or as many as are given. Called by domain/operate.go for a person. A job that does
-- not come back was neither failed nor dead-lettered. The jobs of a set are due at one time, so
-- that they are claimed by seq; order across a redrive is not promised.
-- Index: inbox_pkey. Locks: the rows it returns.
WITH redriven AS (
    UPDATE holdfast.inbox AS job
    SET
        status = 'pending',
        attempts = 0,
        max_attempts = COALESCE(sqlc.narg('max_attempts')::integer, job.max_attempts),
        available_at = now(),
        finished_at = NULL,
        finished_by = NULL
    FROM (
        SELECT
            unnest(@partition_buckets::integer[]) AS partition_bucket,
            unnest(@ids::uuid[]) AS id
    ) AS chosen
    WHERE job.id = ANY(ARRAY[chosen.id])
        AND job.partition_bucket = chosen.partition_bucket
        -- Failed or dead-lettered. By its name the state would let the planner walk all of
        -- inbox_dead_idx for each job of the set.
        AND job.finished_at IS NOT NULL
        AND job.completed_at IS NULL
    RETURNING
        job.id,
        job.queue,
        job.kind,
        job.partition_key
),
noted AS (
    INSERT INTO holdfast.events (job_id, event, queue, kind, partition_key, actor, detail)
    SELECT
        redriven.id,
        'redriven'::holdfast.event_kind,
        redriven.queue,
        redriven.kind,
        redriven.partition_key,
        @actor::text,
        NULLIF(@reason::text, '')
    FROM redriven
)
SELECT redriven.id
FROM redriven;

-- name: PurgeJobs :many
-- PurgeJobs deletes failed and dead-lettered jobs of the set for good, and frees the
-- idempotency keys that stand for them: the next enqueue under such a key is a job. Called by
-- domain/operate.go for a person. A job that does not come back was neither failed nor
-- dead-lettered. Keys are locked in the order of their index, as a set of enqueues takes them.
-- Index: inbox_pkey, then idempotency_keys_pkey. Locks: the rows it returns, and their keys.
WITH purged AS (
    DELETE FROM holdfast.inbox AS job
    USING (
        SELECT
            unnest(@partition_buckets::integer[]) AS partition_bucket,
            unnest(@ids::uuid[]) AS id
        LIMIT cardinality(@ids::uuid[])
    ) AS chosen
    WHERE job.id = ANY(ARRAY[chosen.id])
        AND job.partition_bucket = chosen.partition_bucket
        -- Failed or dead-lettered. By its name the state would let the planner walk all of
        -- inbox_dead_idx for each job of the set.
        AND job.finished_at IS NOT NULL
        AND job.completed_at IS NULL
    RETURNING
        job.id,
        job.queue,
        job.kind,
        job.partition_key,
        job.idempotency_key
),
freed AS (
    DELETE FROM holdfast.idempotency_keys AS entry
    -- Arrays, because a join would let the planner walk all keys, where it takes the table for
    -- empty. A key that stands for another job by now is left.
    WHERE entry.queue = ANY(ARRAY(SELECT purged.queue FROM purged WHERE purged.idempotency_key IS NOT NULL))
        AND entry.key = ANY(ARRAY(SELECT purged.idempotency_key FROM purged WHERE purged.idempotency_key IS NOT NULL))
        AND entry.job_id = ANY(ARRAY(SELECT purged.id FROM purged))
),
noted AS (
    INSERT INTO holdfast.events (job_id, event, queue, kind, partition_key, actor, detail)
    SELECT
        purged.id,
        'purged'::holdfast.event_kind,
        purged.queue,
        purged.kind,
        purged.partition_key,
        @actor::text,
        NULLIF(@reason::text, '')
    FROM purged
)
SELECT purged.id
FROM purged;

-- name: EvictWorker :one
-- EvictWorker marks a worker dead for a person: a heartbeat never changes that, and is how the
-- worker learns of it. Called by domain/evict.go, which then takes its claims; one that is dead
-- already may hold some. No row: the registry does not know
-- the worker. Index: workers_pkey. Locks: the worker's row.
WITH evicted AS (
    UPDATE holdfast.workers AS worker
    SET status = 'dead'
    WHERE worker.id = @id::text
    RETURNING worker.id
),
noted AS (
    INSERT INTO holdfast.events (event, worker_id, actor, detail)
    SELECT
        'worker_evicted'::holdfast.event_kind,
        evicted.id,
        @actor::text,
        NULLIF(@reason::text, '')
    FROM evicted
)
SELECT evicted.id
FROM evicted;
