package worker

import (
	"context"
	"fmt"
	"runtime/debug"

	"github.com/holdfast-pg/holdfast/domain"
)

// Handler runs the jobs of one kind. Make one with Handle, HandleKind, HandleSettling or
// HandleRest.
type Handler struct {
	kind    string // "" stands for every kind without a handler of its own.
	run     func(ctx context.Context, job domain.ClaimedJob) error
	settles bool // nil from run means: settled already.

	synchronous bool // The slot stays taken until the result is recorded.
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
		job, err := domain.DecodeJob[T](claimed)
		if err != nil {
			return err
		}
		return run(ctx, job)
	})
}

// HandleKind returns the handler of a kind that gets the payload as it is.
func HandleKind(kind string, run func(ctx context.Context, job domain.ClaimedJob) error) Handler {
	return Handler{kind: kind, run: run}
}

// HandleSettling returns the handler of a kind that settles its jobs itself: nil says that
// the job is completed, and the worker has nothing to record. An error settles it as any
// other handler's does. It may lock the job's row, so its lease is not renewed while it
// runs: it has one lease, less Config.LeaseMargin, before its context ends. A run of more
// than a second is logged.
func HandleSettling(kind string, run func(ctx context.Context, job domain.ClaimedJob) error) Handler {
	return Handler{kind: kind, run: run, settles: true}
}

// Synchronous returns the handler in synchronous mode: its slot stays taken until the database
// has answered that the result is recorded. Without it the slot takes the next job when the
// handler returns, and results are recorded in batches a few milliseconds later; a crash in
// between runs up to two batches of 1,000 jobs again, in synchronous mode no more than there are
// slots. It costs one round trip a job and slot.
func (h Handler) Synchronous() Handler {
	h.synchronous = true
	return h
}

// HandleRest returns the handler of every kind that has no handler of its own. Without one, jobs
// of an unknown kind are given back for 30 s, for a worker that knows them: while a deployment
// rolls. Workers of one queue should run the same kinds, because with affinity the same worker
// may take such a job again.
func HandleRest(run func(ctx context.Context, job domain.ClaimedJob) error) Handler {
	return Handler{run: run}
}

// Kind returns the kind of the handler's jobs; "" for HandleRest.
func (h Handler) Kind() string { return h.kind }

// Settles tells whether the handler settles its jobs itself.
func (h Handler) Settles() bool { return h.settles }

// Try runs the handler once and returns its error, a *PanicError if it panicked. Nobody
// settles the job, unless the handler does so itself, and nobody renews its lease. For
// holdfasttest, which runs handlers without a worker.
func (h Handler) Try(ctx context.Context, job domain.ClaimedJob) (err error) {
	defer func() {
		if value := recover(); value != nil {
			err = &PanicError{Value: value, Stack: debug.Stack()}
		}
	}()
	return h.run(ctx, job)
}

// PanicError says that a handler panicked. To a worker it is an error as any other.
type PanicError struct {
	Value any    // What it panicked with.
	Stack []byte // Where, as runtime/debug.Stack writes it.
}

// Error names the value and the stack.
func (e *PanicError) Error() string { return fmt.Sprintf("panic: %v\n%s", e.Value, e.Stack) }
