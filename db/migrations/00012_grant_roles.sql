-- +goose Up
-- Why: each program gets by with a role that may do what its duty asks, and nothing else. Who
-- has which duty is remembered, so that a later migration can grant what the duty came to need.
-- Locks: none that anybody else holds for long: a new table, and functions.

-- The number of days comes from a worker, and each makes a table with the owner's rights.
-- +goose StatementBegin
CREATE OR REPLACE FUNCTION holdfast.create_archive_days(days_ahead integer) RETURNS integer
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
$$;
-- +goose StatementEnd

-- Until here a type of the caller's own could stand in for one of the server's: without
-- pg_temp in the path, a session's temporary schema is searched first.
ALTER FUNCTION holdfast.incarnation() SET search_path = pg_catalog, holdfast, pg_temp;

CREATE TABLE holdfast.roles (
    name text COLLATE "C" NOT NULL,
    duty text COLLATE "C" NOT NULL,
    CONSTRAINT roles_pkey PRIMARY KEY (name),
    CONSTRAINT roles_duty_known CHECK (duty IN ('producer', 'worker', 'operator', 'viewer'))
);
COMMENT ON TABLE holdfast.roles IS 'Which role of the server has which duty here, so that a migration can grant what the duty came to need.';
COMMENT ON COLUMN holdfast.roles.name IS 'The role. It may be gone: roles belong to the server, not to the database.';
COMMENT ON COLUMN holdfast.roles.duty IS 'What its members do: producer, worker, operator or viewer.';

-- The one place where it stands who may do what. A lock on a row wants the right to update
-- some column: where a duty may lock rows that it has no business changing, it may update
-- the one that means the least.
-- +goose StatementBegin
CREATE FUNCTION holdfast.duty_privileges()
RETURNS TABLE (duty text, object_type text, object text, privilege text, columns text[])
LANGUAGE sql STABLE PARALLEL SAFE
SET search_path = pg_catalog, holdfast, pg_temp
AS $$
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
$$;
-- +goose StatementEnd
COMMENT ON FUNCTION holdfast.duty_privileges() IS 'What each duty needs: a privilege on an object, or on some of its columns. docs/roles.md says what for.';
REVOKE ALL ON FUNCTION holdfast.duty_privileges() FROM PUBLIC;

-- goose_version is not there when a team runs the migrations by a tool of its own.
-- +goose StatementBegin
CREATE FUNCTION holdfast.missing_privileges(duty text, role_name text)
RETURNS TABLE (object_type text, object text, privilege text, columns text[])
LANGUAGE sql STABLE
SET search_path = pg_catalog, holdfast, pg_temp
AS $$
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
$$;
-- +goose StatementEnd
COMMENT ON FUNCTION holdfast.missing_privileges(text, text) IS 'What a role lacks of what a duty needs, whichever way it may have come by the rest.';
REVOKE ALL ON FUNCTION holdfast.missing_privileges(text, text) FROM PUBLIC;

-- What follows gives and takes privileges, and so is for the owner of the schema, with its own
-- rights. Everything a role had here goes first: it has then what its duty needs, and no more.
-- +goose StatementBegin
CREATE FUNCTION holdfast.revoke_role(role_name text) RETURNS boolean
LANGUAGE plpgsql
SET search_path = pg_catalog, holdfast, pg_temp
AS $$
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
$$;
-- +goose StatementEnd
COMMENT ON FUNCTION holdfast.revoke_role(text) IS 'Takes from a role what it may do here, and forgets its duty; false if it had none. The role itself stays.';
REVOKE ALL ON FUNCTION holdfast.revoke_role(text) FROM PUBLIC;

-- +goose StatementBegin
CREATE FUNCTION holdfast.grant_role(duty text, role_name text) RETURNS integer
LANGUAGE plpgsql
SET search_path = pg_catalog, holdfast, pg_temp
AS $$
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
$$;
-- +goose StatementEnd
COMMENT ON FUNCTION holdfast.grant_role(text, text) IS 'Lets a role of the server do what a duty asks, and nothing else in this schema, and remembers it. Tells how many privileges that are. A role has one duty; a member of two roles has two.';
REVOKE ALL ON FUNCTION holdfast.grant_role(text, text) FROM PUBLIC;

-- +goose StatementBegin
CREATE FUNCTION holdfast.grant_roles() RETURNS integer
LANGUAGE plpgsql
SET search_path = pg_catalog, holdfast, pg_temp
AS $$
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
$$;
-- +goose StatementEnd
COMMENT ON FUNCTION holdfast.grant_roles() IS 'Grants again to every role what its duty needs, and tells how many roles there are. Every later migration ends with it.';
REVOKE ALL ON FUNCTION holdfast.grant_roles() FROM PUBLIC;

-- +goose StatementBegin
CREATE FUNCTION holdfast.create_roles(prefix text) RETURNS integer
LANGUAGE plpgsql
SET search_path = pg_catalog, holdfast, pg_temp
AS $$
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
$$;
-- +goose StatementEnd
COMMENT ON FUNCTION holdfast.create_roles(text) IS 'Makes the roles PREFIX_producer, PREFIX_worker, PREFIX_operator and PREFIX_viewer, which cannot log in, unless they exist, and grants each its duty. Tells how many it made. Needs the right to create roles.';
REVOKE ALL ON FUNCTION holdfast.create_roles(text) FROM PUBLIC;

UPDATE holdfast.meta SET schema_version = 12, oldest_binary = 7;

-- +goose Down
UPDATE holdfast.meta SET schema_version = 11, oldest_binary = 7;
SELECT holdfast.revoke_role(role.name) FROM holdfast.roles AS role ORDER BY role.name;
DROP FUNCTION holdfast.create_roles(text);
DROP FUNCTION holdfast.grant_roles();
DROP FUNCTION holdfast.grant_role(text, text);
DROP FUNCTION holdfast.revoke_role(text);
DROP FUNCTION holdfast.missing_privileges(text, text);
DROP FUNCTION holdfast.duty_privileges();
DROP TABLE holdfast.roles;
ALTER FUNCTION holdfast.incarnation() SET search_path = pg_catalog;
-- +goose StatementBegin
CREATE OR REPLACE FUNCTION holdfast.create_archive_days(days_ahead integer) RETURNS integer
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
