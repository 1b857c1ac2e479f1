-- name: ListOrders :many
-- ListOrders reads a table that is not ours.
SELECT orders.id
FROM shop.orders AS orders
ORDER BY orders.id
LIMIT 10;
