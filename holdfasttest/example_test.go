package holdfasttest_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/holdfast-pg/holdfast"
	"github.com/holdfast-pg/holdfast/holdfasttest"
)

// exampleT is the t of an example, which has none: it prints what a test would be told.
type exampleT struct {
	testing.TB
	cleanups []func()
}

func (*exampleT) Helper()                  {}
func (*exampleT) Context() context.Context { return context.Background() }
func (*exampleT) Output() io.Writer        { return io.Discard }
func (e *exampleT) Cleanup(f func())       { e.cleanups = append(e.cleanups, f) }

func (*exampleT) Errorf(format string, args ...any) { fmt.Fprintf(os.Stdout, format+"\n", args...) }

func (e *exampleT) Fatalf(format string, args ...any) {
	e.Errorf(format, args...)
	panic(failed{})
}

// end does what happens when a test ends.
func (e *exampleT) end() {
	if reason := recover(); reason != nil && reason != any(failed{}) {
		panic(reason)
	}
	for _, cleanup := range slices.Backward(e.cleanups) {
		cleanup()
	}
}

// exampleTx returns the t and the transaction of an example.
func exampleTx() (t *exampleT, tx pgx.Tx) {
	t = &exampleT{}
	tx, err := holdfasttest.NewPool(t).Begin(t.Context())
	if err != nil {
		panic(err)
	}
	t.Cleanup(func() { _ = tx.Rollback(t.Context()) })
	return t, tx
}

func examplePool() (*exampleT, *pgxpool.Pool) {
	t := &exampleT{}
	return t, holdfasttest.NewPool(t)
}

func say(lines ...any) {
	for _, line := range lines {
		fmt.Fprintln(os.Stdout, line)
	}
}

// Every test has a database of its own, and may run in parallel with all others.
func ExampleNewPool() {
	t := &exampleT{} // The test's.
	defer t.end()

	pool := holdfasttest.NewPool(t)
	_, err := holdfast.Enqueue(t.Context(), pool, SendReceipt{Email: "ada@example.com"})
	say(err)
	// Output: <nil>
}

// A database that the test has already gets the schema.
func ExampleMigrate() {
	t, pool := examplePool()
	defer t.end()

	holdfasttest.Migrate(t, pool.Config().ConnString())
	// Output:
}

// The assertion reads as the enqueue does.
func ExampleRequireEnqueued() {
	t, tx := exampleTx()
	defer t.end()

	_, _ = holdfast.Enqueue(t.Context(), tx, SendReceipt{Order: "order:9182", Email: "ada@example.com"}, holdfast.Key("order:9182"))

	holdfasttest.RequireEnqueued(t, tx, SendReceipt{Order: "order:9182", Email: "ada@example.com"}, holdfast.Key("order:9182"))
	holdfasttest.RequireEnqueued(t, tx, SendReceipt{Order: "order:9182", Email: "ada@example.com"}, holdfast.Key("order:9183"))
	// Output:
	// holdfasttest: want a job send_receipt {"order":"order:9182","email":"ada@example.com"}, key "order:9183" to be enqueued, and there is none. Of kind send_receipt there is:
	//   pending {"email":"ada@example.com","order":"order:9182"}, queue "default", key "order:9182"; not the same key
}

// Any job of the kind would fail the test.
func ExampleRequireNotEnqueued() {
	t, tx := exampleTx()
	defer t.end()

	holdfasttest.RequireNotEnqueued[SendReceipt](t, tx)
	// Output:
}

// The jobs of a kind come with their args.
func ExampleEnqueued() {
	t, tx := exampleTx()
	defer t.end()

	_, _ = holdfast.Enqueue(t.Context(), tx, SendReceipt{Email: "ada@example.com"}, holdfast.OnQueue("mail"))
	for _, job := range holdfasttest.Enqueued[SendReceipt](t, tx) {
		say(job.Args.Email + " on " + job.Queue)
	}
	// Output: ada@example.com on mail
}

// A handler runs in the transaction of the test; a pool is not needed.
func ExampleRun() {
	t, tx := exampleTx()
	defer t.end()

	handler := SendReceipts(nil, &mails{err: errors.New("connection refused")})
	outcome := holdfasttest.Run(t, t.Context(), tx, handler, SendReceipt{Email: "ada@example.com"})
	say(outcome.Ending, outcome.Delay, outcome)
	// Output:
	// retried
	// 2s
	// send_receipt, attempt 1 of 5: retried, again in 2s: connection refused
}

