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

-- name: LookAround :one
-- LookAround tells an idle worker whether there is anything to claim: a read in place of
-- claims that would find nothing. next_due is how long it takes until a job of its own buckets
-- is due, not above zero if one is, the horizon at most; strays and misfits tell whether a job
-- of the other buckets, or one that is claimed the other way (@lanes says which is the
-- queue's), has been due for @due_for. Jobs of lanes count as due, whether or not their lane
-- is free. No row: the queue is paused, or unknown. Called by domain/wake.go.
-- Index: inbox_claim_idx, inbox_lane_idx.
WITH head AS MATERIALIZED (
    SELECT
        bucket.own,
        first.available_at
    FROM (
        -- From a subselect, so that the planner expects ten elements and compiles nothing (JIT).
        SELECT
            unnest((SELECT @own_buckets::integer[])) AS number,
            true AS own
        UNION ALL
        SELECT
            unnest((SELECT @other_buckets::integer[])),
            false
    ) AS bucket
    CROSS JOIN LATERAL (
        (
            SELECT job.available_at
            FROM holdfast.inbox AS job
            WHERE NOT @lanes::boolean
                AND job.status = 'pending'
                AND NOT job.ordered
                AND job.queue = @queue::text
                AND job.partition_bucket = bucket.number
            ORDER BY
                job.available_at,
                job.seq
            LIMIT 1
        )
        UNION ALL
        (
            SELECT now() - @due_for::interval
            FROM holdfast.inbox AS job
            WHERE @lanes::boolean
                AND job.status = 'pending'
                AND job.ordered
                AND job.queue = @queue::text
                AND job.partition_bucket = bucket.number
            ORDER BY
                job.partition_key,
                job.seq
            LIMIT 1
        )
    ) AS first
)
SELECT
    greatest(
        '0'::interval,
        least(
            @horizon::interval,
            (SELECT min(head.available_at) FROM head WHERE head.own) - now()
        )
    )::interval AS next_due,
    EXISTS (
        SELECT FROM head
        WHERE NOT head.own
            AND head.available_at <= now() - @due_for::interval
    ) AS strays,
    -- In the order of an index, so that the planner does not read the table for it.
    (
        CASE
            WHEN @lanes::boolean THEN (
                SELECT true
                FROM holdfast.inbox AS job
                WHERE job.status = 'pending'
                    AND NOT job.ordered
                    AND job.queue = @queue::text
                    AND job.available_at <= now() - @due_for::interval
                ORDER BY
                    job.partition_bucket,
                    job.available_at,
                    job.seq
                LIMIT 1
            )
            ELSE (
                SELECT true
                FROM holdfast.inbox AS job
                WHERE job.status = 'pending'
                    AND job.ordered
                    AND job.queue = @queue::text
                ORDER BY
                    job.partition_bucket,
                    job.partition_key,
                    job.seq
                LIMIT 1
            )
        END IS NOT NULL
    )::boolean AS misfits
FROM holdfast.queues AS queue
WHERE queue.name = @queue::text
    AND NOT queue.paused;
