-- name: SetQueue :one
-- SetQueue changes the settings that are given, NULL leaves one as it is, and returns all of
-- them. Called by domain/queues.go. Zero rows: no such queue. Refused: the queue is to be
-- ordered or not to be, and has jobs that carry the other stamp; nothing was changed. The row
-- is locked before it is read, so of two callers at once the second changes what the first
-- left. An enqueue takes no lock here: one that is under way stamps its job the old way. What
-- was changed, from what to what, is an event; a call that changes nothing leaves none.
-- Index: queues_pkey; for a change of ordered also inbox_claim_idx, inbox_lane_idx,
-- inbox_dead_idx, and all of inbox_processing_idx, whose size is that of the work in flight.
-- Locks: the queue's row.
WITH wanted AS MATERIALIZED (
    SELECT
        queue.name,
        COALESCE(sqlc.narg('ordered')::boolean, queue.ordered) AS ordered,
        queue.paused,
        COALESCE(sqlc.narg('max_attempts')::integer, queue.max_attempts) AS max_attempts,
        COALESCE(sqlc.narg('retention_mode')::holdfast.retention_mode, queue.retention_mode) AS retention_mode,
        COALESCE(sqlc.narg('keep_for')::interval, queue.keep_for) AS keep_for,
        COALESCE(sqlc.narg('retention')::interval, queue.retention) AS retention,
        COALESCE(sqlc.narg('dedupe_window')::interval, queue.dedupe_window) AS dedupe_window,
        COALESCE(sqlc.narg('ring')::boolean, queue.ring) AS ring,
        (
            sqlc.narg('ordered')::boolean IS NOT NULL
            AND sqlc.narg('ordered')::boolean <> queue.ordered
            -- A branch for each partial index. Completed jobs do not count: they never run
            -- again. Dead ones do: they can be redriven.
            AND (
                EXISTS (
                    SELECT FROM holdfast.inbox AS job
                    WHERE job.status = 'pending'
                        AND NOT job.ordered
                        AND job.queue = @name::text
                )
                OR EXISTS (
                    SELECT FROM holdfast.inbox AS job
                    WHERE job.status = 'pending'
                        AND job.ordered
                        AND job.queue = @name::text
                )
                OR EXISTS (
                    SELECT FROM holdfast.inbox AS job
                    WHERE job.claimed_at IS NOT NULL
                        AND job.queue = @name::text
                )
                OR EXISTS (
                    SELECT FROM holdfast.inbox AS job
                    WHERE job.status IN ('failed', 'dead_letter')
                        AND job.queue = @name::text
                )
            )
        ) AS refused,
        concat_ws(
            ', ',
            CASE WHEN sqlc.narg('ordered')::boolean <> queue.ordered THEN 'ordered ' || queue.ordered || ' to ' || sqlc.narg('ordered')::boolean END,
            CASE WHEN sqlc.narg('max_attempts')::integer <> queue.max_attempts THEN 'max attempts ' || queue.max_attempts || ' to ' || sqlc.narg('max_attempts')::integer END,
            CASE
                WHEN sqlc.narg('retention_mode')::holdfast.retention_mode <> queue.retention_mode
                    THEN 'retention mode ' || queue.retention_mode || ' to ' || sqlc.narg('retention_mode')::holdfast.retention_mode
            END,
            CASE WHEN sqlc.narg('keep_for')::interval <> queue.keep_for THEN 'keep for ' || queue.keep_for || ' to ' || sqlc.narg('keep_for')::interval END,
            CASE WHEN sqlc.narg('retention')::interval <> queue.retention THEN 'retention ' || queue.retention || ' to ' || sqlc.narg('retention')::interval END,
            CASE WHEN sqlc.narg('dedupe_window')::interval <> queue.dedupe_window THEN 'dedupe window ' || queue.dedupe_window || ' to ' || sqlc.narg('dedupe_window')::interval END,
            CASE WHEN sqlc.narg('ring')::boolean <> queue.ring THEN 'ring ' || queue.ring || ' to ' || sqlc.narg('ring')::boolean END
        ) AS changes
    FROM holdfast.queues AS queue
    WHERE queue.name = @name::text
    FOR UPDATE OF queue
),
changed AS (
    UPDATE holdfast.queues AS queue
    SET
        ordered = wanted.ordered,
        max_attempts = wanted.max_attempts,
        retention_mode = wanted.retention_mode,
        keep_for = wanted.keep_for,
        retention = wanted.retention,
        dedupe_window = wanted.dedupe_window,
        ring = wanted.ring
    FROM wanted
    WHERE queue.name = wanted.name
        AND NOT wanted.refused
    RETURNING
        queue.name,
        wanted.changes
),
noted AS (
    INSERT INTO holdfast.events (event, queue, actor, detail)
    SELECT
        'queue_changed'::holdfast.event_kind,
        changed.name,
        @actor::text,
        concat_ws(': ', changed.changes, NULLIF(@reason::text, ''))
    FROM changed
    WHERE changed.changes <> ''
)
SELECT
    wanted.name,
    wanted.ordered::boolean AS ordered,
    wanted.paused,
    wanted.max_attempts::integer AS max_attempts,
    wanted.retention_mode::holdfast.retention_mode AS retention_mode,
    wanted.keep_for::interval AS keep_for,
    wanted.retention::interval AS retention,
    wanted.dedupe_window::interval AS dedupe_window,
    wanted.ring::boolean AS ring,
    wanted.refused::boolean AS refused
