package domain

import (
	"context"
	"fmt"
	"time"

	"github.com/holdfast-pg/holdfast/gen"
)

// ClaimRequest says what a worker wants to claim.
type ClaimRequest struct {
	WorkerID string
	Queue    string
	Buckets  []int         // Probed in this order.
	Quota    int           // At most so many jobs from each bucket.
	Batch    int           // At most so many jobs in all.
	Lease    time.Duration // How long the claims hold unless renewed.
	Lanes    bool
	DueFor   time.Duration
}

// Claim gives due jobs to the worker under a lease. Each claim has a fence token that is
// larger than those of all claims that ended before it began. No jobs: nothing is due, or
// the queue is paused, or unknown.
func (q *Queue) Claim(ctx context.Context, request ClaimRequest) ([]ClaimedJob, error) {
	buckets := make([]int32, len(request.Buckets))
	for i, bucket := range request.Buckets {
		buckets[i] = int32(bucket)
	}
	rows, err := q.queries.ClaimJobs(ctx, planned{q.work}, gen.ClaimJobsParams{
		WorkerID:         request.WorkerID,
		Queue:            request.Queue,
		PartitionBuckets: buckets,
		Quota:            int32(request.Quota),
		Batch:            int32(request.Batch),
		Lease:            request.Lease,
	})
	if err != nil {
		return nil, fmt.Errorf("claim from queue %q: %w", request.Queue, explain(err))
	}
	jobs := make([]ClaimedJob, len(rows))
	for i, row := range rows {
		jobs[i] = newClaimedJob(row, request.WorkerID)
	}
	return jobs, nil
}

func newClaimedJob(row gen.ClaimJobsRow, workerID string) ClaimedJob {
	job := ClaimedJob{
		Claim: Claim{
			ID:         row.ID.Bytes,
			Bucket:     int(row.PartitionBucket),
			Generation: row.LeaseGeneration,
			WorkerID:   workerID,
		},
		Seq:          row.Seq,
		Queue:        row.Queue,
		Kind:         row.Kind,
		PartitionKey: row.PartitionKey,
		Attempt:      int(row.Attempts),
		MaxAttempts:  int(row.MaxAttempts),
		AvailableAt:  row.AvailableAt,
		CreatedAt:    row.CreatedAt,
		Headers:      row.Headers,
		Payload:      row.Payload,
		Retention:    row.RetentionMode,
	}
	if row.IdempotencyKey != nil {
		job.IdempotencyKey = *row.IdempotencyKey
	}
	return job
}
