package holdfast_test

import (
	"context"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/holdfast-pg/holdfast"
)

// What stands between the next two marks stands in README.md too; a test holds them together.

// begin

type SendReceipt struct {
	Email string `json:"email"`
}

func (SendReceipt) Kind() string { return "send_receipt" }

// PlaceOrder enqueues the receipt in the transaction that places the order: both, or neither.
func PlaceOrder(ctx context.Context, tx pgx.Tx) error {
	_, err := holdfast.Enqueue(ctx, tx, SendReceipt{Email: "ada@example.com"},
		holdfast.Key("order:9182"), holdfast.Once("receipt:9182"))
	return err
}

// Work sends receipts until ctx ends, then finishes what it has begun.
func Work(ctx context.Context, pool *pgxpool.Pool) error {
	worker, err := holdfast.NewWorker(pool, holdfast.Config{}, holdfast.Handle(
		func(ctx context.Context, job holdfast.Job[SendReceipt]) error {
			return sendMail(ctx, job.Args.Email)
		}))
	if err != nil {
		return err
	}
	return worker.Run(ctx)
}

// end

func sendMail(context.Context, string) error { return nil }

// A service enqueues in its own transaction and works in its own process.
func Example() {
	_ = PlaceOrder
	_ = Work
}
