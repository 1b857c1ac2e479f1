-- name: GetJob :one
-- GetJob finds one job, archived or not. No row: no such job, or it was dropped on
-- completion, purged, or its archive day has gone. Index: inbox_pkey, inbox_archive_id_idx.
SELECT
    job.id,
    job.seq,
    job.queue,
    job.kind,
    job.partition_key,
    job.partition_bucket,
    job.ordered,
    job.status,
    job.attempts,
    job.max_attempts,
    job.lease_generation,
    job.claimed_by,
    job.claimed_at,
    job.lease_expires_at,
    job.available_at,
    job.created_at,
    job.completed_at,
    job.finished_at,
    job.finished_by,
    job.idempotency_key,
    job.last_error,
    job.headers,
    job.payload,
    job.archived
FROM holdfast.jobs AS job
WHERE job.id = @id::uuid
LIMIT 1;

-- name: ListJobStates :many
-- ListJobStates tells how each job of a set stands: its state and its latest generation.
-- Called by domain/enqueue.go for duplicates, and by domain/complete.go for settlements that
-- got no reply. A job that is missing was purged, dropped on completion, or expired with its
-- archive day. Index: inbox_pkey, inbox_archive_id_idx.
SELECT
    job.id,
    job.status,
    job.lease_generation
FROM holdfast.jobs AS job
WHERE job.id = ANY(@ids::uuid[])
ORDER BY job.id
LIMIT cardinality(@ids::uuid[]);

-- name: OldestPendingJob :one
-- OldestPendingJob tells how long the oldest due job of a queue has been waiting since it
-- could first run: the lag that users feel. No row: nothing is waiting. Asks every bucket
-- for its first place in the index, so that the cost does not grow with the backlog, and reads
-- the row of the oldest. A few buckets are asked before: what is younger than their oldest is
-- left out of the index's comparisons, which are else made for all places on a page.
-- Index: inbox_claim_idx.
WITH few AS MATERIALIZED (
    SELECT min(first.available_at) AS oldest
    FROM generate_series(0, 31) AS bucket (number)
    CROSS JOIN LATERAL (
        SELECT job.available_at
        FROM holdfast.inbox AS job
        WHERE job.status = 'pending'
            AND NOT job.ordered
            AND job.queue = @queue::text
            AND job.partition_bucket = bucket.number
        ORDER BY
            job.available_at,
            job.seq
        LIMIT 1
    ) AS first
),
head AS MATERIALIZED (
    SELECT
        bucket.number,
        first.available_at,
        first.seq
    FROM generate_series(0, (SELECT meta.bucket_count FROM holdfast.meta AS meta WHERE meta.singleton) - 1) AS bucket (number)
    CROSS JOIN LATERAL (
        SELECT
            job.available_at,
            job.seq
        FROM holdfast.inbox AS job
        WHERE job.status = 'pending'
            AND NOT job.ordered
            AND job.queue = @queue::text
            AND job.partition_bucket = bucket.number
            AND job.available_at <= LEAST(now(), (SELECT few.oldest FROM few))
        ORDER BY
            job.available_at,
            job.seq
        LIMIT 1
    ) AS first
    ORDER BY
        first.available_at,
        first.seq
    LIMIT 1
)
SELECT
    oldest.id,
    oldest.kind,
    oldest.partition_key,
    oldest.available_at,
    (now() - oldest.available_at)::interval AS age
FROM head
CROSS JOIN LATERAL (
    SELECT
        job.id,
        job.kind,
        job.partition_key,
        job.available_at
    FROM holdfast.inbox AS job
    WHERE job.status = 'pending'
        AND NOT job.ordered
        AND job.queue = @queue::text
        AND job.partition_bucket = head.number
        AND job.available_at = head.available_at
        AND job.seq = head.seq
    LIMIT 1
) AS oldest;

