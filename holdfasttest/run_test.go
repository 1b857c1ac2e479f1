package holdfasttest_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/holdfast-pg/holdfast"
	"github.com/holdfast-pg/holdfast/holdfasttest"
	"github.com/holdfast-pg/holdfast/worker"
)

var errRefused = errors.New("connection refused")

// receipts returns a handler that ends with the error.
func receipts(err error) holdfast.Handler {
	return holdfast.Handle(func(context.Context, holdfast.Job[sendReceipt]) error { return err })
}

// payments books in the transaction of the completion, and then returns the error.
func payments(err error) holdfast.Handler {
	return holdfast.HandleTx(nil, func(ctx context.Context, tx pgx.Tx, job holdfast.Job[bookPayment]) error {
		return errors.Join(book(ctx, tx, job), err)
	})
}

func book(ctx context.Context, tx pgx.Tx, job holdfast.Job[bookPayment]) error {
	_, err := tx.Exec(ctx, "INSERT INTO bookings (payment, token) VALUES ($1, $2)", job.Args.Payment, job.Fence())
	return err
}

const createBookings = "CREATE TABLE bookings (payment text NOT NULL, token bigint NOT NULL)"

func bookings(t *testing.T, db holdfast.DBTX) int {
	t.Helper()
	return value[int](t, db, "SELECT count(*) FROM bookings")
}

func TestRun_TellsHowTheHandlerEnded(t *testing.T) {
	t.Parallel()
	tx := begin(t, holdfasttest.NewPool(t))
	for _, test := range []struct {
		err    error
		ending holdfasttest.Ending
		delay  time.Duration
		status string
	}{
		{nil, holdfasttest.Completed, 0, "completed"},
		{errRefused, holdfasttest.Retried, 2 * time.Second, "pending"},
		{holdfast.RetryIn(time.Minute, errRefused), holdfasttest.Retried, time.Minute, "pending"},
		{holdfast.Fail(errRefused), holdfasttest.Failed, 0, "failed"},
		{holdfast.Snooze(time.Hour), holdfasttest.Snoozed, time.Hour, "pending"},
		{holdfast.ErrFenced, holdfasttest.Fenced, time.Second, "pending"},
	} {
		outcome := holdfasttest.Run(t, t.Context(), tx, receipts(test.err), sendReceipt{})
		if wantEnding(t, outcome, test.ending); outcome.Delay != test.delay || !errors.Is(outcome.Err, test.err) {
			t.Errorf("%v: the outcome is %s", test.err, outcome)
		}
		if status := value[string](t, tx, "SELECT status::text FROM holdfast.jobs WHERE id = '"+outcome.Job.ID.String()+"'"); status != test.status {
			t.Errorf("%v: the job is %s, want %s", test.err, status, test.status)
		}
	}
	last := holdfasttest.Run(t, t.Context(), tx, receipts(errRefused), sendReceipt{}, holdfast.MaxAttempts(1))
	wantEnding(t, last, holdfasttest.DeadLettered)
	if last.String() != "send_receipt, attempt 1 of 1: dead-lettered: connection refused" {
		t.Errorf("the outcome reads %q", last)
	}
	broken := holdfasttest.Run(t, t.Context(), tx, receipts(nil), holdfast.RawArgs{JobKind: "send_receipt", Payload: []byte(`[]`)})
	wantEnding(t, broken, holdfasttest.Failed)
}

func TestRun_PanicIsAnEndingOfItsOwn(t *testing.T) {
	t.Parallel()
	tx := begin(t, holdfasttest.NewPool(t))
	outcome := holdfasttest.Run(t, t.Context(), tx, holdfast.Handle(func(context.Context, holdfast.Job[sendReceipt]) error { panic("boom") }), sendReceipt{})
	var panicked *worker.PanicError
	if wantEnding(t, outcome, holdfasttest.Panicked); !errors.As(outcome.Err, &panicked) || panicked.Value != "boom" {
		t.Errorf("the outcome is %s", outcome)
	}
}

