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

const sameBucket = "order:1"

// busyWorld has a worker that is given a job of one bucket every millisecond: it never pauses
// for long. Its looks fail, because one after a pause of 2 ms would see what lies below a floor;
// a worker with a backlog makes none.
func busyWorld(t *testing.T, started func(domain.ClaimedJob, time.Duration)) (w *world, goOn func(time.Duration)) {
	t.Helper()
	w = newWorld(t)
	w.config.ActivePoll, w.config.Concurrency = 2*time.Millisecond, 1
	w.spoil("Look", fault{err: errCut, times: always})
	w.start(worker.HandleKind("send", func(_ context.Context, job domain.ClaimedJob) error {
		started(job, w.elapsed())
		return nil
	}))
	return w, func(d time.Duration) {
		for range d / time.Millisecond {
			w.enqueue(model.NewJob{Key: sameBucket})
			w.advance(time.Millisecond)
		}
	}
}

// An enqueue whose COMMIT comes a minute late lies below everything that was claimed since.
func TestSweep_LateCommitIsFoundWithinTwoSecondsThoughTheWorkerIsBusy(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		started := map[domain.JobID]time.Duration{}
		w, goOn := busyWorld(t, func(job domain.ClaimedJob, at time.Duration) { started[job.ID] = at })
		goOn(3500 * time.Millisecond) // Between two turns of the sweep.
		late := w.enqueue(model.NewJob{Key: sameBucket, Delay: -time.Minute})
		committed := w.elapsed()
		goOn(3 * time.Second)
		at, found := started[late]
		if !found || at-committed > 2*time.Second {
			t.Errorf("found: %t, after %s, want within 2 s", found, at-committed)
		}
		if at-committed < 10*time.Millisecond {
			t.Error("it was found at once: the claims have no floor, and the test shows nothing")
		}
	})
}

// A transaction that is open for a moment is not what the sweep is for.
func TestFloor_LeavesRoomForTransactionsUnderWay(t *testing.T) {
	t.Parallel()
	for open, within := range map[time.Duration]time.Duration{
		40 * time.Millisecond:   5 * time.Millisecond,    // The next claim.
		250 * time.Millisecond:  205 * time.Millisecond,  // One in the next 200 ms.
		2500 * time.Millisecond: 2005 * time.Millisecond, // One in the next two seconds, or the sweep.
	} {
		synctest.Test(t, func(t *testing.T) {
			started := map[domain.JobID]time.Duration{}
			w, goOn := busyWorld(t, func(job domain.ClaimedJob, at time.Duration) { started[job.ID] = at })
			goOn(time.Second)
			late := w.enqueue(model.NewJob{Key: sameBucket, Delay: -open})
			committed := w.elapsed()
			goOn(2 * time.Second)
			if at, found := started[late]; !found || at-committed > within {
				t.Errorf("open for %s: found: %t, after %s, want within %s", open, found, at-committed, within)
			}
		})
	}
}

// Who rings does it once: the claim that heeds it looks far enough back.
func TestFloor_IsFarBackWhereItRang(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newListeningWorld(t)
		w.spoil("Look", fault{err: errCut, times: always}) // It would see what lies below a floor.
		w.start(returning(nil))
		w.advance(10 * time.Second)
		for range 3 {
			for _, delay := range []time.Duration{0, -400 * time.Millisecond} {
				id := w.enqueue(model.NewJob{Key: sameBucket, Delay: delay})
				synctest.Wait()
				w.wantJob(id, domain.StatusCompleted, 1)
			}
			w.advance(10 * time.Second)
		}
	})
}

func TestFloor_IdleWorkerSeesAll(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.enqueue(model.NewJob{Key: sameBucket})
		w.start(returning(nil))
		w.advance(5 * time.Second)
		late := w.enqueue(model.NewJob{Key: sameBucket, Delay: -time.Minute})
		w.advance(2 * time.Second)
		w.wantJob(late, domain.StatusCompleted, 1)
	})
}

// A look that takes long is not repeated at every pause.
func TestLook_CostsNoMoreThanAFiftiethOfTheTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.spoil("Look", fault{takes: 100 * time.Millisecond, times: always})
		w.start(returning(nil))
		w.advance(time.Minute)
		if looks := len(w.calls("Look")); looks > 13 || looks < 8 {
			t.Errorf("%d looks of 100 ms in a minute, want 12 at most", looks)
		}
		id := w.enqueue(model.NewJob{})
		w.advance(2 * time.Second)
		w.wantJob(id, domain.StatusCompleted, 1)
	})
}
