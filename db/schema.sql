-- The schema holdfast as the migrations leave it, for reviewers. "make generate" reads it
-- back from a migrated database; do not edit it. What depends on the day or on goose is left
-- out: the archive's day partitions and the table goose_version. Privileges are those of
-- PUBLIC only: the rest depends on who installed.

CREATE SCHEMA holdfast;
COMMENT ON SCHEMA holdfast IS 'Holdfast: durable work in Postgres. Shape in db/migrations, statements in queries.';

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

CREATE TYPE holdfast.inbox_status AS ENUM (
    'pending',
    'processing',
    'completed',
    'failed',
    'dead_letter'
);
COMMENT ON TYPE holdfast.inbox_status IS 'Where a job is in its life. A job that waits for a retry is pending with a future available_at.';

CREATE TYPE holdfast.retention_mode AS ENUM (
    'archive',
    'keep',
    'drop'
);
COMMENT ON TYPE holdfast.retention_mode IS 'What a completion does with the row: move it to the archive, keep it as completed for a while, or delete it.';

CREATE TYPE holdfast.worker_status AS ENUM (
    'alive',
    'draining',
    'dead'
);
COMMENT ON TYPE holdfast.worker_status IS 'A worker is alive, then perhaps draining, then dead; it never goes back.';

CREATE SEQUENCE holdfast.events_seq AS bigint
    START WITH 1 INCREMENT BY 1 MINVALUE 1 MAXVALUE 9223372036854775807 CACHE 1;
COMMENT ON SEQUENCE holdfast.events_seq IS 'Numbers events in the order in which they were written.';

CREATE SEQUENCE holdfast.generation_seq AS bigint
    START WITH 1 INCREMENT BY 1 MINVALUE 1 MAXVALUE 1099511627775 CACHE 1;
COMMENT ON SEQUENCE holdfast.generation_seq IS 'The low 40 bits of every lease generation. One sequence for all jobs, so that tokens of different jobs can be compared; CACHE 1, so that a later claim has the larger one.';

CREATE SEQUENCE holdfast.inbox_seq AS bigint
    START WITH 1 INCREMENT BY 1 MINVALUE 1 MAXVALUE 9223372036854775807 CACHE 1;
COMMENT ON SEQUENCE holdfast.inbox_seq IS 'Numbers jobs in enqueue order. CACHE 1: a cached block would break the order between sessions.';