func TestRun_HandleTxWritesInTheTestsTransaction(t *testing.T) {
	t.Parallel()
	pool := holdfasttest.NewPool(t)
	execute(t, pool, createBookings)
	tx := begin(t, pool)
	wantEnding(t, holdfasttest.Run(t, t.Context(), tx, payments(errRefused), bookPayment{Payment: "pay_1"}), holdfasttest.Retried)
	if n := bookings(t, tx); n != 0 {
		t.Errorf("there are %d bookings of a run that failed", n)
	}
	wantEnding(t, holdfasttest.Run(t, t.Context(), tx, payments(nil), bookPayment{Payment: "pay_2"}), holdfasttest.Completed)
	if n := bookings(t, tx); n != 1 {
		t.Errorf("there are %d bookings in the transaction", n)
	}
	if n := bookings(t, pool); n != 0 {
		t.Errorf("there are %d bookings outside of the transaction", n)
	}
}

func TestRun_StatementThatFailsDoesNotSpoilTheTransaction(t *testing.T) {
	t.Parallel()
	pool := holdfasttest.NewPool(t)
	execute(t, pool, createBookings)
	tx := begin(t, pool)
	execute(t, tx, "INSERT INTO bookings VALUES ('fixture', 0)")
	outcome := holdfasttest.Run(t, t.Context(), tx, holdfast.Handle(func(ctx context.Context, _ holdfast.Job[bookPayment]) error {
		_, err := tx.Exec(ctx, "INSERT INTO nowhere VALUES (1)")
		return err
	}), bookPayment{})
	if wantEnding(t, outcome, holdfasttest.Retried); bookings(t, tx) != 1 {
		t.Error("the fixture is gone")
	}
	wantFailure(t, func(tb *fake) {
		holdfasttest.Run(tb, tb.Context(), tx, holdfast.Handle(func(ctx context.Context, _ holdfast.Job[bookPayment]) error { return tx.Commit(ctx) }), bookPayment{})
	}, "ended the test's transaction")
}

func TestRun_ContextThatHasEndedIsTheHandlersOnly(t *testing.T) {
	t.Parallel()
	tx := begin(t, holdfasttest.NewPool(t))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	heeds := func(ctx context.Context) error { return ctx.Err() }
	outcome := holdfasttest.Run(t, ctx, tx, holdfast.HandleTx(nil, func(ctx context.Context, _ pgx.Tx, _ holdfast.Job[bookPayment]) error { return heeds(ctx) }), bookPayment{})
	if errors.Is(outcome.Err, context.Canceled) {
		wantEnding(t, outcome, holdfasttest.Retried)
	} else {
		t.Errorf("the outcome is %s", outcome)
	}
	holdfasttest.RequireEnqueued(t, tx, bookPayment{})
}

func TestRun_WorksOnAPool(t *testing.T) {
	t.Parallel()
	pool := holdfasttest.NewPool(t)
	execute(t, pool, createBookings)
	handler := holdfast.HandleTx(pool, book)
	wantEnding(t, holdfasttest.Run(t, t.Context(), pool, handler, bookPayment{Payment: "pay_1"}), holdfasttest.Completed)
	wantEnding(t, holdfasttest.Run(t, t.Context(), pool, receipts(errRefused), sendReceipt{}), holdfasttest.Retried)
	if n := bookings(t, pool); n != 1 {
		t.Errorf("there are %d bookings", n)
	}
}

func TestRunJob_RunsWhatTheCodeUnderTestEnqueued(t *testing.T) {
	t.Parallel()
	tx := begin(t, holdfasttest.NewPool(t))
	id := enqueue(t, tx, sendReceipt{Email: "ada@example.com"}, holdfast.In(time.Hour), holdfast.Once("receipt:9182"))
	wantFailure(t, func(tb *fake) { holdfasttest.RunJob(tb, tb.Context(), tx, payments(nil), id) }, `of kind "send_receipt"`, `for "book_payment"`)
	first := holdfasttest.RunJob(t, t.Context(), tx, receipts(errRefused), id)
	second := holdfasttest.RunJob(t, t.Context(), tx, receipts(nil), id)
	if wantEnding(t, second, holdfasttest.Completed); second.Job.Attempt != 2 || second.Job.Fence() <= first.Job.Fence() {
		t.Errorf("first %s, then %s", first, second)
	}
	wantFailure(t, func(tb *fake) { holdfasttest.RunJob(tb, tb.Context(), tx, receipts(nil), id) }, "is completed, want pending")
	wantFailure(t, func(tb *fake) { holdfasttest.RunJob(tb, tb.Context(), tx, receipts(nil), holdfast.JobID{}) }, "not to be seen here")
	wantFailure(t, func(tb *fake) {
		holdfasttest.Run(tb, tb.Context(), tx, receipts(nil), sendReceipt{}, holdfast.Once("receipt:9182"))
	}, "RunJob")
}

