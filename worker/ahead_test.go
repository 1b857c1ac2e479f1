package worker_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-pg/holdfast/domain"
	"github.com/holdfast-pg/holdfast/domain/model"
	"github.com/holdfast-pg/holdfast/worker"
)

// taking is a handler that takes its time, which may change.
func taking(w *world, took *time.Duration) worker.Handler {
	return worker.HandleKind("send", func(ctx context.Context, _ domain.ClaimedJob) error {
		fired, stop := w.clock.NewTimer(*took)
		defer stop()
		select {
		case <-fired:
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	})
}

func largestBatch(calls []call) (largest int) {
	for _, c := range calls {
		largest = max(largest, c.request.Batch)
	}
	return largest
}

func TestAhead_QuickHandlersAreClaimedForInAdvance(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.config.Concurrency = 4
		w.enqueueSome(2000)
		took := time.Millisecond
		w.start(taking(w, &took))
		w.advance(100 * time.Millisecond)
		before := len(w.calls("Claim"))
		w.advance(100 * time.Millisecond)
		// Four slots start 160 jobs in 40 ms, and the next claim comes when half of them have started.
		equal(t, "claims in 100 ms", len(w.calls("Claim"))-before, 5)
		if largest := largestBatch(w.calls("Claim")); largest < 80 || largest > 164 {
			t.Errorf("the largest claim asked for %d jobs, want 80 to 164", largest)
		}
		if held := w.count(domain.StatusProcessing); held > 4+160 {
			t.Errorf("%d jobs are held, which take more than 40 ms", held)
		}
	})
}

func TestAhead_SlowHandlersGetNoMoreThanTheyCanStart(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.config.Concurrency = 4
		w.enqueueSome(400)
		took := time.Second
		w.start(taking(w, &took))
		for range 60 {
			w.advance(time.Second)
			if held := w.count(domain.StatusProcessing); held > 4 {
				t.Fatalf("%d jobs are held by 4 slots", held)
			}
		}
	})
}

func TestAhead_NothingIsClaimedAheadBeforeHandlersAreKnown(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.enqueueSome(100)
		g := newGate(t)
		w.start(g.handler())
		g.open(31, nil)
		equal(t, "jobs held", w.count(domain.StatusProcessing), 8)
		g.open(1, nil)
		if held := w.count(domain.StatusProcessing); held <= 8 {
			t.Errorf("%d jobs are held after 32 have returned at once", held)
		}
		g.open(68, nil)
	})
}

// Handlers that were quick become slow: what was claimed for them goes to others, unspent.
func TestAhead_JobsThatCannotStartSoonAreGivenBack(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.config.Concurrency = 4
		w.enqueueSome(2000)
		took := time.Millisecond
		w.start(taking(w, &took))
		w.advance(100 * time.Millisecond)
		took = time.Hour
		w.advance(500 * time.Millisecond)
		if held := w.count(domain.StatusProcessing); held <= 4 {
			t.Fatalf("%d jobs are held, want some that wait", held)
		}
		w.advance(600 * time.Millisecond)
		equal(t, "jobs held", w.count(domain.StatusProcessing), 4)
		for _, job := range w.Jobs() {
			if job.Status == domain.StatusPending {
				equal(t, "attempts of a job that waits", job.Attempts, 0)
			}
		}
		w.advance(10 * time.Second)
		equal(t, "jobs held later", w.count(domain.StatusProcessing), 4)
		if w.log.count("level=INFO", "given back", "handlers have become slow") == 0 {
			t.Error("nobody was told")
		}
	})
}

func TestAhead_DrainGivesBackWhatHasNotStarted(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.config.Concurrency = 4
		w.enqueueSome(2000)
		took := time.Millisecond
		w.start(taking(w, &took))
		w.advance(100 * time.Millisecond)
		took = 10 * time.Second
		w.advance(100 * time.Millisecond)
		w.stop()
		synctest.Wait()
		equal(t, "jobs held by the drain", w.count(domain.StatusProcessing), 4)
		w.advance(10 * time.Second)
		w.wantReturned()
		w.holdsNothing()
	})
}

// A job that waits for a slot is renewed like any other, and one that is lost is not started.
func TestAhead_LostJobIsNotStarted(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.config.Concurrency = 1
		w.config.Lease = 900 * time.Millisecond
		w.spoil("Renew", fault{err: errCut, times: always})
		w.enqueueSome(200)
		took := time.Millisecond
		w.start(taking(w, &took))
		w.advance(60 * time.Millisecond)
		took = 850 * time.Millisecond
		w.advance(900 * time.Millisecond)
		if w.log.count("given back before it started") == 0 {
			t.Error("no job was lost while it waited")
		}
	})
}

func TestClaim_BatchGrowsWhileThereIsABacklogAndShrinksWhenClaimsAreSlow(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.config.Concurrency = 2000
		w.enqueueSome(3000)
		g := newGate(t)
		w.start(g.handler())
		var batches []int
		for _, c := range w.ownClaims() {
			batches = append(batches, c.request.Batch)
		}
		wantBatches(t, batches[:6], 25, 50, 100, 200, 400, 500)
		before := len(w.ownClaims())
		w.spoil("Claim", fault{takes: 60 * time.Millisecond})
		g.open(1000, nil)
		w.advance(time.Second)
		after := w.ownClaims()[before:]
		wantBatches(t, []int{after[len(after)-1].request.Batch}, 500)
		g.open(2000, nil)
	})
}

func wantBatches(t *testing.T, got []int, want ...int) {
	t.Helper()
	for i := range want {
		if i >= len(got) || got[i] != want[i] {
			t.Fatalf("claims asked for %v jobs, want %v", got, want)
		}
	}
}

func TestSynchronous_SlotIsHeldUntilTheResultIsRecorded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.config.Concurrency = 2
		answered := make(chan struct{})
		w.spoil("Settle", fault{until: answered})
		w.enqueueSome(20)
		w.start(returning(nil).Synchronous())
		w.advance(time.Second)
		equal(t, "handlers that ran", w.log.count("job started"), 2)
		close(answered)
		w.advance(time.Second)
		equal(t, "jobs completed", w.count(domain.StatusCompleted), 20)
	})
}

func TestSynchronous_DrainDoesNotWaitForEver(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.spoil("Settle", fault{err: errCut, times: always})
		id := w.enqueue(model.NewJob{})
		w.start(returning(nil).Synchronous())
		w.stop()
		w.advance(time.Minute)
		w.wantReturned()
		w.wantJob(id, domain.StatusPending, 0)
	})
}
