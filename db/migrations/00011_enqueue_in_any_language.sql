-- +goose Up
-- Why: a program in any language adds a job, under the same rules as one in Go, with one function.
-- Locks: none, the function is new.

-- SECURITY DEFINER, because the right to run it is then all that a producer needs: it can add
-- jobs that are whole, in the bucket of their key, and neither read one nor touch a table. What
-- it is given are values, it runs no text of the caller's, and no name in it depends on the
-- caller's search_path.
-- +goose StatementBegin
CREATE FUNCTION holdfast.enqueue(
    kind text,
    payload jsonb DEFAULT '{}',
    key text DEFAULT NULL,
    queue text DEFAULT NULL,
    idempotency_key text DEFAULT NULL,
    delay interval DEFAULT NULL,
    run_at timestamptz DEFAULT NULL,
    max_attempts integer DEFAULT NULL,
    headers jsonb DEFAULT NULL,
    ring boolean DEFAULT NULL,
    OUT job_id uuid,
    OUT duplicate boolean
) RETURNS record
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, holdfast, pg_temp
AS $$
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
$$;
-- +goose StatementEnd
COMMENT ON FUNCTION holdfast.enqueue(text, jsonb, text, text, text, interval, timestamptz, integer, jsonb, boolean) IS 'Adds a job in the caller''s transaction, for any language, or finds the one that holds its idempotency key, and tells which: domain.Enqueue, with the same rules. An argument that is NULL or left out has its default. An invalid one is refused with SQLSTATE 22023, and named. Runs with its owner''s rights: a producer needs no other.';
REVOKE ALL ON FUNCTION holdfast.enqueue(text, jsonb, text, text, text, interval, timestamptz, integer, jsonb, boolean) FROM PUBLIC;

UPDATE holdfast.meta SET schema_version = 11, oldest_binary = 7;

-- +goose Down
UPDATE holdfast.meta SET schema_version = 10, oldest_binary = 7;
DROP FUNCTION holdfast.enqueue(text, jsonb, text, text, text, interval, timestamptz, integer, jsonb, boolean);
