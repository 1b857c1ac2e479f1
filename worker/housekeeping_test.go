package worker_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-pg/holdfast/domain"
	"github.com/holdfast-pg/holdfast/domain/model"
)

func TestHousekeeping_LostElectionsAreNotWaitedForForEver(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.start(returning(nil))
		w.spoil("Elect", fault{err: errCut, times: 2})
		w.advance(3 * 31 * time.Second)
		equal(t, "rounds after two lost elections and one won", len(w.calls("Reclaim")), 1)
		w.spoil("Elect", fault{err: errCut, times: 4})
		w.advance(2 * 31 * time.Second)
		equal(t, "rounds after two more were lost", len(w.calls("Reclaim")), 1)
		w.advance(2 * 31 * time.Second)
		equal(t, "rounds after four", len(w.calls("Reclaim")), 3)
		equal(t, "warnings", w.log.count("level=WARN", "without being elected"), 2)
	})
}

// A reclaim that is broken off may take effect all the same, and nobody would learn of it.
func TestHousekeeping_RoundUnderWayIsFinishedByAStoppingWorker(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		id := w.enqueue(model.NewJob{})
		if _, err := w.Queue.Claim(t.Context(), domain.ClaimRequest{
			WorkerID: "dead", Queue: domain.DefaultQueue, Buckets: []int{id.Bucket()}, Quota: 1, Batch: 1, Lease: time.Second,
		}); err != nil {
			t.Fatal(err)
		}
		w.spoil("Reclaim", fault{takes: 2 * time.Second})
		w.start(returning(nil))
		w.advance(31 * time.Second)
		w.stop()
		w.advance(2 * time.Second)
		w.wantReturned()
		equal(t, "reclaims logged", w.log.count("job reclaimed", id.String()), 1)
		equal(t, "errors", w.log.count("level=ERROR"), 0)
	})
}

// Ended leases are urgent. The rest is done once an interval by all workers together.
func TestHousekeeping_WhatCanWaitIsSharedByTheWorkers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.config.Random = func() float64 { return 0 }
		w.members = with("w1", "w2", "w3", "w4")
		w.start(returning(nil))
		w.advance(9*30*time.Second + 15*time.Second)
		equal(t, "reclaims", len(w.calls("Reclaim")), 10)
		equal(t, "rounds in which house was kept", len(w.calls("KeepHouse")), 3)
	})
}

// Handlers that run for long keep nobody else's jobs waiting: a worker without a free slot
// reclaims as any other.
func TestComesBack_ThoughEverySlotOfTheHousekeeperIsTaken(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.config.Concurrency = 1
		gate := newGate(t)
		busy := w.enqueue(model.NewJob{})
		w.start(gate.handler())
		w.advance(time.Second)
		id := w.enqueue(model.NewJob{})
		if _, err := w.Queue.Claim(t.Context(), domain.ClaimRequest{
			WorkerID: "dead", Queue: domain.DefaultQueue, Buckets: []int{id.Bucket()}, Quota: 1, Batch: 1, Lease: lease,
		}); err != nil {
			t.Fatal(err)
		}
		w.advance(lease + 30*time.Second + 3*time.Second)
		w.wantJob(busy, domain.StatusProcessing, 1)
		w.wantJob(id, domain.StatusPending, 1)
		gate.open(1, nil)
		w.advance(5 * time.Second)
		gate.open(1, nil)
	})
}
