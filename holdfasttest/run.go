package holdfasttest

import (
	"context"
	"errors"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/holdfast-pg/holdfast"
	"github.com/holdfast-pg/holdfast/domain"
)

// DB is a pgx.Tx, in which everything is rolled back with the test's other writes, or a
// *pgxpool.Pool.
type DB interface {
	holdfast.DBTX
	Begin(ctx context.Context) (pgx.Tx, error)
	SendBatch(ctx context.Context, batch *pgx.Batch) pgx.BatchResults
}

// Run enqueues a job, claims it, runs its handler and settles it, as a worker would, but here
// and at once, whatever delay the options name. The handler has the context given.
//
// In a transaction, what holdfast.HandleTx begins is a savepoint of it, and the handler's own
// pool is not touched; it may be nil. What a handler made with holdfast.Handle writes is in the
// transaction only if the handler was given it, and is rolled back when one of its statements
// failed. A handler that begins transactions of its own needs a pool here.
func Run(tb testing.TB, ctx context.Context, db DB, handler holdfast.Handler, args holdfast.Args, options ...holdfast.EnqueueOption) Outcome {
	tb.Helper()
	return attempt(tb, ctx, db, handler, enqueueAndClaim(tb, db, handler, args, options))
}

// RunJob is Run for a job that was enqueued already, by the code under test.
func RunJob(tb testing.TB, ctx context.Context, db DB, handler holdfast.Handler, id holdfast.JobID) Outcome {
	tb.Helper()
	if job, err := domain.FindJob(tb.Context(), db, id); err == nil {
		wantKind(tb, handler, job.Kind)
	}
	return attempt(tb, ctx, db, handler, claim(tb, db, id, pending))
}

// RunTwice runs a handler twice for one job, as when its worker dies when the handler has done
// its work and the completion is not recorded: the lease ends, and another claim runs it again. The
// test then sees whether the effects are those of one run.
//
// The completion of a holdfast.HandleTx is committed with what it wrote, so that nothing is
// left to run again: its job is delivered once more all the same, and refused as LeaseLost
// before the function runs.
func RunTwice(tb testing.TB, ctx context.Context, db DB, handler holdfast.Handler, args holdfast.Args, options ...holdfast.EnqueueOption) (first, second Outcome) {
	tb.Helper()
	job := enqueueAndClaim(tb, db, handler, args, options)
	first, _ = try(tb, ctx, db, handler, job)
	if first.Ending != Completed || !handler.Settles() {
		job = claim(tb, db, job.ID, processing)
	}
	return first, attempt(tb, ctx, db, handler, job)
}

// RunStale runs a handler for a job under its current claim, and then under an older one, as
// when a worker was paused for longer than its lease and goes on without knowing. The stale run
// can settle nothing: it ends as Fenced where the handler guards what it writes
// (holdfast.Guard), else as LeaseLost. The test then sees whether it left what the current run
// wrote.
func RunStale(tb testing.TB, ctx context.Context, db DB, handler holdfast.Handler, args holdfast.Args, options ...holdfast.EnqueueOption) (current, stale Outcome) {
	tb.Helper()
	overtaken := enqueueAndClaim(tb, db, handler, args, options)
	current = attempt(tb, ctx, db, handler, claim(tb, db, overtaken.ID, processing))
	return current, attempt(tb, ctx, db, handler, overtaken)
}

func enqueueAndClaim(tb testing.TB, db DB, handler holdfast.Handler, args holdfast.Args, options []holdfast.EnqueueOption) domain.ClaimedJob {
	tb.Helper()
	wantKind(tb, handler, args.Kind())
	result, err := holdfast.Enqueue(tb.Context(), db, args, options...)
	if err != nil {
		tb.Fatalf("holdfasttest: %v", err)
	}
	if result.Duplicate {
		tb.Fatalf("holdfasttest: the idempotency key is that of job %s (%s): RunJob runs a job that was enqueued", result.ID, result.State)
	}
	return claim(tb, db, result.ID, pending)
}

func wantKind(tb testing.TB, handler holdfast.Handler, kind string) {
	tb.Helper()
	if handler.Kind() != kind && handler.Kind() != "" {
		tb.Fatalf("holdfasttest: the job is of kind %q and the handler for %q: pass the handler of that kind", kind, handler.Kind())
	}
}

// attempt runs a handler and settles its job.
func attempt(tb testing.TB, ctx context.Context, db DB, handler holdfast.Handler, job domain.ClaimedJob) Outcome {
	tb.Helper()
	outcome, settling := try(tb, ctx, db, handler, job)
	if outcome.Err == nil && handler.Settles() {
		return outcome
	}
	settled := domain.SettleOn(context.WithoutCancel(ctx), db, domain.Settlement{Claim: job.Claim, Retention: job.Retention, Outcome: settling})
	switch {
	case settled.Err == nil:
	case !errors.Is(settled.Err, holdfast.ErrLeaseLost):
		tb.Fatalf("holdfasttest: record that the job was %s: %v", outcome, settled.Err)
	case outcome.Ending != Fenced && outcome.Ending != Panicked:
		outcome.Ending, outcome.Delay = LeaseLost, 0
	default:
		outcome.Delay = 0
	}
	return outcome
}

// try runs a handler. In a transaction it does so behind a savepoint, so that a statement that
// failed does not spoil the rest of the test.
func try(tb testing.TB, ctx context.Context, db DB, handler holdfast.Handler, job domain.ClaimedJob) (Outcome, domain.Outcome) {
	tb.Helper()
	tx, within := db.(pgx.Tx)
	if !within {
		return read(job, handler.Try(ctx, job))
	}
	own := context.WithoutCancel(ctx)
	savepoint, err := tx.Begin(own)
	if err != nil {
		tb.Fatalf("holdfasttest: the test's transaction takes no statement: %v", err)
	}
	failure := handler.Try(domain.WithinTx(ctx, tx), job)
	end := savepoint.Commit
	if tx.Conn().PgConn().TxStatus() == 'E' {
		end = savepoint.Rollback
	}
	if err := end(own); err != nil {
		tb.Fatalf("holdfasttest: the handler ended the test's transaction, or its connection (%v); the handler returned: %v", err, failure)
	}
	return read(job, failure)
}
