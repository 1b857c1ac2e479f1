-- +goose Up
-- Why: completed jobs leave the hot table, and whole days of them leave the database.
-- Locks: none, the tables are new.
CREATE TABLE holdfast.inbox_archive (
    id uuid NOT NULL,
    seq bigint NOT NULL,
    lease_generation bigint NOT NULL,
    available_at timestamptz NOT NULL,
    created_at timestamptz NOT NULL,
    completed_at timestamptz NOT NULL,
    partition_bucket integer NOT NULL,
    attempts integer NOT NULL,
    max_attempts integer NOT NULL,
    ordered boolean NOT NULL,
    queue text COLLATE "C" NOT NULL,
    kind text COLLATE "C" NOT NULL,
    partition_key text COLLATE "C" NOT NULL,
    finished_by text COLLATE "C",
    idempotency_key text COLLATE "C",
    last_error text,
    headers jsonb,
    payload jsonb NOT NULL
)
PARTITION BY RANGE (completed_at);
COMMENT ON TABLE holdfast.inbox_archive IS 'Completed jobs, one partition for each UTC day of completion. Rows are written once and never changed.';
COMMENT ON COLUMN holdfast.inbox_archive.id IS 'The id the job had in the inbox.';
COMMENT ON COLUMN holdfast.inbox_archive.seq IS 'Enqueue order.';
COMMENT ON COLUMN holdfast.inbox_archive.lease_generation IS 'The fence token of the claim that completed the job: tells a worker that lost the reply whether its completion took effect.';
COMMENT ON COLUMN holdfast.inbox_archive.available_at IS 'The job was not to be claimed before this time, at its last attempt.';
COMMENT ON COLUMN holdfast.inbox_archive.created_at IS 'When the job was enqueued.';
COMMENT ON COLUMN holdfast.inbox_archive.completed_at IS 'When the job was completed; decides its partition.';
COMMENT ON COLUMN holdfast.inbox_archive.partition_bucket IS 'Bucket of the partition key.';
COMMENT ON COLUMN holdfast.inbox_archive.attempts IS 'Attempts spent, the completing one included.';
COMMENT ON COLUMN holdfast.inbox_archive.max_attempts IS 'How many attempts the job had.';
COMMENT ON COLUMN holdfast.inbox_archive.ordered IS 'Whether the job was in a lane of an ordered queue.';
COMMENT ON COLUMN holdfast.inbox_archive.queue IS 'The queue the job was in.';
COMMENT ON COLUMN holdfast.inbox_archive.kind IS 'The handler that ran the job.';
COMMENT ON COLUMN holdfast.inbox_archive.partition_key IS 'What the job belonged to.';
COMMENT ON COLUMN holdfast.inbox_archive.finished_by IS 'The worker that completed the job.';
COMMENT ON COLUMN holdfast.inbox_archive.idempotency_key IS 'The key the job was enqueued once under, if any.';
COMMENT ON COLUMN holdfast.inbox_archive.last_error IS 'What the latest failed attempt said, if one failed.';
COMMENT ON COLUMN holdfast.inbox_archive.headers IS 'Facts that travelled beside the payload.';
COMMENT ON COLUMN holdfast.inbox_archive.payload IS 'What the handler got.';

CREATE INDEX inbox_archive_id_idx ON holdfast.inbox_archive (id);
COMMENT ON INDEX holdfast.inbox_archive_id_idx IS 'Finds one archived job, for GetJob. Not unique: a unique index would have to hold the day.';

-- Without a default partition a missing day would fail every completion of that day.
CREATE TABLE holdfast.inbox_archive_default PARTITION OF holdfast.inbox_archive DEFAULT;
COMMENT ON TABLE holdfast.inbox_archive_default IS 'Takes completions of a day that has no partition, so that none fails for want of one. Empty while housekeeping runs.';

-- ATTACH takes a weak lock on the archive and a strong one on the default partition, which
-- is empty: completions go on. The strong lock is taken first, for a tenth of a second at
-- most, so that no row of the day slips into the default while its rows are moved out.
-- Bounds are written with +00, because a bare date means the session's time zone.
-- +goose StatementBegin
CREATE FUNCTION holdfast.create_archive_days(days_ahead integer) RETURNS integer
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, holdfast, pg_temp
SET lock_timeout = '100ms'
AS $$
DECLARE
    today date := (now() AT TIME ZONE 'UTC')::date;
    day date;
    partition_name text;
    created integer := 0;
