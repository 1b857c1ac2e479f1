package domain

import (
	"context"
	"fmt"

	"github.com/holdfast-pg/holdfast/gen"
)

// Redrive puts failed and dead-lettered jobs back to pending with all their attempts and
// returns those it changed; the others were in no such state. Order across a redrive is not
// promised.
func Redrive(ctx context.Context, db DBTX, ids ...JobID) ([]JobID, error) {
	buckets := make([]int32, len(ids))
	for i, id := range ids {
		buckets[i] = int32(id.Bucket())
	}
	rows, err := gen.New().RedriveJobs(ctx, db, gen.RedriveJobsParams{PartitionBuckets: buckets, IDs: uuids(ids)})
	if err != nil {
		return nil, fmt.Errorf("redrive %d jobs: %w", len(ids), explain(err))
	}
	redriven := make([]JobID, len(rows))
	for i, row := range rows {
		redriven[i] = row.Bytes
	}
	return redriven, nil
}
