-- name: CountReadyJobs :one
-- CountReadyJobs counts the due jobs of a queue that are not ordered, at most so many. It asks
-- one bucket after the other and stops at the bound. Where vacuum has passed it reads the index
-- alone, else a row of the table for each job counted. Called by domain/supportcounts.go.
-- Index: inbox_claim_idx.
SELECT count(*) AS jobs
FROM (
    SELECT
    FROM generate_series(0, (SELECT meta.bucket_count FROM holdfast.meta AS meta WHERE meta.singleton) - 1) AS bucket (number)
    CROSS JOIN LATERAL (
        SELECT
        FROM holdfast.inbox AS job
        WHERE job.status = 'pending'
            AND NOT job.ordered
            AND job.queue = @queue::text
            AND job.partition_bucket = bucket.number
            AND job.available_at <= now()
        LIMIT @most::integer
    ) AS due
    LIMIT @most::integer
) AS counted;

-- name: CountFutureJobs :one
-- CountFutureJobs counts the jobs of a queue that are not ordered and not due yet, whether they
-- were tried or not, at most so many, as CountReadyJobs does. Called by
-- domain/supportcounts.go. Index: inbox_claim_idx.
SELECT count(*) AS jobs
FROM (
    SELECT
    FROM generate_series(0, (SELECT meta.bucket_count FROM holdfast.meta AS meta WHERE meta.singleton) - 1) AS bucket (number)
    CROSS JOIN LATERAL (
        SELECT
        FROM holdfast.inbox AS job
        WHERE job.status = 'pending'
            AND NOT job.ordered
            AND job.queue = @queue::text
            AND job.partition_bucket = bucket.number
            AND job.available_at > now()
        LIMIT @most::integer
    ) AS future
    LIMIT @most::integer
) AS counted;

-- name: CountLaneJobs :one
-- CountLaneJobs looks at so many ordered jobs that wait in a queue, lane by lane from a bucket
-- on, once around, and tells how many of them are due, how many are not yet, and how long the
-- oldest has been due: 0 when none is. The index of the lanes does not know when a job is due,
-- so each one costs a row of the table. Called by domain/supportcounts.go.
-- Index: inbox_lane_idx.
WITH looked AS (
    SELECT rounds.available_at
    FROM (
        (
            SELECT job.available_at
            FROM holdfast.inbox AS job
            WHERE job.status = 'pending'
                AND job.ordered
                AND job.queue = @queue::text
                AND job.partition_bucket >= @from_bucket::integer
            ORDER BY
                job.partition_bucket,
                job.partition_key,
                job.seq
            LIMIT @most::integer
        )
        UNION ALL
        (
            SELECT job.available_at
            FROM holdfast.inbox AS job
            WHERE job.status = 'pending'
                AND job.ordered
                AND job.queue = @queue::text
                AND job.partition_bucket < @from_bucket::integer
            ORDER BY
                job.partition_bucket,
                job.partition_key,
                job.seq
            LIMIT @most::integer
        )
    ) AS rounds
    LIMIT @most::integer
)
SELECT
    count(*) AS looked,
    count(*) FILTER (WHERE looked.available_at <= now()) AS ready,
    COALESCE(now() - min(looked.available_at) FILTER (WHERE looked.available_at <= now()), interval '0')::interval AS oldest_age
FROM looked;

-- name: CountRetryingJobs :one
-- CountRetryingJobs counts the jobs of a queue, ordered or not, that were tried and wait for
-- their next attempt, at most so many. Called by domain/supportcounts.go.
-- Index: inbox_retrying_idx.
SELECT count(*) AS jobs
FROM (
    SELECT
    FROM holdfast.inbox AS job
    WHERE job.status = 'pending'
        AND job.attempts > 0
        AND job.queue = @queue::text
        AND job.available_at > now()
    ORDER BY
        job.available_at,
        job.id
    LIMIT @most::integer
) AS counted;