CREATE TABLE holdfast.events (
    id bigint NOT NULL DEFAULT nextval('holdfast.events_seq'::regclass),
    at timestamp with time zone NOT NULL DEFAULT clock_timestamp(),
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
    CONSTRAINT events_actor_length CHECK (char_length(actor) >= 1 AND char_length(actor) <= 200),
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

CREATE INDEX events_job_idx
    ON holdfast.events USING btree (job_id, id)
    WHERE job_id IS NOT NULL;
COMMENT ON INDEX holdfast.events_job_idx IS 'The story of a job, in order.';

CREATE UNIQUE INDEX events_lost_idx
    ON holdfast.events USING btree (job_id, lease_generation, worker_id)
    WHERE event = 'lease_lost'::holdfast.event_kind;
COMMENT ON INDEX holdfast.events_lost_idx IS 'A worker is told more than once that a claim is over: by a renewal, and by the settlement that follows. It is noted once.';

CREATE TABLE holdfast.fences (
    resource text COLLATE "C" NOT NULL,
    token bigint NOT NULL,
    touched_at timestamp with time zone NOT NULL DEFAULT clock_timestamp(),
    CONSTRAINT fences_pkey PRIMARY KEY (resource),
    CONSTRAINT fences_resource_length CHECK (char_length(resource) >= 1 AND char_length(resource) <= 200)
)
WITH (
    fillfactor = 70
);
COMMENT ON TABLE holdfast.fences IS 'The highest fence token that each guarded resource has seen. A lower one is refused.';
COMMENT ON COLUMN holdfast.fences.resource IS 'What is guarded, 1 to 200 characters.';
COMMENT ON COLUMN holdfast.fences.token IS 'The highest lease generation seen.';
COMMENT ON COLUMN holdfast.fences.touched_at IS 'When the resource was last guarded; housekeeping forgets those unused for long.';

CREATE TABLE holdfast.handled (
    scope text COLLATE "C" NOT NULL,
    key text COLLATE "C" NOT NULL,
    job_id uuid NOT NULL,
    handled_at timestamp with time zone NOT NULL DEFAULT clock_timestamp(),
    CONSTRAINT handled_pkey PRIMARY KEY (scope, key),
    CONSTRAINT handled_key_length CHECK (char_length(key) >= 1 AND char_length(key) <= 200),
    CONSTRAINT handled_scope_length CHECK (char_length(scope) >= 1 AND char_length(scope) <= 200)
);
COMMENT ON TABLE holdfast.handled IS 'Effects that were done: a handler inserts its mark in the transaction of the effect, and the second run finds it.';
COMMENT ON COLUMN holdfast.handled.scope IS 'The name of the effect, such as send_receipt.';
COMMENT ON COLUMN holdfast.handled.key IS 'What the effect was done for; the job''s id unless the handler knows better.';
COMMENT ON COLUMN holdfast.handled.job_id IS 'The job whose handler made the mark. The mark lives at least as long as the job is in the inbox.';
COMMENT ON COLUMN holdfast.handled.handled_at IS 'When the mark was made.';

CREATE INDEX handled_expiry_idx
    ON holdfast.handled USING brin (handled_at);
COMMENT ON INDEX holdfast.handled_expiry_idx IS 'Finds old marks, for DeleteOldMarks.';

CREATE TABLE holdfast.idempotency_keys (
    queue text COLLATE "C" NOT NULL,
    key text COLLATE "C" NOT NULL,
    job_id uuid NOT NULL,
    expires_at timestamp with time zone NOT NULL,
    CONSTRAINT idempotency_keys_pkey PRIMARY KEY (queue, key),
    CONSTRAINT idempotency_keys_key_length CHECK (char_length(key) >= 1 AND char_length(key) <= 200),
    CONSTRAINT idempotency_keys_queue_length CHECK (char_length(queue) >= 1 AND char_length(queue) <= 200)
);
COMMENT ON TABLE holdfast.idempotency_keys IS 'Which job a key stands for. A table of its own, so that a key stays taken for its whole window, also after its job has left the inbox.';
COMMENT ON COLUMN holdfast.idempotency_keys.queue IS 'The queue within which the key is unique.';
COMMENT ON COLUMN holdfast.idempotency_keys.key IS 'What the producer calls the job, 1 to 200 characters.';
COMMENT ON COLUMN holdfast.idempotency_keys.job_id IS 'The job that the first enqueue made; every later one is told this id.';
COMMENT ON COLUMN holdfast.idempotency_keys.expires_at IS 'The key may be used again after this time.';

CREATE INDEX idempotency_keys_expiry_idx
    ON holdfast.idempotency_keys USING brin (expires_at);
COMMENT ON INDEX holdfast.idempotency_keys_expiry_idx IS 'Finds expired keys at one byte a key, for DeleteExpiredKeys.';

CREATE TABLE holdfast.inbox (
    id uuid NOT NULL,
    seq bigint NOT NULL DEFAULT nextval('holdfast.inbox_seq'::regclass),
    lease_generation bigint NOT NULL DEFAULT 0,
    available_at timestamp with time zone NOT NULL DEFAULT clock_timestamp(),
    created_at timestamp with time zone NOT NULL DEFAULT clock_timestamp(),
    claimed_at timestamp with time zone,
    lease_expires_at timestamp with time zone,
    completed_at timestamp with time zone,
    finished_at timestamp with time zone,
    partition_bucket integer NOT NULL,
    attempts integer NOT NULL DEFAULT 0,
    max_attempts integer NOT NULL DEFAULT 5,
    status holdfast.inbox_status NOT NULL DEFAULT 'pending'::holdfast.inbox_status,
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
    CONSTRAINT inbox_pkey PRIMARY KEY (id),
    CONSTRAINT inbox_attempts_in_range CHECK (attempts >= 0 AND max_attempts >= 1),
    CONSTRAINT inbox_bucket_in_range CHECK (partition_bucket >= 0 AND partition_bucket <= 16383),
    CONSTRAINT inbox_claim_is_whole CHECK (num_nonnulls(claimed_by, claimed_at, lease_expires_at) =
    CASE
        WHEN status = 'processing'::holdfast.inbox_status THEN 3
        ELSE 0
    END),
    CONSTRAINT inbox_completed_has_time CHECK ((status = 'completed'::holdfast.inbox_status) = (completed_at IS NOT NULL)),
    CONSTRAINT inbox_finished_has_time CHECK ((status = ANY (ARRAY['completed'::holdfast.inbox_status, 'failed'::holdfast.inbox_status, 'dead_letter'::holdfast.inbox_status])) = (finished_at IS NOT NULL)),
    CONSTRAINT inbox_headers_size CHECK (pg_column_size(headers) <= 8192),
    CONSTRAINT inbox_idempotency_key_length CHECK (char_length(idempotency_key) >= 1 AND char_length(idempotency_key) <= 200),
    CONSTRAINT inbox_kind_length CHECK (char_length(kind) >= 1 AND char_length(kind) <= 200),
    CONSTRAINT inbox_partition_key_length CHECK (char_length(partition_key) >= 1 AND char_length(partition_key) <= 200),
    CONSTRAINT inbox_payload_size CHECK (pg_column_size(payload) <= 262144),
    CONSTRAINT inbox_queue_length CHECK (char_length(queue) >= 1 AND char_length(queue) <= 200)
)
WITH (
    autovacuum_analyze_scale_factor = 0.02,
    autovacuum_vacuum_cost_delay = 0,
    autovacuum_vacuum_scale_factor = 0.01,
    autovacuum_vacuum_threshold = 1000,
    fillfactor = 85
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
    ON holdfast.inbox USING btree (queue, partition_bucket, available_at, seq)
    WHERE status = 'pending'::holdfast.inbox_status AND NOT ordered;
COMMENT ON INDEX holdfast.inbox_claim_idx IS 'The next due jobs of a bucket, for ClaimJobs.';

CREATE INDEX inbox_completed_idx
    ON holdfast.inbox USING btree (completed_at, id)
    WHERE status = 'completed'::holdfast.inbox_status;
COMMENT ON INDEX holdfast.inbox_completed_idx IS 'Completed rows of queues in mode keep, oldest first, for ArchiveCompletedJobs.';

CREATE INDEX inbox_dead_idx
    ON holdfast.inbox USING btree (queue, kind, finished_at, id)
    WHERE status = ANY (ARRAY['failed'::holdfast.inbox_status, 'dead_letter'::holdfast.inbox_status]);
COMMENT ON INDEX holdfast.inbox_dead_idx IS 'Failed and dead-lettered jobs by queue and kind, for the support queries and redrive.';

CREATE INDEX inbox_dead_newest_idx
    ON holdfast.inbox USING btree (queue, status, finished_at, id)
    WHERE status = ANY (ARRAY['failed'::holdfast.inbox_status, 'dead_letter'::holdfast.inbox_status]);
COMMENT ON INDEX holdfast.inbox_dead_newest_idx IS 'Failed and dead-lettered jobs of a queue in the order in which they ended, for counts, lists and groups.';

CREATE INDEX inbox_lane_idx
    ON holdfast.inbox USING btree (queue, partition_bucket, partition_key, seq)
    WHERE status = 'pending'::holdfast.inbox_status AND ordered;
COMMENT ON INDEX holdfast.inbox_lane_idx IS 'The head of each lane of an ordered queue.';

CREATE UNIQUE INDEX inbox_lane_processing_idx
    ON holdfast.inbox USING btree (queue, partition_bucket, partition_key)
    WHERE status = 'processing'::holdfast.inbox_status AND ordered;
COMMENT ON INDEX holdfast.inbox_lane_processing_idx IS 'At most one claim a lane: turns a mistake in the claim of an ordered queue into an error.';

CREATE INDEX inbox_processing_idx
    ON holdfast.inbox USING btree (lease_generation)
    WHERE claimed_at IS NOT NULL;
COMMENT ON INDEX holdfast.inbox_processing_idx IS 'The work in flight, oldest claim first, for ReclaimExpiredLeases and ListHeldClaims. By generation, which only grows, so that an entry is added at the end. Processing jobs are those with claimed_at; a statement that names the state does not get to this index.';

CREATE INDEX inbox_retrying_idx
    ON holdfast.inbox USING btree (queue, available_at, id)
    WHERE status = 'pending'::holdfast.inbox_status AND attempts > 0;
COMMENT ON INDEX holdfast.inbox_retrying_idx IS 'Jobs that were tried and wait for another attempt, for counts and lists. A job has an entry only between a failed attempt and the next claim.';

CREATE TABLE holdfast.inbox_archive (
    id uuid NOT NULL,
    seq bigint NOT NULL,
    lease_generation bigint NOT NULL,
    available_at timestamp with time zone NOT NULL,
    created_at timestamp with time zone NOT NULL,
    completed_at timestamp with time zone NOT NULL,
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

CREATE INDEX inbox_archive_id_idx
    ON holdfast.inbox_archive USING btree (id);
COMMENT ON INDEX holdfast.inbox_archive_id_idx IS 'Finds one archived job, for GetJob. Not unique: a unique index would have to hold the day.';

CREATE TABLE holdfast.inbox_archive_default
    PARTITION OF holdfast.inbox_archive DEFAULT;
COMMENT ON TABLE holdfast.inbox_archive_default IS 'Takes completions of a day that has no partition, so that none fails for want of one. Empty while housekeeping runs.';

CREATE TABLE holdfast.meta (
    singleton boolean NOT NULL DEFAULT true,
    bucket_count integer NOT NULL DEFAULT 1024,
    epoch bigint NOT NULL DEFAULT 1,
    schema_version integer NOT NULL,
    oldest_binary integer NOT NULL,
    incarnation text COLLATE "C" NOT NULL,
    CONSTRAINT meta_pkey PRIMARY KEY (singleton),
    CONSTRAINT meta_bucket_count_in_range CHECK (bucket_count >= 1 AND bucket_count <= 16384),
    CONSTRAINT meta_epoch_in_range CHECK (epoch >= 1 AND epoch <= 4194303),
    CONSTRAINT meta_has_one_row CHECK (singleton)
);
COMMENT ON TABLE holdfast.meta IS 'Facts about this installation, in one row.';
COMMENT ON COLUMN holdfast.meta.singleton IS 'Always true: the primary key that keeps the table at one row.';
COMMENT ON COLUMN holdfast.meta.bucket_count IS 'How many buckets partition keys hash into. Fixed while the inbox holds jobs: a job keeps the bucket it was enqueued with.';
COMMENT ON COLUMN holdfast.meta.epoch IS 'The high part of every lease generation. It is raised by itself when the incarnation is another, so that no token is given out twice.';
COMMENT ON COLUMN holdfast.meta.schema_version IS 'The migration this schema stands at. A program that needs a later one refuses to start.';
COMMENT ON COLUMN holdfast.meta.oldest_binary IS 'The lowest schema version that a program may have been built for and still run here.';
COMMENT ON COLUMN holdfast.meta.incarnation IS 'The incarnation of the database that the epoch holds for. No claim is made under another: the first one raises the epoch.';

CREATE TABLE holdfast.queues (
    name text COLLATE "C" NOT NULL,
    ordered boolean NOT NULL DEFAULT false,
    paused boolean NOT NULL DEFAULT false,
    max_attempts integer NOT NULL DEFAULT 5,
    retention_mode holdfast.retention_mode NOT NULL DEFAULT 'archive'::holdfast.retention_mode,
    keep_for interval NOT NULL DEFAULT '24:00:00'::interval,
    retention interval NOT NULL DEFAULT '7 days'::interval,
    dedupe_window interval NOT NULL DEFAULT '7 days'::interval,
    created_at timestamp with time zone NOT NULL DEFAULT clock_timestamp(),
    ring boolean NOT NULL DEFAULT true,
    CONSTRAINT queues_pkey PRIMARY KEY (name),
    CONSTRAINT queues_dedupe_window_positive CHECK (dedupe_window > '00:00:00'::interval),
    CONSTRAINT queues_keep_within_retention CHECK (keep_for >= '00:00:00'::interval AND keep_for <= retention),
    CONSTRAINT queues_max_attempts_positive CHECK (max_attempts >= 1),
    CONSTRAINT queues_name_length CHECK (char_length(name) >= 1 AND char_length(name) <= 200)
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
COMMENT ON COLUMN holdfast.queues.ring IS 'Whether an enqueue may wake a worker by NOTIFY. Its commit then takes a lock that all notifying commits share, and cannot be prepared for two-phase commit; without it workers find the job by polling.';

CREATE TABLE holdfast.roles (
    name text COLLATE "C" NOT NULL,
    duty text COLLATE "C" NOT NULL,
    CONSTRAINT roles_pkey PRIMARY KEY (name),
    CONSTRAINT roles_duty_known CHECK (duty = ANY (ARRAY['producer'::text, 'worker'::text, 'operator'::text, 'viewer'::text]))
);
COMMENT ON TABLE holdfast.roles IS 'Which role of the server has which duty here, so that a migration can grant what the duty came to need.';
COMMENT ON COLUMN holdfast.roles.name IS 'The role. It may be gone: roles belong to the server, not to the database.';
COMMENT ON COLUMN holdfast.roles.duty IS 'What its members do: producer, worker, operator or viewer.';

CREATE TABLE holdfast.wake (
    queue text COLLATE "C" NOT NULL,
    worker_id text COLLATE "C" NOT NULL,
    armed_at timestamp with time zone NOT NULL DEFAULT clock_timestamp(),
    CONSTRAINT wake_pkey PRIMARY KEY (queue, worker_id),
    CONSTRAINT wake_queue_length CHECK (char_length(queue) >= 1 AND char_length(queue) <= 200),
    CONSTRAINT wake_worker_id_length CHECK (char_length(worker_id) >= 1 AND char_length(worker_id) <= 200)
)
WITH (
    autovacuum_vacuum_scale_factor = 0,
    autovacuum_vacuum_threshold = 500
);
COMMENT ON TABLE holdfast.wake IS 'Which workers want to be woken by an enqueue, one row each: all but the saturated ones. A narrow table of its own, because every enqueue reads it.';
COMMENT ON COLUMN holdfast.wake.queue IS 'The queue whose enqueues ring.';
COMMENT ON COLUMN holdfast.wake.worker_id IS 'The worker that waits.';
COMMENT ON COLUMN holdfast.wake.armed_at IS 'Since when it waits.';

CREATE TABLE holdfast.workers (
    id text COLLATE "C" NOT NULL,
    status holdfast.worker_status NOT NULL DEFAULT 'alive'::holdfast.worker_status,
    queues text[] COLLATE "C" NOT NULL,
    started_at timestamp with time zone NOT NULL DEFAULT clock_timestamp(),
    last_seen_at timestamp with time zone NOT NULL DEFAULT clock_timestamp(),
    metadata jsonb NOT NULL DEFAULT '{}'::jsonb,
    CONSTRAINT workers_pkey PRIMARY KEY (id),
    CONSTRAINT workers_id_length CHECK (char_length(id) >= 1 AND char_length(id) <= 200)
)
WITH (
    autovacuum_vacuum_scale_factor = 0,
    autovacuum_vacuum_threshold = 500,
    fillfactor = 50
);
COMMENT ON TABLE holdfast.workers IS 'The worker registry: who serves which queues and when each was last seen.';
COMMENT ON COLUMN holdfast.workers.id IS 'Host, process id and 64 random bits: host and process id alone repeat in containers.';
COMMENT ON COLUMN holdfast.workers.status IS 'Set by the worker and by operators; a heartbeat never changes it.';
COMMENT ON COLUMN holdfast.workers.queues IS 'The queues the worker serves.';
COMMENT ON COLUMN holdfast.workers.started_at IS 'When the worker joined.';
COMMENT ON COLUMN holdfast.workers.last_seen_at IS 'The latest heartbeat, by the database''s clock.';
COMMENT ON COLUMN holdfast.workers.metadata IS 'What the worker says of itself: version, host, concurrency.';

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
    NULL::timestamp with time zone AS claimed_at,
    NULL::timestamp with time zone AS lease_expires_at,
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

CREATE FUNCTION holdfast.backoff(attempts integer)
 RETURNS interval
 LANGUAGE sql
 PARALLEL SAFE STRICT
AS $function$
    SELECT least(power(2, least(attempts, 12)), 3600) * (0.8 + 0.4 * random()) * interval '1 second'
$function$;
COMMENT ON FUNCTION holdfast.backoff(integer) IS 'How long a job waits after its attempts-th claim ended badly: 2^attempts seconds, one hour at most, give or take 20 percent. domain.Backoff follows the same rule.';

CREATE FUNCTION holdfast.bucket_of(partition_key text, bucket_count integer)
 RETURNS integer
 LANGUAGE sql
 STABLE PARALLEL SAFE STRICT
AS $function$
    SELECT ('x' || left(encode(sha256(convert_to(partition_key, 'UTF8')), 'hex'), 6))::bit(24)::integer % bucket_count
$function$;
COMMENT ON FUNCTION holdfast.bucket_of(text,integer) IS 'The bucket of a partition key: the first 24 bits of its SHA-256, modulo the bucket count. Frozen; domain.BucketOf computes the same.';

CREATE FUNCTION holdfast.create_archive_days(days_ahead integer)
 RETURNS integer
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'pg_catalog', 'holdfast', 'pg_temp'
 SET lock_timeout TO '100ms'
AS $function$
DECLARE
    today date := (now() AT TIME ZONE 'UTC')::date;
    day date;
    partition_name text;
    created integer := 0;
BEGIN
    IF days_ahead IS NULL OR days_ahead NOT BETWEEN 0 AND 366 THEN
        RAISE EXCEPTION 'create_archive_days: days_ahead: % is not between 0 and 366', coalesce(days_ahead::text, 'NULL')
            USING ERRCODE = 'invalid_parameter_value', COLUMN = 'days_ahead';
    END IF;
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
$function$;
COMMENT ON FUNCTION holdfast.create_archive_days(integer) IS 'Makes the archive partitions that are missing from today (UTC) to so many days ahead, and tells how many it made; 0 also when a reader holds the default partition. Runs with its owner''s rights: a worker needs no DDL.';
REVOKE ALL ON FUNCTION holdfast.create_archive_days(integer) FROM PUBLIC;

CREATE FUNCTION holdfast.create_roles(prefix text)
 RETURNS integer
 LANGUAGE plpgsql
 SET search_path TO 'pg_catalog', 'holdfast', 'pg_temp'
AS $function$
DECLARE
    known_duty text;
    created integer := 0;
BEGIN
    -- A longer name would be cut short.
    IF prefix IS NULL OR octet_length(prefix) NOT BETWEEN 1 AND 54 THEN
        RAISE EXCEPTION 'holdfast.create_roles: prefix: has % bytes, must have 1 to 54', coalesce(octet_length(prefix), 0)
            USING ERRCODE = 'invalid_parameter_value', COLUMN = 'prefix';
    END IF;
    FOREACH known_duty IN ARRAY ARRAY['producer', 'worker', 'operator', 'viewer'] LOOP
        BEGIN
            EXECUTE format('CREATE ROLE %I NOLOGIN', prefix || '_' || known_duty);
            created := created + 1;
        EXCEPTION
            WHEN duplicate_object OR unique_violation THEN
                NULL;
        END;
        PERFORM holdfast.grant_role(known_duty, prefix || '_' || known_duty);
    END LOOP;
    RETURN created;
END
$function$;
COMMENT ON FUNCTION holdfast.create_roles(text) IS 'Makes the roles PREFIX_producer, PREFIX_worker, PREFIX_operator and PREFIX_viewer, which cannot log in, unless they exist, and grants each its duty. Tells how many it made. Needs the right to create roles.';
REVOKE ALL ON FUNCTION holdfast.create_roles(text) FROM PUBLIC;

CREATE FUNCTION holdfast.drop_archive_days()
 RETURNS integer
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'pg_catalog', 'holdfast', 'pg_temp'
 SET lock_timeout TO '100ms'
AS $function$
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
$function$;
COMMENT ON FUNCTION holdfast.drop_archive_days() IS 'Drops the archive days that are older than the longest retention of any queue, and tells how many; 0 also when a reader holds the archive. Runs with its owner''s rights.';
REVOKE ALL ON FUNCTION holdfast.drop_archive_days() FROM PUBLIC;

CREATE FUNCTION holdfast.duty_privileges()
 RETURNS TABLE(duty text, object_type text, object text, privilege text, columns text[])
 LANGUAGE sql
 STABLE PARALLEL SAFE
 SET search_path TO 'pg_catalog', 'holdfast', 'pg_temp'
AS $function$
    SELECT given_to.duty, needs.object_type, 'holdfast' || needs.object, needs.privilege, needs.columns
    FROM (
        VALUES
            ('{producer,worker,operator,viewer}'::text[], 'SCHEMA', '', 'USAGE', NULL::text[]),
            ('{producer,worker,operator,viewer}', 'TABLE', '.meta', 'SELECT', NULL),
            ('{producer,worker,operator,viewer}', 'TABLE', '.queues', 'SELECT', NULL),
            -- To add jobs. A handler adds the next one.
            ('{producer,worker}', 'FUNCTION', '.enqueue', 'EXECUTE', NULL),
            ('{producer,worker}', 'TABLE', '.queues', 'INSERT', '{name}'),
            ('{producer,worker}', 'TABLE', '.wake', 'SELECT', NULL),
            ('{producer,worker}', 'TABLE', '.idempotency_keys', 'SELECT', NULL),
            ('{producer,worker}', 'TABLE', '.idempotency_keys', 'INSERT', NULL),
            ('{producer,worker}', 'TABLE', '.idempotency_keys', 'UPDATE', '{job_id,expires_at}'),
            ('{producer,worker}', 'SEQUENCE', '.inbox_seq', 'USAGE', NULL),
            ('{producer,worker}', 'TABLE', '.inbox', 'INSERT', '{id,partition_bucket,queue,kind,partition_key,ordered,max_attempts,available_at,idempotency_key,headers,payload}'),
            ('{producer}', 'TABLE', '.inbox', 'SELECT', '{id,partition_bucket,queue,available_at}'),
            ('{producer}', 'TABLE', '.jobs', 'SELECT', '{id,status,lease_generation}'),
            -- To run them.
            ('{worker}', 'TABLE', '.inbox', 'UPDATE', '{lease_generation,available_at,claimed_at,lease_expires_at,completed_at,finished_at,attempts,status,claimed_by,finished_by,last_error}'),
            ('{worker}', 'TABLE', '.inbox_archive', 'INSERT', NULL),
            ('{worker}', 'SEQUENCE', '.generation_seq', 'USAGE', NULL),
            ('{worker}', 'TABLE', '.meta', 'UPDATE', '{epoch,incarnation}'),
            ('{worker}', 'TABLE', '.workers', 'INSERT', NULL),
            ('{worker}', 'TABLE', '.workers', 'UPDATE', '{status,last_seen_at,metadata}'),
            ('{worker}', 'TABLE', '.workers', 'DELETE', NULL),
            ('{worker}', 'TABLE', '.wake', 'INSERT', NULL),
            ('{worker}', 'TABLE', '.wake', 'UPDATE', '{armed_at}'),
            ('{worker}', 'TABLE', '.wake', 'DELETE', NULL),
            ('{worker}', 'TABLE', '.handled', 'SELECT', NULL),
            ('{worker}', 'TABLE', '.handled', 'INSERT', NULL),
            ('{worker}', 'TABLE', '.handled', 'UPDATE', '{handled_at}'),
            ('{worker}', 'TABLE', '.handled', 'DELETE', NULL),
            ('{worker}', 'TABLE', '.fences', 'SELECT', NULL),
            ('{worker}', 'TABLE', '.fences', 'INSERT', NULL),
            ('{worker}', 'TABLE', '.fences', 'UPDATE', '{token,touched_at}'),
            ('{worker}', 'TABLE', '.fences', 'DELETE', NULL),
            ('{worker}', 'TABLE', '.events', 'UPDATE', '{attempt}'),
            ('{worker}', 'TABLE', '.events', 'DELETE', NULL),
            ('{worker}', 'FUNCTION', '.create_archive_days', 'EXECUTE', NULL),
            ('{worker}', 'FUNCTION', '.drop_archive_days', 'EXECUTE', NULL),
            -- To look. A viewer sees everything but what jobs carry.
            ('{worker,operator}', 'TABLE', '.inbox', 'SELECT', NULL),
            ('{worker,operator}', 'TABLE', '.inbox_archive', 'SELECT', NULL),
            ('{worker,operator}', 'TABLE', '.jobs', 'SELECT', NULL),
            ('{viewer}', 'TABLE', '.inbox', 'SELECT', '{id,seq,lease_generation,available_at,created_at,claimed_at,lease_expires_at,completed_at,finished_at,partition_bucket,attempts,max_attempts,status,ordered,queue,kind,partition_key,claimed_by,finished_by,idempotency_key,last_error}'),
            ('{viewer}', 'TABLE', '.inbox_archive', 'SELECT', '{ctid,id,seq,lease_generation,available_at,created_at,completed_at,partition_bucket,attempts,max_attempts,ordered,queue,kind,partition_key,finished_by,idempotency_key,last_error}'),
            ('{viewer}', 'TABLE', '.jobs', 'SELECT', '{id,seq,queue,kind,partition_key,partition_bucket,ordered,status,attempts,max_attempts,lease_generation,claimed_by,claimed_at,lease_expires_at,available_at,created_at,completed_at,finished_at,finished_by,idempotency_key,last_error,archived}'),
            ('{worker,operator,viewer}', 'TABLE', '.workers', 'SELECT', NULL),
            ('{worker,operator,viewer}', 'TABLE', '.events', 'SELECT', NULL),
            ('{operator,viewer}', 'TABLE', '.idempotency_keys', 'SELECT', NULL),
            ('{operator,viewer}', 'TABLE', '.wake', 'SELECT', NULL),
            ('{worker,operator,viewer}', 'TABLE', '.roles', 'SELECT', NULL),
            ('{worker,operator,viewer}', 'TABLE', '.goose_version', 'SELECT', NULL),
            ('{worker,operator,viewer}', 'FUNCTION', '.duty_privileges', 'EXECUTE', NULL),
            ('{worker,operator,viewer}', 'FUNCTION', '.missing_privileges', 'EXECUTE', NULL),
            -- To mend, and to write down who did it.
            ('{worker,operator}', 'TABLE', '.events', 'INSERT', NULL),
            ('{worker,operator}', 'SEQUENCE', '.events_seq', 'USAGE', NULL),
            ('{operator}', 'TABLE', '.inbox', 'UPDATE', '{available_at,claimed_at,lease_expires_at,finished_at,attempts,max_attempts,status,claimed_by,finished_by,last_error}'),
            ('{worker,operator}', 'TABLE', '.inbox', 'DELETE', NULL),
            ('{worker,operator}', 'TABLE', '.idempotency_keys', 'DELETE', NULL),
            ('{operator}', 'TABLE', '.workers', 'UPDATE', '{status}'),
            ('{operator}', 'TABLE', '.queues', 'INSERT', NULL),
            ('{operator}', 'TABLE', '.queues', 'UPDATE', NULL)
    ) AS needs (duties, object_type, object, privilege, columns)
    CROSS JOIN LATERAL unnest(needs.duties) AS given_to (duty)
$function$;
COMMENT ON FUNCTION holdfast.duty_privileges() IS 'What each duty needs: a privilege on an object, or on some of its columns. docs/roles.md says what for.';
REVOKE ALL ON FUNCTION holdfast.duty_privileges() FROM PUBLIC;

CREATE FUNCTION holdfast.enqueue(kind text, payload jsonb DEFAULT '{}'::jsonb, key text DEFAULT NULL::text, queue text DEFAULT NULL::text, idempotency_key text DEFAULT NULL::text, delay interval DEFAULT NULL::interval, run_at timestamp with time zone DEFAULT NULL::timestamp with time zone, max_attempts integer DEFAULT NULL::integer, headers jsonb DEFAULT NULL::jsonb, ring boolean DEFAULT NULL::boolean, OUT job_id uuid, OUT duplicate boolean)
 RETURNS record
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'pg_catalog', 'holdfast', 'pg_temp'
AS $function$
#variable_conflict use_column
DECLARE
    refusal text;
    settings record;
    bucket integer;
    due timestamptz;
    drawn uuid;
BEGIN
    -- A document out of another table may come compressed: this is it in its full size.
    payload := payload #> '{}';
    headers := nullif(headers, 'null');
    queue := coalesce(queue, 'default');
    refusal := CASE
        WHEN kind IS NULL THEN 'kind: is missing'
        WHEN char_length(kind) NOT BETWEEN 1 AND 200 THEN format('kind: has %s characters, must have 1 to 200', char_length(kind))
        WHEN payload IS NULL THEN 'payload: is missing; the null of JSON is written ''null'''
        WHEN pg_column_size(payload) > 262144 THEN format('payload: has %s bytes as stored, 262144 at most', pg_column_size(payload))
        WHEN char_length(queue) NOT BETWEEN 1 AND 200 THEN format('queue: has %s characters, must have 1 to 200', char_length(queue))
        WHEN char_length(idempotency_key) NOT BETWEEN 1 AND 200 THEN format('idempotency_key: has %s characters, must have 1 to 200', char_length(idempotency_key))
        WHEN char_length(key) NOT BETWEEN 1 AND 200 THEN format('key: has %s characters, must have 1 to 200', char_length(key))
        WHEN delay < interval '0' THEN format('delay: %s is negative', delay)
        WHEN delay > interval '1000 years' THEN format('delay: %s is longer than 1000 years', delay)
        WHEN run_at > timestamptz '9999-12-31 00:00:00+00' THEN format('run_at: %s is after the year 9998', run_at)
        WHEN max_attempts NOT BETWEEN 1 AND 1000000 THEN format('max_attempts: %s is not between 1 and 1000000', max_attempts)
        WHEN jsonb_typeof(headers) <> 'object' OR jsonb_path_exists(headers, '$.* ? (@.type() != "string")') THEN 'headers: must be an object of strings'
        WHEN pg_column_size(headers) > 8192 THEN format('headers: have %s bytes as stored, 8192 at most', pg_column_size(headers))
    END;
    IF refusal IS NOT NULL THEN
        RAISE EXCEPTION USING
            ERRCODE = 'invalid_parameter_value',
            COLUMN = split_part(refusal, ':', 1),
            MESSAGE = 'holdfast.enqueue: ' || refusal;
    END IF;

    LOOP
        SELECT
            queues.ordered,
            queues.max_attempts,
            queues.dedupe_window,
            queues.ring,
            (SELECT meta.bucket_count FROM holdfast.meta AS meta WHERE meta.singleton) AS bucket_count
        INTO settings
        FROM holdfast.queues AS queues
        WHERE queues.name = enqueue.queue;
        EXIT WHEN FOUND;
        INSERT INTO holdfast.queues (name) VALUES (enqueue.queue) ON CONFLICT (name) DO NOTHING;
    END LOOP;

    -- A job that belongs to nothing is a lane of its own: 62 random bits.
    key := coalesce(key, idempotency_key, right(replace(gen_random_uuid()::text, '-', ''), 16));
    bucket := holdfast.bucket_of(key, settings.bucket_count);
    drawn := holdfast.new_job_id(bucket);
    due := greatest(clock_timestamp() + coalesce(delay, interval '0'), run_at);

    job_id := drawn;
    IF idempotency_key IS NOT NULL THEN
        SELECT entry.job_id
        INTO enqueue.job_id
        FROM holdfast.idempotency_keys AS entry
        WHERE entry.queue = enqueue.queue
            AND entry.key = enqueue.idempotency_key
            AND entry.expires_at > now();
        IF NOT FOUND THEN
            INSERT INTO holdfast.idempotency_keys AS entry (queue, key, job_id, expires_at)
            VALUES (enqueue.queue, enqueue.idempotency_key, drawn, due + settings.dedupe_window)
            -- DO NOTHING would give a racing duplicate no id at all.
            ON CONFLICT (queue, key) DO UPDATE
            SET
                job_id = CASE WHEN entry.expires_at > now() THEN entry.job_id ELSE EXCLUDED.job_id END,
                expires_at = CASE WHEN entry.expires_at > now() THEN entry.expires_at ELSE EXCLUDED.expires_at END
            RETURNING entry.job_id
            INTO enqueue.job_id;
        END IF;
    END IF;
    duplicate := job_id <> drawn;
    IF duplicate THEN
        RETURN;
    END IF;

    INSERT INTO holdfast.inbox (
        id, partition_bucket, queue, kind, partition_key, ordered, max_attempts, available_at, idempotency_key, headers, payload
    )
    VALUES (
        drawn, bucket, enqueue.queue, enqueue.kind, enqueue.key, settings.ordered,
        coalesce(enqueue.max_attempts, settings.max_attempts), due, enqueue.idempotency_key, enqueue.headers, enqueue.payload
    );
    -- Nobody is woken for a job that an idle worker finds in time.
    IF settings.ring
        AND coalesce(ring, true)
        AND due < clock_timestamp() + interval '2 seconds'
        AND EXISTS (SELECT FROM holdfast.wake AS bell WHERE bell.queue = enqueue.queue)
    THEN
        PERFORM pg_notify('holdfast_wake', bucket || ' ' || queue);
    END IF;
END
$function$;
COMMENT ON FUNCTION holdfast.enqueue(text,jsonb,text,text,text,interval,timestamp with time zone,integer,jsonb,boolean) IS 'Adds a job in the caller''s transaction, for any language, or finds the one that holds its idempotency key, and tells which: domain.Enqueue, with the same rules. An argument that is NULL or left out has its default. An invalid one is refused with SQLSTATE 22023, and named. Runs with its owner''s rights: a producer needs no other.';
REVOKE ALL ON FUNCTION holdfast.enqueue(text,jsonb,text,text,text,interval,timestamp with time zone,integer,jsonb,boolean) FROM PUBLIC;

CREATE FUNCTION holdfast.error_pattern(error text)
 RETURNS text
 LANGUAGE sql
 IMMUTABLE PARALLEL SAFE STRICT
AS $function$
SELECT pg_catalog.regexp_replace(
    pg_catalog.left(pg_catalog.split_part(error, E'\n', 1), 200) COLLATE "C",
    '[0-9A-Fa-f]{8}-([0-9A-Fa-f]{4}-){3}[0-9A-Fa-f]{12}|"[^"]*"|`[^`]*`|(?<![A-Za-z])''[^'']*''|0x[0-9A-Fa-f]+|[0-9]+([.:][0-9]+)*',
    '?',
    'g'
)
$function$;
COMMENT ON FUNCTION holdfast.error_pattern(text) IS 'The first line of an error, 200 characters at most, with a question mark in place of each UUID, number and quoted text: errors with the same pattern have the same cause.';

CREATE FUNCTION holdfast.event_detail(said text)
 RETURNS text
 LANGUAGE sql
 IMMUTABLE PARALLEL SAFE
AS $function$
    SELECT CASE WHEN octet_length(said) <= 8192 THEN said ELSE left(said, 2048) END
$function$;
COMMENT ON FUNCTION holdfast.event_detail(text) IS 'What was said, or the first 2,048 characters of what has more than 8 KB: whatever they are, they have no more.';

CREATE FUNCTION holdfast.grant_role(duty text, role_name text)
 RETURNS integer
 LANGUAGE plpgsql
 SET search_path TO 'pg_catalog', 'holdfast', 'pg_temp'
AS $function$
DECLARE
    needs record;
    granted integer := 0;
BEGIN
    IF duty IS NULL OR duty NOT IN ('producer', 'worker', 'operator', 'viewer') THEN
        RAISE EXCEPTION 'holdfast.grant_role: duty: % is none of producer, worker, operator, viewer', coalesce(quote_literal(duty), 'NULL')
            USING ERRCODE = 'invalid_parameter_value', COLUMN = 'duty';
    END IF;
    -- Also, GRANT … TO public means everybody.
    IF NOT EXISTS (SELECT FROM pg_roles AS role WHERE role.rolname = role_name) THEN
        RAISE EXCEPTION 'holdfast.grant_role: role_name: there is no role %', coalesce(quote_literal(role_name), 'NULL')
            USING ERRCODE = 'undefined_object', COLUMN = 'role_name';
    END IF;
    -- The owner's own rights would go with what is revoked first.
    IF EXISTS (
        SELECT FROM pg_class AS class
        JOIN pg_roles AS owner ON owner.oid = class.relowner
        WHERE class.relnamespace = 'holdfast'::regnamespace
            AND owner.rolname = role_name
    ) THEN
        RAISE EXCEPTION 'holdfast.grant_role: role_name: % owns the schema and needs no duty', quote_literal(role_name)
            USING ERRCODE = 'invalid_parameter_value', COLUMN = 'role_name';
    END IF;
    PERFORM holdfast.revoke_role(role_name);
    FOR needs IN
        SELECT wanted.object_type, wanted.object, wanted.privilege, wanted.columns
        FROM holdfast.duty_privileges() AS wanted
        WHERE wanted.duty = grant_role.duty
            AND (wanted.object_type <> 'TABLE' OR to_regclass(wanted.object) IS NOT NULL)
    LOOP
        EXECUTE format(
            'GRANT %s%s ON %s %s TO %I',
            needs.privilege, ' (' || array_to_string(needs.columns, ', ') || ')', needs.object_type, needs.object, role_name
        );
        granted := granted + 1;
    END LOOP;
    INSERT INTO holdfast.roles (name, duty) VALUES (role_name, grant_role.duty);
    RETURN granted;
END
$function$;
COMMENT ON FUNCTION holdfast.grant_role(text,text) IS 'Lets a role of the server do what a duty asks, and nothing else in this schema, and remembers it. Tells how many privileges that are. A role has one duty; a member of two roles has two.';
REVOKE ALL ON FUNCTION holdfast.grant_role(text,text) FROM PUBLIC;

CREATE FUNCTION holdfast.grant_roles()
 RETURNS integer
 LANGUAGE plpgsql
 SET search_path TO 'pg_catalog', 'holdfast', 'pg_temp'
AS $function$
DECLARE
    known record;
    granted integer := 0;
BEGIN
    FOR known IN
        SELECT here.name, here.duty
        FROM holdfast.roles AS here
        JOIN pg_roles AS role ON role.rolname = here.name
        ORDER BY here.name
    LOOP
        PERFORM holdfast.grant_role(known.duty, known.name);
        granted := granted + 1;
    END LOOP;
    RETURN granted;
END
$function$;
COMMENT ON FUNCTION holdfast.grant_roles() IS 'Grants again to every role what its duty needs, and tells how many roles there are. Every later migration ends with it.';
REVOKE ALL ON FUNCTION holdfast.grant_roles() FROM PUBLIC;

CREATE FUNCTION holdfast.incarnation()
 RETURNS text
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'pg_catalog', 'holdfast', 'pg_temp'
AS $function$
DECLARE
    cluster bigint := 0;
    timeline bigint := 0;
BEGIN
    BEGIN
        SELECT control.system_identifier INTO cluster FROM pg_control_system() AS control;
    EXCEPTION WHEN OTHERS THEN
        NULL;
    END;
    -- That of the next record. The control file still names the old one right after a promotion.
    BEGIN
        timeline := ('x' || left(pg_walfile_name(pg_current_wal_lsn()), 8))::bit(32)::bigint;
    EXCEPTION WHEN OTHERS THEN
        NULL;
    END;
    RETURN cluster || '/' || 'holdfast.meta'::regclass::oid || '/' || timeline;
END
$function$;
COMMENT ON FUNCTION holdfast.incarnation() IS 'Which history of the database this is: the identifier of its cluster, the OID of meta, which a restore from a dump changes, and the timeline, which a promotion changes; a restart changes none. 0 for what the server does not tell.';

CREATE FUNCTION holdfast.missing_privileges(duty text, role_name text)
 RETURNS TABLE(object_type text, object text, privilege text, columns text[])
 LANGUAGE sql
 STABLE
 SET search_path TO 'pg_catalog', 'holdfast', 'pg_temp'
AS $function$
    SELECT needs.object_type, needs.object, needs.privilege, needs.columns
    FROM holdfast.duty_privileges() AS needs
    JOIN pg_catalog.pg_roles AS role ON role.rolname = missing_privileges.role_name
    WHERE needs.duty = missing_privileges.duty
        AND CASE needs.object_type
            WHEN 'SCHEMA' THEN has_schema_privilege(role.oid, needs.object, needs.privilege)
            WHEN 'FUNCTION' THEN has_function_privilege(role.oid, to_regproc(needs.object), needs.privilege)
            WHEN 'SEQUENCE' THEN has_sequence_privilege(role.oid, needs.object, needs.privilege)
            ELSE COALESCE(
                has_table_privilege(role.oid, to_regclass(needs.object), needs.privilege)
                OR (
                    SELECT bool_and(has_column_privilege(role.oid, to_regclass(needs.object), wanted.name, needs.privilege))
                    FROM unnest(needs.columns) AS wanted (name)
                ),
                to_regclass(needs.object) IS NULL
            )
        END IS NOT TRUE
$function$;
COMMENT ON FUNCTION holdfast.missing_privileges(text,text) IS 'What a role lacks of what a duty needs, whichever way it may have come by the rest.';
REVOKE ALL ON FUNCTION holdfast.missing_privileges(text,text) FROM PUBLIC;

CREATE FUNCTION holdfast.new_job_id(bucket integer)
 RETURNS uuid
 LANGUAGE sql
 PARALLEL SAFE STRICT
AS $function$
    SELECT encode(
        set_bit(
            set_bit(
                overlay(
                    overlay(
                        uuid_send(gen_random_uuid())
                        PLACING substring(int8send(floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint) FROM 3) FROM 1
                    )
                    PLACING int2send(bucket::smallint) FROM 15
                ),
                52, 1
            ),
            53, 1
        ),
        'hex'
    )::uuid
$function$;
COMMENT ON FUNCTION holdfast.new_job_id(integer) IS 'A UUIDv7 whose low 14 bits hold the bucket, so that an id alone addresses its row. domain.NewJobID lays out the same bits.';

CREATE FUNCTION holdfast.revoke_role(role_name text)
 RETURNS boolean
 LANGUAGE plpgsql
 SET search_path TO 'pg_catalog', 'holdfast', 'pg_temp'
AS $function$
DECLARE
    object_kind text;
BEGIN
    -- Two at once would change the same rows of the catalog.
    LOCK TABLE holdfast.roles IN SHARE ROW EXCLUSIVE MODE;
    IF EXISTS (SELECT FROM pg_roles AS role WHERE role.rolname = role_name) THEN
        FOREACH object_kind IN ARRAY ARRAY['ALL TABLES IN SCHEMA', 'ALL SEQUENCES IN SCHEMA', 'ALL FUNCTIONS IN SCHEMA', 'SCHEMA'] LOOP
            EXECUTE format('REVOKE ALL ON %s holdfast FROM %I', object_kind, role_name);
        END LOOP;
    END IF;
    DELETE FROM holdfast.roles AS role WHERE role.name = role_name;
    RETURN FOUND;
END
$function$;
COMMENT ON FUNCTION holdfast.revoke_role(text) IS 'Takes from a role what it may do here, and forgets its duty; false if it had none. The role itself stays.';
REVOKE ALL ON FUNCTION holdfast.revoke_role(text) FROM PUBLIC;
