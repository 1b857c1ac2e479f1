-- name: ClaimJobs :many
-- ClaimJobs gives due jobs of one queue to a worker under a lease, at most @quota from each
-- of the buckets and @batch in all, probing the buckets in the order given; only those that
-- have been due for @due_for. Each bucket is probed from its floor on: what became available
-- before is not seen, and neither are the index entries of jobs long gone, which stay for as
-- long as any open transaction might see them. Ordered jobs are left to ClaimLanes. Called by
-- domain/claim.go.
-- Zero rows: nothing is due, everything due is locked by another claim, or the queue is paused.
-- A null in lease_generation (23502) is refused where AdvanceEpoch has to run first: the epoch
-- is that of another incarnation of the database.
-- No ORDER BY stands around the probes, so that they stop as soon as the batch is full: the
-- cost does not grow with the backlog.
-- Index: inbox_claim_idx, then inbox_pkey. Locks: the rows it returns; skips locked ones.
WITH served AS MATERIALIZED (
    SELECT queue.retention_mode
    FROM holdfast.queues AS queue
    WHERE queue.name = @queue::text
        AND NOT queue.paused
),
picked AS MATERIALIZED (
    SELECT
        due.id,
        due.partition_bucket
    FROM (
        SELECT
            unnest(@partition_buckets::integer[]) AS number,
            unnest(@floors::timestamptz[]) AS floor
    ) AS bucket
    CROSS JOIN LATERAL (
        SELECT
            job.id,
            job.partition_bucket
        FROM holdfast.inbox AS job
        -- Literals, never parameters: the partial index must match.
        WHERE job.status = 'pending'
            AND NOT job.ordered
            AND job.queue = @queue::text
            AND job.partition_bucket = bucket.number
            AND job.available_at >= bucket.floor
            AND job.available_at <= now() - @due_for::interval
        ORDER BY
            job.available_at,
            job.seq
        LIMIT @quota::integer
        FOR UPDATE SKIP LOCKED
    ) AS due
    WHERE EXISTS (SELECT FROM served)
    LIMIT @batch::integer
)
UPDATE holdfast.inbox AS job
SET
    status = 'processing',
    claimed_by = @worker_id::text,
    claimed_at = now(),
    lease_expires_at = now() + @lease::interval,
    -- Drawn for each row, after its lock: drawn once a batch, a later claim of a row could
    -- get the smaller token. Without an epoch it is null, which the column refuses.
    lease_generation = (
        SELECT meta.epoch
        FROM holdfast.meta AS meta
        WHERE meta.singleton
            AND meta.incarnation = holdfast.incarnation()
    ) * 1099511627776 + nextval('holdfast.generation_seq'),
    attempts = job.attempts + 1
FROM picked
WHERE job.id = ANY(ARRAY[picked.id])
    AND job.partition_bucket = picked.partition_bucket
RETURNING
    job.id,
    job.seq,
    job.queue,
    job.kind,
    job.partition_key,
    job.partition_bucket,
    job.attempts,
    job.max_attempts,
    job.lease_generation,
    job.available_at,
    job.created_at,
    job.idempotency_key,
    job.headers,
    job.payload,
    (now() - job.available_at)::interval AS waited,
    (SELECT served.retention_mode FROM served)::holdfast.retention_mode AS retention_mode;
