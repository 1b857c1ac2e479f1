-- name: PauseQueue :exec
-- PauseQueue does not tell whether there is such a queue.
UPDATE holdfast.queues AS queue
SET paused = true
WHERE queue.name = @name::text;
