package domain

import (
	"context"
	"fmt"

	"github.com/holdfast-pg/holdfast/gen"
)

// Drain tells a worker to stop claiming and finish what it holds; the worker learns of it at
// its next heartbeat. It returns ErrWorkerUnknown when no such worker is alive.
func Drain(ctx context.Context, db DBTX, workerID string) error {
	drained, err := gen.New().DrainWorker(ctx, db, workerID)
	if err != nil {
		return fmt.Errorf("drain worker %s: %w", workerID, explain(err))
	}
	if drained == 0 {
		return fmt.Errorf("drain worker %s: %w", workerID, ErrWorkerUnknown)
	}
	return nil
}

// Drain says that the worker has stopped claiming.
func (q *Queue) Drain(ctx context.Context, workerID string) error {
	return Drain(ctx, q.pool, workerID)
}

// heldToTheEnd is what the event of a job says that its worker gave back with its last word: the
// handler ignores its context, or the reply to the claim was lost.
const heldToTheEnd = "the worker left while it held the job"

// Leave ends a worker's registration, as its last word. Claims that it still holds are given
// back with their attempts refunded: also those it does not know of, because the reply to
// its claim was lost. After it returned nil the worker holds no job.
func (q *Queue) Leave(ctx context.Context, workerID string) error {
	if err := q.releaseHeld(ctx, workerID); err != nil {
		return fmt.Errorf("leave as worker %s: %w", workerID, err)
	}
	if _, err := q.queries.LeaveWorker(ctx, q.pool, workerID); err != nil {
		return fmt.Errorf("leave as worker %s: %w", workerID, explain(err))
	}
	return nil
}

func (q *Queue) releaseHeld(ctx context.Context, workerID string) error {
	var after int64
	for {
		rows, err := q.queries.ListHeldClaims(ctx, q.planned, gen.ListHeldClaimsParams{
			WorkerID: workerID, AfterGeneration: after, MaxRows: housekeepingBatch,
		})
		if err != nil {
			return fmt.Errorf("list the claims still held: %w", explain(err))
		}
		if len(rows) == 0 {
			return nil
		}
		after = rows[len(rows)-1].LeaseGeneration
		group := settlementGroup{verdict: Release}
		for _, row := range rows {
			claim := Claim{ID: row.ID.Bytes, Bucket: int(row.PartitionBucket), Generation: row.LeaseGeneration, WorkerID: workerID}
			group.members = append(group.members, groupMember{Settlement: Settlement{Claim: claim, Outcome: ReleaseFor(heldToTheEnd, 0)}})
		}
		group.sort()
		if _, err := q.release(ctx, workerID, group); err != nil {
			return err
		}
	}
}

// HeldJobs counts the claims that a worker holds: none after its drain.
func HeldJobs(ctx context.Context, db DBTX, workerID string) (int64, error) {
	held, err := gen.New().CountHeldJobs(ctx, db, workerID)
	if err != nil {
		return 0, fmt.Errorf("count the jobs that worker %s holds: %w", workerID, explain(err))
	}
	return held, nil
}