// What the code under test enqueued is run, due or not.
func ExampleRunJob() {
	t, tx := exampleTx()
	defer t.end()

	args := SendReceipt{Email: "ada@example.com"}
	_, _ = holdfast.Enqueue(t.Context(), tx, args, holdfast.In(time.Hour))
	job := holdfasttest.RequireEnqueued(t, tx, args)

	polite := holdfast.Handle(func(context.Context, holdfast.Job[SendReceipt]) error { return holdfast.Snooze(8 * time.Hour) })
	say(holdfasttest.RunJob(t, t.Context(), tx, polite, job.ID))
	// Output: send_receipt, attempt 1 of 5: snoozed for 8h0m0s
}

// The same job under two claims: the mail provider sees one key.
func ExampleRunTwice() {
	t, tx := exampleTx()
	defer t.end()

	var mail mails
	handler := holdfast.Handle(func(ctx context.Context, job holdfast.Job[SendReceipt]) error {
		return mail.Send(ctx, job.Args.Email, job.ID.String())
	})
	first, second := holdfasttest.RunTwice(t, t.Context(), tx, handler, SendReceipt{Email: "ada@example.com"})
	say(first, second, len(mail.sent))
	// Output:
	// send_receipt, attempt 1 of 5: completed
	// send_receipt, attempt 2 of 5: completed
	// 1
}

// A run that does not know that it lost its lease is kept from writing.
func ExampleRunStale() {
	t, tx := exampleTx()
	defer t.end()

	handler := holdfast.Handle(func(ctx context.Context, job holdfast.Job[SendReceipt]) error {
		return holdfast.Guard(ctx, tx, job.Args.Order, job)
	})
	current, stale := holdfasttest.RunStale(t, t.Context(), tx, handler, SendReceipt{Order: "order:9182"})
	say(current.Ending, stale.Ending)
	// Output:
	// completed
	// fenced
}

// A worker works off what is due.
func ExampleDrain() {
	t, pool := examplePool()
	defer t.end()

	_, _ = holdfast.Enqueue(t.Context(), pool, SendReceipt{Email: "ada@example.com"})
	handler := holdfast.Handle(func(context.Context, holdfast.Job[SendReceipt]) error { return nil })
	for _, outcome := range holdfasttest.Drain(t, t.Context(), pool, handler) {
		say(outcome)
	}
	// Output: send_receipt, attempt 1 of 5: completed
}

// The backoffs of a job end at once.
func ExampleDrainAll() {
	t, pool := examplePool()
	defer t.end()

	_, _ = holdfast.Enqueue(t.Context(), pool, SendReceipt{Email: "ada@example.com"})
	handler := holdfast.Handle(func(_ context.Context, job holdfast.Job[SendReceipt]) error {
		if job.Attempt < 2 {
			return errors.New("connection refused")
		}
		return nil
	})
	for _, outcome := range holdfasttest.DrainAll(t, t.Context(), pool, handler) {
		say(outcome)
	}
	// Output:
	// send_receipt, attempt 1 of 5: retried, again in 2s: connection refused
	// send_receipt, attempt 2 of 5: completed
}

// A job that waits for its time is due.
func ExampleMakeDue() {
	t, pool := examplePool()
	defer t.end()

	result, _ := holdfast.Enqueue(t.Context(), pool, SendReceipt{Email: "ada@example.com"}, holdfast.In(time.Hour))
	handler := holdfast.Handle(func(context.Context, holdfast.Job[SendReceipt]) error { return nil })
	say(len(holdfasttest.Drain(t, t.Context(), pool, handler)))
	holdfasttest.MakeDue(t, pool, result.ID)
	say(len(holdfasttest.Drain(t, t.Context(), pool, handler)))
	// Output:
	// 0
	// 1
}

// The lease of a claimed job ends. Nobody has taken the job back yet, so its claim still
// settles it.
func ExampleExpireLease() {
	t, tx := exampleTx()
	defer t.end()

	handler := holdfast.Handle(func(_ context.Context, job holdfast.Job[SendReceipt]) error {
		holdfasttest.ExpireLease(t, tx, job.ID)
		return nil
	})
	say(holdfasttest.Run(t, t.Context(), tx, handler, SendReceipt{Email: "ada@example.com"}).Ending)
	// Output: completed
}
