package domain

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/holdfast-pg/holdfast/gen"
)

// commitLookup bounds the look at a job whose COMMIT got no reply.
const commitLookup = 5 * time.Second

// What a handler does to its transaction that keeps it from being completed.
var (
	errTxEnded  = errors.New("the handler ended its transaction, which HandleTx does: return nil to commit, an error to roll back")
	errTxFailed = errors.New("a statement of the handler failed, so its transaction can only be rolled back: return the error, or run the statement in a nested transaction")
)

// HandleTx returns a function that runs a handler in a transaction of the pool and completes
// the job in it: what the handler writes, the fence check and the completion are committed
// together or not at all. It locks the claim first, so that a claim that is over is told as
// ErrLeaseLost before the handler runs, and cannot be lost while it does. nil says that the
// job is completed. An error of the handler rolls everything back and is returned as it is;
// so does a panic, and goes on. The handler must not end the transaction, and when its
// context ends the transaction is taken from it.
func HandleTx(pool *pgxpool.Pool, run func(ctx context.Context, tx pgx.Tx, job ClaimedJob) error) func(ctx context.Context, job ClaimedJob) error {
	return func(ctx context.Context, job ClaimedJob) error {
		if outer, within := ctx.Value(withinKey{}).(pgx.Tx); within {
			return handleWithin(ctx, outer, job, run)
		}
		tx, err := pool.Begin(ctx)
		if err != nil {
			return fmt.Errorf("begin the transaction of job %s: %w", job.ID, explain(err))
		}
		defer func() { _ = tx.Rollback(ctx) }() // Does nothing after the commit.
		if err := runInTx(ctx, tx, job, run); err != nil {
			return err
		}
		if err := tx.Commit(ctx); err != nil {
			return confirmCommit(ctx, pool, job, err)
		}
		return nil
	}
}

// runInTx does all that the transaction holds. It returns with the transaction still open.
func runInTx(ctx context.Context, tx pgx.Tx, job ClaimedJob, run func(ctx context.Context, tx pgx.Tx, job ClaimedJob) error) error {
	if err := lockClaim(ctx, tx, job.Claim); err != nil {
		return err
	}
	// A handler that does not heed its context must not keep the row locked: the worker could
	// not give the job back, and none of those that it gives back with it. The server ends a
	// session whose connection is closed.
	wire := tx.Conn().PgConn().Conn()
	stop := context.AfterFunc(ctx, func() { _ = wire.Close() })
	defer stop() // Before the connection is back in the pool, where it serves somebody else.
	return runAndComplete(ctx, tx, job, run)
}

type withinKey struct{}

// WithinTx returns a context in which HandleTx begins no transaction of its pool but a nested
// one, a savepoint, of the one given, so that a test can roll back what a handler and its
// completion wrote. For holdfasttest; no worker does it.
func WithinTx(ctx context.Context, tx pgx.Tx) context.Context {
	return context.WithValue(ctx, withinKey{}, tx)
}

// handleWithin does what HandleTx promises in a nested transaction. Whoever began the outer
// one has its connection, so it is not closed when the context ends.
func handleWithin(ctx context.Context, outer pgx.Tx, job ClaimedJob, run func(ctx context.Context, tx pgx.Tx, job ClaimedJob) error) error {
	return pgx.BeginFunc(context.WithoutCancel(ctx), outer, func(tx pgx.Tx) error {
		if err := lockClaim(ctx, tx, job.Claim); err != nil {
			return err
		}
		return runAndComplete(ctx, tx, job, run)
	})
}

func runAndComplete(ctx context.Context, tx pgx.Tx, job ClaimedJob, run func(ctx context.Context, tx pgx.Tx, job ClaimedJob) error) error {
	lent := &lentTx{Tx: tx}
	if err := run(ctx, lent, job); err != nil {
		return err
	}
	return completeInTx(ctx, tx, job, lent.ended)
}

func lockClaim(ctx context.Context, tx pgx.Tx, claim Claim) error {
	_, err := gen.New().LockClaim(ctx, tx, gen.LockClaimParams{
		ID:              claim.ID.uuid(),
		PartitionBucket: int32(claim.Bucket),
		LeaseGeneration: claim.Generation,
		WorkerID:        claim.WorkerID,
	})
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return fmt.Errorf("lock the claim of job %s: %w", claim.ID, ErrLeaseLost)
	case err != nil:
		return fmt.Errorf("lock the claim of job %s: %w", claim.ID, explain(err))
	}
	return nil
}

// completeInTx completes the job in the transaction that its handler wrote in. ended says
// that the handler tried to end it.
func completeInTx(ctx context.Context, tx pgx.Tx, job ClaimedJob, ended bool) error {
	// The handler may also have said COMMIT or ROLLBACK in a statement.
	switch status := tx.Conn().PgConn().TxStatus(); {
	case ended || status == 'I':
		return errTxEnded
	case status == 'E':
		return errTxFailed
	}
	states, err := complete(ctx, newPlanned(tx), job.WorkerID, settlementGroup{
		verdict:   Complete,
		retention: job.Retention,
		members:   []groupMember{{Settlement: completionOf(job)}},
	})
	if err != nil {
		return err
	}
	if _, completed := states[keyOf(job.Claim)]; !completed {
		return fmt.Errorf("complete job %s: %w", job.ID, ErrLeaseLost)
	}
	return nil
}

func completionOf(job ClaimedJob) *Settlement {
	return &Settlement{Claim: job.Claim, Retention: job.Retention}
}

// confirmCommit returns nil if a commit that ended with an error took effect all the same:
// its reply can be lost. If the look finds nothing, or finds it too early, the error leads
// to a retry, which does no harm: the fence refuses it once the commit has taken effect.
func confirmCommit(ctx context.Context, pool *pgxpool.Pool, job ClaimedJob, commitErr error) error {
	look, cancel := context.WithTimeout(context.WithoutCancel(ctx), commitLookup)
	defer cancel()
	states, err := jobStates(look, pool, []JobID{job.ID})
	if err == nil {
		state, exists := states[job.ID]
		if tookEffect(completionOf(job), state, exists) {
			return nil
		}
	}
	return fmt.Errorf("commit the transaction of job %s: %w", job.ID, explain(commitErr))
}

// lentTx is the transaction as the handler has it: its end is not the handler's. Refused
// rather than found out afterwards, because a commit would keep half of the work.
type lentTx struct {
	pgx.Tx
	ended bool
}

// Commit refuses.
func (t *lentTx) Commit(context.Context) error {
	t.ended = true
	return errTxEnded
}

// Rollback refuses. Returning an error from the handler rolls back.
func (t *lentTx) Rollback(context.Context) error {
	t.ended = true
	return errTxEnded
}
