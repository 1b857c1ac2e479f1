package worker_test

import (
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-pg/holdfast/domain"
	"github.com/holdfast-pg/holdfast/worker"
)

func TestGate_NothingIsClaimedWhileItIsClosed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.config.Gate = &worker.Gate{}
		w.config.Gate.Close()
		w.enqueueSome(3)
		w.start(returning(nil))
		w.advance(time.Minute)
		equal(t, "claims", len(w.calls("Claim")), 0)
		equal(t, "looks", len(w.calls("Look")), 0)

		w.config.Gate.Open()
		synctest.Wait()
		equal(t, "jobs completed as soon as it opens", w.count(domain.StatusCompleted), 3)
	})
}

func TestGate_WhatIsHeldGoesOnWhenItCloses(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.config.Gate = &worker.Gate{}
		w.config.Concurrency = 2
		w.enqueueSome(6)
		g := newGate(t)
		w.start(g.handler())
		w.config.Gate.Close()
		g.open(2, nil)
		w.advance(time.Second)
		equal(t, "jobs completed", w.count(domain.StatusCompleted), 2)
		equal(t, "jobs started", len(g.jobs()), 2)
		w.holdsNothing()

		w.config.Gate.Open()
		synctest.Wait()
		equal(t, "jobs started after it opened", len(g.jobs()), 4)
		g.open(2, nil)
		g.open(2, nil)
	})
}

func TestGate_ClosedGateHoldsNobodyWhoStops(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.config.Gate = &worker.Gate{}
		w.config.Gate.Close()
		w.start(returning(nil))
		w.stop()
		synctest.Wait()
		w.wantReturned()
	})
}

func TestFacts_WhatTheProgramAddsIsSaid(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		said := any(map[string]int{"sent": 7})
		w.config.Says = func() any { return said }
		w.start(returning(nil))
		w.advance(15 * time.Second)
		more := func() string {
			beats := w.calls("Beat")
			return string(worker.ReadFacts(beats[len(beats)-1].metadata).More)
		}
		equal(t, "more", more(), `{"sent":7}`)

		said = math.NaN() // No JSON.
		w.advance(15 * time.Second)
		equal(t, "more of what is no JSON", more(), "")
		equal(t, "lines about it", min(1, w.log.count("cannot be written as JSON")), 1)
	})
}
