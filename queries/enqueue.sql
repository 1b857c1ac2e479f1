-- name: EnqueueJob :one
-- EnqueueJob adds one job in the caller's transaction, or finds the job that holds its
-- idempotency key. Called by domain/enqueue.go. Zero rows: no such queue. A key that can be
-- read is answered without a write; a key that another transaction is just taking makes the
-- statement wait for that transaction, and takes the key over if it rolls back. Under
-- REPEATABLE READ such a race is a serialization failure (40001): retry the transaction.
-- @hash is that of the partition key and @draw what is random in the id, as in EnqueueJobs.
-- Rings when a worker waits for this queue; the ring is heard when the transaction commits.
-- Index: idempotency_keys_pkey, wake_pkey. Locks: the key's row.
WITH item AS MATERIALIZED (
    SELECT
        -- What holdfast.new_job_id makes, of a random number that came with the job.
        encode(
            substring(int8send(floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint) FROM 3)
            || int8send(@draw::bigint)
            || int2send(placed.bucket::smallint),
            'hex'
        )::uuid AS id,
        placed.bucket,
        queue.ordered,
        COALESCE(NULLIF(@max_attempts::integer, 0), queue.max_attempts) AS max_attempts,
        GREATEST(clock_timestamp() + @delay::interval, @run_at::timestamptz) AS available_at,
        queue.dedupe_window,
        queue.ring AND @ring::boolean AS ring
    FROM holdfast.queues AS queue
    CROSS JOIN (
        -- The planner does not see that the table has one row; without the limit it expects
        -- millions from this statement and compiles them (JIT) for half a second.
        SELECT mod(@hash::integer, meta.bucket_count) AS bucket
        FROM holdfast.meta AS meta
        LIMIT 1
    ) AS placed
    WHERE queue.name = @queue::text
),
known AS MATERIALIZED (
    SELECT entry.job_id
    FROM holdfast.idempotency_keys AS entry
    WHERE entry.queue = @queue::text
        AND entry.key = NULLIF(@idempotency_key::text, '')
        AND entry.expires_at > now()
),
taken AS (
    INSERT INTO holdfast.idempotency_keys AS entry (queue, key, job_id, expires_at)
    SELECT
        @queue::text,
        @idempotency_key::text,
        item.id,
        item.available_at + item.dedupe_window
    FROM item
    WHERE @idempotency_key::text <> ''
        AND NOT EXISTS (SELECT FROM known)
    -- DO NOTHING would give a racing duplicate no id at all.
    ON CONFLICT (queue, key) DO UPDATE
    SET
        job_id = CASE WHEN entry.expires_at > now() THEN entry.job_id ELSE EXCLUDED.job_id END,
        expires_at = CASE WHEN entry.expires_at > now() THEN entry.expires_at ELSE EXCLUDED.expires_at END
    RETURNING entry.job_id
),
answer AS MATERIALIZED (
    SELECT
        item.id AS drawn_id,
        COALESCE(known.job_id, taken.job_id, item.id) AS job_id
    FROM item
    LEFT JOIN known ON true
    LEFT JOIN taken ON true
),
inserted AS (
    INSERT INTO holdfast.inbox (
        id,
        partition_bucket,
        queue,
        kind,
        partition_key,
        ordered,
        max_attempts,
        available_at,
        idempotency_key,
        headers,
        payload
    )
    SELECT
        item.id,
        item.bucket,
        @queue::text,
        @kind::text,
        @partition_key::text,
        item.ordered,
        item.max_attempts,
        item.available_at,
        NULLIF(@idempotency_key::text, ''),
        NULLIF(@headers::jsonb, 'null'::jsonb),
        @payload::jsonb
    FROM item
    JOIN answer ON answer.job_id = item.id
    RETURNING id
)
SELECT
    answer.job_id,
    (answer.job_id <> answer.drawn_id)::boolean AS duplicate,
    -- Nobody is woken for a duplicate, nor for a job that an idle worker finds in time.
    (CASE
        WHEN item.ring
            AND answer.job_id = item.id
            AND item.available_at < clock_timestamp() + interval '2 seconds'
            AND EXISTS (SELECT FROM holdfast.wake AS bell WHERE bell.queue = @queue::text)
        THEN pg_notify('holdfast_wake', item.bucket || ' ' || @queue::text)
    END IS NOT NULL)::boolean AS rung
