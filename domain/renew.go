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
	return held, nil
}
