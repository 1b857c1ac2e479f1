-- name: ListQueues :many
-- ListQueues returns as many rows as there are.
SELECT queue.name
FROM holdfast.queues AS queue
ORDER BY queue.name;
