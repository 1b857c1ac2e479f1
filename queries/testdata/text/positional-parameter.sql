-- name: GetWorkerByPosition :one
-- GetWorkerByPosition has an argument without a name.
SELECT worker.status
FROM holdfast.workers AS worker
WHERE worker.id = $1::text;
