-- name: DrainWorker :one
-- DrainWorker tells a live worker to stop claiming and to finish what it holds. Called by
-- the worker itself when it stops, which leaves no event, and for a person, which does. Zero: it
-- is not alive. Index: workers_pkey. Locks: the worker's row.
WITH drained AS (
    UPDATE holdfast.workers AS worker
    SET status = 'draining'
    WHERE worker.id = @id::text
        AND worker.status = 'alive'
    RETURNING worker.id
),
noted AS (
    INSERT INTO holdfast.events (event, worker_id, actor, detail)
    SELECT
        'worker_drained'::holdfast.event_kind,
        drained.id,
        sqlc.narg('actor')::text,
        NULLIF(@reason::text, '')
    FROM drained
    WHERE sqlc.narg('actor')::text IS NOT NULL
)
SELECT count(*)
FROM drained;

-- name: LeaveWorker :execrows
-- LeaveWorker marks a worker dead that has finished its drain. Called by domain/drain.go as
-- the worker's last word. Zero rows: somebody marked it dead before.
-- Index: workers_pkey. Locks: the worker's row.
UPDATE holdfast.workers AS worker
SET
    status = 'dead',
    last_seen_at = now()
WHERE worker.id = @id::text
    AND worker.status <> 'dead';

-- name: CountHeldJobs :one
-- CountHeldJobs counts the claims that a worker holds: zero after a drain. It reads all of
-- inbox_processing_idx, whose size is that of the work in flight.
SELECT count(*)
FROM holdfast.inbox AS job
WHERE job.claimed_at IS NOT NULL
    AND job.claimed_by = @worker_id::text;

-- name: ListHeldClaims :many
-- ListHeldClaims lists claims that a worker holds, oldest first, from the one after
-- @after_generation on. Called by domain/drain.go at the end of a drain, to give back those
-- that the worker itself does not know of because the reply to its claim was lost. It walks
-- the work in flight, whoever holds it. Index: inbox_processing_idx.
SELECT
    job.id,
    job.partition_bucket,
    job.lease_generation
FROM holdfast.inbox AS job
WHERE job.claimed_at IS NOT NULL
    AND job.claimed_by = @worker_id::text
    AND job.lease_generation > @after_generation::bigint
ORDER BY job.lease_generation
LIMIT @max_rows::integer;
