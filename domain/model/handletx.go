package model

import (
	"context"
	"fmt"

	"github.com/holdfast-pg/holdfast/domain"
)

// HandleTx returns a function that runs a handler and completes the job, as domain.HandleTx
// does. domain.ErrLeaseLost says that the claim is over: the handler did not run. An error of
// the handler is returned as it is, and the claim stays. In the database nobody takes a claim
// away while its handler runs, and what a handler that returns an error wrote is rolled back;
// here the handler sees to both.
func (q *Queue) HandleTx(run func(ctx context.Context, job domain.ClaimedJob) error) func(ctx context.Context, job domain.ClaimedJob) error {
	return func(ctx context.Context, job domain.ClaimedJob) error {
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("begin the transaction of job %s: %w", job.ID, err)
		}
		if !q.holds(job.Claim) {
			return fmt.Errorf("lock the claim of job %s: %w", job.ID, domain.ErrLeaseLost)
		}
		if err := run(ctx, job); err != nil {
			return err
		}
		completion := domain.Settlement{Claim: job.Claim, Retention: job.Retention}
		if answer := q.Settle(ctx, job.WorkerID, []domain.Settlement{completion})[0]; answer.Err != nil {
			return fmt.Errorf("complete job %s: %w", job.ID, answer.Err)
		}
		return nil
	}
}

func (q *Queue) holds(claim domain.Claim) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.held(claim.WorkerID, claim) != nil
}