FROM answer
CROSS JOIN item;

-- name: EnqueuePlainJob :one
-- EnqueuePlainJob adds one job that has no idempotency key: EnqueueJob without what finds
-- and takes keys, with the same row, ring, hash and draw. Called by domain/enqueue.go. Zero
-- rows: no such queue. Index: queues_pkey, wake_pkey. Locks: none that anybody else could hold.
INSERT INTO holdfast.inbox AS job (
    id,
    partition_bucket,
    queue,
    kind,
    partition_key,
    ordered,
    max_attempts,
    available_at,
    headers,
    payload
)
SELECT
    encode(
        substring(int8send(floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint) FROM 3)
        || int8send(@draw::bigint)
        || int2send(placed.bucket::smallint),
        'hex'
    )::uuid,
    placed.bucket,
    queue.name,
    @kind::text,
    @partition_key::text,
    queue.ordered,
    COALESCE(NULLIF(@max_attempts::integer, 0), queue.max_attempts),
    GREATEST(clock_timestamp() + @delay::interval, @run_at::timestamptz),
    NULLIF(@headers::jsonb, 'null'::jsonb),
    @payload::jsonb
FROM holdfast.queues AS queue
CROSS JOIN (
    SELECT mod(@hash::integer, meta.bucket_count) AS bucket
    FROM holdfast.meta AS meta
    LIMIT 1
) AS placed
WHERE queue.name = @queue::text
RETURNING
    job.id AS job_id,
    (CASE
        WHEN @ring::boolean
            AND job.available_at < clock_timestamp() + interval '2 seconds'
            AND EXISTS (SELECT FROM holdfast.wake AS bell WHERE bell.queue = job.queue)
            AND (SELECT named.ring FROM holdfast.queues AS named WHERE named.name = job.queue)
        THEN pg_notify('holdfast_wake', job.partition_bucket || ' ' || job.queue)
    END IS NOT NULL)::boolean AS rung;

