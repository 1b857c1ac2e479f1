-- +goose Up
-- Why: what is unusual in the life of a job leaves a line, so that a person can read later what
-- became of it, and who did what. A job that is claimed and completed leaves none, and costs none.
-- Locks: none, the table is new.
CREATE TYPE holdfast.event_kind AS ENUM (
    'retried',
    'released',
    'fenced',
    'failed',
    'dead_lettered',
    'reclaimed',
    'lease_lost',
    'redriven',
    'cancelled',
    'purged',
    'queue_changed',
    'queue_paused',
    'queue_resumed',
    'worker_drained',
    'worker_evicted',
    'epoch_advanced'
);
COMMENT ON TYPE holdfast.event_kind IS 'What happened: to a job by a worker or by housekeeping (retried to lease_lost) or by a person (released, redriven, cancelled, purged), or to a queue, a worker or the installation.';

CREATE SEQUENCE holdfast.events_seq AS bigint CACHE 1;
COMMENT ON SEQUENCE holdfast.events_seq IS 'Numbers events in the order in which they were written.';

CREATE TABLE holdfast.events (
    id bigint NOT NULL DEFAULT nextval('holdfast.events_seq'),
    at timestamptz NOT NULL DEFAULT clock_timestamp(),
    job_id uuid,
    lease_generation bigint,
    attempt integer,
    event holdfast.event_kind NOT NULL,
    queue text COLLATE "C",
    kind text COLLATE "C",
    partition_key text COLLATE "C",
    worker_id text COLLATE "C",
    actor text COLLATE "C",
    detail text,
    CONSTRAINT events_pkey PRIMARY KEY (id),
    CONSTRAINT events_actor_length CHECK (char_length(actor) BETWEEN 1 AND 200),
    CONSTRAINT events_detail_length CHECK (octet_length(detail) <= 8192)
);
COMMENT ON TABLE holdfast.events IS 'What was unusual, for 30 days: the story of a job that did not go straight, and what people did. No row for a job that was claimed and completed.';
COMMENT ON COLUMN holdfast.events.id IS 'The order of events, also within one instant.';
COMMENT ON COLUMN holdfast.events.at IS 'When it was written; its transaction may have committed later.';
COMMENT ON COLUMN holdfast.events.job_id IS 'The job it happened to; null for what happened to a queue, a worker or the installation. The job may be gone.';
COMMENT ON COLUMN holdfast.events.lease_generation IS 'The fence token of the claim that it ended, or was refused to; null when no claim was concerned.';
COMMENT ON COLUMN holdfast.events.attempt IS 'Which attempt of the job that was; null when no claim was concerned, or when nobody knows any more.';
COMMENT ON COLUMN holdfast.events.event IS 'What happened.';
COMMENT ON COLUMN holdfast.events.queue IS 'The queue it happened in.';
COMMENT ON COLUMN holdfast.events.kind IS 'The kind of the job.';
COMMENT ON COLUMN holdfast.events.partition_key IS 'The partition key of the job.';
COMMENT ON COLUMN holdfast.events.worker_id IS 'The worker that held the claim, or that it happened to.';
COMMENT ON COLUMN holdfast.events.actor IS 'The person or program that ordered it; null for what workers and housekeeping do by themselves.';
COMMENT ON COLUMN holdfast.events.detail IS 'What a handler''s error or a person''s reason said; at most 8 KB.';

CREATE INDEX events_job_idx ON holdfast.events (job_id, id) WHERE job_id IS NOT NULL;
COMMENT ON INDEX holdfast.events_job_idx IS 'The story of a job, in order.';

CREATE UNIQUE INDEX events_lost_idx ON holdfast.events (job_id, lease_generation, worker_id) WHERE event = 'lease_lost';
COMMENT ON INDEX holdfast.events_lost_idx IS 'A worker is told more than once that a claim is over: by a renewal, and by the settlement that follows. It is noted once.';

-- What a settlement says must never be refused for the sake of the row that tells of it.
-- +goose StatementBegin
CREATE FUNCTION holdfast.event_detail(said text) RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE
AS $$
    SELECT CASE WHEN octet_length(said) <= 8192 THEN said ELSE left(said, 2048) END
$$;
-- +goose StatementEnd
COMMENT ON FUNCTION holdfast.event_detail(text) IS 'What was said, or the first 2,048 characters of what has more than 8 KB: whatever they are, they have no more.';

UPDATE holdfast.meta SET schema_version = 9, oldest_binary = 7;

-- +goose Down
UPDATE holdfast.meta SET schema_version = 8, oldest_binary = 7;
DROP FUNCTION holdfast.event_detail(text);
DROP TABLE holdfast.events;
DROP SEQUENCE holdfast.events_seq;
DROP TYPE holdfast.event_kind;
