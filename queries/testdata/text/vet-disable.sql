-- name: PauseAll :exec
-- PauseAll passes by every rule.
-- @sqlc-vet-disable
UPDATE holdfast.queues AS queue
SET paused = true;
