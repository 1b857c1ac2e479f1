-- name: ListLaneBuckets :many
-- ListLaneBuckets tells which of the buckets hold waiting ordered jobs of the queue, in the
-- order given, at most @bound: a hint, so that only those are locked. Called by
-- domain/lane.go. No rows: there are none, or the queue is paused. Index: inbox_lane_idx.
SELECT bucket.number::integer AS partition_bucket
FROM (SELECT unnest(@partition_buckets::integer[]) AS number) AS bucket
CROSS JOIN LATERAL (
    SELECT job.id
    FROM holdfast.inbox AS job
    WHERE job.status = 'pending'
        AND job.ordered
        AND job.queue = @queue::text
        AND job.partition_bucket = bucket.number
    ORDER BY
        job.partition_key,
        job.seq
    LIMIT 1
) AS waiting
WHERE EXISTS (
    SELECT
    FROM holdfast.queues AS queue
    WHERE queue.name = @queue::text
        AND NOT queue.paused
)
LIMIT @bound::integer;

-- name: BeginLanes :exec
-- BeginLanes opens the transaction in which lanes are locked and claimed. It asks for READ
-- COMMITTED by name, because the default of a role or a database may differ: ClaimLanes must
-- see what was committed until LockLanes had its locks. Called by domain/lane.go.
BEGIN ISOLATION LEVEL READ COMMITTED;

-- name: LockLanes :exec
-- LockLanes takes buckets of an ordered queue for this transaction, passes over those that
-- another claim has, and leaves the list of those it got in the setting holdfast.lanes, which
-- ends with the transaction too. Called by domain/lane.go, with a few at a time: each is an
-- entry in the lock table, which all sessions of the server share.
-- Locks: an advisory one for each bucket and queue.
SELECT set_config('holdfast.lanes', coalesce(string_agg(bucket.number::text, ','), ''), true)
FROM unnest(@partition_buckets::integer[]) AS bucket (number)
WHERE pg_try_advisory_xact_lock(hashtext('holdfast.lane:' || @queue::text), bucket.number);

-- name: CommitLanes :exec
-- CommitLanes ends the transaction of BeginLanes: claims become visible, then the locks go.
-- Called by domain/lane.go.
COMMIT;