BEGIN
    -- One housekeeper at a time: two that have read the default partition would each wait for
    -- the other to let go of it. Neither readers nor completions notice this lock.
    LOCK TABLE holdfast.inbox_archive IN SHARE UPDATE EXCLUSIVE MODE;
    FOR day IN
        SELECT missing.day::date
        FROM generate_series(
            least(today, (SELECT min(completed_at AT TIME ZONE 'UTC')::date FROM holdfast.inbox_archive_default))::timestamp,
            (today + days_ahead)::timestamp,
            interval '1 day'
        ) AS missing (day)
        WHERE to_regclass('holdfast.inbox_archive_' || to_char(missing.day, 'YYYYMMDD')) IS NULL
        ORDER BY missing.day
    LOOP
        LOCK TABLE holdfast.inbox_archive_default IN ACCESS EXCLUSIVE MODE;
        partition_name := 'inbox_archive_' || to_char(day, 'YYYYMMDD');
        -- Another housekeeper may have made the day while this one waited for the lock.
        CONTINUE WHEN to_regclass('holdfast.' || partition_name) IS NOT NULL;
        EXECUTE format('CREATE TABLE holdfast.%I (LIKE holdfast.inbox_archive INCLUDING ALL)', partition_name);
        EXECUTE format(
            'WITH moved AS (DELETE FROM holdfast.inbox_archive_default WHERE completed_at >= %L AND completed_at < %L RETURNING *)
             INSERT INTO holdfast.%I SELECT * FROM moved',
            day || ' 00:00:00+00', day + 1 || ' 00:00:00+00', partition_name
        );
        EXECUTE format(
            'ALTER TABLE holdfast.inbox_archive ATTACH PARTITION holdfast.%I FOR VALUES FROM (%L) TO (%L)',
            partition_name, day || ' 00:00:00+00', day + 1 || ' 00:00:00+00'
        );
        created := created + 1;
    END LOOP;
    RETURN created;
EXCEPTION
    WHEN lock_not_available THEN
        RETURN 0;
END
$$;
-- +goose StatementEnd
COMMENT ON FUNCTION holdfast.create_archive_days(integer) IS 'Makes the archive partitions that are missing from today (UTC) to so many days ahead, and tells how many it made; 0 also when a reader holds the default partition. Runs with its owner''s rights: a worker needs no DDL.';
REVOKE ALL ON FUNCTION holdfast.create_archive_days(integer) FROM PUBLIC;

-- Dropping a partition needs a strong lock on the whole archive: completions would queue up
-- behind one that waits for a reader. So it waits a tenth of a second and tries another day.
-- +goose StatementBegin
CREATE FUNCTION holdfast.drop_archive_days() RETURNS integer
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, holdfast, pg_temp
SET lock_timeout = '100ms'
AS $$
DECLARE
    longest interval := coalesce((SELECT max(retention) FROM holdfast.queues), interval '7 days');
    partition_name text;
    dropped integer := 0;
BEGIN
    -- One housekeeper at a time: a second one would drop what the first has dropped meanwhile.
    LOCK TABLE holdfast.inbox_archive IN SHARE UPDATE EXCLUSIVE MODE;
    FOR partition_name IN
        SELECT child.relname
        FROM pg_inherits
        JOIN pg_class AS child ON child.oid = pg_inherits.inhrelid
        WHERE pg_inherits.inhparent = 'holdfast.inbox_archive'::regclass
            AND child.relname ~ '^inbox_archive_[0-9]{8}$'
            AND (to_date(right(child.relname, 8), 'YYYYMMDD') + 1)::timestamp AT TIME ZONE 'UTC' < now() - longest
        ORDER BY child.relname
    LOOP
        EXECUTE format('DROP TABLE holdfast.%I', partition_name);
        dropped := dropped + 1;
    END LOOP;
    RETURN dropped;
EXCEPTION
    WHEN lock_not_available THEN
        RETURN 0;
END
$$;
-- +goose StatementEnd
COMMENT ON FUNCTION holdfast.drop_archive_days() IS 'Drops the archive days that are older than the longest retention of any queue, and tells how many; 0 also when a reader holds the archive. Runs with its owner''s rights.';
REVOKE ALL ON FUNCTION holdfast.drop_archive_days() FROM PUBLIC;

SELECT holdfast.create_archive_days(14);

