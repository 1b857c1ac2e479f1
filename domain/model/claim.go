package model

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/holdfast-pg/holdfast/domain"
)

// place is where a job waits: the unit that a claim probes.
type place struct {
	queue  string
	bucket int
}

func placeOf(job *domain.JobRecord) place {
	return place{job.Queue, job.Bucket}
}

// Claim gives due jobs to the worker under a lease, at most the quota from each bucket and
// the batch in all, probing the buckets in the order given. Without Lanes it takes, from each,
// those that have been available for longest, and of two that became so together, the one
// enqueued first; with Lanes, the first jobs of free lanes, as freeHeads says. Neither the registry nor, but
// for those of the same lane, other claims matter.
func (q *Queue) Claim(ctx context.Context, request domain.ClaimRequest) ([]domain.ClaimedJob, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("claim from queue %q: %w", request.Queue, err)
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	settings, known := q.queues[request.Queue]
	if !known || settings.Paused {
		return []domain.ClaimedJob{}, nil
	}
	take := q.dueSince
	if request.Lanes {
		take = q.freeHeads
	}
	since := q.now().Add(-request.DueFor)
	jobs := []domain.ClaimedJob{}
	for _, bucket := range request.Buckets {
		room := min(request.Quota, request.Batch-len(jobs))
		for _, job := range slices.Clone(take(place{request.Queue, bucket}, room, since)) {
			q.claim(job, request.WorkerID, request.Lease)
			jobs = append(jobs, newClaimedJob(job, settings.RetentionMode))
		}
	}
	return jobs, nil
}

// due returns the first jobs of a bucket whose time has come, at most so many.
func (q *Queue) due(where place, limit int) []*domain.JobRecord {
	return q.dueSince(where, limit, q.now())
}

// dueSince returns the first jobs of a bucket whose time had come by then, at most so many.
func (q *Queue) dueSince(where place, limit int, then time.Time) []*domain.JobRecord {
	line := q.lines[where]
	count := 0
	for count < min(limit, len(line)) && !line[count].AvailableAt.After(then) {
		count++
	}
	return line[:count]
}

func (q *Queue) claim(job *domain.JobRecord, workerID string, lease time.Duration) {
	q.leaveLine(job)
	now := q.now()
	deadline := toMicroseconds(now.Add(lease))
	q.generation++
	job.Status = domain.StatusProcessing
	job.ClaimedBy, job.ClaimedAt, job.LeaseExpiresAt = &workerID, &now, &deadline
	job.Generation = q.settings.Epoch<<40 + q.generation
	job.Attempts++
}

func newClaimedJob(job *domain.JobRecord, retention domain.RetentionMode) domain.ClaimedJob {
	claimed := domain.ClaimedJob{
		Claim:        claimOf(job),
		Seq:          job.Seq,
		Queue:        job.Queue,
		Kind:         job.Kind,
		PartitionKey: job.PartitionKey,
		Attempt:      job.Attempts,
		MaxAttempts:  job.MaxAttempts,
		AvailableAt:  job.AvailableAt,
		Waited:       job.ClaimedAt.Sub(job.AvailableAt),
		CreatedAt:    job.CreatedAt,
		Headers:      job.Headers,
		Payload:      job.Payload,
		Retention:    retention,
	}
	if job.IdempotencyKey != nil {
		claimed.IdempotencyKey = *job.IdempotencyKey
	}
	return claimed
}

// claimOf is the fence of a job that is processing.
func claimOf(job *domain.JobRecord) domain.Claim {
	return domain.Claim{ID: job.ID, Bucket: job.Bucket, Generation: job.Generation, WorkerID: *job.ClaimedBy}
}

// wait makes a job pending: it stands in the line of its bucket, or in its lane if it is ordered.
func (q *Queue) wait(job *domain.JobRecord) {
	job.Status = domain.StatusPending
	if job.Ordered {
		q.enterLane(job)
		return
	}
	line := q.lines[placeOf(job)]
	at, _ := slices.BinarySearchFunc(line, job, compareInLine)
	q.lines[placeOf(job)] = slices.Insert(line, at, job)
}

func (q *Queue) leaveLine(job *domain.JobRecord) {
	if job.Ordered {
		q.leaveLane(job)
		return
	}
	line := q.lines[placeOf(job)]
	if at, found := slices.BinarySearchFunc(line, job, compareInLine); found {
		q.lines[placeOf(job)] = slices.Delete(line, at, at+1)
	}
}

func compareInLine(a, b *domain.JobRecord) int {
	return cmp.Or(a.AvailableAt.Compare(b.AvailableAt), cmp.Compare(a.Seq, b.Seq))
}
