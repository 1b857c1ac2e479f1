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

-- name: PlanByIndex :exec
-- PlanByIndex forbids, until the transaction ends, the plans that only wrong statistics can
-- make attractive. Sent by domain/pipeline.go in front of every statement that looks for its
-- rows: without statistics the planner reads the whole table for a hash join.
SELECT
    set_config('enable_seqscan', 'off', true),
    set_config('enable_hashjoin', 'off', true),
    set_config('enable_mergejoin', 'off', true),
    set_config('jit', 'off', true);

-- name: PlanByKey :exec
-- PlanByKey does what PlanByIndex does, for a statement whose set names its rows by their
-- keys, and leaves only one way to them: look up each key. Sent by domain/pipeline.go in front
-- of every settlement and renewal. With statistics of a time when the queue was drained, a
-- walk through the whole index looks as cheap as a look-up, and is made once for each row; a
-- bitmap cannot be made without a condition.
SELECT
    set_config('enable_indexscan', 'off', true),
    set_config('enable_seqscan', 'off', true),
    set_config('enable_hashjoin', 'off', true),
    set_config('enable_mergejoin', 'off', true),
    set_config('jit', 'off', true);
