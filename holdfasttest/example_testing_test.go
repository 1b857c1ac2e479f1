package holdfasttest_test

import (
	"context"
	"errors"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/holdfast-pg/holdfast"
	"github.com/holdfast-pg/holdfast/holdfasttest"
)

// The service under test.

// begin

// PlaceOrder asks for a receipt in the transaction that places the order.
func PlaceOrder(ctx context.Context, tx pgx.Tx, order, email string) error {
	if _, err := tx.Exec(ctx, "INSERT INTO orders (name) VALUES ($1)", order); err != nil {
		return err
	}
	_, err := holdfast.Enqueue(ctx, tx, SendReceipt{Order: order, Email: email}, holdfast.Key(order), holdfast.OnQueue("mail"))
	return err
}

// SendReceipts sends a receipt and notes on the order that it did.
func SendReceipts(pool *pgxpool.Pool, mail Mailer) holdfast.Handler {
	return holdfast.HandleTx(pool, func(ctx context.Context, tx pgx.Tx, job holdfast.Job[SendReceipt]) error {
		if err := mail.Send(ctx, job.Args.Email, job.ID.String()); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, "UPDATE orders SET receipts = receipts + 1 WHERE name = $1", job.Args.Order)
		return err
	})
}

// end

type SendReceipt struct {
	Order string `json:"order"`
	Email string `json:"email"`
}

func (SendReceipt) Kind() string { return "send_receipt" }

// Mailer sends a mail once for each key.
type Mailer interface {
	Send(ctx context.Context, to, key string) error
}

// mails is a mailer that keeps what it was told, by key, and then fails with err.
type mails struct {
	sent map[string]string
	err  error
}

func (m *mails) Send(_ context.Context, to, key string) error {
	if m.err != nil {
		return m.err
	}
	if m.sent == nil {
		m.sent = map[string]string{}
	}
	m.sent[key] = to
	return nil
}

// begin
func newShop(t *testing.T) *pgxpool.Pool {
	t.Helper()
	pool := holdfasttest.NewPool(t)
	if _, err := pool.Exec(t.Context(), "CREATE TABLE orders (name text PRIMARY KEY, receipts integer NOT NULL DEFAULT 0)"); err != nil {
		t.Fatal(err)
	}
	return pool
}

// end

func receiptsOf(t *testing.T, db holdfast.DBTX) int {
	t.Helper()
	return value[int](t, db, "SELECT sum(receipts)::integer FROM orders")
}

// begin
func TestPlaceOrder_AsksForAReceipt(t *testing.T) {
	t.Parallel()
	pool := newShop(t)
	tx, err := pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback(t.Context())

	holdfasttest.RequireNotEnqueued[SendReceipt](t, tx)
	if err := PlaceOrder(t.Context(), tx, "order:9182", "ada@example.com"); err != nil {
		t.Fatal(err)
	}
	holdfasttest.RequireEnqueued(t, tx, SendReceipt{Order: "order:9182", Email: "ada@example.com"},
		holdfast.OnQueue("mail"), holdfast.Key("order:9182"))
}

// end

// begin
func TestSendReceipts_TriesAgainWhenTheMailIsDown(t *testing.T) {
	t.Parallel()
	tx, err := newShop(t).Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback(t.Context())

	handler := SendReceipts(nil, &mails{err: errors.New("connection refused")})
	outcome := holdfasttest.Run(t, t.Context(), tx, handler, SendReceipt{Order: "order:9182", Email: "ada@example.com"})
	if outcome.Ending != holdfasttest.Retried {
		t.Error(outcome)
	}
}

// end

// begin
func TestSendReceipts_IsIdempotent(t *testing.T) {
	t.Parallel()
	pool := newShop(t)
	if _, err := pool.Exec(t.Context(), "INSERT INTO orders (name) VALUES ('order:9182')"); err != nil {
		t.Fatal(err)
	}
	var mail mails
	holdfasttest.RunTwice(t, t.Context(), pool, SendReceipts(pool, &mail), SendReceipt{Order: "order:9182", Email: "ada@example.com"})
	if n := receiptsOf(t, pool); n != 1 || len(mail.sent) != 1 {
		t.Errorf("%d receipts are noted and %d were sent, want one", n, len(mail.sent))
	}
}

// end

// begin
func TestShop_SendsTheReceiptOfAnOrder(t *testing.T) {
	t.Parallel()
	pool := newShop(t)
	err := pgx.BeginFunc(t.Context(), pool, func(tx pgx.Tx) error {
		return PlaceOrder(t.Context(), tx, "order:9182", "ada@example.com")
	})
	if err != nil {
		t.Fatal(err)
	}
	var mail mails
	for _, outcome := range holdfasttest.Drain(t, t.Context(), pool, SendReceipts(pool, &mail)) {
		if outcome.Ending != holdfasttest.Completed {
			t.Error(outcome)
		}
	}
	if n := receiptsOf(t, pool); n != 1 {
		t.Errorf("%d receipts are noted, want one", n)
	}
}

// end