-- name: CountDeadJobs :one
-- CountDeadJobs counts the failed and the dead-lettered jobs of a queue, at most so many of
-- each. Called by domain/supportcounts.go. Index: inbox_dead_newest_idx.
SELECT
    (
        SELECT count(*)
        FROM (
            SELECT
            FROM holdfast.inbox AS job
            WHERE job.status = 'failed'
                AND job.queue = @queue::text
            LIMIT @most::integer
        ) AS counted
    ) AS failed,
    (
        SELECT count(*)
        FROM (
            SELECT
            FROM holdfast.inbox AS job
            WHERE job.status = 'dead_letter'
                AND job.queue = @queue::text
            LIMIT @most::integer
        ) AS counted
    ) AS dead_letter;

-- name: CountClaims :many
-- CountClaims counts the work in flight by queue and worker: how much of it is past its lease,
-- and how old the oldest claim is. It looks at so many claims, oldest first; looked tells
-- at how many, in each row. No row: nothing is in flight. Called by domain/supportcounts.go.
-- Index: inbox_processing_idx.
SELECT
    claim.queue,
    claim.claimed_by::text AS worker_id,
    count(*) AS jobs,
    count(*) FILTER (WHERE claim.lease_expires_at < now()) AS expired,
    (now() - min(claim.claimed_at))::interval AS oldest_age,
    (sum(count(*)) OVER ())::bigint AS looked
FROM (
    SELECT
        job.queue,
        job.claimed_by,
        job.claimed_at,
        job.lease_expires_at
    FROM holdfast.inbox AS job
    WHERE job.claimed_at IS NOT NULL
    ORDER BY job.lease_generation
    LIMIT @most::integer
) AS claim
GROUP BY
    claim.queue,
    claim.claimed_by
ORDER BY
    claim.queue,
    jobs DESC,
    claim.claimed_by
LIMIT @most::integer;

-- name: CountKeptJobs :many
-- CountKeptJobs counts by queue the completed jobs that are kept in the inbox, among the
-- newest of them; looked tells at how many it looked, in each row. No row: none is kept.
-- Called by domain/supportcounts.go. Index: inbox_completed_idx.
SELECT
    kept.queue,
    count(*) AS jobs,
    (sum(count(*)) OVER ())::bigint AS looked
FROM (
    SELECT job.queue
    FROM holdfast.inbox AS job
    WHERE job.status = 'completed'
    ORDER BY
        job.completed_at DESC,
        job.id DESC
    LIMIT @most::integer
) AS kept
GROUP BY kept.queue
ORDER BY kept.queue
LIMIT @most::integer;

-- name: CountArrivals :many
-- CountArrivals counts by queue the jobs that were enqueued within the last minute, and those of
-- them that are completed already: so many in all, newest first. Where there are more, span
-- is shorter than a minute: the time that those looked at cover. Jobs that their completion
-- drops are not seen. An id begins with the time at which it was drawn. No row: nothing came.
-- Called by domain/supportcounts.go. Index: inbox_pkey, inbox_archive_id_idx.
WITH newest AS MATERIALIZED (
    SELECT
        recent.queue,
        recent.created_at,
        recent.completed
    FROM (
        (
            SELECT
                job.id,
                job.queue,
                job.created_at,
                job.status = 'completed' AS completed
            FROM holdfast.inbox AS job
            WHERE job.id >= rpad(lpad(to_hex((extract(epoch FROM now() - interval '1 minute') * 1000)::bigint), 12, '0'), 32, '0')::uuid
            ORDER BY job.id DESC
            LIMIT @most::integer
        )
        UNION ALL
        (
            SELECT
                job.id,
                job.queue,
                job.created_at,
                true AS completed
            FROM holdfast.inbox_archive AS job
            WHERE job.id >= rpad(lpad(to_hex((extract(epoch FROM now() - interval '1 minute') * 1000)::bigint), 12, '0'), 32, '0')::uuid
                -- So that days that have passed are not looked at.
                AND job.completed_at >= now() - interval '1 minute'
            ORDER BY job.id DESC
            LIMIT @most::integer
        )
    ) AS recent
    ORDER BY recent.id DESC
    LIMIT @most::integer
)
SELECT
    newest.queue,
    count(*) AS jobs,
    count(*) FILTER (WHERE newest.completed) AS completed,
    (
        CASE
            WHEN (SELECT count(*) FROM newest AS looked) < @most::integer THEN interval '1 minute'
            ELSE GREATEST(now() - (SELECT min(looked.created_at) FROM newest AS looked), interval '1 millisecond')
        END
    )::interval AS span
