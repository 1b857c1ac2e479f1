package holdfasttest_test

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/holdfast-pg/holdfast"
	"github.com/holdfast-pg/holdfast/domain"
	"github.com/holdfast-pg/holdfast/holdfasttest"
	"github.com/holdfast-pg/holdfast/worker"
)

func wantEndings(t *testing.T, outcomes []holdfasttest.Outcome, want ...holdfasttest.Ending) {
	t.Helper()
	if len(outcomes) != len(want) {
		t.Fatalf("the runs were %v, want %v", outcomes, want)
	}
	for i, outcome := range outcomes {
		wantEnding(t, outcome, want[i])
	}
}

// A payment's handler asks for a receipt, on a queue of its own.
func TestDrain_WorksOffWhatHandlersEnqueueToo(t *testing.T) {
	t.Parallel()
	pool := holdfasttest.NewPool(t)
	execute(t, pool, createBookings)
	enqueue(t, pool, bookPayment{Payment: "pay_1"})
	enqueue(t, pool, bookPayment{Payment: "pay_2"}, holdfast.In(time.Hour))
	paid := holdfast.HandleTx(pool, func(ctx context.Context, tx pgx.Tx, job holdfast.Job[bookPayment]) error {
		if _, err := holdfast.Enqueue(ctx, tx, sendReceipt{Email: "ada@example.com"}, holdfast.OnQueue("mail")); err != nil {
			return err
		}
		return book(ctx, tx, job)
	})
	wantEndings(t, holdfasttest.Drain(t, t.Context(), pool, paid, receipts(nil)), holdfasttest.Completed, holdfasttest.Completed)
	if n := bookings(t, pool); n != 1 {
		t.Errorf("there are %d bookings", n)
	}
	if waiting := holdfasttest.Enqueued[bookPayment](t, pool); len(waiting) != 1 || waiting[0].Args.Payment != "pay_2" {
		t.Errorf("waiting are %+v", waiting)
	}
	wantEndings(t, holdfasttest.Drain(t, t.Context(), pool, paid))
}

func TestDrain_JobsOfOtherKindsStayAsTheyWere(t *testing.T) {
	t.Parallel()
	pool := holdfasttest.NewPool(t)
	enqueue(t, pool, bookPayment{Payment: "pay_1"})
	enqueue(t, pool, sendReceipt{Email: "ada@example.com"})
	before := holdfasttest.RequireEnqueued(t, pool, bookPayment{Payment: "pay_1"})
	wantEndings(t, holdfasttest.Drain(t, t.Context(), pool, receipts(nil)), holdfasttest.Completed)
	after := holdfasttest.RequireEnqueued(t, pool, bookPayment{Payment: "pay_1"})
	if !after.AvailableAt.Equal(before.AvailableAt) || after.Attempts != 0 {
		t.Errorf("the job was %+v, and is %+v", before, after)
	}
	rest := worker.HandleRest(func(context.Context, domain.ClaimedJob) error { panic("boom") })
	wantEndings(t, holdfasttest.Drain(t, t.Context(), pool, rest), holdfasttest.Panicked)
}

func TestDrain_OrderedJobBehindOneThatWaitsIsNotDue(t *testing.T) {
	t.Parallel()
	pool := holdfasttest.NewPool(t)
	ordered := true
	if _, err := holdfast.SetQueue(t.Context(), pool, "payments", holdfast.QueueChange{Ordered: &ordered}); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"pay_1", "pay_2", "pay_3"} {
		enqueue(t, pool, bookPayment{Payment: name}, holdfast.OnQueue("payments"), holdfast.Key("ada"))
	}
	var order []string
	once := holdfast.Handle(func(_ context.Context, job holdfast.Job[bookPayment]) error {
		order = append(order, job.Args.Payment)
		if job.Args.Payment == "pay_2" && job.Attempt == 1 {
			return errRefused
		}
		return nil
	})
	wantEndings(t, holdfasttest.Drain(t, t.Context(), pool, once), holdfasttest.Completed, holdfasttest.Retried)
	wantEndings(t, holdfasttest.DrainAll(t, t.Context(), pool, once), holdfasttest.Completed, holdfasttest.Completed)
	if order[2] != "pay_2" || order[3] != "pay_3" {
		t.Errorf("the order was %v", order)
	}
}

func TestDrainAll_TriesUntilNoAttemptIsLeft(t *testing.T) {
	t.Parallel()
	pool := holdfasttest.NewPool(t)
	enqueue(t, pool, sendReceipt{Email: "ada@example.com"}, holdfast.MaxAttempts(3), holdfast.In(time.Hour))
	wantEndings(t, holdfasttest.DrainAll(t, t.Context(), pool, receipts(errRefused)),
		holdfasttest.Retried, holdfasttest.Retried, holdfasttest.DeadLettered)
}

func TestDrain_GivesUpOnWhatNeverEnds(t *testing.T) {
	t.Parallel()
	pool := holdfasttest.NewPool(t)
	enqueue(t, pool, sendReceipt{Email: "ada@example.com"})
	wantFailure(t, func(tb *fake) {
		holdfasttest.DrainWithin(tb, tb.Context(), 2*time.Second, pool, []holdfast.Handler{receipts(holdfast.Snooze(time.Hour))}, true)
	}, "still something to do after 2s", "snoozed for 1h0m0s")
	wantFailure(t, func(tb *fake) {
		holdfasttest.Drain(tb, tb.Context(), pool)
	}, "needs the handlers")
}

func TestExpireLease_LetsADrainTakeTheJobBack(t *testing.T) {
	t.Parallel()
	pool := holdfasttest.NewPool(t)
	id := enqueue(t, pool, sendReceipt{Email: "ada@example.com"})
	execute(t, pool, "UPDATE holdfast.inbox SET status = 'processing', claimed_by = 'dead', claimed_at = now(), lease_expires_at = now() + interval '1 hour', attempts = 1, lease_generation = nextval('holdfast.generation_seq')")
	wantFailure(t, func(tb *fake) { holdfasttest.MakeDue(tb, pool, id) }, "is processing, want pending")
	wantEndings(t, holdfasttest.DrainAll(t, t.Context(), pool, receipts(nil)))
	holdfasttest.ExpireLease(t, pool, id)
	wantEndings(t, holdfasttest.Drain(t, t.Context(), pool, receipts(nil)))
	holdfasttest.MakeDue(t, pool, id)
	outcomes := holdfasttest.Drain(t, t.Context(), pool, receipts(nil))
	if wantEndings(t, outcomes, holdfasttest.Completed); outcomes[0].Job.Attempt != 2 {
		t.Errorf("the run was %s", outcomes[0])
	}
	wantFailure(t, func(tb *fake) { holdfasttest.ExpireLease(tb, pool, id) }, "is completed, want processing")
}
