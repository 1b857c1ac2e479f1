package holdfast_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/holdfast-pg/holdfast"
)

// What stands between two marks stands in docs/idempotency.md too; a test holds them together.

// begin

type BookPayment struct {
	Payment string `json:"payment"`
	Account string `json:"account"`
	Cents   int64  `json:"cents"`
}

func (BookPayment) Kind() string { return "book_payment" }

// BookPayments adds each payment to its account once: the sum and the job's completion are
// one commit.
func BookPayments(pool *pgxpool.Pool) holdfast.Handler {
	return holdfast.HandleTx(pool, func(ctx context.Context, tx pgx.Tx, job holdfast.Job[BookPayment]) error {
		_, err := tx.Exec(ctx, "UPDATE accounts SET cents = cents + $2 WHERE name = $1", job.Args.Account, job.Args.Cents)
		return err
	})
}

// end

// begin

// AddOnce adds a payment to its account, unless an earlier run of the job has.
func AddOnce(ctx context.Context, pool *pgxpool.Pool, job holdfast.Job[BookPayment]) error {
	return pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
		first, err := holdfast.MarkHandled(ctx, tx, job, "add")
		if err != nil || !first {
			return err
		}
		_, err = tx.Exec(ctx, "UPDATE accounts SET cents = cents + $2 WHERE name = $1", job.Args.Account, job.Args.Cents)
		return err
	})
}

// end

// begin

const createBookings = `
	CREATE TABLE bookings (
		payment text PRIMARY KEY,
		account text NOT NULL,
		cents bigint NOT NULL
	)`

// Book enters a payment into the books, unless it is there.
func Book(ctx context.Context, db holdfast.DBTX, payment BookPayment) error {
	_, err := db.Exec(ctx, `
		INSERT INTO bookings (payment, account, cents)
		VALUES ($1, $2, $3)
		ON CONFLICT (payment) DO NOTHING`, payment.Payment, payment.Account, payment.Cents)
	return err
}

// end

// begin

// Charge asks a provider for the money. Every run of the job sends the same request.
func Charge(ctx context.Context, url string, job holdfast.Job[BookPayment]) error {
	body, err := json.Marshal(job.Args)
	if err != nil {
		return err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader(string(body)))
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Idempotency-Key", job.ID.String())
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("charge %s: %s", job.Args.Payment, response.Status)
	}
	return nil
}

// end

// A handler that runs twice sends one key, and the provider charges once.
func Example_idempotencyKey() {
	charged := map[string]bool{}
	provider := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		charged[r.Header.Get("Idempotency-Key")] = true
	}))
	defer provider.Close()
	job := jobOf(BookPayment{Payment: "pay_1", Account: "ada", Cents: 990}, 41)
	for range 2 {
		if err := Charge(context.Background(), provider.URL, job); err != nil {
			fmt.Println(err)
		}
	}
	fmt.Println("charges:", len(charged))
	// Output:
	// charges: 1
}
