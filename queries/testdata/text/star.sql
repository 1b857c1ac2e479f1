-- name: GetWorker :one
-- GetWorker changes its columns whenever the table does.
SELECT worker.*
FROM holdfast.workers AS worker
WHERE worker.id = @id::text;

-- name: ForgetWorker :many
-- ForgetWorker does the same.
DELETE FROM holdfast.workers AS worker
WHERE worker.id = @id::text
RETURNING *;
