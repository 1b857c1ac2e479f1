-- name: GroupDeadByError :many
-- GroupDeadByError groups the newest failed and dead-lettered jobs of a queue by their kind and
-- by what their errors have in common, most first. fingerprint names the group: it is the same in
-- every queue and at every time. looked tells at how many jobs it looked, in each row: half
-- as many as are asked for come from each of the two states if both have enough. No row: none
-- is dead. Called by domain/supportdead.go. Index: inbox_dead_newest_idx.
WITH newest AS MATERIALIZED (
    SELECT
        dead.id,
        dead.kind,
        dead.finished_at,
        dead.last_error
    FROM (VALUES ('failed'), ('dead_letter')) AS state (name)
    CROSS JOIN LATERAL (
        SELECT
            job.id,
            job.kind,
            job.finished_at,
            job.last_error
        FROM holdfast.inbox AS job
        WHERE job.status IN ('failed', 'dead_letter')
            AND job.queue = @queue::text
            AND job.status = state.name::holdfast.inbox_status
        ORDER BY
            job.finished_at DESC,
            job.id DESC
        LIMIT @newest::integer
    ) AS dead
    ORDER BY
        dead.finished_at DESC,
        dead.id DESC
    LIMIT @newest::integer
),
    -- A pattern takes longer than all else here: equal errors share theirs.
same AS MATERIALIZED (
    SELECT
        newest.kind,
        COALESCE(newest.last_error, '') AS error,
        count(*) AS jobs,
        min(newest.finished_at) AS first_at,
        max(newest.finished_at) AS last_at,
        (array_agg(newest.id ORDER BY newest.finished_at DESC, newest.id DESC))[1] AS last_id
    FROM newest
    GROUP BY
        newest.kind,
        COALESCE(newest.last_error, '')
),
patterned AS MATERIALIZED (
    SELECT
        same.kind,
        same.error,
        same.jobs,
        same.first_at,
        same.last_at,
        same.last_id,
        holdfast.error_pattern(same.error) AS pattern
    FROM same
)
SELECT
    patterned.kind,
    patterned.pattern::text AS pattern,
    left(encode(sha256(convert_to(patterned.pattern, 'UTF8')), 'hex'), 8)::text AS fingerprint,
    sum(patterned.jobs)::bigint AS jobs,
    min(patterned.first_at)::timestamptz AS first_at,
    max(patterned.last_at)::timestamptz AS last_at,
    ((array_agg(patterned.last_id ORDER BY patterned.last_at DESC, patterned.last_id DESC))[1])::uuid AS last_id,
    left((array_agg(patterned.error ORDER BY patterned.last_at DESC, patterned.last_id DESC))[1], 2000)::text AS last_error,
    (SELECT count(*) FROM newest AS looked) AS looked
FROM patterned
GROUP BY
    patterned.kind,
    patterned.pattern
ORDER BY
    jobs DESC,
    patterned.kind,
    pattern
LIMIT @max_rows::integer;

-- name: CountDeadLettersPerKey :many
-- CountDeadLettersPerKey counts the newest failed and dead-lettered jobs of a queue by partition
-- key, most first, with the latest error of each. looked tells at how many jobs it looked, in
-- each row. No row: none is dead. Called by domain/supportdead.go.
-- Index: inbox_dead_newest_idx.
WITH newest AS MATERIALIZED (
    SELECT
        dead.id,
        dead.partition_key,
        dead.finished_at,
        dead.last_error
    FROM (VALUES ('failed'), ('dead_letter')) AS state (name)
    CROSS JOIN LATERAL (
        SELECT
            job.id,
            job.partition_key,
            job.finished_at,
            job.last_error
        FROM holdfast.inbox AS job
        WHERE job.status IN ('failed', 'dead_letter')
            AND job.queue = @queue::text
            AND job.status = state.name::holdfast.inbox_status
        ORDER BY
            job.finished_at DESC,
            job.id DESC
        LIMIT @newest::integer
    ) AS dead
    ORDER BY
        dead.finished_at DESC,
        dead.id DESC
    LIMIT @newest::integer
)
SELECT
    newest.partition_key,
    count(*) AS jobs,
    min(newest.finished_at)::timestamptz AS first_at,
    max(newest.finished_at)::timestamptz AS last_at,
    COALESCE(left((array_agg(newest.last_error ORDER BY newest.finished_at DESC, newest.id DESC))[1], 2000), '')::text AS sample_error,
    (sum(count(*)) OVER ())::bigint AS looked