-- name: ListWorkers :many
-- ListWorkers lists the workers that are alive or draining, and on request those that died
-- within the last day, in this order and by the time they joined. Called by
-- domain/support.go. Index: none, the table has a row a worker.
SELECT
    worker.id,
    worker.status,
    worker.queues,
    worker.started_at,
    worker.last_seen_at,
    (now() - worker.last_seen_at)::interval AS silence,
    worker.metadata
FROM holdfast.workers AS worker
WHERE worker.status <> 'dead'
    OR (@with_dead::boolean AND worker.last_seen_at > now() - interval '1 day')
ORDER BY
    worker.status,
    worker.started_at,
    worker.id
LIMIT @max_rows::integer;

-- name: SampleKeys :many
-- SampleKeys counts by partition key the jobs at the head of a queue that are not ordered:
-- the first due ones of each bucket. A bucket gives 20, and more where few buckets have so
-- many: 20,000 in all, so that a key alone in its bucket shows its weight. Returns the keys
-- with most jobs, and with each how many jobs were counted in all. The cost is that of 20
-- jobs a bucket and 20,000 more, whatever the backlog. Called by domain/support.go. No
-- rows: no such job is due. Index: inbox_claim_idx.
WITH bucket AS MATERIALIZED (
    SELECT
        every_bucket.number,
        ARRAY(
            SELECT job.partition_key
            FROM holdfast.inbox AS job
            WHERE job.status = 'pending'
                AND NOT job.ordered
                AND job.queue = @queue::text
                AND job.partition_bucket = every_bucket.number
                AND job.available_at <= now()
            ORDER BY
                job.available_at,
                job.seq
            LIMIT 20
        ) AS first_keys
    FROM generate_series(0, (SELECT meta.bucket_count FROM holdfast.meta AS meta WHERE meta.singleton) - 1) AS every_bucket (number)
),
depth AS MATERIALIZED (
    SELECT GREATEST(20, 20000 / GREATEST(count(*), 1)) AS jobs
    FROM bucket
    WHERE cardinality(bucket.first_keys) = 20
),
sample AS (
    SELECT unnest(bucket.first_keys) AS partition_key
    FROM bucket
    WHERE cardinality(bucket.first_keys) < 20
    UNION ALL
    SELECT deeper.partition_key
    FROM bucket
    CROSS JOIN LATERAL (
        SELECT job.partition_key
        FROM holdfast.inbox AS job
        WHERE job.status = 'pending'
            AND NOT job.ordered
            AND job.queue = @queue::text
            AND job.partition_bucket = bucket.number
            AND job.available_at <= now()
        ORDER BY
            job.available_at,
            job.seq
        LIMIT (SELECT depth.jobs FROM depth)
    ) AS deeper
    WHERE cardinality(bucket.first_keys) = 20
)
SELECT
    sample.partition_key::text AS partition_key,
    count(*) AS jobs,
    (sum(count(*)) OVER ())::bigint AS all_jobs
FROM sample
GROUP BY sample.partition_key
ORDER BY
    jobs DESC,
    sample.partition_key
LIMIT @max_rows::integer;

