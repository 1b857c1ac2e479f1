-- name: GetServer :one
-- GetServer tells what a server is: its version, whether it is a standby, which of its
-- processes answers, by which clock, to whom, and how many connections it has left. Called by
-- domain/doctor.go. Index: none; it reads no table of ours, and of pg_stat_database a row a
-- database.
SELECT
    current_setting('server_version_num')::integer AS version,
    current_setting('server_version')::text AS version_text,
    pg_is_in_recovery() AS standby,
    pg_backend_pid() AS backend_pid,
    clock_timestamp()::timestamptz AS clock,
    session_user::text AS role_name,
    current_database()::text AS database_name,
    current_setting('max_connections')::integer AS max_connections,
    current_setting('superuser_reserved_connections')::integer AS reserved_connections,
    (SELECT COALESCE(sum(load.numbackends), 0) FROM pg_catalog.pg_stat_database AS load)::integer AS used_connections;

-- name: ListSettings :many
-- ListSettings tells how the server's settings stand for the session that asks, so with what
-- was set for its role and for its database. Called by domain/doctor.go. A setting that is
-- missing is not known to this version. Index: none, the server knows some 350 settings.
SELECT
    setting.name::text AS name,
    setting.setting::text AS value,
    COALESCE(setting.unit, '')::text AS unit,
    setting.source::text AS source
FROM pg_catalog.pg_settings AS setting
WHERE setting.name = ANY(@names::text[])
ORDER BY setting.name
LIMIT cardinality(@names::text[]);

-- name: ListHorizonHolders :many
-- ListHorizonHolders lists what keeps vacuum from removing dead rows of this database:
-- transactions that are older than an age, prepared ones too, replication slots that nobody
-- reads, and slots and standbys that lie so many transactions back. Called by
-- domain/doctor.go. A role without pg_read_all_stats sees its own sessions only.
-- Index: none; views with a row a session, a prepared transaction, a slot or a standby.
SELECT
    holder.kind::text AS kind,
    holder.name::text AS name,
    holder.role_name::text AS role_name,
    holder.state::text AS state,
    holder.age::interval AS age,
    holder.transactions::bigint AS transactions
FROM (
    SELECT
        'session' AS kind,
        session.pid::text AS name,
        COALESCE(session.usename::text, '') AS role_name,
        COALESCE(session.state, '') AS state,
        now() - session.xact_start AS age,
        COALESCE(age(session.backend_xmin), 0) AS transactions
    FROM pg_catalog.pg_stat_activity AS session
    WHERE session.datname = current_database()
        AND session.pid <> pg_backend_pid()
        AND session.backend_type = 'client backend'
        AND session.xact_start < now() - @age::interval
        AND (session.state LIKE 'idle in transaction%' OR session.backend_xmin IS NOT NULL OR session.backend_xid IS NOT NULL)
    UNION ALL
    SELECT
        'prepared',
        prepared.gid,
        prepared.owner::text,
        'prepared',
        now() - prepared.prepared,
        age(prepared.transaction)
    FROM pg_catalog.pg_prepared_xacts AS prepared
    WHERE prepared.database = current_database()
        AND prepared.prepared < now() - @age::interval
    UNION ALL
    SELECT
        'slot',
        slot.slot_name::text,
        '',
        CASE WHEN slot.active THEN 'active' ELSE 'not active' END,
        interval '0',
        GREATEST(age(slot.xmin), age(slot.catalog_xmin))
    FROM pg_catalog.pg_replication_slots AS slot
    WHERE (slot.xmin IS NOT NULL OR slot.catalog_xmin IS NOT NULL)
        AND (NOT slot.active OR GREATEST(age(slot.xmin), age(slot.catalog_xmin)) > @transactions::integer)
    UNION ALL
    SELECT
        'standby',
        COALESCE(NULLIF(standby.application_name, ''), standby.pid::text),
        COALESCE(standby.usename::text, ''),
        COALESCE(standby.state, ''),
        interval '0',
        age(standby.backend_xmin)
    FROM pg_catalog.pg_stat_replication AS standby
    WHERE age(standby.backend_xmin) > @transactions::integer
) AS holder
ORDER BY
    holder.age DESC,
    holder.kind,
    holder.name
LIMIT @max_rows::integer;

