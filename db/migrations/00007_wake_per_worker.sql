-- +goose Up
-- Why: whether an enqueue rings depends on each worker: one that is saturated must not turn
-- the bell off for another that is idle. Who wants to be woken has a row, and nobody's row
-- is written by anybody else. A queue can also be told never to ring.
-- Locks: holdfast.wake and holdfast.queues, strongly, for an instant; both are small.
DROP TABLE holdfast.wake;

CREATE TABLE holdfast.wake (
    queue text COLLATE "C" NOT NULL,
    worker_id text COLLATE "C" NOT NULL,
    armed_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    CONSTRAINT wake_pkey PRIMARY KEY (queue, worker_id),
    CONSTRAINT wake_queue_length CHECK (char_length(queue) BETWEEN 1 AND 200),
    CONSTRAINT wake_worker_id_length CHECK (char_length(worker_id) BETWEEN 1 AND 200)
)
WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 500);
COMMENT ON TABLE holdfast.wake IS 'Which workers want to be woken by an enqueue, one row each: all but the saturated ones. A narrow table of its own, because every enqueue reads it.';
COMMENT ON COLUMN holdfast.wake.queue IS 'The queue whose enqueues ring.';
COMMENT ON COLUMN holdfast.wake.worker_id IS 'The worker that waits.';
COMMENT ON COLUMN holdfast.wake.armed_at IS 'Since when it waits.';

ALTER TABLE holdfast.queues ADD COLUMN ring boolean NOT NULL DEFAULT true;
COMMENT ON COLUMN holdfast.queues.ring IS 'Whether an enqueue may wake a worker by NOTIFY. Its commit then takes a lock that all notifying commits share, and cannot be prepared for two-phase commit; without it workers find the job by polling.';

UPDATE holdfast.meta SET schema_version = 7, oldest_binary = 7;

-- +goose Down
UPDATE holdfast.meta SET schema_version = 6, oldest_binary = 6;
ALTER TABLE holdfast.queues DROP COLUMN ring;
DROP TABLE holdfast.wake;

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