-- name: SampleLanes :many
-- SampleLanes counts the jobs that wait in the lanes of an ordered queue: in the first lanes
-- of a range of buckets, 100 in each, and more where few lanes have so many: 20,000 in all.
-- It jumps from lane to lane, so that the cost is that of @max_lanes lanes and their counts,
-- whatever the backlog. Called by domain/support.go. No rows: the range has no lane.
-- Index: inbox_lane_idx.
WITH RECURSIVE args AS (
    -- sqlc does not see a parameter in the first branch of a recursion.
    SELECT
        @queue::text AS queue,
        @from_bucket::integer AS from_bucket,
        @before_bucket::integer AS before_bucket,
        @max_lanes::integer AS max_lanes
),
lane AS (
    (
        SELECT
            1 AS number,
            head.partition_bucket,
            head.partition_key
        FROM args
        CROSS JOIN LATERAL (
            SELECT
                job.partition_bucket,
                job.partition_key
            FROM holdfast.inbox AS job
            WHERE job.status = 'pending'
                AND job.ordered
                AND job.queue = args.queue
                AND job.partition_bucket >= args.from_bucket
                AND job.partition_bucket < args.before_bucket
            ORDER BY
                job.partition_bucket,
                job.partition_key
            LIMIT 1
        ) AS head
    )
    UNION ALL
    SELECT
        lane.number + 1,
        head.partition_bucket,
        head.partition_key
    FROM lane
    CROSS JOIN args
    CROSS JOIN LATERAL (
        SELECT
            job.partition_bucket,
            job.partition_key
        FROM holdfast.inbox AS job
        WHERE job.status = 'pending'
            AND job.ordered
            AND job.queue = args.queue
            AND (job.partition_bucket, job.partition_key) > (lane.partition_bucket, lane.partition_key)
            AND job.partition_bucket < args.before_bucket
        ORDER BY
            job.partition_bucket,
            job.partition_key
        LIMIT 1
    ) AS head
    WHERE lane.number < args.max_lanes
),
counted AS MATERIALIZED (
    SELECT
        lane.number,
        lane.partition_bucket,
        lane.partition_key,
        (
            SELECT count(*)
            FROM (
                SELECT
                FROM holdfast.inbox AS job
                WHERE job.status = 'pending'
                    AND job.ordered
                    AND job.queue = @queue::text
                    AND job.partition_bucket = lane.partition_bucket
                    AND job.partition_key = lane.partition_key
                ORDER BY job.seq
                LIMIT 100
            ) AS first_jobs
        ) AS jobs
    FROM lane
),
depth AS MATERIALIZED (
    SELECT GREATEST(100, 20000 / GREATEST(count(*), 1)) AS jobs
    FROM counted
    WHERE counted.jobs = 100
)
SELECT
    counted.partition_key,
    (
        CASE
            WHEN counted.jobs < 100 OR (SELECT depth.jobs FROM depth) = 100 THEN counted.jobs
            ELSE (
                SELECT count(*)
                FROM (
                    SELECT
                    FROM holdfast.inbox AS job
                    WHERE job.status = 'pending'
                        AND job.ordered
                        AND job.queue = @queue::text
                        AND job.partition_bucket = counted.partition_bucket
                        AND job.partition_key = counted.partition_key
                    ORDER BY job.seq
                    LIMIT (SELECT depth.jobs FROM depth)
                ) AS first_jobs
            )
        END
    )::bigint AS jobs
FROM counted
ORDER BY counted.number
LIMIT @max_lanes::integer;

-- name: GetStanding :one
-- GetStanding tells how one job stands, with the times that matter counted from this moment:
-- a time of the database is compared with no other clock. What does not apply is zero. Called
-- by domain/standing.go. No row: as in GetJob. Index: inbox_pkey, inbox_archive_id_idx.
SELECT
    job.id,
    job.seq,
    job.queue,
    job.kind,
    job.partition_key,
    job.partition_bucket,
    job.ordered,
    job.status,
    job.attempts,
    job.max_attempts,
    job.lease_generation,
    job.claimed_by,
    job.lease_expires_at,
    job.available_at,
    job.finished_at,
    job.finished_by,
    job.last_error,
    job.archived,
    (job.available_at - now())::interval AS due_in,
    COALESCE(now() - job.claimed_at, '0'::interval)::interval AS claimed_for,
    COALESCE(job.lease_expires_at - now(), '0'::interval)::interval AS lease_left,
    COALESCE(queue.paused, false)::boolean AS paused
FROM holdfast.jobs AS job
LEFT JOIN holdfast.queues AS queue
    ON queue.name = job.queue
WHERE job.id = @id::uuid
LIMIT 1;

