-- name: CountWorkers :one
SELECT count(*)
FROM holdfast.workers AS worker;
