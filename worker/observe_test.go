package worker_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-pg/holdfast/domain"
	"github.com/holdfast-pg/holdfast/domain/model"
	"github.com/holdfast-pg/holdfast/worker"
)

// told is what an observer was told, in order.
type told struct {
	mutex sync.Mutex
	facts []any
}

// observe has the worker of the world tell what it does. Whoever tells asks the worker how it is,
// which would not end under a lock.
func (w *world) observe() *told {
	seen := &told{}
	w.config.Observer = worker.Observer{
		Claimed:     note[worker.Claimed](w, seen),
		Handled:     func(_ context.Context, fact worker.Handled) { note[worker.Handled](w, seen)(fact) },
		Flushed:     note[worker.Flushed](w, seen),
		Settled:     note[worker.Settled](w, seen),
		Renewed:     note[worker.Renewed](w, seen),
		Lost:        note[worker.Lost](w, seen),
		Woken:       note[worker.Woken](w, seen),
		RingChanged: note[worker.RingChanged](w, seen),
		KeptHouse:   note[worker.KeptHouse](w, seen),
		Drained:     note[worker.Drained](w, seen),
		Started: func(ctx context.Context, fact worker.Started) context.Context {
			note[worker.Started](w, seen)(fact)
			return ctx
		},
	}
	return seen
}

func note[F any](w *world, seen *told) func(F) {
	return func(fact F) {
		w.worker.Health()
		seen.mutex.Lock()
		defer seen.mutex.Unlock()
		seen.facts = append(seen.facts, fact)
	}
}

// of returns the facts of a sort that were told so far and that are wanted; nil wants all.
func of[F any](seen *told, wanted func(F) bool) []F {
	seen.mutex.Lock()
	defer seen.mutex.Unlock()
	var found []F
	for _, fact := range seen.facts {
		if typed, right := fact.(F); right && (wanted == nil || wanted(typed)) {
			found = append(found, typed)
		}
	}
	return found
}

// only returns the one fact of a sort.
func only[F any](t *testing.T, seen *told, wanted func(F) bool) F {
	t.Helper()
	found := of(seen, wanted)
	if len(found) != 1 {
		t.Fatalf("told %T %d times, want once: %+v", *new(F), len(found), found)
	}
	return found[0]
}

func TestObserver_IsToldAJobsWholeWay(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.config.Concurrency = 1
		seen := w.observe()
		g := newGate(t)
		w.enqueue(model.NewJob{})
		id := w.enqueue(model.NewJob{Payload: payload(t, letter{"ada"})})
		w.start(g.handler())
		w.advance(3 * time.Second)
		g.open(1, nil)
		w.advance(time.Second)
		g.open(1, nil)
		w.stop()
		w.advance(time.Second)
		w.wantReturned()

		joined := of[worker.RingChanged](seen, nil)
		if want := []worker.RingChanged{{Queue: "default", Workers: 1, Buckets: buckets}, {Queue: "default", Before: buckets}}; !slices.Equal(joined, want) {
			t.Errorf("changes of the ring: %+v, want %+v", joined, want)
		}
		jobs := 0
		for _, claimed := range of[worker.Claimed](seen, nil) {
			jobs += claimed.Jobs
			equal(t, "queue of a claim", claimed.Queue, "default")
		}
		equal(t, "jobs claimed", jobs, 2)
		started := only(t, seen, func(s worker.Started) bool { return s.Job.ID == id })
		equal(t, "waited for the slot", started.Waited, 3*time.Second)
		handled := only(t, seen, func(h worker.Handled) bool { return h.Job.ID == id })
		equal(t, "verdict", handled.Outcome.Verdict, domain.Complete)
		equal(t, "took", handled.Took, time.Second)
		settled := only(t, seen, func(s worker.Settled) bool { return s.Job.ID == id })
		equal(t, "status", settled.Status, domain.StatusCompleted)
		equal(t, "flushes", len(of(seen, func(f worker.Flushed) bool { return f.Jobs == 1 && f.Unanswered == 0 })), 2)
		drained := only[worker.Drained](t, seen, nil)
		if !errors.Is(drained.Reason, context.Canceled) || drained.Err != nil {
			t.Errorf("drained: %+v", drained)
		}
	})
}

