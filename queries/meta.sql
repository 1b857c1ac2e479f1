-- name: GetMeta :one
-- GetMeta reads the facts about this installation. Called by domain/meta.go before anything
-- else. No row, or no table: the schema was never migrated. A standby answers too, and cannot
-- be worked on. Index: meta_pkey.
SELECT
    meta.bucket_count,
    meta.epoch,
    meta.schema_version,
    meta.oldest_binary,
    pg_is_in_recovery() AS standby
FROM holdfast.meta AS meta
WHERE meta.singleton;

-- name: AdvanceEpoch :execrows
-- AdvanceEpoch raises the epoch for the incarnation of the database that runs it. Called by
-- domain/epoch.go when a claim found that the epoch is another's. By as much as the timeline
-- has advanced: the server that was promoted before this one may never have told it of its
-- own epoch. Leaves an event. Zero rows: it is this one's already, because another worker was first.
-- Index: meta_pkey. Locks: the row of meta, for which racing calls wait and then find their
-- condition false.
WITH raised AS (
    UPDATE holdfast.meta AS meta
    SET
        epoch = meta.epoch + greatest(split_part(here.incarnation, '/', 3)::bigint - split_part(meta.incarnation, '/', 3)::bigint, 1),
        incarnation = here.incarnation
    FROM (SELECT holdfast.incarnation() AS incarnation) AS here
    WHERE meta.singleton
        AND meta.incarnation <> here.incarnation
    RETURNING
        meta.epoch,
        meta.incarnation
)
INSERT INTO holdfast.events (
    event,
    detail
)
SELECT
    'epoch_advanced',
    'to epoch ' || raised.epoch || ', for the incarnation ' || raised.incarnation || ' of the database'
FROM raised;

-- name: PlanByIndex :exec
-- PlanByIndex forbids, until the transaction ends, the plans that only wrong statistics can
-- make attractive. Sent by domain/pipeline.go in front of every statement over a set:
-- without statistics the planner reads the whole table for a hash join. The statement then
-- compares keys as id = ANY(ARRAY[held.id]): a plain equality could be merged by, and for that
-- the planner also offers a walk through the whole index, which looks as cheap as a look-up
-- with the statistics of a drained queue, and is made once for each row. Only one plan is left
-- then, so the server makes it once for a prepared statement, whatever its arguments are.
SELECT
    set_config('plan_cache_mode', 'force_generic_plan', true),
    set_config('enable_seqscan', 'off', true),
    set_config('enable_hashjoin', 'off', true),
    set_config('enable_mergejoin', 'off', true),
    set_config('jit', 'off', true);

-- name: PlanInOrder :exec
-- PlanInOrder forbids, until the transaction ends, what PlanByIndex forbids, and bitmaps. Sent by
-- domain/reading.go in front of what a person asks: such a statement takes the first rows of
-- an index, and where the planner expects few it would rather collect all of them and sort.
SELECT
    set_config('enable_seqscan', 'off', true),
    set_config('enable_bitmapscan', 'off', true),
    set_config('enable_hashjoin', 'off', true),
    set_config('enable_mergejoin', 'off', true),
    set_config('jit', 'off', true);

-- name: ReadLag :one
-- ReadLag tells how far a standby is behind its primary: how long ago the last transaction was
-- committed that is visible here, and whether all is replayed that has arrived, for then nothing
-- may have been committed since. known is false when nothing was replayed since it started;
-- standby is false on a primary. Called by domain/lag.go.
SELECT
    pg_is_in_recovery() AS standby,
    COALESCE(pg_last_wal_receive_lsn() = pg_last_wal_replay_lsn(), false)::boolean AS replayed,
    (pg_last_xact_replay_timestamp() IS NOT NULL)::boolean AS known,
    COALESCE(clock_timestamp() - pg_last_xact_replay_timestamp(), interval '0')::interval AS age;

-- name: PlanForAnyArguments :exec
-- PlanForAnyArguments makes the server plan prepared statements, until the transaction ends,
-- without a look at their arguments, as it may from their sixth run. Called by
-- domain/plans/explain.go, which looks at such plans.
SELECT set_config('plan_cache_mode', 'force_generic_plan', true);
