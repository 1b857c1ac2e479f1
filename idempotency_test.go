package holdfast_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-pg/holdfast"
	"github.com/holdfast-pg/holdfast/integration/pgtest"
)

const createAccounts = "CREATE TABLE accounts (name text PRIMARY KEY, cents bigint NOT NULL)"

var errFirstTime = errors.New("the first attempt fails")

// booking returns a database with an account and a job that pays 990 cents into it.
func booking(t *testing.T) *pgtest.Database {
	t.Helper()
	database := pgtest.New(t)
	database.Exec(t, createAccounts)
	database.Exec(t, "INSERT INTO accounts VALUES ('ada', 0)")
	_, err := holdfast.Enqueue(t.Context(), database.Pool, BookPayment{Payment: "pay_1", Account: "ada", Cents: 990}, holdfast.Once("book:pay_1"))
	if err != nil {
		t.Fatal(err)
	}
	return database
}

// workUntilDone runs a worker until the one job is completed.
func workUntilDone(t *testing.T, database *pgtest.Database, handler holdfast.Handler) {
	t.Helper()
	worker, err := holdfast.NewWorker(database.Pool, holdfast.Config{IdlePoll: 100 * time.Millisecond}, handler)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	returned := make(chan error, 1)
	go func() { returned <- worker.Run(ctx) }()
	defer func() {
		stop()
		if err := <-returned; err != nil {
			t.Error(err)
		}
	}()
	pgtest.Eventually(t, time.Minute, "the job is completed", func() bool {
		return pgtest.Value[int](t, database, "SELECT count(*) FROM holdfast.inbox_archive") == 1
	})
}

// twice is a handler that does its work, and is run again as if its worker had died before
// the job was completed.
func twice(run func(ctx context.Context, job holdfast.Job[BookPayment]) error) holdfast.Handler {
	return holdfast.Handle(func(ctx context.Context, job holdfast.Job[BookPayment]) error {
		if err := run(ctx, job); err != nil {
			return err
		}
		if job.Attempt == 1 {
			return holdfast.RetryIn(0, errFirstTime)
		}
		return nil
	})
}

func wantCents(t *testing.T, database *pgtest.Database) {
	t.Helper()
	if cents := pgtest.Value[int](t, database, "SELECT cents FROM accounts"); cents != 990 {
		t.Errorf("the account holds %d cents, want 990", cents)
	}
}

func TestHandled_CompletionInTheSameTransaction(t *testing.T) {
	t.Parallel()
	database := booking(t)
	workUntilDone(t, database, BookPayments(database.Pool))
	wantCents(t, database)
}

func TestHandled_MarkInTheSameTransaction(t *testing.T) {
	t.Parallel()
	database := booking(t)
	workUntilDone(t, database, twice(func(ctx context.Context, job holdfast.Job[BookPayment]) error {
		return AddOnce(ctx, database.Pool, job)
	}))
	wantCents(t, database)
}

func TestHandled_NaturalKey(t *testing.T) {
	t.Parallel()
	database := booking(t)
	database.Exec(t, createBookings)
	workUntilDone(t, database, twice(func(ctx context.Context, job holdfast.Job[BookPayment]) error {
		return Book(ctx, database.Pool, job.Args)
	}))
	if bookings := pgtest.Values[string](t, database, "SELECT payment FROM bookings"); !slices.Equal(bookings, []string{"pay_1"}) {
		t.Errorf("the books hold %v, want one payment", bookings)
	}
}

// The id and the producer's key are the same in every attempt; the fence token is not.
func TestHandled_KeyForTheProviderIsStableAcrossAttempts(t *testing.T) {
	t.Parallel()
	database := booking(t)
	var mutex sync.Mutex
	var sent, kept []string
	var fences []int64
	provider := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		mutex.Lock()
		defer mutex.Unlock()
		sent = append(sent, r.Header.Get("Idempotency-Key"))
	}))
	defer provider.Close()
	workUntilDone(t, database, twice(func(ctx context.Context, job holdfast.Job[BookPayment]) error {
		kept, fences = append(kept, job.IdempotencyKey), append(fences, job.Fence())
		return Charge(ctx, provider.URL, job)
	}))
	if len(sent) != 2 || sent[0] != sent[1] || sent[0] == "" {
		t.Errorf("two attempts sent the keys %v, want one key twice", sent)
	}
	if !slices.Equal(kept, []string{"book:pay_1", "book:pay_1"}) {
		t.Errorf("the producer's keys are %v", kept)
	}
	if len(fences) != 2 || fences[0] >= fences[1] {
		t.Errorf("the tokens are %v, want a larger one for the second attempt", fences)
	}
}