CREATE VIEW holdfast.jobs AS
SELECT
    inbox.id,
    inbox.seq,
    inbox.queue,
    inbox.kind,
    inbox.partition_key,
    inbox.partition_bucket,
    inbox.ordered,
    inbox.status,
    inbox.attempts,
    inbox.max_attempts,
    inbox.lease_generation,
    inbox.claimed_by,
    inbox.claimed_at,
    inbox.lease_expires_at,
    inbox.available_at,
    inbox.created_at,
    inbox.completed_at,
    inbox.finished_at,
    inbox.finished_by,
    inbox.idempotency_key,
    inbox.last_error,
    inbox.headers,
    inbox.payload,
    false AS archived
FROM holdfast.inbox
UNION ALL
SELECT
    inbox_archive.id,
    inbox_archive.seq,
    inbox_archive.queue,
    inbox_archive.kind,
    inbox_archive.partition_key,
    inbox_archive.partition_bucket,
    inbox_archive.ordered,
    'completed'::holdfast.inbox_status AS status,
    inbox_archive.attempts,
    inbox_archive.max_attempts,
    inbox_archive.lease_generation,
    NULL::text AS claimed_by,
    NULL::timestamptz AS claimed_at,
    NULL::timestamptz AS lease_expires_at,
    inbox_archive.available_at,
    inbox_archive.created_at,
    inbox_archive.completed_at,
    inbox_archive.completed_at AS finished_at,
    inbox_archive.finished_by,
    inbox_archive.idempotency_key,
    inbox_archive.last_error,
    inbox_archive.headers,
    inbox_archive.payload,
    true AS archived
FROM holdfast.inbox_archive;
COMMENT ON VIEW holdfast.jobs IS 'Every job there is, archived or not, read in one snapshot: a job that is being archived is seen once.';
COMMENT ON COLUMN holdfast.jobs.id IS 'Id of the job.';
COMMENT ON COLUMN holdfast.jobs.seq IS 'Enqueue order.';
COMMENT ON COLUMN holdfast.jobs.queue IS 'The queue of the job.';
COMMENT ON COLUMN holdfast.jobs.kind IS 'The handler of the job.';
COMMENT ON COLUMN holdfast.jobs.partition_key IS 'What the job belongs to.';
COMMENT ON COLUMN holdfast.jobs.partition_bucket IS 'Bucket of the partition key.';
COMMENT ON COLUMN holdfast.jobs.ordered IS 'Whether the job is in a lane of an ordered queue.';
COMMENT ON COLUMN holdfast.jobs.status IS 'Where the job is in its life; archived jobs are completed.';
COMMENT ON COLUMN holdfast.jobs.attempts IS 'Claims so far, less those given back.';
COMMENT ON COLUMN holdfast.jobs.max_attempts IS 'How many attempts the job has.';
COMMENT ON COLUMN holdfast.jobs.lease_generation IS 'The fence token of the latest claim.';
COMMENT ON COLUMN holdfast.jobs.claimed_by IS 'The worker that holds the claim, while processing.';
COMMENT ON COLUMN holdfast.jobs.claimed_at IS 'When the current claim began, while processing.';
COMMENT ON COLUMN holdfast.jobs.lease_expires_at IS 'When the current claim may be reclaimed, while processing.';
COMMENT ON COLUMN holdfast.jobs.available_at IS 'The job is not claimed before this time.';
COMMENT ON COLUMN holdfast.jobs.created_at IS 'When the job was enqueued.';
COMMENT ON COLUMN holdfast.jobs.completed_at IS 'When the job was completed.';
COMMENT ON COLUMN holdfast.jobs.finished_at IS 'When the job was completed, failed or dead-lettered.';
COMMENT ON COLUMN holdfast.jobs.finished_by IS 'The worker whose result finished the job.';
COMMENT ON COLUMN holdfast.jobs.idempotency_key IS 'The key the job was enqueued once under, if any.';
COMMENT ON COLUMN holdfast.jobs.last_error IS 'What the latest failed attempt said.';
COMMENT ON COLUMN holdfast.jobs.headers IS 'Facts that travel beside the payload.';
COMMENT ON COLUMN holdfast.jobs.payload IS 'What the handler gets.';
COMMENT ON COLUMN holdfast.jobs.archived IS 'Whether the row stands in the archive.';

UPDATE holdfast.meta SET schema_version = 4, oldest_binary = 4;

-- +goose Down
UPDATE holdfast.meta SET schema_version = 3, oldest_binary = 3;
DROP VIEW holdfast.jobs;
DROP FUNCTION holdfast.drop_archive_days();
DROP FUNCTION holdfast.create_archive_days(integer);
DROP TABLE holdfast.inbox_archive;
