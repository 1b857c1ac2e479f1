-- name: ListPublishedJobs :many
-- ListPublishedJobs reads the next jobs of all queues in the order of their ids, which is that of
-- their enqueues to the millisecond, and tells which of them were completed in one queue: those
-- can be published again. It walks by id because the archive has no other order; the jobs of
-- others come without what they hold, and say how far the walk has come. Called by
-- domain/outbox.go. Zero rows: the end. Index: inbox_pkey, inbox_archive_id_idx.
SELECT
    page.id,
    page.seq,
    page.kind,
    page.partition_key,
    page.created_at,
    page.matches::boolean AS matches,
    COALESCE(CASE WHEN page.matches THEN page.headers END, 'null'::jsonb)::jsonb AS headers,
    COALESCE(CASE WHEN page.matches AND @with_payload::boolean THEN page.payload END, 'null'::jsonb)::jsonb AS payload
FROM (
    SELECT
        job.id,
        job.seq,
        job.kind,
        job.partition_key,
        job.created_at,
        job.headers,
        job.payload,
        job.status = 'completed'
        AND job.queue = @queue::text
        AND (@partition_key::text = '' OR job.partition_key = @partition_key::text) AS matches
    FROM holdfast.jobs AS job
    WHERE job.id > greatest(
        @after_id::uuid,
        -- The smallest id of that time: 48 bits of milliseconds come first.
        (SELECT (lpad(to_hex((extract(EPOCH FROM now() - @since::interval) * 1000)::bigint), 12, '0') || repeat('0', 20))::uuid)
    )
    ORDER BY job.id
    LIMIT @max_rows::integer
) AS page
ORDER BY page.id;
