package worker_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-pg/holdfast/domain"
	"github.com/holdfast-pg/holdfast/domain/model"
)

func TestSettle_ErrorsAreRetriedAsUnconfirmedUntilAnswered(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.spoil("Settle", fault{err: errCut, times: 4})
		id := w.enqueue(model.NewJob{})
		w.start(returning(nil))
		w.advance(time.Minute)
		w.wantJob(id, domain.StatusCompleted, 1)
		calls := w.calls("Settle")
		equal(t, "settlements sent", len(calls), 5)
		for i, c := range calls {
			equal(t, "unconfirmed", c.settlements[0].Unconfirmed, i > 0)
		}
		wantWaits(t, calls, 75, 150, 300, 600)
		equal(t, "errors logged", w.log.count("level=ERROR", "cannot record results", errCut.Error()), 4)
	})
}

// The wait before the next try has grown while the database was away. A worker that stops when
// it is back does not sit it out, and no job runs again that was done.
func TestSettle_StoppingWorkerTriesAgainAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.spoil("Settle", fault{err: errCut, times: 8})
		id := w.enqueue(model.NewJob{})
		w.start(returning(nil))
		w.advance(10 * time.Second)
		equal(t, "settlements sent", len(w.calls("Settle")), 8)
		w.stop()
		w.advance(0)
		w.wantReturned()
		w.wantJob(id, domain.StatusCompleted, 1)
	})
}

func TestCompleteOnce_LostReplyIsDoneNotLeaseLost(t *testing.T) {
	t.Parallel()
	retentions := map[string]domain.RetentionMode{
		"archive": domain.RetentionArchive, "keep": domain.RetentionKeep, "drop": domain.RetentionDrop,
	}
	for name, retention := range retentions {
		for outcome, result := range map[string]error{
			"completed": nil, "failed": domain.FailWith(errMail), "retried": errMail, "snoozed": domain.Snooze(time.Hour),
		} {
			t.Run(name+" "+outcome, func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					w := newWorld(t)
					if _, err := w.SetQueue(t.Context(), domain.DefaultQueue, domain.QueueChange{RetentionMode: &retention}); err != nil {
						t.Fatal(err)
					}
					w.spoil("Settle", fault{err: errCut, lost: true})
					w.enqueue(model.NewJob{})
					w.start(returning(result))
					w.advance(time.Second)
					equal(t, "settlements sent", len(w.calls("Settle")), 2)
					equal(t, "results settled", w.log.count("job settled"), 1)
					equal(t, "refusals", w.log.count("refused"), 0)
					equal(t, "lost leases", w.log.count("lease lost"), 0)
					equal(t, "jobs held", w.count(domain.StatusProcessing), 0)
				})
			})
		}
	}
}

// A renewal may ask for a job while the reply to its settlement is lost.
func TestCompleteOnce_RenewalDoesNotTurnADoneJobIntoALostOne(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.config.Random = func() float64 { return 0 } // Its turn is the first.
		w.spoil("Settle", fault{err: errCut, lost: true})
		w.spoil("Settle", fault{err: errCut, times: 7})
		w.enqueue(model.NewJob{})
		w.start(returning(nil))
		w.advance(time.Minute)
		if len(w.calls("Renew")) == 0 {
			t.Error("no renewal has asked for the job")
		}
		equal(t, "results settled", w.log.count("job settled"), 1)
		equal(t, "refusals", w.log.count("refused"), 0)
		equal(t, "lost leases", w.log.count("lease lost"), 0)
	})
}

func TestSettle_ResultsGatherWhileAFlushIsUnderWay(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.enqueueSome(8)
		g := newGate(t)
		w.start(g.handler())
		answered := make(chan struct{})
		w.spoil("Settle", fault{until: answered})
		g.open(1, nil)
		g.open(6, nil)
		g.open(1, errMail)
		equal(t, "flushes under way", len(w.calls("Settle")), 1)
		close(answered)
		w.advance(0)
		calls := w.calls("Settle")
		equal(t, "flushes", len(calls), 2)
		equal(t, "results in the first", len(calls[0].settlements), 1)
		equal(t, "results in the second", len(calls[1].settlements), 7)
		equal(t, "jobs completed", w.count(domain.StatusCompleted), 7)
	})
}

func TestSettle_SlotIsFreedWhenTheHandlerReturns(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.config.Concurrency = 1
		answered := make(chan struct{})
		w.spoil("Settle", fault{until: answered})
		w.enqueueSome(2)
		g := newGate(t)
		w.start(g.handler())
		g.open(1, nil)
		equal(t, "jobs completed", w.count(domain.StatusCompleted), 0)
		equal(t, "handlers started", len(g.jobs()), 2)
		close(answered)
		g.open(1, nil)
		equal(t, "jobs completed", w.count(domain.StatusCompleted), 2)
	})
}

func TestSettle_ResultsThatWaitHoldClaimsBack(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const batch, stock, jobs = 1000, 4 * 500, 4000
		w := newWorld(t)
		w.config.Concurrency = 4
		answered := make(chan struct{})
		w.spoil("Settle", fault{until: answered})
		w.enqueueSome(jobs)
		w.start(returning(nil))
		w.advance(10 * time.Second)
		// What the first flush took, what may wait, and the handlers with their slots in hand.
		ran := w.log.count("job started")
		if ran < batch || ran > 2*batch+4 {
			t.Errorf("%d handlers ran, want about %d", ran, batch)
		}
		if held := w.count(domain.StatusProcessing); held > ran+stock {
			t.Errorf("%d jobs are held though their results cannot be recorded", held)
		}
		close(answered)
		w.advance(time.Minute)
		equal(t, "jobs completed", w.count(domain.StatusCompleted), jobs)
	})
}

func TestSettle_RefusedResultLeavesTheOthersAlone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.enqueueSome(4)
		lost := w.enqueue(model.NewJob{})
		g := newGate(t)
		w.start(g.handler())
		w.giveBack(lost, time.Hour)
		g.open(5, nil)
		equal(t, "jobs completed", w.count(domain.StatusCompleted), 4)
		w.wantJob(lost, domain.StatusPending, 0)
		equal(t, "refusals logged", w.log.count("level=WARN", "the result was refused", lost.String()), 1)
	})
}

// The model records anything, so the refusals are made here.
func TestSettle_WhatTheDatabaseRefusesIsAFailedAttempt(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		id := w.enqueue(model.NewJob{})
		w.spoil("Settle", fault{err: fmt.Errorf("%w: no", domain.ErrRefused)})
		w.start(returning(nil))
		w.wantJob(id, domain.StatusPending, 1)
		equal(t, "last error", *w.find(id).LastError, "record the result: "+domain.ErrRefused.Error()+": no")
		equal(t, "errors logged", w.log.count("level=ERROR", "the attempt counts as failed", id.String()), 1)
	})
}

func TestSettle_WhatTheDatabaseRefusesTwiceComesBackWhenTheLeaseEnds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		id := w.enqueue(model.NewJob{})
		w.spoil("Settle", fault{err: domain.ErrRefused, times: 2})
		w.start(returning(nil))
		w.wantJob(id, domain.StatusProcessing, 1)
		w.advance(lease + time.Minute)
		w.wantJob(id, domain.StatusCompleted, 2)
		equal(t, "settlements", len(w.calls("Settle")), 3)
		equal(t, "renewals", len(w.calls("Renew")), 0)
	})
}