-- name: EnqueueJobs :many
-- EnqueueJobs adds a set of jobs in one statement, under the rules of EnqueueJob, and
-- answers in the order of the set. A key that stands twice in the set makes one job. Zero
-- rows: some queue does not exist, and nothing was added. Keys are taken in key order, so
-- that two sets cannot deadlock; several sets in one transaction can, like any two updates.
-- seq follows the order of the set. Called by domain/enqueuemany.go, which computes the
-- hashes of the partition keys and draws what is random in the ids: for Postgres that is a
-- good part of the work. Of max_attempts, delays, run_at, rings and headers, an array may be
-- empty: every job has the default.
-- Index: queues_pkey, idempotency_keys_pkey, wake_pkey. Locks: the rows of the keys.
WITH item AS MATERIALIZED (
    SELECT
        given.position,
        -- What holdfast.new_job_id makes, of a random number that came with the set.
        encode(clock.stamp || int8send(given.draw) || int2send(placed.bucket::smallint), 'hex')::uuid AS id,
        placed.bucket,
        given.queue,
        given.kind,
        given.partition_key,
        queue.ordered,
        NULLIF(given.idempotency_key, '') AS idempotency_key,
        COALESCE(NULLIF(given.max_attempts, 0), queue.max_attempts) AS max_attempts,
        GREATEST(clock_timestamp() + COALESCE(given.delay, interval '0'), given.run_at) AS available_at,
        queue.dedupe_window,
        queue.ring AND COALESCE(given.ring, true) AS ring,
        NULLIF(given.headers, 'null'::jsonb) AS headers,
        given.payload
    FROM (
        SELECT
            generate_subscripts(@kinds::text[], 1) AS position,
            unnest(@queues::text[]) AS queue,
            unnest(@kinds::text[]) AS kind,
            unnest(@partition_keys::text[]) AS partition_key,
            unnest(@hashes::integer[]) AS hash,
            unnest(@draws::bigint[]) AS draw,
            unnest(@idempotency_keys::text[]) AS idempotency_key,
            unnest(@max_attempts::integer[]) AS max_attempts,
            unnest(@delays::interval[]) AS delay,
            unnest(@run_at::timestamptz[]) AS run_at,
            unnest(@rings::boolean[]) AS ring,
            unnest(@headers::jsonb[]) AS headers,
            unnest(@payloads::jsonb[]) AS payload
    ) AS given
    JOIN holdfast.queues AS queue ON queue.name = given.queue
    CROSS JOIN LATERAL (
        SELECT given.hash % (SELECT meta.bucket_count FROM holdfast.meta AS meta LIMIT 1) AS bucket
    ) AS placed
    CROSS JOIN (
        SELECT substring(int8send(floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint) FROM 3) AS stamp
        -- One time for the whole set.
        OFFSET 0
    ) AS clock
    -- All of the set or nothing: what is left out could not be added in its order any more.
    WHERE NOT EXISTS (
        SELECT FROM unnest(@queues::text[]) AS other (name)
        WHERE NOT EXISTS (SELECT FROM holdfast.queues AS known_queue WHERE known_queue.name = other.name)
    )
),
known AS MATERIALIZED (
    SELECT
        item.position,
        entry.job_id
    FROM item
    CROSS JOIN LATERAL (
        SELECT keys.job_id
        FROM holdfast.idempotency_keys AS keys
        WHERE keys.queue = item.queue
            AND keys.key = item.idempotency_key
            AND keys.expires_at > now()
        LIMIT 1
    ) AS entry
    WHERE item.idempotency_key IS NOT NULL
),
taken AS (
    INSERT INTO holdfast.idempotency_keys AS entry (queue, key, job_id, expires_at)
    SELECT DISTINCT ON (item.queue, item.idempotency_key)
        item.queue,
        item.idempotency_key,
        item.id,
        item.available_at + item.dedupe_window
    FROM item
    WHERE item.idempotency_key IS NOT NULL
        AND NOT EXISTS (SELECT FROM known WHERE known.position = item.position)
    ORDER BY item.queue, item.idempotency_key, item.position
    ON CONFLICT (queue, key) DO UPDATE
    SET
        job_id = CASE WHEN entry.expires_at > now() THEN entry.job_id ELSE EXCLUDED.job_id END,
        expires_at = CASE WHEN entry.expires_at > now() THEN entry.expires_at ELSE EXCLUDED.expires_at END
    RETURNING entry.queue, entry.key, entry.job_id
),
answer AS MATERIALIZED (
    SELECT
        item.position,
        item.id,
        item.bucket,
        item.queue,
        item.kind,
        item.partition_key,
        item.ordered,
        item.idempotency_key,
        item.max_attempts,
        item.available_at,
        item.ring,
        item.headers,
        item.payload,
        COALESCE(known.job_id, taken.job_id, item.id) AS job_id
    FROM item
    LEFT JOIN known ON known.position = item.position
    LEFT JOIN taken ON taken.queue = item.queue AND taken.key = item.idempotency_key
),
inserted AS (
    INSERT INTO holdfast.inbox (
        id,
        partition_bucket,
        queue,
        kind,
        partition_key,
        ordered,
        max_attempts,
        available_at,
        idempotency_key,
        headers,
        payload
    )
    SELECT
        answer.id,
        answer.bucket,
        answer.queue,
        answer.kind,
        answer.partition_key,
        answer.ordered,
        answer.max_attempts,
        answer.available_at,
        answer.idempotency_key,
        answer.headers,
        answer.payload
    FROM answer
    WHERE answer.job_id = answer.id
    ORDER BY answer.position
    RETURNING id
),
rung AS MATERIALIZED (
    -- One ring a queue: for its bucket, or for all (-1) when its jobs are in several.
    SELECT pg_notify('holdfast_wake', CASE WHEN min(answer.bucket) = max(answer.bucket) THEN min(answer.bucket) ELSE -1 END || ' ' || answer.queue)
    FROM answer
    WHERE answer.job_id = answer.id
        AND answer.ring
        AND answer.available_at < clock_timestamp() + interval '2 seconds'
        AND EXISTS (SELECT FROM holdfast.wake AS bell WHERE bell.queue = answer.queue)
    GROUP BY answer.queue
    ORDER BY answer.queue
)
SELECT
    answer.position::integer AS position,
    answer.job_id,
    (answer.job_id <> answer.id)::boolean AS duplicate,
    ((SELECT count(*) FROM rung) > 0)::boolean AS rung
FROM answer
ORDER BY answer.position;

