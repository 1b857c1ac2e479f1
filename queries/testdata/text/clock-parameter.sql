-- name: ListDue :many
-- ListDue is told the time by a process, whose clock may be wrong.
SELECT job.id
FROM holdfast.inbox AS job
WHERE job.available_at <= @now::timestamptz
ORDER BY job.id
LIMIT 1;
