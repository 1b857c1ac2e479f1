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
	Floors   []time.Time   // For each bucket, what became available before is not seen; none: all is.
	Quota    int           // At most so many jobs from each bucket.
	Batch    int           // At most so many jobs in all.
	Lease    time.Duration // How long the claims hold unless renewed.
	DueFor   time.Duration // Only jobs that have been due for so long; default: 0, all that are due.
	Lanes    bool          // Claim ordered jobs, lane by lane, in place of the others.
}

// Claim gives due jobs to the worker under a lease. Each claim has a fence token that is
// larger than those of all claims that ended before it began. No jobs: nothing is due, or
// the queue is paused, or unknown. An ordered job is due when it is the first of its lane,
// the jobs of its key, and none of them is being processed. Jobs may come beside an error:
// they were claimed before it.
func (q *Queue) Claim(ctx context.Context, request ClaimRequest) ([]ClaimedJob, error) {
	claim := q.claimJobs
	if request.Lanes {
		claim = q.claimLanes
	}
	jobs, err := q.claimInEpoch(ctx, func() ([]ClaimedJob, error) { return claim(ctx, request) })
	if err != nil {
		return jobs, fmt.Errorf("claim from queue %q: %w", request.Queue, NameRole(q.pool, explain(err)))
	}
	return jobs, nil
}

func (q *Queue) claimJobs(ctx context.Context, request ClaimRequest) ([]ClaimedJob, error) {
	rows, err := q.queries.ClaimJobs(ctx, q.plannedWork, gen.ClaimJobsParams{
		WorkerID:         request.WorkerID,
		Queue:            request.Queue,
		PartitionBuckets: int32s(request.Buckets),
		Floors:           request.floors(),
		DueFor:           request.DueFor,
		Quota:            int32(request.Quota),
		Batch:            int32(request.Batch),
		Lease:            request.Lease,
	})
	if err != nil {
		return nil, err
	}
	jobs := make([]ClaimedJob, len(rows))
	for i, row := range rows {
		jobs[i] = newClaimedJob(row, request.WorkerID)
	}
	return jobs, nil
}

// floors returns one floor for each bucket. The zero time is before that of any job.
func (r ClaimRequest) floors() []time.Time {
	if r.Floors == nil {
		return make([]time.Time, len(r.Buckets))
	}
	return r.Floors
}

func int32s(numbers []int) []int32 {
	converted := make([]int32, len(numbers))
	for i, number := range numbers {
		converted[i] = int32(number)
	}
	return converted
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
		Waited:       row.Waited,
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
