package worker_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-pg/holdfast/domain"
	"github.com/holdfast-pg/holdfast/domain/model"
	"github.com/holdfast-pg/holdfast/worker"
)

const drainDeadline = 25 * time.Second

func TestDrain_StopsClaimingAndWaitsForHandlers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.config.Concurrency = 2
		w.enqueueSome(6)
		g := newGate(t)
		w.start(g.handler())
		g.open(1, nil)
		w.stop()
		w.advance(drainDeadline / 2)
		w.wantWorking()
		equal(t, "drains logged", w.log.count("level=INFO", "worker draining", "in_flight=2"), 1)
		live, err := w.LiveWorkers(t.Context(), domain.DefaultQueue, time.Hour, 9)
		if err != nil || len(live) != 0 {
			t.Errorf("a draining worker is listed as alive: %v, %v", live, err)
		}
		g.open(1, nil)
		equal(t, "handlers started", len(g.jobs()), 3)
		g.open(1, errMail)
		w.wantReturned()
		equal(t, "jobs completed", w.count(domain.StatusCompleted), 2)
		equal(t, "jobs pending", w.count(domain.StatusPending), 4)
		w.holdsNothing()
		equal(t, "time that passed", w.elapsed(), drainDeadline/2)
	})
}

func TestDrain_LeasesAreRenewedToTheLast(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.config.DrainDeadline = time.Hour
		id := w.enqueue(model.NewJob{})
		g := newGate(t)
		w.start(g.handler())
		w.stop()
		w.advance(10 * lease)
		w.wantJob(id, domain.StatusProcessing, 1)
		g.open(1, nil)
		w.wantReturned()
		w.wantJob(id, domain.StatusCompleted, 1)
	})
}

func TestDrain_AfterTheDeadlineJobsGoBackWithoutAnAttemptSpent(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		id := w.enqueue(model.NewJob{})
		g := newGate(t)
		w.start(g.handler())
		w.stop()
		w.advance(drainDeadline - time.Millisecond)
		equal(t, "contexts that ended before the deadline", len(g.stopped()), 0)
		w.advance(time.Millisecond)
		wantCause(t, g, domain.ErrStopping)
		w.wantReturned()
		w.wantJob(id, domain.StatusPending, 0)
		equal(t, "when it may be claimed", w.find(id).AvailableAt.Sub(noon), drainDeadline)
	})
}

func TestDrain_HandlerThatFinishesWhenItIsStoppedCompletesItsJob(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		id := w.enqueue(model.NewJob{})
		w.start(worker.HandleKind("send", func(ctx context.Context, _ domain.ClaimedJob) error {
			<-ctx.Done()
			return nil
		}))
		w.stop()
		w.advance(drainDeadline)
		w.wantReturned()
		w.wantJob(id, domain.StatusCompleted, 1)
	})
}

func TestDrain_HandlerThatIgnoresItsContextIsGivenUp(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		id := w.enqueue(model.NewJob{})
		g := newGate(t)
		w.start(g.stubborn())
		w.stop()
		w.advance(drainDeadline + time.Second - time.Millisecond)
		w.wantWorking()
		w.advance(time.Millisecond)
		w.wantReturned()
		w.wantJob(id, domain.StatusPending, 0)
		equal(t, "warnings", w.log.count("level=WARN", "ignores its context", id.String()), 1)

		before := w.find(id)
		g.open(1, nil)
		equal(t, "warnings of the late result", w.log.count("level=WARN", "its result is dropped", id.String()), 1)
		equal(t, "the job", w.find(id).Status, before.Status)
		equal(t, "settlements", len(w.calls("Settle")), 0)
	})
}

func TestDrain_ClaimWhoseReplyWasLostIsGivenBack(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.spoil("Claim", fault{err: errCut, lost: true})
		w.enqueueSome(3)
		w.start(returning(nil))
		equal(t, "jobs held", w.count(domain.StatusProcessing), 3)
		w.stop()
		w.advance(0)
		w.wantReturned()
		for _, job := range w.Jobs() {
			w.wantJob(job.ID, domain.StatusPending, 0)
		}
	})
}

func TestDrain_ClaimUnderWayIsWaitedForAndItsJobsAreFinished(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.spoil("Claim", fault{takes: time.Second})
		id := w.enqueue(model.NewJob{})
		w.start(returning(nil))
		w.stop()
		w.advance(time.Second)
		w.wantReturned()
		w.wantJob(id, domain.StatusCompleted, 1)
	})
}

