package model

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/holdfast-pg/holdfast/domain"
)

// FindJob returns what is known of a job, archived or not; domain.ErrNotFound when there is
// none.
func (q *Queue) FindJob(ctx context.Context, id domain.JobID) (domain.JobRecord, error) {
	if err := ctx.Err(); err != nil {
		return domain.JobRecord{}, fmt.Errorf("find job %s: %w", id, err)
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	job, exists := q.find(id)
	if !exists {
		return domain.JobRecord{}, fmt.Errorf("find job %s: %w", id, domain.ErrNotFound)
	}
	return job, nil
}

func (q *Queue) find(id domain.JobID) (domain.JobRecord, bool) {
	if job := q.inbox[id]; job != nil {
		return *job, true
	}
	job, archived := q.archive[id]
	return job, archived
}

// Jobs returns every job that FindJob finds, in the order in which they were enqueued.
func (q *Queue) Jobs() []domain.JobRecord {
	q.mu.Lock()
	defer q.mu.Unlock()
	var jobs []domain.JobRecord
	for _, job := range q.inbox {
		jobs = append(jobs, *job)
	}
	for _, job := range q.archive {
		jobs = append(jobs, job)
	}
	slices.SortFunc(jobs, func(a, b domain.JobRecord) int { return cmp.Compare(a.Seq, b.Seq) })
	return jobs
}

// OldestPendingJob returns the job of a queue that has been due for longest;
// domain.ErrNotFound: nothing is waiting. Ordered jobs do not count.
func (q *Queue) OldestPendingJob(ctx context.Context, queue string) (domain.PendingJob, error) {
	if err := ctx.Err(); err != nil {
		return domain.PendingJob{}, fmt.Errorf("oldest pending job of queue %q: %w", queue, err)
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	var firsts []*domain.JobRecord
	for bucket := range q.settings.BucketCount {
		firsts = append(firsts, q.due(place{queue, bucket}, 1)...)
	}
	if len(firsts) == 0 {
		return domain.PendingJob{}, fmt.Errorf("oldest pending job of queue %q: %w", queue, domain.ErrNotFound)
	}
	oldest := slices.MinFunc(firsts, func(a, b *domain.JobRecord) int {
		return cmp.Or(a.AvailableAt.Compare(b.AvailableAt), slices.Compare(a.ID[:], b.ID[:]))
	})
	return domain.PendingJob{
		ID: oldest.ID, Kind: oldest.Kind, PartitionKey: oldest.PartitionKey,
		AvailableAt: oldest.AvailableAt, Age: q.now().Sub(oldest.AvailableAt),
	}, nil
}
