-- name: JoinWorker :execrows
-- JoinWorker enters a worker into the registry. Called by domain/workers.go before the
-- first claim. Zero rows: another worker has this id, and the caller must not run.
-- Index: workers_pkey.
INSERT INTO holdfast.workers (id, queues, metadata)
VALUES (@id::text, @queues::text[], @metadata::jsonb)
ON CONFLICT (id) DO NOTHING;

-- name: BeatWorker :one
-- BeatWorker records that a worker lives and tells it the status it was found in, which is
-- how a drain ordered elsewhere reaches the worker. It never changes the status, and it
-- leaves the dead alone. Called by domain/workers.go every heartbeat. No row: the registry
-- does not know the worker. Index: workers_pkey. Locks: the worker's row.
UPDATE holdfast.workers AS worker
SET
    last_seen_at = CASE WHEN worker.status = 'dead' THEN worker.last_seen_at ELSE now() END,
    metadata = @metadata::jsonb
WHERE worker.id = @id::text
RETURNING worker.status;

-- name: ListLiveWorkers :many
-- ListLiveWorkers lists the workers of a queue that are alive and were seen within the
-- time to live, in the order of their ids. Index: none, the table has a row a worker.
SELECT
    worker.id,
    worker.queues,
    worker.started_at,
    worker.last_seen_at,
    worker.metadata
FROM holdfast.workers AS worker
WHERE worker.status = 'alive'
    AND worker.last_seen_at > now() - @ttl::interval
    AND @queue::text = ANY(worker.queues)
ORDER BY worker.id
LIMIT @max_rows::integer;

-- name: ListMembers :many
-- ListMembers tells how each of the queues stands and which live workers serve it: those that
-- are alive and were seen within the time to live. Called by domain/workers.go when a
-- worker's ring has to be looked at again. A queue that is missing does not exist.
-- Index: queues_pkey; the registry has a row a worker.
SELECT
    queue.name,
    queue.ordered,
    ARRAY(
        SELECT worker.id
        FROM holdfast.workers AS worker
        WHERE worker.status = 'alive'
            AND worker.last_seen_at > now() - @ttl::interval
            AND queue.name = ANY(worker.queues)
        ORDER BY worker.id
    )::text[] AS worker_ids
FROM holdfast.queues AS queue
WHERE queue.name = ANY(@queues::text[])
ORDER BY queue.name
LIMIT cardinality(@queues::text[]);

-- name: MarkStaleWorkersDead :many
-- MarkStaleWorkersDead marks workers dead that were not seen for the time to live and tells
-- which. It takes no job from them: a lease ends by its own deadline only. Called by
-- domain/archive.go. Index: workers_pkey. Locks: the rows it returns; skips locked ones,
-- such as a worker that is just beating.
WITH stale AS MATERIALIZED (
    SELECT worker.id
    FROM holdfast.workers AS worker
    WHERE worker.status <> 'dead'
        AND worker.last_seen_at < now() - @ttl::interval
    ORDER BY worker.id
    LIMIT @batch::integer
    FOR UPDATE SKIP LOCKED
)
UPDATE holdfast.workers AS worker
SET status = 'dead'
FROM stale
WHERE worker.id = stale.id
RETURNING worker.id;

-- name: DeleteDeadWorkers :execrows
-- DeleteDeadWorkers forgets workers that have been dead for long. Called by
-- domain/archive.go. Index: workers_pkey. Locks: the rows it deletes; skips locked ones.
DELETE FROM holdfast.workers AS worker
USING (
    SELECT dead.id
    FROM holdfast.workers AS dead
    WHERE dead.status = 'dead'
        AND dead.last_seen_at < now() - @age::interval
    ORDER BY dead.id
    LIMIT @batch::integer
    FOR UPDATE SKIP LOCKED
) AS old
WHERE worker.id = old.id;
