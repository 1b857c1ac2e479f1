-- name: LockClaim :one
-- LockClaim locks the row of a claim, if it is still the job's current one, for the
-- transaction in which its handler writes: nobody can take the claim away until that ends.
-- Called by domain/handletx.go before the handler's first write. No row: the claim is over.
-- For as long as the lock is held no reclaim gets the job, so the server must notice a
-- client that vanished without a word; by default that takes it hours. The session is ended
-- when it idles in this transaction for what is left of the lease, a day at most, or for as
-- long as its own setting says if that is less. Index: inbox_pkey. Locks: the row.
SELECT
    set_config(
        'idle_in_transaction_session_timeout',
        round(
            1000 * extract(
                EPOCH FROM greatest(
                    '1 second'::interval,
                    least(
                        '1 day'::interval,
                        job.lease_expires_at - now(),
                        nullif(current_setting('idle_in_transaction_session_timeout')::interval, '0'::interval)
                    )
                )
            )
        )::integer::text,
        true
    )::text AS idle_timeout
FROM holdfast.inbox AS job
WHERE job.id = @id::uuid
    AND job.partition_bucket = @partition_bucket::integer
    AND job.lease_generation = @lease_generation::bigint
    AND job.claimed_by = @worker_id::text
FOR UPDATE;

-- name: CompleteJobs :many
-- CompleteJobs finishes the claims of the set by moving their rows to the archive: the way
-- of a queue in mode archive. Called by domain/complete.go. A job that does not come back
-- was not touched: the worker no longer holds that claim. Settling does not ask whether the
-- lease has ended; only a reclaim takes a claim away. The whole fence is a join condition.
-- Index: inbox_pkey. Locks: the rows it moves.
WITH moved AS (
    DELETE FROM holdfast.inbox AS job
    USING (
        SELECT
            unnest(@partition_buckets::integer[]) AS partition_bucket,
            unnest(@ids::uuid[]) AS id,
            unnest(@lease_generations::bigint[]) AS lease_generation,
            @worker_id::text AS worker_id
    ) AS held
    WHERE job.id = ANY(ARRAY[held.id])
        AND job.partition_bucket = held.partition_bucket
        AND job.lease_generation = held.lease_generation
        AND job.claimed_by = held.worker_id
    RETURNING
        job.id,
        job.seq,
        job.lease_generation,
        job.available_at,
        job.created_at,
        job.partition_bucket,
        job.attempts,
        job.max_attempts,
        job.ordered,
        job.queue,
        job.kind,
        job.partition_key,
        job.claimed_by,
        job.idempotency_key,
        job.last_error,
        job.headers,
        job.payload
)
INSERT INTO holdfast.inbox_archive (
    id,
    seq,
    lease_generation,
    available_at,
    created_at,
    completed_at,
    partition_bucket,
    attempts,
    max_attempts,
    ordered,
    queue,
    kind,
    partition_key,
    finished_by,
    idempotency_key,
    last_error,
    headers,
    payload
)
SELECT
    moved.id,
    moved.seq,
    moved.lease_generation,
    moved.available_at,
    moved.created_at,
    now(),
    moved.partition_bucket,
    moved.attempts,
    moved.max_attempts,
    moved.ordered,
    moved.queue,
    moved.kind,
    moved.partition_key,
    moved.claimed_by,
    moved.idempotency_key,
    moved.last_error,
    moved.headers,
    moved.payload
FROM moved
RETURNING
    id,
    lease_generation;

-- name: CompleteAndKeepJobs :many
-- CompleteAndKeepJobs finishes the claims of the set and leaves their rows in the inbox as
-- completed: the way of a queue in mode keep; housekeeping archives them later. Otherwise
-- as CompleteJobs. Index: inbox_pkey. Locks: the rows it returns.
UPDATE holdfast.inbox AS job
SET
    status = 'completed',
    completed_at = now(),
    finished_at = now(),
    finished_by = job.claimed_by,
    claimed_by = NULL,
    claimed_at = NULL,
    lease_expires_at = NULL
FROM (
    SELECT
        unnest(@partition_buckets::integer[]) AS partition_bucket,
        unnest(@ids::uuid[]) AS id,
        unnest(@lease_generations::bigint[]) AS lease_generation,
        @worker_id::text AS worker_id
) AS held
WHERE job.id = ANY(ARRAY[held.id])
    AND job.partition_bucket = held.partition_bucket
    AND job.lease_generation = held.lease_generation
    AND job.claimed_by = held.worker_id
RETURNING
    job.id,
    job.lease_generation;

-- name: CompleteAndDropJobs :many
-- CompleteAndDropJobs finishes the claims of the set by deleting their rows: the way of a
-- queue in mode drop. Otherwise as CompleteJobs.
-- Index: inbox_pkey. Locks: the rows it deletes.
DELETE FROM holdfast.inbox AS job
USING (
    SELECT
        unnest(@partition_buckets::integer[]) AS partition_bucket,
        unnest(@ids::uuid[]) AS id,
        unnest(@lease_generations::bigint[]) AS lease_generation,
        @worker_id::text AS worker_id
) AS held
WHERE job.id = ANY(ARRAY[held.id])
    AND job.partition_bucket = held.partition_bucket
    AND job.lease_generation = held.lease_generation
    AND job.claimed_by = held.worker_id
RETURNING
    job.id,
    job.lease_generation;
