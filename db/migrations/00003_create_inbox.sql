-- +goose Up
-- Why: a row here is a promise; everything else exists to keep it.
-- Locks: none, the tables are new.
CREATE SEQUENCE holdfast.inbox_seq AS bigint CACHE 1;
COMMENT ON SEQUENCE holdfast.inbox_seq IS 'Numbers jobs in enqueue order. CACHE 1: a cached block would break the order between sessions.';

CREATE SEQUENCE holdfast.generation_seq AS bigint MAXVALUE 1099511627775 CACHE 1;
COMMENT ON SEQUENCE holdfast.generation_seq IS 'The low 40 bits of every lease generation. One sequence for all jobs, so that tokens of different jobs can be compared; CACHE 1, so that a later claim has the larger one.';

CREATE TABLE holdfast.inbox (
    id uuid NOT NULL,
    seq bigint NOT NULL DEFAULT nextval('holdfast.inbox_seq'),
    lease_generation bigint NOT NULL DEFAULT 0,
    available_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    claimed_at timestamptz,
    lease_expires_at timestamptz,
    completed_at timestamptz,
    finished_at timestamptz,
    partition_bucket integer NOT NULL,
    attempts integer NOT NULL DEFAULT 0,
    max_attempts integer NOT NULL DEFAULT 5,
    status holdfast.inbox_status NOT NULL DEFAULT 'pending',
    ordered boolean NOT NULL DEFAULT false,
    queue text COLLATE "C" NOT NULL,
    kind text COLLATE "C" NOT NULL,
    partition_key text COLLATE "C" NOT NULL,
    claimed_by text COLLATE "C",
    finished_by text COLLATE "C",
    idempotency_key text COLLATE "C",
    last_error text,
    headers jsonb,
    payload jsonb NOT NULL,
    -- A claim adds an entry for its row to a page that is otherwise full: half of each page is
    -- left free for that, or claims would spend a seventh of their time on making room.
    CONSTRAINT inbox_pkey PRIMARY KEY (id) WITH (fillfactor = 50),
    CONSTRAINT inbox_bucket_in_range CHECK (partition_bucket BETWEEN 0 AND 16383),
    CONSTRAINT inbox_attempts_in_range CHECK (attempts >= 0 AND max_attempts >= 1),
    CONSTRAINT inbox_queue_length CHECK (char_length(queue) BETWEEN 1 AND 200),
    CONSTRAINT inbox_kind_length CHECK (char_length(kind) BETWEEN 1 AND 200),
    CONSTRAINT inbox_partition_key_length CHECK (char_length(partition_key) BETWEEN 1 AND 200),
    CONSTRAINT inbox_idempotency_key_length CHECK (char_length(idempotency_key) BETWEEN 1 AND 200),
    CONSTRAINT inbox_payload_size CHECK (pg_column_size(payload) <= 262144),
    CONSTRAINT inbox_headers_size CHECK (pg_column_size(headers) <= 8192),
    CONSTRAINT inbox_claim_is_whole CHECK (
        num_nonnulls(claimed_by, claimed_at, lease_expires_at) = CASE WHEN status = 'processing' THEN 3 ELSE 0 END
    ),
    CONSTRAINT inbox_completed_has_time CHECK ((status = 'completed') = (completed_at IS NOT NULL)),
    CONSTRAINT inbox_finished_has_time CHECK ((status IN ('completed', 'failed', 'dead_letter')) = (finished_at IS NOT NULL))
)
WITH (
    fillfactor = 85,
    autovacuum_vacuum_scale_factor = 0.01,
    autovacuum_vacuum_threshold = 1000,
    autovacuum_analyze_scale_factor = 0.02,
    autovacuum_vacuum_cost_delay = 0
);
COMMENT ON TABLE holdfast.inbox IS 'Jobs that are not finished, and finished ones that somebody may still want to see or redrive. Columns are ordered by width, so that none is padded.';
COMMENT ON COLUMN holdfast.inbox.id IS 'UUIDv7 whose low 14 bits hold partition_bucket; made by holdfast.new_job_id.';
COMMENT ON COLUMN holdfast.inbox.seq IS 'Enqueue order. created_at cannot tell it: transactions overlap.';
COMMENT ON COLUMN holdfast.inbox.lease_generation IS 'The fence token of the latest claim: epoch * 2^40 + a number from generation_seq. Only grows; 0 until the first claim.';
COMMENT ON COLUMN holdfast.inbox.available_at IS 'The job is not claimed before this time.';
COMMENT ON COLUMN holdfast.inbox.created_at IS 'When the row was inserted; its transaction may have committed later.';
COMMENT ON COLUMN holdfast.inbox.claimed_at IS 'When the current claim began; null unless processing.';
COMMENT ON COLUMN holdfast.inbox.lease_expires_at IS 'The current claim may be reclaimed after this time; null unless processing. In no index, so that a renewal can be a heap-only update.';
COMMENT ON COLUMN holdfast.inbox.completed_at IS 'When the job was completed; null otherwise.';
COMMENT ON COLUMN holdfast.inbox.finished_at IS 'When the job was completed, failed or dead-lettered; null otherwise.';
COMMENT ON COLUMN holdfast.inbox.partition_bucket IS 'Bucket of the partition key, by holdfast.bucket_of. Every statement that addresses a row carries it beside the id.';
COMMENT ON COLUMN holdfast.inbox.attempts IS 'Claims so far, less those given back by a snooze or a release.';
COMMENT ON COLUMN holdfast.inbox.max_attempts IS 'The job is dead-lettered when its attempts-th claim fails and attempts has reached this.';
COMMENT ON COLUMN holdfast.inbox.status IS 'Where the job is in its life.';
COMMENT ON COLUMN holdfast.inbox.ordered IS 'Whether its queue was ordered when the job was enqueued; ordered jobs are claimed lane by lane.';
COMMENT ON COLUMN holdfast.inbox.queue IS 'The queue the job is in.';
COMMENT ON COLUMN holdfast.inbox.kind IS 'Names the handler that runs the job.';
COMMENT ON COLUMN holdfast.inbox.partition_key IS 'What the job belongs to: the unit of order and affinity. Without one at enqueue: the idempotency key, else a random key.';
COMMENT ON COLUMN holdfast.inbox.claimed_by IS 'The worker that holds the claim; null unless processing. No foreign key: it would lock the worker''s row once per claimed job.';
COMMENT ON COLUMN holdfast.inbox.finished_by IS 'The worker whose result finished the job, or whose lease ran out at the last attempt.';
COMMENT ON COLUMN holdfast.inbox.idempotency_key IS 'The key the job was enqueued once under, if any; holdfast.idempotency_keys holds it unique.';
COMMENT ON COLUMN holdfast.inbox.last_error IS 'What the latest failed attempt said: valid UTF-8, at most 8 KB of it.';
COMMENT ON COLUMN holdfast.inbox.headers IS 'Facts that travel beside the payload, such as a trace context; at most 8 KB.';
COMMENT ON COLUMN holdfast.inbox.payload IS 'What the handler gets; at most 256 KB, best under 2 KB.';

