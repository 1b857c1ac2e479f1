package worker_test

import (
	"context"
	"errors"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-pg/holdfast/domain"
	"github.com/holdfast-pg/holdfast/domain/model"
	"github.com/holdfast-pg/holdfast/worker"
)

// settling is a handler of its own kind that completes its jobs itself when the run returned
// nil, whatever became of its context.
func (w *world) settling(run func(ctx context.Context) error) worker.Handler {
	return worker.HandleSettling("settling", func(ctx context.Context, job domain.ClaimedJob) error {
		if err := run(ctx); err != nil {
			return err
		}
		return w.Queue.Settle(context.WithoutCancel(ctx), job.WorkerID, []domain.Settlement{{Claim: job.Claim, Retention: job.Retention}})[0].Err
	})
}

// untilCancelled is a run that lasts as long as its context.
func untilCancelled(ctx context.Context) error {
	<-ctx.Done()
	return context.Cause(ctx)
}

func TestSettling_NilIsNotSettledAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.config.Concurrency = 1
		first, second := w.enqueue(model.NewJob{Kind: "settling"}), w.enqueue(model.NewJob{Kind: "settling"})
		w.start(w.settling(func(context.Context) error { return nil }))
		w.wantJob(first, domain.StatusCompleted, 1)
		w.wantJob(second, domain.StatusCompleted, 1)
		w.advance(2 * renewEvery)
		equal(t, "settlements sent", len(w.calls("Settle")), 0)
		equal(t, "renewals sent", len(w.calls("Renew")), 0)
		equal(t, "jobs logged as settled", w.log.count("job settled", "status=completed"), 2)
		equal(t, "warnings", w.log.count("level=WARN"), 0)
	})
}

func TestSettling_ErrorSettlesTheJobAsAnyOther(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		run      func(context.Context) error
		status   domain.Status
		attempts int
	}{
		"any":      {func(context.Context) error { return errMail }, domain.StatusPending, 1},
		"FailWith": {func(context.Context) error { return domain.FailWith(errMail) }, domain.StatusFailed, 1},
		"fenced":   {func(context.Context) error { return domain.ErrFenced }, domain.StatusPending, 0},
		"panic":    {func(context.Context) error { panic("boom") }, domain.StatusPending, 1},
		"Goexit":   {func(context.Context) error { runtime.Goexit(); return nil }, domain.StatusPending, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				id := w.enqueue(model.NewJob{Kind: "settling"})
				w.start(w.settling(test.run))
				w.wantJob(id, test.status, test.attempts)
				equal(t, "settlements sent", len(w.calls("Settle")), 1)
			})
		})
	}
}

// A renewal would wait for the row that the handler has locked, and hold up all others.
func TestSettling_JobIsNotRenewedWhileItsHandlerRuns(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		own, other := w.enqueue(model.NewJob{Kind: "settling"}), w.enqueue(model.NewJob{})
		g, finish := newGate(t), make(chan struct{})
		w.start(g.handler(), w.settling(func(context.Context) error { <-finish; return nil }))
		w.advance(2 * renewEvery)
		times := renewals(w.calls("Renew"))
		equal(t, "renewals of the job that its handler settles", len(times[own]), 0)
		equal(t, "renewals of the other job", len(times[other]), 2)
		close(finish)
		g.open(1, nil)
		w.wantJob(own, domain.StatusCompleted, 1)
	})
}

func TestSettling_JobIsRenewedAgainWhileItsErrorWaitsForAFlush(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.spoil("Settle", fault{err: errCut, times: always})
		id := w.enqueue(model.NewJob{Kind: "settling"})
		w.start(w.settling(func(context.Context) error { return domain.FailWith(errMail) }))
		w.advance(2 * lease)
		w.wantJob(id, domain.StatusProcessing, 1)
		w.mend("Settle")
		w.advance(10 * time.Second)
		w.wantJob(id, domain.StatusFailed, 1)
	})
}

func TestFenced_SettlingHandlerIsCancelledBeforeItsLeaseEnds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		id := w.enqueue(model.NewJob{Kind: "settling"})
		var causes []error
		w.start(w.settling(func(ctx context.Context) error {
			causes = append(causes, untilCancelled(ctx))
			return causes[0]
		}))
		w.advance(lease - margin/2)
		if len(causes) != 1 || !errors.Is(causes[0], domain.ErrLeaseLost) {
			t.Errorf("the contexts ended with %v, want one with ErrLeaseLost", causes)
		}
		w.wantJob(id, domain.StatusPending, 1) // Its error was recorded: the claim is not over yet.
	})
}

// Whatever the worker thinks of the lease, the store has accepted the completion.
func TestSettling_NilOfALateHandlerCounts(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		id := w.enqueue(model.NewJob{Kind: "settling"})
		w.start(w.settling(func(ctx context.Context) error {
			_ = untilCancelled(ctx)
			return nil
		}))
		w.advance(lease - margin/2)
		w.wantJob(id, domain.StatusCompleted, 1)
		equal(t, "jobs logged as settled", w.log.count("job settled", "status=completed"), 1)
		equal(t, "settlements sent", len(w.calls("Settle")), 0)
	})
}

func TestLeavesNothingBehind_DrainGivesTheJobOfASettlingHandlerBack(t *testing.T) {
	t.Parallel()
	for name, heeds := range map[string]bool{"that heeds its context": true, "that ignores it": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				id := w.enqueue(model.NewJob{Kind: "settling"})
				finish := make(chan struct{})
				w.start(w.settling(func(ctx context.Context) error {
					if heeds {
						return untilCancelled(ctx)
					}
					<-finish
					return nil
				}))
				w.stop()
				w.advance(time.Minute)
				w.wantReturned()
				w.wantJob(id, domain.StatusPending, 0)
				close(finish)
				synctest.Wait()
				w.wantJob(id, domain.StatusPending, 0)
			})
		})
	}
}

func TestSettling_LongRunIsLogged(t *testing.T) {
	t.Parallel()
	for took, want := range map[time.Duration]int{time.Second: 0, time.Second + time.Millisecond: 1} {
		t.Run(took.String(), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				w.enqueue(model.NewJob{Kind: "settling"})
				w.start(w.settling(func(context.Context) error {
					fired, stop := w.clock.NewTimer(took)
					defer stop()
					<-fired
					return nil
				}))
				w.advance(2 * took)
				equal(t, "warnings", w.log.count("level=WARN", "keep it short", "took="+took.String()), want)
			})
		})
	}
}