FROM newest
GROUP BY newest.queue
ORDER BY newest.queue
LIMIT @most::integer;

-- name: CountCompletions :many
-- CountCompletions counts by queue the jobs that were completed within the last minute. Those
-- that are kept in the inbox it finds by their index, at most so many, newest first. The archive
-- has no index by time, which each completion would pay for, but a row is added where the table of
-- its day ends: the last @pages pages hold the latest. Where there is more than that, span is
-- shorter than a minute: the time that is covered. It begins with the UTC day. Jobs that their
-- completion drops are not seen. No row: nothing was completed. Called by
-- domain/supportcounts.go. Index: inbox_completed_idx; of the archive a range of pages.
WITH size AS MATERIALIZED (
    SELECT
        COALESCE(
            pg_relation_size(to_regclass('holdfast.inbox_archive_' || to_char(now() AT TIME ZONE 'UTC', 'YYYYMMDD'))),
            pg_relation_size(to_regclass('holdfast.inbox_archive_default'))
        ) / current_setting('block_size')::bigint AS pages
),
tail AS MATERIALIZED (
    SELECT
        size.pages > @pages::integer AS is_part,
        format('(%s,0)', GREATEST(size.pages - @pages::integer, 0))::tid AS from_row,
        format('(%s,0)', GREATEST(size.pages, @pages::integer))::tid AS to_row
    FROM size
),
archived AS MATERIALIZED (
    SELECT
        job.queue,
        job.completed_at
    FROM holdfast.inbox_archive AS job
    -- So that days that have passed are not looked at. A subquery is asked once, not for each row.
    WHERE job.completed_at >= (SELECT date_trunc('day', now(), 'UTC'))
        AND job.ctid >= (SELECT tail.from_row FROM tail)
        AND job.ctid < (SELECT tail.to_row FROM tail)
),
kept AS MATERIALIZED (
    SELECT
        job.queue,
        job.completed_at
    FROM holdfast.inbox AS job
    WHERE job.status = 'completed'
        AND job.completed_at >= now() - interval '1 minute'
    ORDER BY
        job.completed_at DESC,
        job.id DESC
    LIMIT @most::integer
),
covered AS MATERIALIZED (
    SELECT
        GREATEST(
            now() - interval '1 minute',
            date_trunc('day', now(), 'UTC'),
            (SELECT min(archived.completed_at) FROM archived WHERE (SELECT tail.is_part FROM tail)),
            (SELECT min(kept.completed_at) FROM kept HAVING count(*) = @most::integer)
        ) AS since
)
SELECT
    finished.queue,
    count(*) AS jobs,
    GREATEST(now() - (SELECT covered.since FROM covered), interval '1 millisecond')::interval AS span
FROM (
    SELECT
        archived.queue,
        archived.completed_at
    FROM archived
    UNION ALL
    SELECT
        kept.queue,
        kept.completed_at
    FROM kept
) AS finished
WHERE finished.completed_at >= (SELECT covered.since FROM covered)
GROUP BY finished.queue
ORDER BY finished.queue
LIMIT @most::integer;

-- name: ReadCounters :one
-- ReadCounters tells how many jobs were ever enqueued and claimed, by the sequences that number
-- them: two readings, and the time between them, make rates of this moment. An enqueue that was
-- rolled back counts, and on a standby, or after a crash, up to 32 more. known is false, and the
-- numbers are 0, where the role may not read the sequences. Called by domain/supportcounts.go.
SELECT
    (
        CASE
            WHEN has_sequence_privilege('holdfast.inbox_seq', 'USAGE, SELECT') THEN COALESCE(pg_sequence_last_value('holdfast.inbox_seq'::regclass), 0)
            ELSE 0
        END
    )::bigint AS enqueued,
    (
        CASE
            WHEN has_sequence_privilege('holdfast.generation_seq', 'USAGE, SELECT') THEN COALESCE(pg_sequence_last_value('holdfast.generation_seq'::regclass), 0)
            ELSE 0
        END
    )::bigint AS claimed,
    (has_sequence_privilege('holdfast.inbox_seq', 'USAGE, SELECT') AND has_sequence_privilege('holdfast.generation_seq', 'USAGE, SELECT'))::boolean AS known,
    clock_timestamp()::timestamptz AS read_at;