CREATE INDEX inbox_claim_idx
    ON holdfast.inbox (queue, partition_bucket, available_at, seq)
    WHERE status = 'pending' AND NOT ordered;
COMMENT ON INDEX holdfast.inbox_claim_idx IS 'The next due jobs of a bucket, for ClaimJobs.';

CREATE INDEX inbox_lane_idx
    ON holdfast.inbox (queue, partition_bucket, partition_key, seq)
    WHERE status = 'pending' AND ordered;
COMMENT ON INDEX holdfast.inbox_lane_idx IS 'The head of each lane of an ordered queue.';

CREATE UNIQUE INDEX inbox_lane_processing_idx
    ON holdfast.inbox (queue, partition_bucket, partition_key)
    WHERE status = 'processing' AND ordered;
COMMENT ON INDEX holdfast.inbox_lane_processing_idx IS 'At most one claim a lane: turns a mistake in the claim of an ordered queue into an error.';

CREATE INDEX inbox_processing_idx
    ON holdfast.inbox (lease_generation)
    WHERE claimed_at IS NOT NULL;
COMMENT ON INDEX holdfast.inbox_processing_idx IS 'The work in flight, oldest claim first, for ReclaimExpiredLeases and ListHeldClaims. By generation, which only grows, so that an entry is added at the end. Processing jobs are those with claimed_at; a statement that names the state does not get to this index.';

CREATE INDEX inbox_completed_idx
    ON holdfast.inbox (completed_at, id)
    WHERE status = 'completed';
COMMENT ON INDEX holdfast.inbox_completed_idx IS 'Completed rows of queues in mode keep, oldest first, for ArchiveCompletedJobs.';

CREATE INDEX inbox_dead_idx
    ON holdfast.inbox (queue, kind, finished_at, id)
    WHERE status IN ('failed', 'dead_letter');
COMMENT ON INDEX holdfast.inbox_dead_idx IS 'Failed and dead-lettered jobs by queue and kind, for the support queries and redrive.';

CREATE TABLE holdfast.idempotency_keys (
    queue text COLLATE "C" NOT NULL,
    key text COLLATE "C" NOT NULL,
    job_id uuid NOT NULL,
    expires_at timestamptz NOT NULL,
    CONSTRAINT idempotency_keys_pkey PRIMARY KEY (queue, key),
    CONSTRAINT idempotency_keys_queue_length CHECK (char_length(queue) BETWEEN 1 AND 200),
    CONSTRAINT idempotency_keys_key_length CHECK (char_length(key) BETWEEN 1 AND 200)
);
COMMENT ON TABLE holdfast.idempotency_keys IS 'Which job a key stands for. A table of its own, so that a key stays taken for its whole window, also after its job has left the inbox.';
COMMENT ON COLUMN holdfast.idempotency_keys.queue IS 'The queue within which the key is unique.';
COMMENT ON COLUMN holdfast.idempotency_keys.key IS 'What the producer calls the job, 1 to 200 characters.';
COMMENT ON COLUMN holdfast.idempotency_keys.job_id IS 'The job that the first enqueue made; every later one is told this id.';
COMMENT ON COLUMN holdfast.idempotency_keys.expires_at IS 'The key may be used again after this time.';

CREATE INDEX idempotency_keys_expiry_idx ON holdfast.idempotency_keys USING brin (expires_at);
COMMENT ON INDEX holdfast.idempotency_keys_expiry_idx IS 'Finds expired keys at one byte a key, for DeleteExpiredKeys.';

UPDATE holdfast.meta SET schema_version = 3, oldest_binary = 3;

-- +goose Down
UPDATE holdfast.meta SET schema_version = 2, oldest_binary = 2;
DROP TABLE holdfast.idempotency_keys;
DROP TABLE holdfast.inbox;
DROP SEQUENCE holdfast.generation_seq;
DROP SEQUENCE holdfast.inbox_seq;
