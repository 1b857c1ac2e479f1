package worker_test

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-pg/holdfast/domain"
	"github.com/holdfast-pg/holdfast/domain/model"
)

const heartbeat = 10 * time.Second

func TestHeartbeat_WorkerBeatsAsLongAsItRuns(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.config.DrainDeadline = time.Hour
		w.enqueue(model.NewJob{})
		g := newGate(t)
		w.start(g.handler())
		w.spoil("Beat", fault{err: errCut, times: 2})
		w.advance(time.Minute)
		w.stop()
		w.advance(time.Minute)
		var at []time.Duration
		for _, c := range w.calls("Beat") {
			at = append(at, c.at)
		}
		want := []time.Duration{}
		for i := range 12 {
			want = append(want, time.Duration(i+1)*heartbeat)
		}
		if !slices.Equal(at, want) {
			t.Errorf("beats at %v, want %v", at, want)
		}
		equal(t, "errors logged", w.log.count("level=ERROR", "cannot beat"), 2)
		g.open(1, nil)
		w.wantReturned()
	})
}

func TestDrain_OrderedByAnOperatorEndsRun(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		first := w.enqueue(model.NewJob{})
		g := newGate(t)
		w.start(g.handler())
		if err := w.Queue.Drain(t.Context(), "w1"); err != nil {
			t.Fatal(err)
		}
		w.advance(heartbeat)
		second := w.enqueue(model.NewJob{})
		w.advance(heartbeat)
		w.wantWorking()
		w.wantJob(second, domain.StatusPending, 0)
		g.open(1, nil)
		w.wantReturned()
		w.wantJob(first, domain.StatusCompleted, 1)
		w.wantJob(second, domain.StatusPending, 0)
		w.holdsNothing()
	})
}

// die makes the registry hold the worker for dead, as housekeeping elsewhere would.
func (w *world) die() {
	w.t.Helper()
	w.advance(time.Microsecond)
	report, err := w.Queue.KeepHouse(w.t.Context(), domain.HouseRules{DeadWorkersFor: time.Hour})
	if err != nil || len(report.WorkersDied) != 1 {
		w.t.Fatalf("%d workers died: %v", len(report.WorkersDied), err)
	}
}

// forget makes the registry forget the dead.
func (w *world) forget() {
	w.t.Helper()
	report, err := w.Queue.KeepHouse(w.t.Context(), domain.HouseRules{WorkerTTL: time.Hour})
	if err != nil || report.WorkersForgotten != 1 {
		w.t.Fatalf("%d workers were forgotten: %v", report.WorkersForgotten, err)
	}
}

func TestHeartbeat_WorkerDeclaredDeadFinishesAndRejoinsUnderAnotherID(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(w *world){
		"dead":      func(w *world) { w.die() },
		"forgotten": func(w *world) { w.die(); w.forget() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				first := w.enqueue(model.NewJob{})
				g := newGate(t)
				w.start(g.handler())
				end(w)
				w.advance(heartbeat)
				second := w.enqueue(model.NewJob{})
				w.advance(heartbeat)
				w.wantJob(first, domain.StatusProcessing, 1)
				w.wantJob(second, domain.StatusPending, 0)

				g.open(1, nil)
				w.wantJob(first, domain.StatusCompleted, 1)
				w.wantJob(second, domain.StatusProcessing, 1)
				equal(t, "holder of the second job", *w.find(second).ClaimedBy, "w2")
				g.open(1, nil)
				w.wantJob(second, domain.StatusCompleted, 1)
				w.advance(5 * heartbeat)
				w.wantWorking()
				equal(t, "rejoinings logged", w.log.count("level=WARN", "rejoining", "worker_id=w1"), 1)
				equal(t, "joins", len(w.calls("Join")), 2)
			})
		})
	}
}

// What it could not give back returns when the leases end: no reason to stop working.
func TestHeartbeat_WorkerDeclaredDeadRejoinsAlsoWhenItCouldNotLeave(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.start(returning(nil))
		w.die()
		w.spoil("Leave", fault{err: errCut, times: 20})
		w.advance(heartbeat)
		w.advance(time.Minute)
		w.mend("Leave")
		id := w.enqueue(model.NewJob{})
		w.advance(2 * time.Second)
		w.wantWorking()
		w.wantJob(id, domain.StatusCompleted, 1)
	})
}

func TestDrain_WorkerDeclaredDeadDoesNotRejoinWhenItIsStopped(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.enqueue(model.NewJob{})
		g := newGate(t)
		w.start(g.handler())
		w.die()
		w.advance(heartbeat)
		w.stop()
		g.open(1, nil)
		w.wantReturned()
		equal(t, "jobs completed", w.count(domain.StatusCompleted), 1)
	})
}