func TestDrain_ResultsAreRecordedThoughTheDatabaseAnswersLate(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.enqueueSome(8)
		g := newGate(t)
		w.start(g.handler())
		w.spoil("Settle", fault{err: errCut, times: 3})
		w.spoil("Settle", fault{takes: time.Second})
		w.stop()
		g.open(8, nil)
		w.advance(3 * time.Second)
		w.wantReturned()
		equal(t, "jobs completed", w.count(domain.StatusCompleted), 8)
	})
}

func TestDrain_ResultsThatCannotBeRecordedGoBack(t *testing.T) {
	t.Parallel()
	for name, cut := range map[string]fault{
		"refused":      {err: errCut, times: always},
		"not answered": {until: make(chan struct{})},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				if cut.until != nil {
					cut.until = make(chan struct{}) // Of this bubble.
				}
				id := w.enqueue(model.NewJob{})
				g := newGate(t)
				w.start(g.handler())
				w.spoil("Settle", cut)
				w.stop()
				g.open(1, nil)
				w.advance(5 * time.Second)
				w.wantReturned()
				w.wantJob(id, domain.StatusPending, 0)
				equal(t, "errors logged", w.log.count("level=ERROR", "results were not recorded in time", "jobs=1"), 1)
			})
		})
	}
}

func TestDrain_GoesOnWhenTheRegistryCannotBeTold(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		id := w.enqueue(model.NewJob{})
		g := newGate(t)
		w.start(g.handler())
		w.spoil("Drain", fault{err: errCut})
		w.stop()
		g.open(1, nil)
		w.wantReturned()
		w.wantJob(id, domain.StatusCompleted, 1)
	})
}

func TestDrain_LeavingIsTriedAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		id := w.enqueue(model.NewJob{})
		w.spoil("Claim", fault{err: errCut, lost: true})
		w.start(returning(nil))
		w.spoil("Leave", fault{err: errCut, times: 3})
		w.stop()
		w.advance(5 * time.Second)
		w.wantReturned()
		w.wantJob(id, domain.StatusPending, 0)
	})
}

func TestDrain_RunSaysSoWhenItCouldNotLeave(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		err   error
		after time.Duration
	}{
		"the database cannot be reached": {errCut, 5 * time.Second},
		"the schema was dropped":         {domain.ErrNotMigrated, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				w.start(returning(nil))
				w.spoil("Leave", fault{err: test.err, times: always})
				w.stop()
				w.advance(test.after)
				if !w.hasReturned() || !errors.Is(w.err, test.err) {
					t.Errorf("Run returned %t with %v, want %v", w.hasReturned(), w.err, test.err)
				}
			})
		})
	}
}

func TestDrain_HurriedWorkerCancelsItsHandlersAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		id := w.enqueue(model.NewJob{})
		g := newGate(t)
		w.start(g.handler())
		w.stop()
		w.advance(time.Second)
		w.wantWorking()
		w.worker.StopNow()
		w.worker.StopNow()
		synctest.Wait()
		wantCause(t, g, domain.ErrStopping)
		w.wantReturned()
		w.wantJob(id, domain.StatusPending, 0)
		equal(t, "time that passed", w.elapsed(), time.Second)
	})
}

func TestDrain_WorkerHurriedBeforeItStopsWorksOnUntilThen(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		g := newGate(t)
		w.start(g.handler())
		w.worker.StopNow()
		w.enqueue(model.NewJob{})
		w.advance(5 * time.Second)
		equal(t, "handlers started", len(g.jobs()), 1)
		w.stop()
		synctest.Wait()
		w.wantReturned()
	})
}

// The others must not wait for a claim that hangs before they take over the buckets.
func TestDrain_LeavesTheRingThoughAClaimHangs(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.spoil("Claim", fault{until: make(chan struct{}), times: always})
		w.start(returning(nil))
		w.stop()
		synctest.Wait()
		equal(t, "drains", len(w.calls("Drain")), 1)
		equal(t, "bells disarmed", len(w.calls("Disarm")), 1)
		<-time.After(6 * time.Second) // Of the bubble: the claim is broken off after five.
		synctest.Wait()
		w.wantReturned()
	})
}

func TestDrain_ClaimThatAnswersAfterTheDeadlineStartsNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		answer := make(chan struct{})
		id := w.enqueue(model.NewJob{})
		w.spoil("Claim", fault{until: answer})
		g := newGate(t)
		w.start(g.handler())
		w.stop()
		w.advance(drainDeadline)
		w.wantWorking()
		close(answer)
		synctest.Wait()
		w.wantReturned()
		equal(t, "handlers started", len(g.jobs()), 0)
		w.wantJob(id, domain.StatusPending, 0)
	})
}
