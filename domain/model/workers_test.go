package model_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/holdfast-pg/holdfast/domain"
	"github.com/holdfast-pg/holdfast/domain/model"
)

const ttl = 30 * time.Second

func (w world) join(id string, queues ...string) domain.Registration {
	w.t.Helper()
	worker := domain.Registration{ID: id, Queues: queues, Metadata: json.RawMessage("{}")}
	if err := w.Join(w.t.Context(), worker); err != nil {
		w.t.Fatal(err)
	}
	return worker
}

func (w world) beat(worker domain.Registration) domain.WorkerStatus {
	w.t.Helper()
	status, err := w.Beat(w.t.Context(), worker)
	if err != nil {
		w.t.Fatal(err)
	}
	return status
}

func (w world) live(queue string) []string {
	w.t.Helper()
	workers, err := w.LiveWorkers(w.t.Context(), queue, ttl, 100)
	if err != nil {
		w.t.Fatal(err)
	}
	ids := []string{}
	for _, worker := range workers {
		ids = append(ids, worker.ID)
	}
	return ids
}

func TestJoin_MakesTheQueuesItServes(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.join("w1", "mail")
	_, err := w.FindQueue(t.Context(), "mail")
	wantError(t, err, nil)
	equal(t, w.live("mail"), []string{"w1"})
	equal(t, w.live(domain.DefaultQueue), []string{})
}

func TestJoin_RefusesAnIDThatExists(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	worker := w.join("w1")
	wantError(t, w.Join(t.Context(), worker), domain.ErrWorkerExists)
	if err := w.Leave(t.Context(), "w1"); err != nil {
		t.Fatal(err)
	}
	wantError(t, w.Join(t.Context(), worker), domain.ErrWorkerExists)
}

func TestBeat_NeverRevives(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	worker := w.join("w1", "mail")
	equal(t, w.beat(worker), domain.WorkerAlive)
	if err := w.Drain(t.Context(), "w1"); err != nil {
		t.Fatal(err)
	}
	equal(t, w.beat(worker), domain.WorkerDraining)
	equal(t, w.live("mail"), []string{})
	w.clock.Advance(ttl + time.Second)
	equal(t, w.keepHouse(domain.HouseRules{WorkerTTL: ttl, DeadWorkersFor: time.Minute}).WorkersDied, []string{"w1"})
	equal(t, w.beat(worker), domain.WorkerDead)
	w.clock.Advance(time.Minute)
	equal(t, w.beat(worker), domain.WorkerDead)
	equal(t, w.keepHouse(domain.HouseRules{WorkerTTL: ttl, DeadWorkersFor: time.Minute}).WorkersForgotten, int64(1))
	_, err := w.Beat(t.Context(), worker)
	wantError(t, err, domain.ErrWorkerUnknown)
}

func TestBeat_KeepsAWorkerAlive(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	worker := w.join("w1", "mail")
	w.join("w2", "mail")
	for range 4 {
		w.clock.Advance(ttl / 3)
		w.beat(worker)
	}
	equal(t, w.live("mail"), []string{"w1"})
	equal(t, w.keepHouse(domain.HouseRules{WorkerTTL: ttl, DeadWorkersFor: time.Hour}).WorkersDied, []string{"w2"})
}

func TestDeadWorker_KeepsItsClaimsUntilTheirLeaseEnds(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.join("w1")
	w.enqueue(model.NewJob{})
	w.claimOne("w1")
	w.clock.Advance(ttl + time.Second)
	w.keepHouse(domain.HouseRules{WorkerTTL: ttl, DeadWorkersFor: time.Hour})
	equal(t, len(w.reclaim()), 0)
	held, err := w.HeldJobs(t.Context(), "w1")
	if err != nil {
		t.Fatal(err)
	}
	equal(t, held, int64(1))
}

func TestDrain_OfAWorkerThatIsNotAliveIsRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.join("w1")
	wantError(t, w.Drain(t.Context(), "w1"), nil)
	wantError(t, w.Drain(t.Context(), "w1"), domain.ErrWorkerUnknown)
	wantError(t, w.Drain(t.Context(), "w2"), domain.ErrWorkerUnknown)
	wantError(t, w.Leave(t.Context(), "w2"), nil)
}

func TestLeavesNothingBehind(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	worker := w.join("w1")
	id := w.enqueue(model.NewJob{MaxAttempts: 1})
	w.claimOne("w1") // Of a reply that got lost: the worker does not know of it.
	wantError(t, w.Leave(t.Context(), "w1"), nil)
	held, err := w.HeldJobs(t.Context(), "w1")
	wantError(t, err, nil)
	equal(t, held, int64(0))
	equal(t, w.beat(worker), domain.WorkerDead)
	equal(t, w.find(id).Attempts, 0)
	equal(t, idsOf(w.claim("w2", 1)), []domain.JobID{id})
}
