package worker

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/holdfast-pg/holdfast/domain"
)

// Handler runs the jobs of one kind. Make one with Handle, HandleKind or HandleRest.
type Handler struct {
	kind string // "" stands for every kind without a handler of its own.
	run  func(ctx context.Context, job domain.ClaimedJob) error
}

// Handle returns the handler of the kind that T names; T is a struct, not a pointer. What
// the function returns settles the job: nil completes it, any error retries it after the
// backoff, and domain.RetryIn, FailWith and Snooze say otherwise. Its context ends when the
// lease is lost (cause domain.ErrLeaseLost) or a drain passes its deadline (ErrStopping). It
// may run again after a crash or a lost lease. A payload that does not decode into T fails
// the job for good.
func Handle[T domain.Args](run func(ctx context.Context, job domain.Job[T]) error) Handler {
	var zero T
	return HandleKind(zero.Kind(), func(ctx context.Context, claimed domain.ClaimedJob) error {
		job := domain.Job[T]{ClaimedJob: claimed}
		if err := json.Unmarshal(claimed.Payload, &job.Args); err != nil {
			return domain.FailWith(fmt.Errorf("decode the payload: %w", err))
		}
		return run(ctx, job)
	})
}

// HandleKind returns the handler of a kind that gets the payload as it is.
func HandleKind(kind string, run func(ctx context.Context, job domain.ClaimedJob) error) Handler {
	return Handler{kind: kind, run: run}
}

// HandleRest returns the handler of every kind that has no handler of its own. Without one,
// jobs of an unknown kind are given back after a delay, for a worker that knows them.
func HandleRest(run func(ctx context.Context, job domain.ClaimedJob) error) Handler {
	return Handler{run: run}
}
