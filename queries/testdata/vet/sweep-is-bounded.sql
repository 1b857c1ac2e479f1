-- name: MarkAllWorkersDead :many
-- MarkAllWorkersDead takes its rows in any order: two sweeps at once could deadlock.
WITH stale AS MATERIALIZED (
    SELECT worker.id
    FROM holdfast.workers AS worker
    WHERE worker.last_seen_at < now() - @ttl::interval
    LIMIT @batch::integer
    FOR UPDATE SKIP LOCKED
)
UPDATE holdfast.workers AS worker
SET status = 'dead'
FROM stale
WHERE worker.id = stale.id
RETURNING worker.id;
