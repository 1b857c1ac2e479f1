CREATE SCHEMA holdfast_demo;

CREATE TABLE holdfast_demo.orders (
    id bigint PRIMARY KEY,
    email text NOT NULL
);
COMMENT ON TABLE holdfast_demo.orders IS 'What the demo''s shop sells: each order is placed in the transaction that enqueues its receipt.';

-- No unique constraint stands in the way of a second receipt: the mark has to.
CREATE TABLE holdfast_demo.receipts (
    order_id bigint NOT NULL,
    sent_at timestamptz NOT NULL DEFAULT clock_timestamp()
);
COMMENT ON TABLE holdfast_demo.receipts IS 'Receipts sent: the side effect that must happen once an order.';
