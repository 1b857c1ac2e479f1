-- +goose Up
-- Why: workers, operators and housekeeping must agree on who is alive.
-- Locks: none, the tables are new.
CREATE TYPE holdfast.worker_status AS ENUM (
    'alive',
    'draining',
    'dead'
);
COMMENT ON TYPE holdfast.worker_status IS 'A worker is alive, then perhaps draining, then dead; it never goes back.';

-- No index on last_seen_at: the table has a row a worker, and without one every heartbeat
-- is a heap-only update.
CREATE TABLE holdfast.workers (
    id text COLLATE "C" NOT NULL,
    status holdfast.worker_status NOT NULL DEFAULT 'alive',
    queues text[] COLLATE "C" NOT NULL,
    started_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    last_seen_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    metadata jsonb NOT NULL DEFAULT '{}',
    CONSTRAINT workers_pkey PRIMARY KEY (id),
    CONSTRAINT workers_id_length CHECK (char_length(id) BETWEEN 1 AND 200)
)
WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 500);
COMMENT ON TABLE holdfast.workers IS 'The worker registry: who serves which queues and when each was last seen.';
COMMENT ON COLUMN holdfast.workers.id IS 'Host, process id and 64 random bits: host and process id alone repeat in containers.';
COMMENT ON COLUMN holdfast.workers.status IS 'Set by the worker and by operators; a heartbeat never changes it.';
COMMENT ON COLUMN holdfast.workers.queues IS 'The queues the worker serves.';
COMMENT ON COLUMN holdfast.workers.started_at IS 'When the worker joined.';
COMMENT ON COLUMN holdfast.workers.last_seen_at IS 'The latest heartbeat, by the database''s clock.';
COMMENT ON COLUMN holdfast.workers.metadata IS 'What the worker says of itself: version, host, concurrency.';

CREATE TABLE holdfast.wake (
    queue text COLLATE "C" NOT NULL,
    armed_at timestamptz,
    CONSTRAINT wake_pkey PRIMARY KEY (queue),
    CONSTRAINT wake_queue_length CHECK (char_length(queue) BETWEEN 1 AND 200)
)
WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 500);
COMMENT ON TABLE holdfast.wake IS 'Whether an enqueue to the queue rings the doorbell. A narrow table of its own: every enqueue reads it.';
COMMENT ON COLUMN holdfast.wake.queue IS 'The queue.';
COMMENT ON COLUMN holdfast.wake.armed_at IS 'Since when some worker wants to be woken; null while its workers are saturated.';

UPDATE holdfast.meta SET schema_version = 5, oldest_binary = 5;

-- +goose Down
UPDATE holdfast.meta SET schema_version = 4, oldest_binary = 4;
DROP TABLE holdfast.wake;
DROP TABLE holdfast.workers;
DROP TYPE holdfast.worker_status;
