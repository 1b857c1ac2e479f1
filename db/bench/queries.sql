-- name: ServerStartedAt :one
-- ServerStartedAt tells when the server started: another answer later means that it restarted.
SELECT pg_catalog.pg_postmaster_start_time()::timestamptz AS started_at;

-- name: ServerClock :one
-- ServerClock is the server's time, with which completions are compared.
SELECT pg_catalog.clock_timestamp()::timestamptz AS clock;

-- name: ListSettings :many
-- ListSettings reads settings of the server in the units that SHOW prints. One that this
-- version does not know is missing.
SELECT
    setting.name::text AS name,
    pg_catalog.current_setting(setting.name)::text AS value
FROM pg_catalog.pg_settings AS setting
WHERE setting.name = ANY(@names::text[])
ORDER BY setting.name;

-- name: CountFreeConnections :one
-- CountFreeConnections counts the connections that the server still has for anybody. Every
-- role sees how many a database has, but not the sessions of others.
SELECT (
    pg_catalog.current_setting('max_connections')::integer
    - pg_catalog.current_setting('superuser_reserved_connections')::integer
    - sum(stats.numbackends)
)::integer AS free
FROM pg_catalog.pg_stat_database AS stats;

-- name: HasInbox :one
-- HasInbox tells whether the schema of Holdfast is in the database, also to a role that may
-- not use it.
SELECT EXISTS (
    SELECT FROM pg_catalog.pg_class AS class
    INNER JOIN pg_catalog.pg_namespace AS namespace
        ON namespace.oid = class.relnamespace
    WHERE namespace.nspname = 'holdfast'
        AND class.relname = 'inbox'
) AS found;

-- name: HasJobs :one
-- HasJobs tells whether the database holds jobs, finished ones too. It must have the schema.
SELECT EXISTS (
    SELECT FROM holdfast.jobs AS job
) AS found;

-- name: IsInboxEmpty :one
-- IsInboxEmpty tells whether nothing is left to do. It reads the table up to the first row that
-- lives, and so is asked only when the handlers have run.
SELECT NOT EXISTS (
    SELECT FROM holdfast.inbox AS job
) AS empty;

-- name: CountInbox :one
-- CountInbox counts the jobs that are not completed.
SELECT count(*) AS jobs
FROM holdfast.inbox AS job;

-- name: CountArchived :one
-- CountArchived counts completions, and the jobs that have one: both are the same unless a job
-- was completed twice.
SELECT
    count(*) AS completions,
    count(DISTINCT job.id) AS jobs
FROM holdfast.inbox_archive AS job;

-- name: CompletionsPerSecond :many
-- CompletionsPerSecond counts the completions of each second since a time, the first of them
-- second 0. Seconds without any are missing.
SELECT
    floor(extract(epoch FROM job.completed_at - @since::timestamptz))::integer AS second,
    count(*) AS jobs
FROM holdfast.inbox_archive AS job
WHERE job.completed_at >= @since::timestamptz
GROUP BY 1
ORDER BY 1
LIMIT 86400;

-- name: SampleLatencies :many
-- SampleLatencies reads how many microseconds passed from enqueue to completion, of every
-- stride-th job by its number, so that the sample covers the whole run.
SELECT (extract(epoch FROM job.completed_at - job.created_at) * 1000000)::bigint AS microseconds
FROM holdfast.inbox_archive AS job
WHERE job.seq % @stride::bigint = 0
    AND job.completed_at >= @since::timestamptz
LIMIT @most::integer;

-- name: WALPosition :one
-- WALPosition is how many bytes of write-ahead log the whole server has written.
SELECT (pg_catalog.pg_current_wal_insert_lsn() - '0/0'::pg_lsn)::bigint AS bytes;

-- name: CountCommits :one
-- CountCommits counts the committed transactions of a database, autovacuum's among them. A
-- session adds its own about once a second, and at its end.
SELECT stats.xact_commit::bigint AS commits
FROM pg_catalog.pg_stat_database AS stats
WHERE stats.datname = @name::text;

