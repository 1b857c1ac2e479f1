package model

import (
	"context"
	"fmt"
)

// Elect runs the work if no other worker is running its own, and tells whether it did.
func (q *Queue) Elect(ctx context.Context, work func(ctx context.Context)) (elected bool, err error) {
	if err := ctx.Err(); err != nil {
		return false, fmt.Errorf("elect a housekeeper: %w", err)
	}
	if !q.election.TryLock() {
		return false, nil
	}
	defer q.election.Unlock()
	work(ctx)
	return true, nil
}
