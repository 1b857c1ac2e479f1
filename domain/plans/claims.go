package plans

import (
	"cmp"
	"context"
	"time"

	"github.com/holdfast-pg/holdfast/domain"
	"github.com/holdfast-pg/holdfast/gen"
)

// ClaimJobs is the claim of jobs that are not ordered, with the arguments of the request. A
// field that is left empty is a sample's: every bucket, the size of the set for the batch.
func ClaimJobs(request domain.ClaimRequest) Statement {
	return Statement{
		Name: "ClaimJobs", Sent: ByIndex, Set: true,
		Indexes: []string{"inbox_claim_idx", "inbox_pkey"},
		Call: func(ctx context.Context, db domain.DBTX, size int) error {
			_, err := queries.ClaimJobs(ctx, db, claimParams(request, size))
			return err
		},
	}
}

func claimParams(request domain.ClaimRequest, size int) gen.ClaimJobsParams {
	params := gen.ClaimJobsParams{
		WorkerID:         cmp.Or(request.WorkerID, sampleWorker),
		Queue:            cmp.Or(request.Queue, sampleQueue),
		PartitionBuckets: buckets(everyBucket),
		DueFor:           request.DueFor,
		Quota:            cmp.Or(int32(request.Quota), sampleQuota),
		Batch:            cmp.Or(int32(request.Batch), int32(size)),
		Lease:            cmp.Or(request.Lease, sampleLease),
	}
	if len(request.Buckets) > 0 {
		params.PartitionBuckets = make([]int32, len(request.Buckets))
		for i, bucket := range request.Buckets {
			params.PartitionBuckets[i] = int32(bucket)
		}
	}
	params.Floors = request.Floors
	if params.Floors == nil {
		params.Floors = make([]time.Time, len(params.PartitionBuckets))
	}
	return params
}

func listLaneBuckets(ctx context.Context, db domain.DBTX, size int) error {
	_, err := queries.ListLaneBuckets(ctx, db, gen.ListLaneBucketsParams{
		PartitionBuckets: buckets(everyBucket), Queue: sampleQueue, Bound: int32(size),
	})
	return err
}

// claimLanes is planned without the locks of LockLanes, of which the planner knows nothing.
func claimLanes(ctx context.Context, db domain.DBTX, size int) error {
	const locked = 64 // As many as one transaction locks at most.
	_, err := queries.ClaimLanes(ctx, db, gen.ClaimLanesParams{
		Queue: sampleQueue, PartitionBuckets: buckets(locked), AfterKeys: make([]string, locked),
		Keys: 32, Quota: sampleQuota, Batch: int32(size), WorkerID: sampleWorker, Lease: sampleLease,
	})
	return err
}

func renewLeases(ctx context.Context, db domain.DBTX, size int) error {
	_, err := queries.RenewLeases(ctx, db, gen.RenewLeasesParams{
		PartitionBuckets: buckets(size), IDs: sampleIDs(size), LeaseGenerations: make([]int64, size),
		WorkerID: sampleWorker, Lease: sampleLease,
	})
	return err
}

func listHeldClaims(ctx context.Context, db domain.DBTX, size int) error {
	_, err := queries.ListHeldClaims(ctx, db, gen.ListHeldClaimsParams{WorkerID: sampleWorker, MaxRows: int32(size)})
	return err
}

func oldestClaim(ctx context.Context, db domain.DBTX, _ int) error {
	_, err := queries.OldestClaim(ctx, db, 0)
	return err
}

func reclaimExpiredLeases(ctx context.Context, db domain.DBTX, size int) error {
	_, err := queries.ReclaimExpiredLeases(ctx, db, gen.ReclaimExpiredLeasesParams{Batch: int32(size)})
	return err
}
