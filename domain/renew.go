package domain

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/holdfast-pg/holdfast/gen"
)

// Renew moves the deadlines of a worker's claims to a lease from now and returns those that
// it still holds. A claim that is missing is lost: its lease had ended, or another
// claim holds the job. Do not renew a claim whose settlement is under way: the statement
// would wait for it and hold up all the others.
func (q *Queue) Renew(ctx context.Context, workerID string, lease time.Duration, claims []Claim) ([]Claim, error) {
	ordered := slices.Clone(claims)
	slices.SortFunc(ordered, compareClaims)
	set := newFenceSet(ordered)
	rows, err := q.queries.RenewLeases(ctx, q.planned, gen.RenewLeasesParams{
		WorkerID:         workerID,
		Lease:            lease,
		PartitionBuckets: set.buckets,
		IDs:              set.ids,
		LeaseGenerations: set.generations,
	})
	if err != nil {
		return nil, fmt.Errorf("renew %d leases: %w", len(claims), explain(err))
	}
	held := make([]Claim, len(rows))
	for i, row := range rows {
		held[i] = Claim{ID: row.ID.Bytes, Bucket: int(row.PartitionBucket), Generation: row.LeaseGeneration, WorkerID: workerID}
	}
	if len(held) < len(ordered) {
		q.noteUnrenewed(ctx, workerID, ordered, held)
	}
	return held, nil
}

// noteUnrenewed leaves an event for each of the claims that is lost. Not all that were not
// renewed are: a settlement of the worker itself may have crossed the renewal. The statement
// tells the two apart.
func (q *Queue) noteUnrenewed(ctx context.Context, workerID string, claims, held []Claim) {
	renewed := make(map[claimKey]bool, len(held))
	for _, claim := range held {
		renewed[keyOf(claim)] = true
	}
	var refusals []refusal
	for _, claim := range claims {
		if !renewed[keyOf(claim)] {
			refusals = append(refusals, refusal{claim: claim, detail: "its renewal was refused"})
		}
	}
	q.noteLost(ctx, workerID, refusals)
}
