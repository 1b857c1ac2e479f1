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
// those that have been available for longest, but not since before its floor, and of two that
// became so together, the one enqueued first; with Lanes, the first jobs of free lanes, as
// freeHeads says. Neither the registry nor, but for those of the same lane, other claims matter.
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
	since := q.now().Add(-request.DueFor)
	jobs := []domain.ClaimedJob{}
	for i, bucket := range request.Buckets {
		where, room := place{request.Queue, bucket}, min(request.Quota, request.Batch-len(jobs))
		var due []*domain.JobRecord
		if request.Lanes {
			due = q.freeHeads(where, room, since)
		} else {
			due = q.dueBetween(where, room, floorOf(request, i), since)
		}
		for _, job := range slices.Clone(due) {
			q.claim(job, request.WorkerID, request.Lease)
			jobs = append(jobs, newClaimedJob(job, settings.RetentionMode))
		}
	}
	return jobs, nil
}

// floorOf is the floor of the i-th bucket: the zero time, which is before any job's, if none is given.
func floorOf(request domain.ClaimRequest, i int) time.Time {
	if request.Floors == nil {
		return time.Time{}
	}
	return request.Floors[i]
}

// due returns the first jobs of a bucket whose time has come, at most so many.
func (q *Queue) due(where place, limit int) []*domain.JobRecord {
	return q.dueBetween(where, limit, time.Time{}, q.now())
}

// dueBetween returns the first jobs of a bucket whose time came after one and before the
// other, both included, at most so many.
func (q *Queue) dueBetween(where place, limit int, floor, then time.Time) []*domain.JobRecord {
	line := q.lines[where]
	for len(line) > 0 && line[0].AvailableAt.Before(floor) {
		line = line[1:]
	}
	count := 0
	for count < min(limit, len(line)) && !line[count].AvailableAt.After(then) {
		count++
	}
	return line[:count]
}

func (q *Queue) claim(job *domain.JobRecord, workerID string, lease time.Duration) {
	q.leaveLine(job)
	if job.Ordered {
		q.occupyLane(job)
	}
	now := q.now()
	deadline := toMicroseconds(now.Add(lease))
	q.advanceEpoch()
	q.generation++
	job.Status = domain.StatusProcessing
	job.ClaimedBy, job.ClaimedAt, job.LeaseExpiresAt = &workerID, &now, &deadline
	job.Generation = q.epoch<<40 + q.generation
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