func TestRunTwice_ShowsWhetherTheEffectIsDoneOnce(t *testing.T) {
	t.Parallel()
	pool := holdfasttest.NewPool(t)
	execute(t, pool, createBookings)
	for name, test := range map[string]struct {
		run  func(ctx context.Context, tx pgx.Tx, job holdfast.Job[bookPayment]) error
		want int
	}{
		"without a mark": {book, 2},
		"with one": {func(ctx context.Context, tx pgx.Tx, job holdfast.Job[bookPayment]) error {
			if first, err := holdfast.MarkHandled(ctx, tx, job, "book"); err != nil || !first {
				return err
			}
			return book(ctx, tx, job)
		}, 1},
	} {
		tx := begin(t, pool)
		first, second := holdfasttest.RunTwice(t, t.Context(), tx, holdfast.Handle(func(ctx context.Context, job holdfast.Job[bookPayment]) error {
			return test.run(ctx, tx, job)
		}), bookPayment{Payment: "pay_1"})
		wantEnding(t, first, holdfasttest.Completed)
		wantEnding(t, second, holdfasttest.Completed)
		if n := bookings(t, tx); n != test.want || first.Job.ID != second.Job.ID || first.Job.Fence() >= second.Job.Fence() {
			t.Errorf("%s: %d bookings of %s and %s, want %d", name, n, first, second, test.want)
		}
	}
	wantFailure(t, func(tb *fake) {
		holdfasttest.RunTwice(tb, tb.Context(), begin(t, pool), receipts(nil), sendReceipt{}, holdfast.MaxAttempts(1))
	}, "holdfast.MaxAttempts of 2 or more")
}

func TestRunTwice_HandleTxIsRefusedTheSecondTime(t *testing.T) {
	t.Parallel()
	pool := holdfasttest.NewPool(t)
	execute(t, pool, createBookings)
	tx := begin(t, pool)
	first, second := holdfasttest.RunTwice(t, t.Context(), tx, payments(nil), bookPayment{Payment: "pay_1"})
	wantEnding(t, first, holdfasttest.Completed)
	wantEnding(t, second, holdfasttest.LeaseLost)
	if n := bookings(t, tx); n != 1 {
		t.Errorf("there are %d bookings", n)
	}
}

func TestRunStale_OlderClaimSettlesNothing(t *testing.T) {
	t.Parallel()
	pool := holdfasttest.NewPool(t)
	execute(t, pool, createBookings)
	guarded := func(tx pgx.Tx) holdfast.Handler {
		return holdfast.Handle(func(ctx context.Context, job holdfast.Job[bookPayment]) error {
			if err := holdfast.Guard(ctx, tx, "payment:"+job.Args.Payment, job); err != nil {
				return err
			}
			return book(ctx, tx, job)
		})
	}
	for name, test := range map[string]struct {
		handler func(tx pgx.Tx) holdfast.Handler
		want    holdfasttest.Ending
		written int
	}{
		"guarded": {guarded, holdfasttest.Fenced, 1},
		"unguarded": {func(tx pgx.Tx) holdfast.Handler {
			return holdfast.Handle(func(ctx context.Context, job holdfast.Job[bookPayment]) error { return book(ctx, tx, job) })
		}, holdfasttest.LeaseLost, 2},
		"HandleTx": {func(pgx.Tx) holdfast.Handler { return payments(nil) }, holdfasttest.LeaseLost, 1},
	} {
		tx := begin(t, pool)
		current, stale := holdfasttest.RunStale(t, t.Context(), tx, test.handler(tx), bookPayment{Payment: "pay_1"})
		wantEnding(t, current, holdfasttest.Completed)
		wantEnding(t, stale, test.want)
		if n := bookings(t, tx); n != test.written || stale.Job.Fence() >= current.Job.Fence() {
			t.Errorf("%s: %d bookings, want %d; %s, then %s", name, n, test.written, current, stale)
		}
	}
}
