-- +goose Up
-- Why: everything Holdfast owns lives in one schema, so that it shares a database with
-- anything and leaves with one DROP. The schema's name is a literal in every statement.
-- Locks: none that anybody else could hold.
CREATE SCHEMA IF NOT EXISTS holdfast;
COMMENT ON SCHEMA holdfast IS 'Holdfast: durable work in Postgres. Shape in db/migrations, statements in queries.';

CREATE TYPE holdfast.inbox_status AS ENUM (
    'pending',
    'processing',
    'completed',
    'failed',
    'dead_letter'
);
COMMENT ON TYPE holdfast.inbox_status IS 'Where a job is in its life. A job that waits for a retry is pending with a future available_at.';

CREATE TABLE holdfast.meta (
    singleton boolean NOT NULL DEFAULT true,
    bucket_count integer NOT NULL DEFAULT 1024,
    epoch bigint NOT NULL DEFAULT 1,
    schema_version integer NOT NULL,
    oldest_binary integer NOT NULL,
    CONSTRAINT meta_pkey PRIMARY KEY (singleton),
    CONSTRAINT meta_has_one_row CHECK (singleton),
    CONSTRAINT meta_bucket_count_in_range CHECK (bucket_count BETWEEN 1 AND 16384),
    CONSTRAINT meta_epoch_in_range CHECK (epoch BETWEEN 1 AND 4194303)
);
COMMENT ON TABLE holdfast.meta IS 'Facts about this installation, in one row.';
COMMENT ON COLUMN holdfast.meta.singleton IS 'Always true: the primary key that keeps the table at one row.';
COMMENT ON COLUMN holdfast.meta.bucket_count IS 'How many buckets partition keys hash into. Fixed while the inbox holds jobs: a job keeps the bucket it was enqueued with.';
COMMENT ON COLUMN holdfast.meta.epoch IS 'The high part of every lease generation. A failover that may have lost commits raises it, so that no token is given out twice.';
COMMENT ON COLUMN holdfast.meta.schema_version IS 'The migration this schema stands at. A program that needs a later one refuses to start.';
COMMENT ON COLUMN holdfast.meta.oldest_binary IS 'The lowest schema version that a program may have been built for and still run here.';
INSERT INTO holdfast.meta (schema_version, oldest_binary) VALUES (1, 1);

-- STABLE, as convert_to is: declared IMMUTABLE the planner cannot inline it and it
-- costs three times as much. convert_to, because key::bytea fails on a backslash.
-- +goose StatementBegin
CREATE FUNCTION holdfast.bucket_of(partition_key text, bucket_count integer) RETURNS integer
LANGUAGE sql STABLE STRICT PARALLEL SAFE
AS $$
    SELECT ('x' || left(encode(sha256(convert_to(partition_key, 'UTF8')), 'hex'), 6))::bit(24)::integer % bucket_count
$$;
-- +goose StatementEnd
COMMENT ON FUNCTION holdfast.bucket_of(text, integer) IS 'The bucket of a partition key: the first 24 bits of its SHA-256, modulo the bucket count. Frozen; domain.BucketOf computes the same.';

-- One random draw; the timestamp and the bucket are laid over it. The draw is a version 4
-- id, so its variant is right already and two bits turn its version into 7.
-- +goose StatementBegin
CREATE FUNCTION holdfast.new_job_id(bucket integer) RETURNS uuid
LANGUAGE sql VOLATILE STRICT PARALLEL SAFE
AS $$
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
$$;
-- +goose StatementEnd
COMMENT ON FUNCTION holdfast.new_job_id(integer) IS 'A UUIDv7 whose low 14 bits hold the bucket, so that an id alone addresses its row. domain.NewJobID lays out the same bits.';

-- The exponent is capped before it is used: power(2, attempts)::int overflows at 31.
-- +goose StatementBegin
CREATE FUNCTION holdfast.backoff(attempts integer) RETURNS interval
LANGUAGE sql VOLATILE STRICT PARALLEL SAFE
AS $$
    SELECT least(power(2, least(attempts, 12)), 3600) * (0.8 + 0.4 * random()) * interval '1 second'
$$;
-- +goose StatementEnd
COMMENT ON FUNCTION holdfast.backoff(integer) IS 'How long a job waits after its attempts-th claim ended badly: 2^attempts seconds, one hour at most, give or take 20 percent. domain.Backoff follows the same rule.';

-- +goose Down
DROP FUNCTION holdfast.backoff(integer);
DROP FUNCTION holdfast.new_job_id(integer);
DROP FUNCTION holdfast.bucket_of(text, integer);
DROP TABLE holdfast.meta;
DROP TYPE holdfast.inbox_status;
