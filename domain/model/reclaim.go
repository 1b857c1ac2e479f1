package model

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/holdfast-pg/holdfast/domain"
)

// Reclaim takes back every claim whose lease has ended, oldest claim first. Jobs
// with attempts left wait for their backoff, the others are dead-lettered. A lease that ends
// at this very moment is left alone, though it cannot be renewed any more.
func (q *Queue) Reclaim(ctx context.Context) ([]domain.Reclaimed, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("reclaim ended leases: %w", err)
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	var all []domain.Reclaimed
	for _, job := range q.expired() {
		reclaimed := domain.Reclaimed{Claim: claimOf(job), Queue: job.Queue, Kind: job.Kind, Attempts: job.Attempts}
		if job.Attempts >= job.MaxAttempts {
			text := "the lease of worker " + *job.ClaimedBy + " ended at the last attempt"
			if job.LastError != nil {
				text += "; the error before: " + *job.LastError
			}
			job.LastError = &text
			q.note(domain.EventDeadLettered, job, *job.ClaimedBy, job.Attempts, &text)
		} else {
			q.note(domain.EventReclaimed, job, *job.ClaimedBy, job.Attempts, nil)
		}
		q.giveBack(job, q.settings.Backoff(job.Attempts))
		reclaimed.Status = job.Status
		all = append(all, reclaimed)
	}
	return all, nil
}

// expired returns the jobs whose lease has ended, oldest claim first.
func (q *Queue) expired() []*domain.JobRecord {
	now := q.now()
	var jobs []*domain.JobRecord
	for _, job := range q.inbox {
		if job.LeaseExpiresAt != nil && job.LeaseExpiresAt.Before(now) {
			jobs = append(jobs, job)
		}
	}
	slices.SortFunc(jobs, func(a, b *domain.JobRecord) int {
		return cmp.Compare(a.Generation, b.Generation)
	})
	return jobs
}
