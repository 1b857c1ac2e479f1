-- name: PurgeQueue :execrows
-- PurgeQueue deletes any number of rows at once.
DELETE FROM holdfast.inbox AS job
WHERE job.queue = @queue::text;
