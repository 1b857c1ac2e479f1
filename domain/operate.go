package domain

import (
	"context"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5/pgtype"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/holdfast-pg/holdfast/gen"
)

// Redrive puts failed and dead-lettered jobs back to pending with all their attempts and
// returns those it changed; the others were in no such state. Order across a redrive is not
// promised. The order is this program's; a person's is By.Redrive.
func Redrive(ctx context.Context, db DBTX, ids ...JobID) ([]JobID, error) {
	return ThisProgram().Redrive(ctx, db, 0, ids...)
}

// Redrive puts failed and dead-lettered jobs back to pending with all their attempts and
// returns those it changed; the others were in no such state. They get maxAttempts; 0 leaves
// each job its own. The jobs of one call are due at one time, and so are claimed by their seq;
// order across a redrive is not promised all the same, for others may have run meanwhile.
func (by By) Redrive(ctx context.Context, db DBTX, maxAttempts int, ids ...JobID) ([]JobID, error) {
	if maxAttempts < 0 || maxAttempts > maxAttemptsLimit {
		return nil, &InvalidError{Field: "max attempts", Reason: fmt.Sprintf("%d is not between 1 and %d", maxAttempts, maxAttemptsLimit)}
	}
	set := inLockOrder(ids)
	return by.operate("redrive", len(ids), func(by By) ([]pgtype.UUID, error) {
		params := gen.RedriveJobsParams{PartitionBuckets: set.buckets, IDs: set.ids, Actor: by.Actor, Reason: by.Reason}
		if maxAttempts > 0 {
			params.MaxAttempts = new(int32(maxAttempts))
		}
		return gen.New().RedriveJobs(ctx, planned(db), params)
	})
}

// Purge deletes failed and dead-lettered jobs for good, and returns those it deleted; the
// others were in no such state. Their idempotency keys are free again: the next enqueue under
// such a key makes a job.
func (by By) Purge(ctx context.Context, db DBTX, ids ...JobID) ([]JobID, error) {
	set := inLockOrder(ids)
	return by.operate("purge", len(ids), func(by By) ([]pgtype.UUID, error) {
		return gen.New().PurgeJobs(ctx, planned(db), gen.PurgeJobsParams{
			PartitionBuckets: set.buckets, IDs: set.ids, Actor: by.Actor, Reason: by.Reason,
		})
	})
}

// Cancel ends jobs that are not finished, and returns those it ended. They are failed, with who
// and why in their last error, and an ordered lane goes on without them. A job that is running
// is taken from its worker: the handler's context ends with ErrLeaseLost at the next renewal,
// and its result is refused. It may have done what it does all the same. A job that is locked is
// left alone, above all one whose handler runs in a transaction (HandleTx).
func (by By) Cancel(ctx context.Context, db DBTX, ids ...JobID) ([]JobID, error) {
	set := inLockOrder(ids)
	return by.operate("cancel", len(ids), func(by By) ([]pgtype.UUID, error) {
		return gen.New().CancelJobs(ctx, planned(db), gen.CancelJobsParams{
			PartitionBuckets: set.buckets, IDs: set.ids, Actor: by.Actor, Reason: by.Reason,
		})
	})
}

// Release takes claims from their workers and returns the jobs whose claims it ended; each can
// be claimed again at once, its attempt refunded. The holder learns of it as of a lost lease: it
// can neither renew nor settle, and its handler's context ends with ErrLeaseLost at the next
// renewal. Until then it runs, perhaps beside the next one. A claim that is over is left alone,
// and so is one that is locked (HandleTx).
func (by By) Release(ctx context.Context, db DBTX, claims ...Claim) ([]JobID, error) {
	claims = slices.SortedFunc(slices.Values(claims), compareClaims)
	set, workers := newFenceSet(claims), make([]string, len(claims))
	for i, claim := range claims {
		workers[i] = claim.WorkerID
	}
	return by.operate("release", len(claims), func(by By) ([]pgtype.UUID, error) {
		return gen.New().ReleaseClaims(ctx, planned(db), gen.ReleaseClaimsParams{
			PartitionBuckets: set.buckets, IDs: set.ids, LeaseGenerations: set.generations, WorkerIds: workers,
			Actor: by.Actor, Reason: by.Reason,
		})
	})
}

// operate runs a statement over a set of jobs.
func (by By) operate(action string, jobs int, run func(by By) ([]pgtype.UUID, error)) ([]JobID, error) {
	by, err := by.Check()
	if err != nil {
		return nil, err
	}
	rows, err := run(by)
	if err != nil {
		return nil, fmt.Errorf("%s %d jobs: %w", action, jobs, explain(err))
	}
	changed := make([]JobID, len(rows))
	for i, row := range rows {
		changed[i] = row.Bytes
	}
	return changed, nil
}

// inLockOrder is a set of jobs, in the order in which every statement locks its rows. It has no
// generations: it does not matter who holds them.
func inLockOrder(ids []JobID) fenceSet {
	jobs := make([]Claim, len(ids))
	for i, id := range ids {
		jobs[i] = Claim{ID: id, Bucket: id.Bucket()}
	}
	slices.SortFunc(jobs, compareClaims)
	return newFenceSet(jobs)
}

// planned keeps a set on its index where the connection is ours. In a caller's transaction the
// settings would outlast the statement.
func planned(db DBTX) DBTX {
	if pool, ours := db.(*pgxpool.Pool); ours {
		return newPlanned(pool)
	}
	return db
}
