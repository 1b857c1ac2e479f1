package relay_test

import (
	"context"
	"net/http"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/holdfast-pg/holdfast"
	"github.com/holdfast-pg/holdfast/relay"
	relayhttp "github.com/holdfast-pg/holdfast/relay/http"
	"github.com/holdfast-pg/holdfast/relay/nats"
)

// What stands between two marks stands in docs/outbox.md too; a test holds them together.

// begin

type OrderPlaced struct {
	Order string `json:"order"`
	Cents int64  `json:"cents"`
}

func (OrderPlaced) Kind() string { return "placed" }

// PlaceOrder stores an order and tells of it: both, or neither.
func PlaceOrder(ctx context.Context, pool *pgxpool.Pool, placed OrderPlaced) error {
	return pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, "INSERT INTO orders (id, cents) VALUES ($1, $2)", placed.Order, placed.Cents); err != nil {
			return err
		}
		_, err := holdfast.Enqueue(ctx, tx, placed, holdfast.OnQueue("outbox"), holdfast.Key(placed.Order))
		return err
	})
}

// end

// begin

// PublishOrders publishes what the outbox tells to NATS until ctx ends.
func PublishOrders(ctx context.Context, pool *pgxpool.Pool) error {
	publisher, err := nats.New(nats.Config{URL: "nats://broker:4222", Subject: "orders.{kind}"})
	if err != nil {
		return err
	}
	publishing, err := relay.New(pool, relay.Config{Queue: "outbox", Destination: "nats://broker:4222"}, publisher)
	if err != nil {
		return err
	}
	return publishing.Run(ctx)
}

// end

// begin

// TakeOrders enqueues what arrives from NATS, each message once, and acknowledges it then.
func TakeOrders(ctx context.Context, pool *pgxpool.Pool, consumer jetstream.Consumer) (jetstream.ConsumeContext, error) {
	return consumer.Consume(func(arrived jetstream.Msg) {
		message, err := nats.Receive(arrived.Headers(), arrived.Data())
		if err != nil {
			_ = arrived.TermWithReason(err.Error()) // No CloudEvent: it will never be one.
			return
		}
		if _, err := relay.Ingest(ctx, pool, "orders", []relay.Message{message}); err != nil {
			_ = arrived.Nak() // It comes again.
			return
		}
		_ = arrived.Ack() // If that gets lost it comes again, and is the same job.
	})
}

// end

// begin

// TakeEvents is the same over HTTP.
func TakeEvents(pool *pgxpool.Pool) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		message, err := relayhttp.Receive(r)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		if _, err := relay.Ingest(r.Context(), pool, "orders", []relay.Message{message}); err != nil {
			http.Error(w, "try again", http.StatusServiceUnavailable)
		}
	}
}

// end

// begin

// SumOrders keeps the sum of the orders of each key, every order counted once.
func SumOrders(pool *pgxpool.Pool) holdfast.Handler {
	return holdfast.HandleProjection(pool, "order_sums", func(ctx context.Context, tx pgx.Tx, job holdfast.Job[OrderPlaced]) error {
		_, err := tx.Exec(ctx, `
			INSERT INTO order_sums (key, cents) VALUES ($1, $2)
			ON CONFLICT (key) DO UPDATE SET cents = order_sums.cents + EXCLUDED.cents`, job.PartitionKey, job.Args.Cents)
		return err
	})
}

// end
