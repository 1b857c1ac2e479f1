package model

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/holdfast-pg/holdfast/domain"
)

// Renew moves the deadlines of a worker's claims to a lease from now and returns those
// that it still holds, by key. A lease that has ended is not revived, even while nobody has
// reclaimed it.
func (q *Queue) Renew(ctx context.Context, workerID string, lease time.Duration, claims []domain.Claim) ([]domain.Claim, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("renew %d leases: %w", len(claims), err)
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	now := q.now()
	held := []domain.Claim{}
	for _, claim := range slices.SortedFunc(slices.Values(claims), compareClaims) {
		job := q.held(workerID, claim)
		if job == nil || !job.LeaseExpiresAt.After(now) {
			q.noteLost(workerID, claim, false, "its renewal was refused")
			continue
		}
		if slices.Contains(held, claimOf(job)) {
			continue
		}
		deadline := toMicroseconds(now.Add(lease))
		job.LeaseExpiresAt = &deadline
		held = append(held, claimOf(job))
	}
	return held, nil
}

// held returns the job of a claim that the worker has and that is the job's current one; nil
// if it is over. The worker is the one who asks, whatever the claim says.
func (q *Queue) held(workerID string, claim domain.Claim) *domain.JobRecord {
	job := q.inbox[claim.ID]
	claim.WorkerID = workerID
	if job == nil || job.Status != domain.StatusProcessing || claimOf(job) != claim {
		return nil
	}
	return job
}

// compareClaims orders claims by key.
func compareClaims(a, b domain.Claim) int {
	return cmp.Or(cmp.Compare(a.Bucket, b.Bucket), bytes.Compare(a.ID[:], b.ID[:]))
}
