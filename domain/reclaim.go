package domain

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/holdfast-pg/holdfast/gen"
)

// housekeepingBatch bounds every housekeeping statement.
const housekeepingBatch = 1000

// Reclaimed is a job that was taken back from a claim whose lease had ended.
type Reclaimed struct {
	Claim Claim // The claim that is over.

	Queue    string
	Kind     string
	Attempts int
	Status   Status // pending, or dead_letter when no attempt was left.
}

// Reclaim takes back every claim after a generation, 0 for all, whose lease has ended by the
// database's clock, in bounded batches. Jobs with attempts left wait for their backoff, the
// others are dead-lettered. It is harmless when two run at once. On an error it returns what it
// reclaimed before it.
//
// It returns also the generation before that of the oldest claim that was in flight. A later
// call need not look further back, but for a claim that was not committed yet: each claim that
// was settled costs a walk a step while a transaction keeps vacuum from what it left.
func (q *Queue) Reclaim(ctx context.Context, after int64) (all []Reclaimed, over int64, err error) {
	oldest, err := q.queries.OldestClaim(ctx, q.plannedWork, after)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, after, nil
	}
	if err != nil {
		return nil, after, fmt.Errorf("find the oldest claim: %w", explain(err))
	}
	all, err = q.reclaim(ctx, oldest-1)
	return all, oldest - 1, err
}

func (q *Queue) reclaim(ctx context.Context, after int64) ([]Reclaimed, error) {
	var all []Reclaimed
	for {
		rows, err := q.queries.ReclaimExpiredLeases(ctx, q.plannedWork, gen.ReclaimExpiredLeasesParams{
			AfterGeneration: after,
			Batch:           housekeepingBatch,
		})
		if err != nil {
			return all, fmt.Errorf("reclaim ended leases: %w", explain(err))
		}
		for _, row := range rows {
			reclaimed := newReclaimed(row)
			all = append(all, reclaimed)
			after = max(after, reclaimed.Claim.Generation) // An UPDATE returns its rows in any order.
		}
		if len(rows) < housekeepingBatch {
			return all, nil
		}
	}
}

func newReclaimed(row gen.ReclaimExpiredLeasesRow) Reclaimed {
	return Reclaimed{
		Claim: Claim{
			ID:         row.ID.Bytes,
			Bucket:     int(row.PartitionBucket),
			Generation: row.LeaseGeneration,
			WorkerID:   row.ClaimedBy,
		},
		Queue:    row.Queue,
		Kind:     row.Kind,
		Attempts: int(row.Attempts),
		Status:   row.Status,
	}
}
