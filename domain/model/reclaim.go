package model

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/holdfast-pg/holdfast/domain"
)

// Reclaim takes back every claim whose lease has ended, oldest claim first. Jobs
// with attempts left wait for their backoff, the others are dead-lettered. A lease that ends
// at this very moment is left alone, though it cannot be renewed any more.
//
// Only claims after a generation are looked at, 0 for all. It returns also the generation
// before that of the oldest one that was in flight.
func (q *Queue) Reclaim(ctx context.Context, after int64) (all []domain.Reclaimed, over int64, err error) {
	if err := ctx.Err(); err != nil {
		return nil, after, fmt.Errorf("reclaim ended leases: %w", err)
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	over = q.settledBefore(after)
	for _, job := range q.expired(after) {
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
	return all, over, nil
}

// settledBefore returns the generation before that of the oldest claim in flight after the one
// given, and the one given when none is.
func (q *Queue) settledBefore(after int64) int64 {
	oldest := int64(math.MaxInt64)
	for _, job := range q.inbox {
		if job.ClaimedBy != nil && job.Generation > after {
			oldest = min(oldest, job.Generation)
		}
	}
	if oldest == math.MaxInt64 {
		return after
	}
	return oldest - 1
}

// expired returns the jobs whose lease has ended, of the claims after a generation, oldest first.
func (q *Queue) expired(after int64) []*domain.JobRecord {
	now := q.now()
	var jobs []*domain.JobRecord
	for _, job := range q.inbox {
		if job.Generation > after && job.LeaseExpiresAt != nil && job.LeaseExpiresAt.Before(now) {
			jobs = append(jobs, job)
		}
	}
	slices.SortFunc(jobs, func(a, b *domain.JobRecord) int {
		return cmp.Compare(a.Generation, b.Generation)
	})
	return jobs
}
