-- +goose Up
-- Why: what holds for every job of a queue stands in one row that an operator can change.
-- Locks: none, the tables are new.
CREATE TYPE holdfast.retention_mode AS ENUM (
    'archive',
    'keep',
    'drop'
);
COMMENT ON TYPE holdfast.retention_mode IS 'What a completion does with the row: move it to the archive, keep it as completed for a while, or delete it.';

CREATE TABLE holdfast.queues (
    name text COLLATE "C" NOT NULL,
    ordered boolean NOT NULL DEFAULT false,
    paused boolean NOT NULL DEFAULT false,
    max_attempts integer NOT NULL DEFAULT 5,
    retention_mode holdfast.retention_mode NOT NULL DEFAULT 'archive',
    keep_for interval NOT NULL DEFAULT '24 hours',
    retention interval NOT NULL DEFAULT '7 days',
    dedupe_window interval NOT NULL DEFAULT '7 days',
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    CONSTRAINT queues_pkey PRIMARY KEY (name),
    CONSTRAINT queues_name_length CHECK (char_length(name) BETWEEN 1 AND 200),
    CONSTRAINT queues_max_attempts_positive CHECK (max_attempts >= 1),
    CONSTRAINT queues_keep_within_retention CHECK (keep_for >= interval '0' AND keep_for <= retention),
    CONSTRAINT queues_dedupe_window_positive CHECK (dedupe_window > interval '0')
);
COMMENT ON TABLE holdfast.queues IS 'One row a queue: the settings that all of its jobs share. The first enqueue to an unknown name creates the queue with the defaults.';
COMMENT ON COLUMN holdfast.queues.name IS 'The name that producers enqueue to and workers serve, 1 to 200 characters.';
COMMENT ON COLUMN holdfast.queues.ordered IS 'Whether the jobs of one partition key run one at a time in seq order. Fixed once the queue has jobs: it is stamped on each of them.';
COMMENT ON COLUMN holdfast.queues.paused IS 'While true no job of the queue is claimed; claimed jobs run on.';
COMMENT ON COLUMN holdfast.queues.max_attempts IS 'How many claims a job gets unless its enqueue says otherwise.';
COMMENT ON COLUMN holdfast.queues.retention_mode IS 'What a completion does with the row.';
COMMENT ON COLUMN holdfast.queues.keep_for IS 'In mode keep: how long a completed row stays in the inbox before housekeeping archives it.';
COMMENT ON COLUMN holdfast.queues.retention IS 'How long a completed job can be found at least. Archive days go when the longest retention of any queue has passed.';
COMMENT ON COLUMN holdfast.queues.dedupe_window IS 'How long an idempotency key stays taken, counted from the later of the enqueue and the time the job may first run.';
COMMENT ON COLUMN holdfast.queues.created_at IS 'When the queue was first named.';
INSERT INTO holdfast.queues (name) VALUES ('default');

UPDATE holdfast.meta SET schema_version = 2, oldest_binary = 2;

-- +goose Down
UPDATE holdfast.meta SET schema_version = 1, oldest_binary = 1;
DROP TABLE holdfast.queues;
DROP TYPE holdfast.retention_mode;
