CREATE SCHEMA holdfast_demo;

CREATE TABLE holdfast_demo.orders (
    id bigint PRIMARY KEY,
    email text NOT NULL,
    address text NOT NULL,
    label text,
    label_token bigint
);
COMMENT ON TABLE holdfast_demo.orders IS 'What the demo''s shop sells: each order is placed in the transaction that enqueues its job.';
COMMENT ON COLUMN holdfast_demo.orders.label IS 'The address on the parcel''s label: the side effect that an older run must not overwrite.';
COMMENT ON COLUMN holdfast_demo.orders.label_token IS 'The fence token of the claim that printed the label.';

-- No unique constraint stands in the way of a second receipt: the mark has to.
CREATE TABLE holdfast_demo.receipts (
    order_id bigint NOT NULL,
    sent_at timestamptz NOT NULL DEFAULT clock_timestamp()
);
COMMENT ON TABLE holdfast_demo.receipts IS 'Receipts sent: the side effect that must happen once an order.';
