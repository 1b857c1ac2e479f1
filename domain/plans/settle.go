package plans

import (
	"context"
	"time"

	"github.com/holdfast-pg/holdfast/domain"
	"github.com/holdfast-pg/holdfast/gen"
)

func lockClaim(ctx context.Context, db domain.DBTX, _ int) error {
	_, err := queries.LockClaim(ctx, db, gen.LockClaimParams{ID: sampleID(0), WorkerID: sampleWorker})
	return err
}

func completions(size int) gen.CompleteJobsParams {
	return gen.CompleteJobsParams{
		PartitionBuckets: buckets(size), IDs: sampleIDs(size), LeaseGenerations: make([]int64, size), WorkerID: sampleWorker,
	}
}

func completeJobs(ctx context.Context, db domain.DBTX, size int) error {
	_, err := queries.CompleteJobs(ctx, db, completions(size))
	return err
}

func completeAndKeepJobs(ctx context.Context, db domain.DBTX, size int) error {
	_, err := queries.CompleteAndKeepJobs(ctx, db, gen.CompleteAndKeepJobsParams(completions(size)))
	return err
}

func completeAndDropJobs(ctx context.Context, db domain.DBTX, size int) error {
	_, err := queries.CompleteAndDropJobs(ctx, db, gen.CompleteAndDropJobsParams(completions(size)))
	return err
}

func retryJobs(ctx context.Context, db domain.DBTX, size int) error {
	_, err := queries.RetryJobs(ctx, db, gen.RetryJobsParams{
		PartitionBuckets: buckets(size), IDs: sampleIDs(size), LeaseGenerations: make([]int64, size),
		Delays: make([]time.Duration, size), Errors: make([]string, size), WorkerID: sampleWorker,
	})
	return err
}

func failJobs(ctx context.Context, db domain.DBTX, size int) error {
	_, err := queries.FailJobs(ctx, db, gen.FailJobsParams{
		PartitionBuckets: buckets(size), IDs: sampleIDs(size), LeaseGenerations: make([]int64, size),
		Errors: make([]string, size), WorkerID: sampleWorker,
	})
	return err
}

func releaseJobs(ctx context.Context, db domain.DBTX, size int) error {
	_, err := queries.ReleaseJobs(ctx, db, gen.ReleaseJobsParams{
		PartitionBuckets: buckets(size), IDs: sampleIDs(size), LeaseGenerations: make([]int64, size),
		Delays: make([]time.Duration, size), Events: repeat(size, "released"), Details: make([]string, size), WorkerID: sampleWorker,
	})
	return err
}

func recordLostLeases(ctx context.Context, db domain.DBTX, size int) error {
	_, err := queries.RecordLostLeases(ctx, db, gen.RecordLostLeasesParams{
		IDs: sampleIDs(size), LeaseGenerations: make([]int64, size), Settlings: make([]bool, size), Details: make([]string, size), WorkerID: sampleWorker,
	})
	return err
}

func listJobStates(ctx context.Context, db domain.DBTX, size int) error {
	_, err := queries.ListJobStates(ctx, db, sampleIDs(size))
	return err
}

func archiveCompletedJobs(ctx context.Context, db domain.DBTX, size int) error {
	_, err := queries.ArchiveCompletedJobs(ctx, db, int32(size))
	return err
}

func deleteExpiredKeys(ctx context.Context, db domain.DBTX, size int) error {
	_, err := queries.DeleteExpiredKeys(ctx, db, int32(size))
	return err
}

func deleteOldMarks(ctx context.Context, db domain.DBTX, size int) error {
	_, err := queries.DeleteOldMarks(ctx, db, gen.DeleteOldMarksParams{Age: sampleAge, Batch: int32(size)})
	return err
}

func deleteUnusedFences(ctx context.Context, db domain.DBTX, size int) error {
	_, err := queries.DeleteUnusedFences(ctx, db, gen.DeleteUnusedFencesParams{Age: sampleAge, Batch: int32(size)})
	return err
}

func deleteOldEvents(ctx context.Context, db domain.DBTX, size int) error {
	_, err := queries.DeleteOldEvents(ctx, db, gen.DeleteOldEventsParams{Age: sampleAge, Batch: int32(size)})
	return err
}