FROM newest
GROUP BY newest.partition_key
ORDER BY
    jobs DESC,
    newest.partition_key
LIMIT @max_rows::integer;

-- name: ListDeadJobs :many
-- ListDeadJobs lists the failed jobs of a queue, the dead-lettered ones or both, newest first,
-- from the place behind one job on, and tells the fingerprint of each error as
-- GroupDeadByError does. Called by domain/supportsources.go. Index: inbox_dead_newest_idx.
SELECT
    dead.id,
    dead.seq,
    dead.queue,
    dead.kind,
    dead.partition_key,
    dead.partition_bucket,
    dead.ordered,
    dead.status,
    dead.attempts,
    dead.max_attempts,
    dead.lease_generation,
    dead.claimed_by,
    dead.claimed_at,
    dead.lease_expires_at,
    dead.available_at,
    dead.created_at,
    dead.finished_at,
    dead.idempotency_key,
    COALESCE(left(dead.last_error, 300), '')::text AS last_error,
    now()::timestamptz AS read_at,
    left(encode(sha256(convert_to(holdfast.error_pattern(COALESCE(dead.last_error, '')), 'UTF8')), 'hex'), 8)::text AS fingerprint
FROM (VALUES ('failed', @failed::boolean), ('dead_letter', @dead_lettered::boolean)) AS state (name, wanted)
CROSS JOIN LATERAL (
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
        job.finished_at,
        job.idempotency_key,
        job.last_error
    FROM holdfast.inbox AS job
    WHERE job.status IN ('failed', 'dead_letter')
        AND job.queue = @queue::text
        AND job.status = state.name::holdfast.inbox_status
        AND (job.finished_at, job.id) < (@before_time::timestamptz, @before_id::uuid)
    ORDER BY
        job.finished_at DESC,
        job.id DESC
    LIMIT @max_rows::integer
) AS dead
WHERE state.wanted
ORDER BY
    dead.finished_at DESC,
    dead.id DESC
LIMIT @max_rows::integer;

-- name: ListDeadKeyHolders :many
-- ListDeadKeyHolders lists, among the newest failed and dead-lettered jobs of a queue, those whose
-- idempotency key is still taken by them: every enqueue under it is answered with a job that
-- will not run. Newest first. Called by domain/supportdead.go.
-- Index: inbox_dead_newest_idx, idempotency_keys_pkey.
SELECT
    dead.id,
    dead.kind,
    dead.partition_key,
    dead.status,
    dead.finished_at,
    dead.idempotency_key::text AS idempotency_key,
    taken.expires_at
FROM (VALUES ('failed'), ('dead_letter')) AS state (name)
CROSS JOIN LATERAL (
    SELECT
        job.id,
        job.kind,
        job.partition_key,
        job.status,
        job.finished_at,
        job.idempotency_key
    FROM holdfast.inbox AS job
    WHERE job.status IN ('failed', 'dead_letter')
        AND job.queue = @queue::text
        AND job.status = state.name::holdfast.inbox_status
    ORDER BY
        job.finished_at DESC,
        job.id DESC
    LIMIT @newest::integer
) AS dead
CROSS JOIN LATERAL (
    SELECT held.expires_at
    FROM holdfast.idempotency_keys AS held
    WHERE held.queue = @queue::text
        AND held.key = dead.idempotency_key
        AND held.job_id = dead.id
        AND held.expires_at > now()
    LIMIT 1
) AS taken
ORDER BY
    dead.finished_at DESC,
    dead.id DESC
LIMIT @max_rows::integer;