-- name: EnqueuePlainJobs :many
-- EnqueuePlainJobs adds a set of jobs of which none has an idempotency key: EnqueueJobs
-- without what finds and takes keys, with the same rows and rings, and arrays under the same
-- rules. Called by domain/enqueuemany.go. It answers in the order of the set. Zero rows: some
-- queue does not exist, and nothing was added. seq follows the order of the set.
-- Index: queues_pkey, wake_pkey. Locks: none that anybody else could hold.
WITH item AS MATERIALIZED (
    SELECT
        given.position,
        -- What holdfast.new_job_id makes, of a random number that came with the set.
        encode(clock.stamp || int8send(given.draw) || int2send(placed.bucket::smallint), 'hex')::uuid AS id,
        placed.bucket,
        given.queue,
        given.kind,
        given.partition_key,
        queue.ordered,
        COALESCE(NULLIF(given.max_attempts, 0), queue.max_attempts) AS max_attempts,
        GREATEST(clock_timestamp() + COALESCE(given.delay, interval '0'), given.run_at) AS available_at,
        queue.ring AND COALESCE(given.ring, true) AS ring,
        NULLIF(given.headers, 'null'::jsonb) AS headers,
        given.payload
    FROM (
        SELECT
            generate_subscripts(@kinds::text[], 1) AS position,
            unnest(@queues::text[]) AS queue,
            unnest(@kinds::text[]) AS kind,
            unnest(@partition_keys::text[]) AS partition_key,
            unnest(@hashes::integer[]) AS hash,
            unnest(@draws::bigint[]) AS draw,
            unnest(@max_attempts::integer[]) AS max_attempts,
            unnest(@delays::interval[]) AS delay,
            unnest(@run_at::timestamptz[]) AS run_at,
            unnest(@rings::boolean[]) AS ring,
            unnest(@headers::jsonb[]) AS headers,
            unnest(@payloads::jsonb[]) AS payload
    ) AS given
    JOIN holdfast.queues AS queue ON queue.name = given.queue
    CROSS JOIN LATERAL (
        SELECT given.hash % (SELECT meta.bucket_count FROM holdfast.meta AS meta LIMIT 1) AS bucket
    ) AS placed
    CROSS JOIN (
        SELECT substring(int8send(floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint) FROM 3) AS stamp
        -- One time for the whole set.
        OFFSET 0
    ) AS clock
    -- All of the set or nothing: what is left out could not be added in its order any more.
    WHERE NOT EXISTS (
        SELECT FROM unnest(@queues::text[]) AS other (name)
        WHERE NOT EXISTS (SELECT FROM holdfast.queues AS known_queue WHERE known_queue.name = other.name)
    )
),
inserted AS (
    INSERT INTO holdfast.inbox (
        id,
        partition_bucket,
        queue,
        kind,
        partition_key,
        ordered,
        max_attempts,
        available_at,
        headers,
        payload
    )
    SELECT
        item.id,
        item.bucket,
        item.queue,
        item.kind,
        item.partition_key,
        item.ordered,
        item.max_attempts,
        item.available_at,
        item.headers,
        item.payload
    FROM item
    ORDER BY item.position
    RETURNING id
),
rung AS MATERIALIZED (
    -- One ring a queue: for its bucket, or for all (-1) when its jobs are in several.
    SELECT pg_notify('holdfast_wake', CASE WHEN min(item.bucket) = max(item.bucket) THEN min(item.bucket) ELSE -1 END || ' ' || item.queue)
    FROM item
    WHERE item.ring
        AND item.available_at < clock_timestamp() + interval '2 seconds'
        AND EXISTS (SELECT FROM holdfast.wake AS bell WHERE bell.queue = item.queue)
    GROUP BY item.queue
    ORDER BY item.queue
)
SELECT
    item.id AS job_id,
    ((SELECT count(*) FROM rung) > 0)::boolean AS rung
FROM item
ORDER BY item.position;

-- name: EnsureQueue :execrows
-- EnsureQueue creates a queue with the default settings unless it exists. Called by
-- domain/enqueue.go when an enqueue found no such queue, in the caller's transaction, and by
-- a worker for the queues it serves. Zero rows: it exists. A second transaction that names
-- the same new queue waits for the first. Index: queues_pkey.
INSERT INTO holdfast.queues (name)
VALUES (@name::text)
ON CONFLICT (name) DO NOTHING;