-- name: CountSessions :one
-- CountSessions counts the sessions of a database.
SELECT count(*) AS sessions
FROM pg_catalog.pg_stat_activity AS session
WHERE session.datname = @name::text
    AND session.backend_type = 'client backend';

-- name: Checkpoint :exec
-- Checkpoint writes out what is dirty, so that no measurement pays for what came before it.
CHECKPOINT;

-- name: InsertBare :exec
-- InsertBare adds a row as an enqueue does, and nothing else: the least that a job in the
-- inbox costs. Id and bucket are the caller's.
INSERT INTO holdfast.inbox (
    id,
    partition_bucket,
    queue,
    kind,
    partition_key,
    ordered,
    max_attempts,
    available_at,
    payload
)
VALUES (
    @id::uuid,
    @partition_bucket::integer,
    @queue::text,
    @kind::text,
    @partition_key::text,
    false,
    5,
    pg_catalog.clock_timestamp(),
    @payload::jsonb
);

-- name: EnqueueInSQL :exec
-- EnqueueInSQL adds a job by the function that any language can call.
SELECT holdfast.enqueue(@kind::text, @payload::jsonb, @key::text, @queue::text);

-- name: CountWorkers :one
-- CountWorkers counts the workers that live, and those of them that an enqueue wakes.
SELECT
    count(*) AS alive,
    count(bell.worker_id) AS woken
FROM holdfast.workers AS worker
LEFT JOIN holdfast.wake AS bell ON bell.worker_id = worker.id
WHERE worker.status = 'alive';

-- name: FillInbox :execrows
-- FillInbox adds jobs faster than an enqueue could, equally many of each of the keys, whose
-- buckets are given beside them: pending and due after a delay, or as a queue in mode keep
-- leaves them. The queue must exist.
WITH place AS MATERIALIZED (
    SELECT
        generate_subscripts(@keys::text[], 1) AS position,
        unnest(@keys::text[]) AS key,
        unnest(@buckets::integer[]) AS bucket
)
INSERT INTO holdfast.inbox (
    id,
    partition_bucket,
    queue,
    kind,
    partition_key,
    max_attempts,
    available_at,
    payload,
    status,
    completed_at,
    finished_at
)
SELECT
    holdfast.new_job_id(place.bucket),
    place.bucket,
    queue.name,
    @kind::text,
    place.key,
    queue.max_attempts,
    pg_catalog.clock_timestamp() + pg_catalog.make_interval(secs => @delay_seconds::float8),
    @payload::jsonb,
    CASE WHEN @completed::boolean THEN 'completed' ELSE 'pending' END::holdfast.inbox_status,
    CASE WHEN @completed::boolean THEN pg_catalog.clock_timestamp() END,
    CASE WHEN @completed::boolean THEN pg_catalog.clock_timestamp() END
FROM pg_catalog.generate_series(1, @jobs::integer) AS job (number)
JOIN place ON place.position = 1 + job.number % pg_catalog.cardinality(@keys::text[])
JOIN holdfast.queues AS queue ON queue.name = @queue::text;

-- name: PinSnapshot :one
-- PinSnapshot gives the transaction a number, besides the snapshot that REPEATABLE READ keeps:
-- until it ends, nothing that is deleted meanwhile can be cleaned away.
SELECT pg_catalog.pg_current_xact_id()::text AS number;

-- name: InboxRows :one
-- InboxRows is what the statistics count in the inbox, a second or so late.
SELECT
    stats.n_dead_tup::bigint AS dead,
    stats.n_tup_upd::bigint AS updates,
    stats.n_tup_hot_upd::bigint AS hot_updates
FROM pg_catalog.pg_stat_user_tables AS stats
WHERE stats.relid = 'holdfast.inbox'::regclass;

-- name: CountClaimed :one
-- CountClaimed counts the jobs that workers hold.
SELECT count(*) AS jobs
FROM holdfast.inbox AS job
WHERE job.status = 'processing';

