-- +goose Up
-- Why: a person who asks what died, and what is being tried again, must not wait for a walk
-- over everything that waits. Neither index has an entry for a job that nobody has claimed yet,
-- or that succeeds at its first attempt; nor does a renewal touch one.
-- Locks: holdfast.inbox, so that nobody writes to it, while the indexes are made: both read
-- the table once. On a large one, make them before by hand with CREATE INDEX CONCURRENTLY.

-- What two errors have in common that differ in ids, numbers and quoted names only. The first
-- line of an error is what it says, and the start of it enough to tell it from others.
CREATE FUNCTION holdfast.error_pattern(error text) RETURNS text
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
AS $$
SELECT pg_catalog.regexp_replace(
    pg_catalog.left(pg_catalog.split_part(error, E'\n', 1), 200) COLLATE "C",
    '[0-9A-Fa-f]{8}-([0-9A-Fa-f]{4}-){3}[0-9A-Fa-f]{12}|"[^"]*"|`[^`]*`|(?<![A-Za-z])''[^'']*''|0x[0-9A-Fa-f]+|[0-9]+([.:][0-9]+)*',
    '?',
    'g'
)
$$;
COMMENT ON FUNCTION holdfast.error_pattern(text) IS 'The first line of an error, 200 characters at most, with a question mark in place of each UUID, number and quoted text: errors with the same pattern have the same cause.';

CREATE INDEX IF NOT EXISTS inbox_dead_newest_idx
    ON holdfast.inbox (queue, status, finished_at, id)
    WHERE status IN ('failed', 'dead_letter');
COMMENT ON INDEX holdfast.inbox_dead_newest_idx IS 'Failed and dead-lettered jobs of a queue in the order in which they ended, for counts, lists and groups.';

CREATE INDEX IF NOT EXISTS inbox_retrying_idx
    ON holdfast.inbox (queue, available_at, id)
    WHERE status = 'pending' AND attempts > 0;
COMMENT ON INDEX holdfast.inbox_retrying_idx IS 'Jobs that were tried and wait for another attempt, for counts and lists. A job has an entry only between a failed attempt and the next claim.';

UPDATE holdfast.meta SET schema_version = 10, oldest_binary = 7;

-- +goose Down
UPDATE holdfast.meta SET schema_version = 9, oldest_binary = 7;
DROP INDEX holdfast.inbox_retrying_idx;
DROP INDEX holdfast.inbox_dead_newest_idx;
DROP FUNCTION holdfast.error_pattern(text);
