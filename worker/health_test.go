package worker_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-pg/holdfast/domain/model"
	"github.com/holdfast-pg/holdfast/worker"
)

func (w *world) wantState(state worker.State) {
	w.t.Helper()
	health := w.worker.Health()
	equal(w.t, "state", health.State, state)
	if len(health.Stalled) > 0 {
		w.t.Errorf("stalled: %+v", health.Stalled)
	}
}

func TestHealth_TellsWhereTheWorkerIsInItsLife(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.spoil("Open", fault{err: errCut, times: 3})
		g := newGate(t)
		w.enqueue(model.NewJob{})
		w.start(g.stubborn())
		w.wantState(worker.StateJoining)
		w.advance(time.Second)
		w.wantState(worker.StateWorking)
		health := w.worker.Health()
		if health.InFlight != 1 || health.Buckets != buckets || health.WorkerID == "" {
			t.Errorf("%+v", health)
		}
		w.stop()
		w.advance(time.Second)
		w.wantState(worker.StateDraining)
		g.open(1, nil)
		w.advance(time.Second)
		w.wantReturned()
		w.wantState(worker.StateEnded)
	})
}

// A restart would not mend the database, nor make handlers quicker.
func TestHealth_SilentDatabaseAndBusySlotsStallNoLoop(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.config.Concurrency = 1
		g := newGate(t)
		w.enqueueSome(2)
		w.start(g.stubborn())
		for range 100 {
			w.advance(10 * time.Second)
			w.wantState(worker.StateWorking)
		}
		g.open(1, nil)
		silent := map[string]time.Duration{ // Until each statement is given up.
			"Claim": lease / 3, "Look": lease / 3, "Renew": lease / 3, "Members": lease / 3, "Settle": lease / 3,
			"Beat": 10 * time.Second, "Elect": lease,
		}
		for method, timeout := range silent {
			w.spoil(method, fault{err: errCut, takes: timeout, times: always})
		}
		g.open(1, nil)
		for range 100 {
			w.advance(10 * time.Second)
			w.wantState(worker.StateWorking)
		}
		for method := range silent {
			w.mend(method)
		}
	})
}

// A statement that does not even heed its timeout is a loop that has stopped.
func TestHealth_LoopThatDoesNotComeRoundIsStalled(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.start(returning(nil))
		w.advance(time.Minute)
		let := make(chan struct{})
		for _, method := range []string{"Claim", "Look", "Beat", "Elect"} {
			w.spoil(method, fault{until: let, times: always})
		}
		// A claim may take 30 s, a heartbeat 21 s, a round of housekeeping 123 s: three times as long.
		w.advance(80 * time.Second)
		equal(t, "stalled", len(w.worker.Health().Stalled), 1)
		equal(t, "first", w.worker.Health().Stalled[0].Loop, "heartbeats")
		w.advance(20 * time.Second)
		equal(t, "stalled", len(w.worker.Health().Stalled), 2)
		w.advance(6 * time.Minute)
		equal(t, "stalled", len(w.worker.Health().Stalled), 3)
		close(let)
		w.advance(time.Minute)
		w.wantState(worker.StateWorking)
	})
}