type tracked struct{}

func TestObserver_HandlerGetsTheContextOfStarted(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		var inHandler, inHandled any
		w.config.Observer = worker.Observer{
			Started: func(ctx context.Context, _ worker.Started) context.Context {
				return context.WithValue(ctx, tracked{}, "span")
			},
			Handled: func(ctx context.Context, _ worker.Handled) { inHandled = ctx.Value(tracked{}) },
		}
		w.enqueue(model.NewJob{})
		w.start(worker.HandleKind("send", func(ctx context.Context, _ domain.ClaimedJob) error {
			inHandler = ctx.Value(tracked{})
			return nil
		}))
		w.advance(time.Second)
		equal(t, "in the handler", inHandler, any("span"))
		equal(t, "in Handled", inHandled, any("span"))
	})
}

func TestObserver_IsToldHowAnAttemptEnds(t *testing.T) {
	t.Parallel()
	broken := errors.New("no")
	for _, test := range []struct {
		name    string
		run     func() error
		attempt int
		verdict domain.Verdict
		status  domain.Status
		is      error
	}{
		{"error", func() error { return broken }, 5, domain.Retry, domain.StatusPending, broken},
		{"last error", func() error { return broken }, 1, domain.Retry, domain.StatusDeadLetter, broken},
		{"failure", func() error { return domain.FailWith(broken) }, 5, domain.Fail, domain.StatusFailed, broken},
		{"fenced", func() error { return fmt.Errorf("write: %w", domain.ErrFenced) }, 5, domain.Release, domain.StatusPending, domain.ErrFenced},
		{"panic", func() error { panic(broken) }, 5, domain.Retry, domain.StatusPending, nil},
		{"goexit", func() error { runtime.Goexit(); return nil }, 5, domain.Retry, domain.StatusPending, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				seen := w.observe()
				w.enqueue(model.NewJob{MaxAttempts: test.attempt})
				w.start(worker.HandleKind("send", func(context.Context, domain.ClaimedJob) error { return test.run() }))
				w.advance(100 * time.Millisecond)
				handled := only[worker.Handled](t, seen, nil)
				equal(t, "verdict", handled.Outcome.Verdict, test.verdict)
				if handled.Err == nil || test.is != nil && !errors.Is(handled.Err, test.is) {
					t.Errorf("error: %v, want %v", handled.Err, test.is)
				}
				equal(t, "status", only[worker.Settled](t, seen, nil).Status, test.status)
			})
		})
	}
}

func TestObserver_IsToldOfALeaseThatTheDatabaseEnded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		seen := w.observe()
		id := w.enqueue(model.NewJob{})
		g := newGate(t)
		w.start(g.stubborn())
		w.advance(time.Second)
		w.giveBack(id, time.Hour)
		w.advance(renewEvery)
		lost := only[worker.Lost](t, seen, nil)
		equal(t, "job", lost.Job.ID, id)
		equal(t, "overdue", lost.Overdue, false)
		renewed := only(t, seen, func(r worker.Renewed) bool { return r.Lost > 0 })
		equal(t, "leases", renewed.Leases, 1)
		g.open(1, nil)
		w.advance(time.Second)
		if refused := only[worker.Settled](t, seen, nil); !errors.Is(refused.Err, domain.ErrLeaseLost) {
			t.Errorf("settled: %+v", refused)
		}
	})
}

func TestObserver_IsToldOfALeaseThatCouldNotBeRenewed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		seen := w.observe()
		w.enqueue(model.NewJob{})
		g := newGate(t)
		w.start(g.handler())
		w.spoil("Renew", fault{err: errCut, times: always})
		w.advance(lease)
		equal(t, "overdue", only[worker.Lost](t, seen, nil).Overdue, true)
		if failed := of(seen, func(r worker.Renewed) bool { return errors.Is(r.Err, errCut) }); len(failed) == 0 {
			t.Error("no renewal that failed was told of")
		}
		w.mend("Renew")
	})
}

