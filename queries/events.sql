-- name: RecordLostLeases :execrows
-- RecordLostLeases notes that a worker was told that claims are over, once for each claim,
-- however often it was told. Called by domain/events.go after a settlement or a renewal did
-- not find them; never where all were found. A settlement that was refused says for itself
-- that the claim is over. A renewal may also have come after the worker's own settlement: it
-- counts when the claim is still there, with an ended lease, or when somebody else ended it.
-- Zero rows: all that is known already, or is nothing. The job tells its queue, kind and key,
-- or, when it is gone, the event of what ended the claim.
-- Index: inbox_pkey, inbox_archive_id_idx, events_job_idx, events_lost_idx. Locks: nothing but
-- the rows it adds.
INSERT INTO holdfast.events (
    job_id,
    lease_generation,
    attempt,
    event,
    queue,
    kind,
    partition_key,
    worker_id,
    detail
)
SELECT
    lost.id,
    lost.lease_generation,
    -- The job may be at a later attempt: then what ended this claim has left an event.
    COALESCE(
        ended.attempt,
        CASE WHEN job.lease_generation = lost.lease_generation AND job.status <> 'pending' THEN job.attempts END
    ),
    'lease_lost',
    COALESCE(job.queue, ended.queue),
    COALESCE(job.kind, ended.kind),
    COALESCE(job.partition_key, ended.partition_key),
    lost.worker_id,
    holdfast.event_detail(lost.detail)
FROM (
    SELECT
        unnest(@ids::uuid[]) AS id,
        unnest(@lease_generations::bigint[]) AS lease_generation,
        unnest(@settlings::boolean[]) AS settling,
        unnest(@details::text[]) AS detail,
        @worker_id::text AS worker_id
) AS lost
LEFT JOIN LATERAL (
    SELECT
        job.queue,
        job.kind,
        job.partition_key,
        job.status,
        job.attempts,
        job.lease_generation,
        job.claimed_by
    FROM holdfast.jobs AS job
    WHERE job.id = ANY(ARRAY[lost.id])
    LIMIT 1
) AS job
    ON true
LEFT JOIN LATERAL (
    -- A claim ends once.
    SELECT
        event.event,
        event.attempt,
        event.queue,
        event.kind,
        event.partition_key,
        event.actor
    FROM holdfast.events AS event
    WHERE event.job_id = ANY(ARRAY[lost.id])
        AND event.lease_generation = lost.lease_generation
        AND event.event IN ('retried', 'released', 'fenced', 'failed', 'dead_lettered', 'reclaimed', 'cancelled')
    LIMIT 1
) AS ended
    ON true
WHERE lost.settling
    OR ended.event IN ('reclaimed', 'cancelled')
    OR (ended.event = 'released' AND ended.actor IS NOT NULL)
    OR (job.lease_generation = lost.lease_generation AND job.claimed_by = lost.worker_id)
ON CONFLICT (job_id, lease_generation, worker_id) WHERE event = 'lease_lost' DO NOTHING;

-- name: ListJobEvents :many
-- ListJobEvents tells the story of a job, the latest event first. Called by domain/events.go.
-- No row: nothing unusual happened to it within the time for which events are kept. The job is
-- compared as a part of the index's order: as a plain equality, without statistics, the
-- planner gathers and sorts all events of the job. Index: events_job_idx.
SELECT
    event.id,
    event.at,
    event.job_id,
    event.lease_generation,
    event.attempt,
    event.event,
    event.queue,
    event.kind,
    event.partition_key,
    event.worker_id,
    event.actor,
    event.detail
FROM holdfast.events AS event
WHERE event.job_id IS NOT NULL
    AND (event.job_id, event.id) >= (@job_id::uuid, 0)
    AND (event.job_id, event.id) <= (@job_id::uuid, 9223372036854775807)
ORDER BY
    event.job_id DESC,
    event.id DESC
LIMIT @max_rows::integer;

-- name: ListEvents :many
-- ListEvents lists events, the latest first, from the one before @before_id on: on request those
-- of one queue, of one kind, or of the latest time. Called by domain/events.go. Whatever is
-- asked for, it looks at @look_at events only, and each row says how many those were, which
-- was the last of them, and whether that is older than what is asked for. One row with the
-- id 0: none of them is asked for.
-- Index: events_pkey.
WITH looked AS MATERIALIZED (
    SELECT
        event.id,
        event.at,
        event.job_id,
        event.lease_generation,
        event.attempt,
        event.event,
        event.queue,
        event.kind,
        event.partition_key,
        event.worker_id,
        event.actor,
        event.detail
    FROM holdfast.events AS event
    WHERE event.id < @before_id::bigint
    ORDER BY event.id DESC
    LIMIT @look_at::integer
),
far AS (
    SELECT
        count(*) AS looked_at,
        COALESCE(min(looked.id), 0)::bigint AS last_id,
        COALESCE(min(looked.at), now())::timestamptz AS last_at,
        COALESCE(@within::interval > '0'::interval AND min(looked.at) < now() - @within::interval, false)::boolean AS beyond
    FROM looked
)
SELECT
    far.looked_at,
    far.last_id,
    far.last_at,
    far.beyond,
    COALESCE(asked.id, 0)::bigint AS id,
    COALESCE(asked.at, now())::timestamptz AS at,
    asked.job_id,
    asked.lease_generation,
    asked.attempt,
    COALESCE(asked.event::text, '')::text AS event,
    asked.queue,
    asked.kind,
    asked.partition_key,
    asked.worker_id,
    asked.actor,
    asked.detail
FROM far
LEFT JOIN (
    SELECT
        looked.id,
        looked.at,
        looked.job_id,
        looked.lease_generation,
        looked.attempt,
        looked.event,
        looked.queue,
        looked.kind,
        looked.partition_key,
        looked.worker_id,
        looked.actor,
        looked.detail
    FROM looked
    WHERE (@queue::text = '' OR looked.queue = @queue::text)
        AND (@event::text = '' OR looked.event::text = @event::text)
        AND (@within::interval = '0'::interval OR looked.at >= now() - @within::interval)
    ORDER BY looked.id DESC
    LIMIT @max_rows::integer
) AS asked
    ON true
ORDER BY asked.id DESC
LIMIT @max_rows::integer;