FROM wanted;

-- name: CreateQueue :execrows
-- CreateQueue creates a queue with the settings given. Called by domain/queues.go when
-- SetQueue found no such queue. Zero rows: it exists. A second transaction that names the
-- same new queue waits for the first. Index: queues_pkey.
WITH created AS (
    INSERT INTO holdfast.queues (
        name,
        ordered,
        max_attempts,
        retention_mode,
        keep_for,
        retention,
        dedupe_window,
        ring
    )
    VALUES (
        @name::text,
        @ordered::boolean,
        @max_attempts::integer,
        @retention_mode::holdfast.retention_mode,
        @keep_for::interval,
        @retention::interval,
        @dedupe_window::interval,
        @ring::boolean
    )
    ON CONFLICT (name) DO NOTHING
    RETURNING name
)
INSERT INTO holdfast.events (event, queue, actor, detail)
SELECT
    'queue_changed'::holdfast.event_kind,
    created.name,
    @actor::text,
    concat_ws(': ', 'created', NULLIF(@reason::text, ''))
FROM created;

-- name: PauseQueue :one
-- PauseQueue pauses a queue, or resumes it. Called by domain/queues.go. Each claim reads the
-- setting, so it holds from the commit on; what is claimed runs on. Zero: no such queue. One
-- that is paused, or is not, already leaves no event. Index: queues_pkey. Locks: the queue's row.
WITH found AS MATERIALIZED (
    SELECT
        queue.name,
        queue.paused
    FROM holdfast.queues AS queue
    WHERE queue.name = @name::text
    FOR UPDATE OF queue
),
changed AS (
    UPDATE holdfast.queues AS queue
    SET paused = @paused::boolean
    FROM found
    WHERE queue.name = found.name
        AND found.paused <> @paused::boolean
    RETURNING queue.name
),
noted AS (
    INSERT INTO holdfast.events (event, queue, actor, detail)
    SELECT
        CASE WHEN @paused::boolean THEN 'queue_paused'::holdfast.event_kind ELSE 'queue_resumed'::holdfast.event_kind END,
        changed.name,
        @actor::text,
        NULLIF(@reason::text, '')
    FROM changed
)
SELECT count(*)
FROM found;

-- name: GetQueue :one
-- GetQueue reads the settings of a queue. Called by domain/queues.go. No row: no such queue.
-- Index: queues_pkey.
SELECT
    queue.name,
    queue.ordered,
    queue.paused,
    queue.max_attempts,
    queue.retention_mode,
    queue.keep_for,
    queue.retention,
    queue.dedupe_window,
    queue.ring
FROM holdfast.queues AS queue
WHERE queue.name = @name::text;

-- name: ListQueues :many
-- ListQueues reads the settings of all queues, in the order of their names. Called by
-- domain/queues.go. Index: queues_pkey.
SELECT
    queue.name,
    queue.ordered,
    queue.paused,
    queue.max_attempts,
    queue.retention_mode,
    queue.keep_for,
    queue.retention,
    queue.dedupe_window,
    queue.ring
FROM holdfast.queues AS queue
ORDER BY queue.name
LIMIT @max_rows::integer;