-- name: CompletedOffKey :one
-- CompletedOffKey counts the completed jobs of all keys but one, and tells how many
-- microseconds after the first completion of all the last of them was completed.
SELECT
    count(*) FILTER (WHERE job.partition_key <> @key::text) AS jobs,
    coalesce(extract(epoch FROM max(job.completed_at) FILTER (WHERE job.partition_key <> @key::text) - min(job.completed_at)) * 1000000, 0)::bigint AS microseconds
FROM holdfast.inbox_archive AS job;

-- name: CountOutOfOrder :one
-- CountOutOfOrder counts the jobs that were claimed or completed before one of the same key
-- that was enqueued earlier.
SELECT count(*) AS jobs
FROM (
    SELECT
        job.lease_generation,
        job.completed_at,
        max(job.lease_generation) OVER earlier AS claimed_before,
        max(job.completed_at) OVER earlier AS completed_before
    FROM holdfast.inbox_archive AS job
    WINDOW earlier AS (
        PARTITION BY job.partition_key
        ORDER BY job.seq
        ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
    )
) AS finished
WHERE finished.lease_generation < finished.claimed_before
    OR finished.completed_at < finished.completed_before;

-- name: FillEveryState :execrows
-- FillEveryState adds jobs as an inbox holds them on a bad day, from a number on, to the queue
-- default: of a thousand 900 wait, a third of them for later and one in a hundred for another
-- attempt, a fifth of them in lanes; 4 are in flight, and 48 each failed or spent their attempts.
INSERT INTO holdfast.inbox (
    id,
    partition_bucket,
    queue,
    kind,
    partition_key,
    ordered,
    status,
    attempts,
    available_at,
    payload,
    lease_generation,
    claimed_by,
    claimed_at,
    lease_expires_at,
    finished_at,
    last_error
)
SELECT
    holdfast.new_job_id(job.bucket),
    job.bucket,
    'default',
    'kind ' || (job.number % 5),
    job.key,
    job.number % 5 = 0 AND job.status = 'pending',
    job.status::holdfast.inbox_status,
    CASE WHEN job.status <> 'pending' OR job.number % 100 = 1 THEN 1 ELSE 0 END,
    pg_catalog.clock_timestamp() + CASE WHEN job.number % 3 = 1 THEN interval '1 hour' ELSE interval '-1 minute' END,
    @payload::jsonb,
    job.number,
    CASE WHEN job.status = 'processing' THEN 'worker ' || job.number % 7 END,
    CASE WHEN job.status = 'processing' THEN pg_catalog.now() END,
    CASE WHEN job.status = 'processing' THEN pg_catalog.now() + interval '1 hour' END,
    CASE WHEN job.status IN ('failed', 'dead_letter') THEN pg_catalog.clock_timestamp() END,
    CASE WHEN job.status IN ('failed', 'dead_letter') THEN 'send receipt ' || job.number || ': dial tcp 10.0.0.7:25: connection refused' END
FROM (
    SELECT
        series.number,
        'key ' || series.number % 30000 AS key,
        holdfast.bucket_of('key ' || series.number % 30000, 1024) AS bucket,
        CASE
            WHEN series.number % 1000 < 900 THEN 'pending'
            WHEN series.number % 1000 < 904 THEN 'processing'
            WHEN series.number % 2 = 0 THEN 'failed'
            ELSE 'dead_letter'
        END AS status
    FROM pg_catalog.generate_series(@from_number::integer, @to_number::integer) AS series (number)
) AS job;

-- name: FillArchive :execrows
-- FillArchive adds jobs that were completed just now.
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
    payload
)
SELECT
    holdfast.new_job_id(1),
    series.number,
    series.number,
    pg_catalog.now(),
    pg_catalog.clock_timestamp(),
    pg_catalog.now(),
    1,
    1,
    5,
    false,
    'default',
    'kind',
    'key ' || series.number,
    @payload::jsonb
FROM pg_catalog.generate_series(1, @jobs::integer) AS series (number);

-- name: VacuumJobs :exec
-- VacuumJobs does what autovacuum does in a while.
VACUUM holdfast.inbox, holdfast.inbox_archive;