-- name: ClaimLanes :many
-- ClaimLanes gives the first jobs of free lanes to a worker under a lease, at most @quota from
-- each of the buckets and @batch in all. A lane is the jobs of one key. It is free when none
-- of them is being processed and the first of those that wait, by seq, has been due for
-- @due_for. Called by domain/lane.go as the statement after LockLanes, whose buckets it takes:
-- its snapshot must be newer than their locks, so the two never become one statement.
-- The unique index inbox_lane_processing_idx makes an error (23505) of a mistake in this.
-- As in ClaimJobs, a null in lease_generation (23502) asks for AdvanceEpoch.
-- The walk goes through the buckets in the order given, and in each around the ring of its
-- keys, from the one after that in @after_keys, over at most @keys of them. It is lazy: it
-- stops as soon as the batch is full. A row with lease_generation 0 is no job: it names the
-- key at which the walk of a bucket was cut off, and counts as one of the batch.
-- Zero rows: no lane is free, every bucket is locked by another claim, or the queue is paused.
-- Index: inbox_lane_idx, inbox_lane_processing_idx, inbox_pkey. Locks: the rows it returns;
-- skips locked ones.
WITH RECURSIVE served AS MATERIALIZED (
    SELECT queue.retention_mode
    FROM holdfast.queues AS queue
    WHERE queue.name = @queue::text
        AND NOT queue.paused
),
bucket AS MATERIALIZED (
    SELECT
        row_number() OVER ()::integer AS place,
        given.number,
        given.after_key
    FROM (
        SELECT
            unnest(@partition_buckets::integer[]) AS number,
            unnest(@after_keys::text[]) COLLATE "C" AS after_key
    ) AS given
    WHERE given.number = ANY(string_to_array(current_setting('holdfast.lanes', true), ',')::integer[])
        AND EXISTS (SELECT FROM served)
),
walk AS (
    -- In front of the first bucket. Each bucket begins with a row without a job, too.
    SELECT
        0 AS place,
        0 AS partition_bucket,
        ''::text COLLATE "C" AS after_key,
        ''::text COLLATE "C" AS partition_key,
        NULL::uuid AS id,
        NULL::holdfast.inbox_status AS status,
        1 AS lap,
        0 AS visited,
        0 AS granted,
        false AS free
    UNION ALL
    SELECT
        step.place,
        step.partition_bucket,
        step.after_key,
        step.partition_key,
        step.id,
        step.status,
        step.lap,
        step.visited,
        step.granted + step.free::integer,
        step.free
    FROM walk
    CROSS JOIN LATERAL (
        SELECT
            walk.place,
            walk.partition_bucket,
            walk.after_key,
            head.partition_key,
            head.id,
            head.status,
            head.lap,
            walk.visited + 1 AS visited,
            walk.granted,
            head.available_at <= now() - @due_for::interval
                AND (
                    -- A range with an order, which only the lane's index has: for an equality,
                    -- the index of all jobs in flight looks as good while statistics are old.
                    SELECT sibling.id
                    FROM holdfast.inbox AS sibling
                    WHERE sibling.status = 'processing'
                        AND sibling.ordered
                        AND sibling.queue = @queue::text
                        AND sibling.partition_bucket = walk.partition_bucket
                        AND sibling.partition_key BETWEEN head.partition_key AND head.partition_key
                    ORDER BY sibling.partition_key
                    LIMIT 1
                ) IS NULL AS free
        FROM (
            (
                SELECT
                    job.partition_key,
                    job.id,
                    job.status,
                    job.available_at,
                    walk.lap AS lap
                FROM holdfast.inbox AS job
                WHERE job.status = 'pending'
                    AND job.ordered
                    AND job.queue = @queue::text
                    AND job.partition_bucket = walk.partition_bucket
                    AND job.partition_key > walk.partition_key
                ORDER BY
                    job.partition_key,
                    job.seq
                LIMIT 1
            )
            UNION ALL
            (
                SELECT
                    job.partition_key,
                    job.id,
                    job.status,
                    job.available_at,
                    2 AS lap
                FROM holdfast.inbox AS job
                WHERE walk.lap = 1
                    AND walk.after_key > ''
                    AND job.status = 'pending'
                    AND job.ordered
                    AND job.queue = @queue::text
                    AND job.partition_bucket = walk.partition_bucket
                ORDER BY
                    job.partition_key,
                    job.seq
                LIMIT 1
            )
            LIMIT 1
        ) AS head
        WHERE walk.place > 0
            AND walk.visited < @keys::integer
            AND walk.granted < @quota::integer
            AND (head.lap = 1 OR head.partition_key <= walk.after_key)
        UNION ALL
        SELECT
            bucket.place,
            bucket.number,
            bucket.after_key,
            bucket.after_key,
            NULL::uuid,
            NULL::holdfast.inbox_status,
            1,
            0,
            0,
            false
        FROM bucket
        WHERE bucket.place = walk.place + 1
        LIMIT 1
    ) AS step
),
picked AS MATERIALIZED (
    SELECT
        walk.partition_bucket,
        walk.partition_key,
        head.id
    FROM walk
    LEFT JOIN LATERAL (
        SELECT job.id
        FROM holdfast.inbox AS job
        WHERE walk.free
            AND job.id = walk.id
            AND job.partition_bucket = walk.partition_bucket
            -- Not the literal, for which a partial index looks as good as the primary key.
            AND job.status = walk.status
            AND job.available_at <= now() - @due_for::interval
        LIMIT 1
        FOR UPDATE SKIP LOCKED
    ) AS head
        ON true
    WHERE head.id IS NOT NULL
        OR walk.visited = @keys::integer
    LIMIT @batch::integer
),
claimed AS (
    UPDATE holdfast.inbox AS job
    SET
        status = 'processing',
        claimed_by = @worker_id::text,
        claimed_at = now(),
        lease_expires_at = now() + @lease::interval,
        -- Drawn for each row, after its lock, and null without an epoch, as in ClaimJobs.
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
        now() - job.available_at AS waited
)
SELECT
    claimed.id,
    claimed.seq,
    claimed.queue,
    claimed.kind,
    claimed.partition_key,
    claimed.partition_bucket,
    claimed.attempts,
    claimed.max_attempts,
    claimed.lease_generation,
    claimed.available_at,
    claimed.created_at,
    claimed.idempotency_key,
    claimed.headers,
    claimed.payload,
    claimed.waited::interval AS waited,
    (SELECT served.retention_mode FROM served)::holdfast.retention_mode AS retention_mode
FROM claimed
UNION ALL
SELECT
    NULL,
    0,
    '',
    '',
    picked.partition_key,
    picked.partition_bucket,
    0,
    0,
    0,
    now(),
    now(),
    NULL,
    NULL,
    'null',
    interval '0',
    (SELECT served.retention_mode FROM served)::holdfast.retention_mode
FROM picked
WHERE picked.id IS NULL;