-- name: GetLane :one
-- GetLane tells what is in the way of a job of a lane: the first pending job of its key, the
-- one that is claimed, and how many pending ones come before it, counted up to @most. NULL:
-- there is none. Called by domain/standing.go. Index: inbox_lane_idx, inbox_lane_processing_idx.
SELECT
    (
        SELECT first.id
        FROM holdfast.inbox AS first
        WHERE first.status = 'pending'
            AND first.ordered
            AND first.queue = @queue::text
            AND first.partition_bucket = @partition_bucket::integer
            AND first.partition_key = @partition_key::text
        ORDER BY first.seq
        LIMIT 1
    ) AS head_id,
    (
        -- A range with an order, which only the lane's index has: see ClaimLanes.
        SELECT claimed.id
        FROM holdfast.inbox AS claimed
        WHERE claimed.status = 'processing'
            AND claimed.ordered
            AND claimed.queue = @queue::text
            AND claimed.partition_bucket = @partition_bucket::integer
            AND claimed.partition_key BETWEEN @partition_key::text AND @partition_key::text
        ORDER BY claimed.partition_key
        LIMIT 1
    ) AS claimed_id,
    (
        SELECT count(*)
        FROM (
            SELECT
            FROM holdfast.inbox AS job
            WHERE job.status = 'pending'
                AND job.ordered
                AND job.queue = @queue::text
                AND job.partition_bucket = @partition_bucket::integer
                AND job.partition_key = @partition_key::text
                AND job.seq < @seq::bigint
            ORDER BY job.seq
            LIMIT @most::integer
        ) AS earlier
    )::bigint AS before;

-- name: CountJobsBefore :one
-- CountJobsBefore counts the due jobs of a bucket that are claimed before one that is not
-- ordered, up to @most. Called by domain/standing.go. Index: inbox_claim_idx.
SELECT count(*)
FROM (
    SELECT
    FROM holdfast.inbox AS job
    WHERE job.status = 'pending'
        AND NOT job.ordered
        AND job.queue = @queue::text
        AND job.partition_bucket = @partition_bucket::integer
        AND job.available_at <= now()
        AND (job.available_at, job.seq) < (@available_at::timestamptz, @seq::bigint)
    ORDER BY
        job.available_at,
        job.seq
    LIMIT @most::integer
) AS earlier;

-- name: GetWorker :one
-- GetWorker finds one worker in the registry, whatever became of it. Called by
-- domain/registry.go. No row: it never joined, or died more than a day ago.
-- Index: workers_pkey.
SELECT
    worker.id,
    worker.status,
    worker.queues,
    worker.started_at,
    worker.last_seen_at,
    (now() - worker.last_seen_at)::interval AS silence,
    worker.metadata
FROM holdfast.workers AS worker
WHERE worker.id = @id::text;

-- name: ListWorkerClaims :many
-- ListWorkerClaims lists the claims of a worker, the oldest first, among the oldest @look in
-- flight. Called by domain/registry.go. Index: inbox_processing_idx.
SELECT
    in_flight.id,
    in_flight.queue,
    in_flight.kind,
    in_flight.partition_key,
    in_flight.attempts,
    in_flight.max_attempts,
    in_flight.lease_generation,
    (now() - in_flight.claimed_at)::interval AS claimed_for,
    (in_flight.lease_expires_at - now())::interval AS lease_left
FROM (
    SELECT
        job.id,
        job.queue,
        job.kind,
        job.partition_key,
        job.attempts,
        job.max_attempts,
        job.lease_generation,
        job.claimed_by,
        job.claimed_at,
        job.lease_expires_at
    FROM holdfast.inbox AS job
    WHERE job.claimed_at IS NOT NULL
    ORDER BY job.lease_generation
    LIMIT @look::integer
) AS in_flight
WHERE in_flight.claimed_by = @worker_id::text
ORDER BY in_flight.lease_generation
LIMIT @max_rows::integer;
