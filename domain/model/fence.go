package model

import (
	"context"
	"fmt"
	"time"

	"github.com/holdfast-pg/holdfast/domain"
)

// fence is the highest token that a resource has seen.
type fence struct {
	token   int64
	touched time.Time
}

// Guard admits the claim to a resource, unless the resource has seen a higher token: then it
// returns domain.ErrFenced. Whether the claim is over does not matter.
func (q *Queue) Guard(ctx context.Context, resource string, claim domain.Claim) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("guard %q: %w", resource, err)
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.fences[resource].token > claim.Generation {
		return fmt.Errorf("guard %q with token %d: %w", resource, claim.Generation, domain.ErrFenced)
	}
	q.fences[resource] = fence{token: claim.Generation, touched: q.now()}
	return nil
}

// expireFences forgets resources that nobody guarded for long.
func (q *Queue) expireFences(age time.Duration) (expired int64) {
	since := q.now().Add(-age)
	for resource, seen := range q.fences {
		if seen.touched.Before(since) {
			delete(q.fences, resource)
			expired++
		}
	}
	return expired
}
