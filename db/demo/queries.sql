-- name: PlaceOrder :execrows
-- PlaceOrder adds an order, unless an earlier try of the same request did.
INSERT INTO holdfast_demo.orders (id, email)
VALUES (@id::bigint, @email::text)
ON CONFLICT (id) DO NOTHING;

-- name: SendReceipt :execrows
-- SendReceipt is the demo's side effect.
INSERT INTO holdfast_demo.receipts (order_id)
VALUES (@order_id::bigint);

-- name: CountReceipts :one
-- CountReceipts counts the receipts, and the orders that got more than one.
SELECT
    count(*) AS sent,
    (count(*) - count(DISTINCT receipt.order_id))::bigint AS repeated
FROM holdfast_demo.receipts AS receipt;

-- name: HasReceipt :one
-- HasReceipt tells whether an order got its receipt.
SELECT EXISTS (
    SELECT FROM holdfast_demo.receipts AS receipt
    WHERE receipt.order_id = @order_id::bigint
) AS sent;

-- name: CountJobs :one
-- CountJobs counts the jobs of the demo's queue, all of them and the completed ones.
SELECT
    count(*) AS enqueued,
    count(*) FILTER (WHERE job.status = 'completed') AS completed
FROM holdfast.jobs AS job
WHERE job.queue = @queue::text;

-- name: CountSessions :one
-- CountSessions counts the server processes of a worker that is gone: until they are gone
-- too, something it sent may still take effect.
SELECT count(*)
FROM pg_catalog.pg_stat_activity AS session
WHERE session.application_name = @application_name::text;

-- name: DropSchema :exec
-- DropSchema removes what the demo made.
DROP SCHEMA IF EXISTS holdfast_demo CASCADE;