func TestObserver_IsToldWhatWakesTheWorker(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newListeningWorld(t)
		seen := w.observe()
		w.start(returning(nil))
		w.advance(time.Minute)
		count := func(by worker.WakeSource) int {
			return len(of(seen, func(woken worker.Woken) bool { return woken.By == by }))
		}
		if count(worker.WakePoll) == 0 {
			t.Error("an idle worker told of no poll")
		}
		rung := count(worker.WakeNotify)
		w.enqueue(model.NewJob{})
		synctest.Wait()
		equal(t, "rings", count(worker.WakeNotify), rung+1)
		equal(t, "jobs due", count(worker.WakeDue), 0)
		w.enqueue(model.NewJob{Delay: 2500 * time.Millisecond, NoRing: true})
		w.advance(5 * time.Second)
		equal(t, "jobs due", count(worker.WakeDue), 1)
	})
}

func TestObserver_IsToldOfHousekeeping(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		seen := w.observe()
		id := w.enqueue(model.NewJob{})
		if _, err := w.Queue.Claim(t.Context(), domain.ClaimRequest{
			WorkerID: "dead", Queue: domain.DefaultQueue, Buckets: []int{id.Bucket()}, Quota: 1, Batch: 1, Lease: time.Second,
		}); err != nil {
			t.Fatal(err)
		}
		w.spoil("Reclaim", fault{takes: 2 * time.Second})
		w.start(returning(nil))
		w.advance(31*time.Second + 2*time.Second)
		kept := only[worker.KeptHouse](t, seen, nil)
		equal(t, "took", kept.Took, 2*time.Second)
		if len(kept.Reclaimed) != 1 || kept.Reclaimed[0].Claim.ID != id || kept.Reclaimed[0].Kind != "send" {
			t.Errorf("reclaimed: %+v", kept.Reclaimed)
		}
		w.spoil("KeepHouse", fault{err: errCut})
		w.advance(31 * time.Second)
		only(t, seen, func(k worker.KeptHouse) bool { return errors.Is(k.Err, errCut) })
	})
}

func TestObserver_PanicHarmsNobody(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.config.Observer = worker.Observer{
			Claimed:     func(worker.Claimed) { panic("claimed") },
			Started:     func(context.Context, worker.Started) context.Context { panic("started") },
			Handled:     func(context.Context, worker.Handled) { panic("handled") },
			Flushed:     func(worker.Flushed) { panic("flushed") },
			Settled:     func(worker.Settled) { panic("settled") },
			Renewed:     func(worker.Renewed) { panic("renewed") },
			Lost:        func(worker.Lost) { panic("lost") },
			Woken:       func(worker.Woken) { panic("woken") },
			RingChanged: func(worker.RingChanged) { panic("ring changed") },
			KeptHouse:   func(worker.KeptHouse) { panic("kept house") },
			Drained:     func(worker.Drained) { panic("drained") },
		}
		id := w.enqueue(model.NewJob{})
		g := newGate(t)
		w.start(g.handler())
		w.advance(2 * lease)
		g.open(1, nil)
		w.advance(time.Second)
		w.wantJob(id, domain.StatusCompleted, 1)
		w.stop()
		w.advance(time.Second)
		w.wantReturned()
		equal(t, "lines about it", w.log.count("level=ERROR", "the observer panicked"), 1)
	})
}

// Who reads the log looks for these.
func TestLog_LinesAboutAJobHaveTheSameKeys(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.enqueue(model.NewJob{MaxAttempts: 1, Key: "order:9182", Payload: payload(t, letter{"ada"})})
		lost := w.enqueue(model.NewJob{Kind: "hold"})
		w.enqueue(model.NewJob{Kind: "unknown"})
		g := newGate(t)
		w.start(returning(errors.New("no")), worker.HandleKind("hold", func(ctx context.Context, _ domain.ClaimedJob) error {
			return <-g.let
		}))
		w.advance(time.Second)
		w.giveBack(lost, time.Hour)
		w.advance(renewEvery)
		g.open(1, nil)
		w.advance(time.Second)
		about := strings.Count(w.log.text(), "job_id=")
		if about < 8 {
			t.Errorf("only %d lines about jobs", about)
		}
		equal(t, "lines about jobs with all keys", w.log.count("job_id=", "queue=", "kind=", "bucket=", "generation=", "attempt=", "worker_id="), about)
		equal(t, "lines with a key or a payload", w.log.count("order:9182")+w.log.count("ada"), 0)
	})
}
