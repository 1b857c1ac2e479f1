-- name: ExamineJobs :many
-- ExamineJobs tells how jobs of the set stand that are in the inbox, by seq. Called by
-- domain/preview.go before a person does something to them, and for those that it left alone.
-- Index: inbox_pkey.
SELECT
    job.id,
    job.seq,
    job.queue,
    job.kind,
    job.partition_key,
    job.ordered,
    job.status,
    job.lease_generation,
    job.claimed_by
FROM (
    SELECT unnest(@ids::uuid[]) AS id
) AS chosen
CROSS JOIN holdfast.inbox AS job
WHERE job.id = ANY(ARRAY[chosen.id])
ORDER BY job.seq
LIMIT cardinality(@ids::uuid[]);

-- name: NextDeadKind :one
-- NextDeadKind finds the next queue and kind with failed or dead-lettered jobs, and the time
-- that was so long ago. Called by domain/walk.go to go from one to the next. No row: there are
-- no more. Index: inbox_dead_idx.
SELECT
    job.queue,
    job.kind,
    (now() - @older_than::interval)::timestamptz AS until
FROM holdfast.inbox AS job
WHERE job.status IN ('failed', 'dead_letter')
    AND (job.queue, job.kind) > (@after_queue::text, @after_kind::text)
ORDER BY
    job.queue,
    job.kind
LIMIT 1;

-- name: CollectDeadJobs :many
-- CollectDeadJobs lists failed and dead-lettered jobs of a queue and kind that were finished by
-- a time, in the order in which they were, from the one after @after_id on. It reads @batch of
-- them, and returns those with the key and the words in their error that are asked for, '' for
-- any, and the last one that it read. Called by domain/walk.go. Zero rows: there are no more.
-- Index: inbox_dead_idx.
WITH scanned AS MATERIALIZED (
    SELECT
        job.id,
        job.seq,
        job.ordered,
        job.partition_key,
        job.status,
        job.finished_at,
        (
            (@partition_key::text = '' OR job.partition_key = @partition_key::text)
            AND (@error::text = '' OR strpos(COALESCE(job.last_error, ''), @error::text) > 0)
        ) AS fits,
        row_number() OVER (
            ORDER BY
                job.finished_at DESC,
                job.id DESC
        ) = 1 AS last
    FROM (
        SELECT
            dead.id,
            dead.seq,
            dead.ordered,
            dead.partition_key,
            dead.status,
            dead.finished_at,
            dead.last_error
        FROM holdfast.inbox AS dead
        WHERE dead.status IN ('failed', 'dead_letter')
            AND dead.queue = @queue::text
            AND dead.kind = @kind::text
            AND (dead.finished_at, dead.id) > (@after_finished_at::timestamptz, @after_id::uuid)
            AND dead.finished_at <= @until::timestamptz
        ORDER BY
            dead.finished_at,
            dead.id
        LIMIT @batch::integer
    ) AS job
)
SELECT
    scanned.id,
    scanned.seq,
    scanned.ordered,
    scanned.partition_key,
    scanned.status,
    scanned.finished_at::timestamptz AS finished_at,
    scanned.fits::boolean AS fits
FROM scanned
WHERE scanned.fits
    OR scanned.last
ORDER BY
    scanned.finished_at,
    scanned.id
LIMIT @batch::integer;

-- name: CountLaterJobs :one
-- CountLaterJobs counts jobs that wait or run in lanes of the set behind a seq, up to @most.
-- Called by domain/preview.go: what a redrive puts in front of them may come too late.
-- Index: inbox_lane_idx, inbox_lane_processing_idx.
SELECT count(*)
FROM (
    SELECT
    FROM (
        SELECT
            unnest(@queues::text[]) AS queue,
            unnest(@partition_buckets::integer[]) AS partition_bucket,
            unnest(@partition_keys::text[]) AS partition_key,
            unnest(@seqs::bigint[]) AS seq
    ) AS lane
    CROSS JOIN LATERAL (
        SELECT waiting.seq
        FROM holdfast.inbox AS waiting
        WHERE waiting.status = 'pending'
            AND waiting.ordered
            AND waiting.queue = lane.queue
            AND waiting.partition_bucket = lane.partition_bucket
            AND waiting.partition_key = lane.partition_key
            AND waiting.seq > lane.seq
        UNION ALL
        SELECT running.seq
        FROM holdfast.inbox AS running
        WHERE running.status = 'processing'
            AND running.ordered
            AND running.queue = lane.queue
            AND running.partition_bucket = lane.partition_bucket
            AND running.partition_key = lane.partition_key
            AND running.seq > lane.seq
    ) AS later
    LIMIT @most::integer
) AS counted;