-- name: GetInboxCondition :one
-- GetInboxCondition tells what the server has counted of holdfast.inbox: rows, dead rows, size,
-- how wide a row is by the statistics, when it was last vacuumed, and whether autovacuum may.
-- Estimates all. Called by domain/doctor.go. Index: none; one row of the statistics.
SELECT
    COALESCE(counted.n_live_tup, 0)::bigint AS live_rows,
    COALESCE(counted.n_dead_tup, 0)::bigint AS dead_rows,
    pg_relation_size(class.oid)::bigint AS bytes,
    COALESCE((
        SELECT sum(stats.avg_width)
        FROM pg_catalog.pg_stats AS stats
        WHERE stats.schemaname = 'holdfast'
            AND stats.tablename = 'inbox'
    ), 0)::bigint AS row_bytes,
    COALESCE(extract(epoch FROM now() - GREATEST(counted.last_vacuum, counted.last_autovacuum)), -1)::float8 AS seconds_since_vacuum,
    ('autovacuum_enabled=false' = ANY(COALESCE(class.reloptions, '{}')))::boolean AS autovacuum_disabled
FROM pg_catalog.pg_class AS class
LEFT JOIN pg_catalog.pg_stat_all_tables AS counted ON counted.relid = class.oid
WHERE class.oid = 'holdfast.inbox'::regclass;

-- name: ListUnservedQueues :many
-- ListUnservedQueues lists the queues that are not paused and that no live worker serves.
-- How long a worker counts as alive it says itself; 30 s for one that does not. Called by
-- domain/doctor.go. Index: none; tables with a row a queue and a row a worker.
SELECT queue.name
FROM holdfast.queues AS queue
WHERE NOT queue.paused
    AND NOT EXISTS (
        SELECT
        FROM holdfast.workers AS worker
        WHERE worker.status = 'alive'
            AND worker.last_seen_at > now() - make_interval(secs => COALESCE((worker.metadata ->> 'worker_ttl_seconds')::float8, 30))
            AND queue.name = ANY(worker.queues)
    )
ORDER BY queue.name
LIMIT @max_rows::integer;

-- name: FindDueJob :one
-- FindDueJob finds a job of a queue that waits to be claimed: the first due one that it comes
-- to, bucket by bucket, else a due one among the first 500 of the lanes. Called by
-- domain/doctor.go for queues without a worker. No row: nothing waits, or only in lanes behind
-- 500 delayed jobs. Index: inbox_claim_idx, inbox_lane_idx.
(
    SELECT
        due.id,
        (now() - due.available_at)::interval AS age
    FROM generate_series(0, (SELECT meta.bucket_count FROM holdfast.meta AS meta WHERE meta.singleton) - 1) AS bucket (number)
    CROSS JOIN LATERAL (
        SELECT
            job.id,
            job.available_at
        FROM holdfast.inbox AS job
        WHERE job.status = 'pending'
            AND NOT job.ordered
            AND job.queue = @queue::text
            AND job.partition_bucket = bucket.number
            AND job.available_at <= now()
        ORDER BY
            job.available_at,
            job.seq
        LIMIT 1
    ) AS due
    LIMIT 1
)
UNION ALL
(
    SELECT
        due.id,
        (now() - due.available_at)::interval AS age
    FROM (
        SELECT
            job.id,
            job.available_at
        FROM holdfast.inbox AS job
        WHERE job.status = 'pending'
            AND job.ordered
            AND job.queue = @queue::text
        ORDER BY
            job.partition_bucket,
            job.partition_key,
            job.seq
        LIMIT 500
    ) AS due
    WHERE due.available_at <= now()
    LIMIT 1
)
LIMIT 1;

-- name: ListOrphanBuckets :many
-- ListOrphanBuckets lists the queues with a pending job in a bucket that no ring has, because
-- it is not below the bucket count: nobody ever claims such a job. With each the lowest of
-- those buckets. Called by domain/doctor.go. No rows: there are none.
-- Index: inbox_claim_idx, inbox_lane_idx; two probes a queue.
SELECT
    queue.name AS queue,
    orphan.partition_bucket
