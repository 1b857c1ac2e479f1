package domain

import (
	"context"
	"fmt"

	"github.com/holdfast-pg/holdfast/gen"
)

// Drain tells a worker to stop claiming and finish what it holds; the worker learns of it at
// its next heartbeat. It returns ErrWorkerUnknown when no such worker is alive. The order is
// this program's; a person's is By.Drain.
func Drain(ctx context.Context, db DBTX, workerID string) error {
	return ThisProgram().Drain(ctx, db, workerID)
}

// Drain tells a worker to stop claiming and finish what it holds; the worker learns of it at
// its next heartbeat. It returns ErrWorkerUnknown when no such worker is alive.
func (by By) Drain(ctx context.Context, db DBTX, workerID string) error {
	by, err := by.Check()
	if err != nil {
		return err
	}
	return drain(ctx, db, gen.DrainWorkerParams{ID: workerID, Actor: &by.Actor, Reason: by.Reason})
}

// Drain says that the worker has stopped claiming. It is no event: nobody ordered it.
func (q *Queue) Drain(ctx context.Context, workerID string) error {
	return drain(ctx, q.pool, gen.DrainWorkerParams{ID: workerID})
}

func drain(ctx context.Context, db DBTX, params gen.DrainWorkerParams) error {
	drained, err := gen.New().DrainWorker(ctx, db, params)
	if err == nil && drained == 0 {
		err = ErrWorkerUnknown
	}
	if err != nil {
		return fmt.Errorf("drain worker %s: %w", params.ID, explain(err))
	}
	return nil
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
		claims, err := heldClaims(ctx, q.planned, workerID, after)
		if err != nil || len(claims) == 0 {
			return err
		}
		after = claims[len(claims)-1].Generation
		group := settlementGroup{verdict: Release}
		for _, claim := range claims {
			group.members = append(group.members, groupMember{Settlement: &Settlement{Claim: claim, Outcome: ReleaseFor(heldToTheEnd, 0)}})
		}
		group.sort()
		if _, err := q.release(ctx, workerID, group); err != nil {
			return err
		}
	}
}

// heldClaims lists claims that a worker holds, oldest first, after the one of a generation: a
// batch at most.
func heldClaims(ctx context.Context, db DBTX, workerID string, after int64) ([]Claim, error) {
	rows, err := gen.New().ListHeldClaims(ctx, db, gen.ListHeldClaimsParams{WorkerID: workerID, AfterGeneration: after, MaxRows: housekeepingBatch})
	if err != nil {
		return nil, fmt.Errorf("list the claims still held: %w", explain(err))
	}
	claims := make([]Claim, len(rows))
	for i, row := range rows {
		claims[i] = Claim{ID: row.ID.Bytes, Bucket: int(row.PartitionBucket), Generation: row.LeaseGeneration, WorkerID: workerID}
	}
	return claims, nil
}

// HeldJobs counts the claims that a worker holds: none after its drain.
func HeldJobs(ctx context.Context, db DBTX, workerID string) (int64, error) {
	held, err := gen.New().CountHeldJobs(ctx, db, workerID)
	if err != nil {
		return 0, fmt.Errorf("count the jobs that worker %s holds: %w", workerID, explain(err))
	}
	return held, nil
}
