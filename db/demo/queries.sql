-- name: PlaceOrder :execrows
-- PlaceOrder adds an order, unless an earlier try of the same request did.
INSERT INTO holdfast_demo.orders (id, email, address)
VALUES (@id::bigint, @email::text, @address::text)
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

-- name: FindAddress :one
-- FindAddress reads where an order goes. No row: there is no such order.
SELECT shop_order.address
FROM holdfast_demo.orders AS shop_order
WHERE shop_order.id = @id::bigint;

-- name: ChangeAddress :execrows
-- ChangeAddress is what a customer does who moves. Zero rows: there is no such order.
UPDATE holdfast_demo.orders AS shop_order
SET address = @address::text
WHERE shop_order.id = @id::bigint;

-- name: PrintLabel :execrows
-- PrintLabel is the side effect that is repeated without harm, unless an older run repeats it
-- after a newer one. Nothing here stands in its way: the guard has to.
-- Zero rows: there is no such order.
UPDATE holdfast_demo.orders AS shop_order
SET
    label = @label::text,
    label_token = @token::bigint
WHERE shop_order.id = @id::bigint;

-- name: CountCurrentLabels :one
-- CountCurrentLabels counts the labels that were printed under the last claim of their jobs:
-- the others have been overwritten by an older one.
SELECT count(*)
FROM holdfast.jobs AS job
INNER JOIN holdfast_demo.orders AS shop_order
    ON shop_order.id = (job.payload ->> 'order_id')::bigint
WHERE job.queue = @queue::text
    AND job.lease_generation = shop_order.label_token;

-- name: CountJobs :one
-- CountJobs counts the jobs of the demo's queues, all of them and the completed ones.
SELECT
    count(*) AS enqueued,
    count(*) FILTER (WHERE job.status = 'completed') AS completed
FROM holdfast.jobs AS job
WHERE job.queue = ANY(@queues::text[]);

-- name: CountSessions :one
-- CountSessions counts the server processes of a worker that is gone: until they are gone
-- too, something it sent may still take effect.
SELECT count(*)
FROM pg_catalog.pg_stat_activity AS session
WHERE session.application_name = @application_name::text;

-- name: DropSchema :exec
-- DropSchema removes what the demo made.
DROP SCHEMA IF EXISTS holdfast_demo CASCADE;