FROM holdfast.queues AS queue
CROSS JOIN LATERAL (
    SELECT job.partition_bucket
    FROM (
        (
            SELECT plain.partition_bucket
            FROM holdfast.inbox AS plain
            WHERE plain.status = 'pending'
                AND NOT plain.ordered
                AND plain.queue = queue.name
                AND plain.partition_bucket >= (SELECT meta.bucket_count FROM holdfast.meta AS meta WHERE meta.singleton)
            ORDER BY
                plain.partition_bucket,
                plain.available_at,
                plain.seq
            LIMIT 1
        )
        UNION ALL
        (
            SELECT lane.partition_bucket
            FROM holdfast.inbox AS lane
            WHERE lane.status = 'pending'
                AND lane.ordered
                AND lane.queue = queue.name
                AND lane.partition_bucket >= (SELECT meta.bucket_count FROM holdfast.meta AS meta WHERE meta.singleton)
            ORDER BY
                lane.partition_bucket,
                lane.partition_key,
                lane.seq
            LIMIT 1
        )
    ) AS job
    ORDER BY job.partition_bucket
    LIMIT 1
) AS orphan
ORDER BY queue.name
LIMIT @max_rows::integer;

-- name: CountOverdueLeases :one
-- CountOverdueLeases counts, among the 4,000 oldest claims, those whose lease ended so long ago
-- that somebody should have reclaimed them, and tells how long ago the first one ended. Called
-- by domain/doctor.go. Index: inbox_processing_idx.
SELECT
    count(*) AS leases,
    COALESCE(max(now() - held.lease_expires_at), interval '0')::interval AS oldest
FROM (
    SELECT job.lease_expires_at
    FROM holdfast.inbox AS job
    WHERE job.claimed_at IS NOT NULL
    ORDER BY job.lease_generation
    LIMIT 4000
) AS held
WHERE held.lease_expires_at < now() - @overdue::interval;

-- name: CountOverdueCompletions :one
-- CountOverdueCompletions counts, among the 1,000 oldest completed jobs of the inbox, those
-- that should have left it so long ago, by what their queue says, and tells by how long the
-- oldest one is late. Called by domain/doctor.go. Index: inbox_completed_idx.
SELECT
    count(*) AS jobs,
    COALESCE(max(now() - completed.completed_at - queue.keep_for), interval '0')::interval AS late
FROM (
    SELECT
        job.queue,
        job.completed_at
    FROM holdfast.inbox AS job
    WHERE job.status = 'completed'
    ORDER BY
        job.completed_at,
        job.id
    LIMIT 1000
) AS completed
JOIN holdfast.queues AS queue ON queue.name = completed.queue
WHERE completed.completed_at < now() - queue.keep_for - @overdue::interval;

-- name: CountDeadKeys :many
-- CountDeadKeys counts by queue the failed and dead-lettered jobs that hold their idempotency
-- key: an enqueue with the key is told of the dead job, and adds none. It looks at 2,000 dead
-- jobs, and at the keys of the first 500 that have one. Called by domain/doctor.go. No rows:
-- there are none. Index: inbox_dead_idx, idempotency_keys_pkey.
SELECT
    keyed.queue,
    count(*) AS jobs
FROM (
    SELECT
        dead.queue,
        dead.idempotency_key,
        dead.id
    FROM (
        SELECT
            job.queue,
            job.idempotency_key,
            job.id
        FROM holdfast.inbox AS job
        WHERE job.status IN ('failed', 'dead_letter')
        ORDER BY
            job.queue,
            job.kind,
            job.finished_at,
            job.id
        LIMIT 2000
    ) AS dead
    WHERE dead.idempotency_key IS NOT NULL
    LIMIT 500
) AS keyed
CROSS JOIN LATERAL (
    SELECT
    FROM holdfast.idempotency_keys AS taken
    WHERE taken.queue = keyed.queue
        AND taken.key = keyed.idempotency_key
        AND taken.job_id = keyed.id
        AND taken.expires_at > now()
    LIMIT 1
) AS held
GROUP BY keyed.queue
ORDER BY keyed.queue
LIMIT @max_rows::integer;

-- name: FindLiveWorker :one
-- FindLiveWorker finds a worker that is alive, was seen within the time that it says itself
-- (30 s if it does not), and has the id and runs on the host; an empty text stands for any. Called by
-- domain/doctor.go. No row: there is none. Index: none, the table has a row a worker.
SELECT
    worker.id,
    (now() - worker.last_seen_at)::interval AS silence
FROM holdfast.workers AS worker
WHERE worker.status = 'alive'
    AND worker.last_seen_at > now() - make_interval(secs => COALESCE((worker.metadata ->> 'worker_ttl_seconds')::float8, 30))
    AND @id::text IN ('', worker.id)
    AND @host::text IN ('', worker.metadata ->> 'host')
ORDER BY
    worker.last_seen_at DESC,
    worker.id
LIMIT 1;
