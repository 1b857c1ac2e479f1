-- name: ArmWake :execrows
-- ArmWake says that a worker wants to be woken by enqueues to these queues. Called by
-- domain/wake.go when the worker goes idle after it was saturated. Fewer rows than queues:
-- for some it had said so before. An enqueue whose transaction was open meanwhile did not
-- see it: the worker looks again soon.
-- Index: wake_pkey.
INSERT INTO holdfast.wake (queue, worker_id)
SELECT
    waiting.queue,
    @worker_id::text
FROM (SELECT unnest(@queues::text[]) AS queue) AS waiting
ORDER BY waiting.queue
ON CONFLICT (queue, worker_id) DO NOTHING;

-- name: DisarmWake :execrows
-- DisarmWake says that a worker need not be woken: it is saturated and looks for work by
-- itself, or it leaves. Called by domain/wake.go. Zero rows: nothing was armed.
-- Index: wake_pkey. Locks: the rows it deletes.
DELETE FROM holdfast.wake AS bell
USING (
    SELECT
        unnest(@queues::text[]) AS queue,
        @worker_id::text AS worker_id
    LIMIT cardinality(@queues::text[])
) AS waiting
WHERE bell.queue = waiting.queue
    AND bell.worker_id = waiting.worker_id;

-- name: DisarmDeadWorkers :execrows
-- DisarmDeadWorkers forgets that workers want to be woken that are not alive any more.
-- Called by domain/archive.go in batches. Index: workers_pkey; wake has a row a worker and
-- queue. Locks: the rows it deletes; skips locked ones.
DELETE FROM holdfast.wake AS bell
USING (
    SELECT
        waiting.queue,
        waiting.worker_id
    FROM holdfast.wake AS waiting
    WHERE NOT EXISTS (
        SELECT FROM holdfast.workers AS worker
        WHERE worker.id = waiting.worker_id
            AND worker.status = 'alive'
    )
    ORDER BY
        waiting.queue,
        waiting.worker_id
    LIMIT @batch::integer
    FOR UPDATE SKIP LOCKED
) AS stale
WHERE bell.queue = stale.queue
    AND bell.worker_id = stale.worker_id;

-- name: SubscribeToRings :exec
-- SubscribeToRings subscribes a session to the doorbell. Called by domain/wake.go on a
-- connection of its own. A ring says which bucket of which queue to look at, never a key.
LISTEN holdfast_wake;

-- name: SubscribeToProbes :exec
-- SubscribeToProbes subscribes a session to probes. Called by domain/wake.go beside
-- SubscribeToRings.
LISTEN holdfast_probe;

-- name: SendProbe :exec
-- SendProbe notifies listeners of a nonce. Called by domain/wake.go through the connections
-- that enqueues use: a session that does not hear it, as behind a pooler in transaction
-- mode, would hear no ring either.
SELECT pg_notify('holdfast_probe', @nonce::text);

-- name: NextDueJob :one
-- NextDueJob tells how long it takes until the next job of these buckets of a queue is due,
-- if that is within the horizon: a worker does not sleep past it. No row: none is. Called by
-- domain/wake.go before an idle worker sleeps. Index: inbox_claim_idx.
SELECT (next.available_at - now())::interval AS wait
FROM (SELECT unnest(@partition_buckets::integer[]) AS number) AS bucket
CROSS JOIN LATERAL (
    SELECT job.available_at
    FROM holdfast.inbox AS job
    WHERE job.status = 'pending'
        AND NOT job.ordered
        AND job.queue = @queue::text
        AND job.partition_bucket = bucket.number
        AND job.available_at > now()
        AND job.available_at <= now() + @horizon::interval
    ORDER BY
        job.available_at,
        job.seq
    LIMIT 1
) AS next
ORDER BY next.available_at
LIMIT 1;
