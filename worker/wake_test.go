package worker_test

import (
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-pg/holdfast/domain"
	"github.com/holdfast-pg/holdfast/domain/model"
)

// newListeningWorld returns an installation whose worker listens for rings.
func newListeningWorld(t *testing.T) *world {
	t.Helper()
	w := newWorld(t)
	w.config.PollOnly = false
	w.config.Random = func() float64 { return 0 }
	return w
}

func TestWake_IdleWorkerAnswersARingAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newListeningWorld(t)
		w.start(returning(nil))
		w.advance(time.Minute + 300*time.Millisecond)
		id := w.enqueue(model.NewJob{})
		synctest.Wait()
		w.wantJob(id, domain.StatusCompleted, 1)
	})
}

func TestWake_WithoutARingTheJobIsFoundByPolling(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newListeningWorld(t)
		w.start(returning(nil))
		w.advance(time.Minute)
		id := w.enqueue(model.NewJob{NoRing: true})
		synctest.Wait()
		w.wantJob(id, domain.StatusPending, 0)
		w.advance(1500 * time.Millisecond)
		w.wantJob(id, domain.StatusCompleted, 1)
	})
}

// An enqueue that began before the worker was armed does not ring when it commits.
func TestWake_LooksAgainSoonAfterItWasArmed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newListeningWorld(t)
		w.start(returning(nil))
		w.advance(10 * time.Second)
		// A wait ends at once: starting to listen counts as a ring. It may be the one before the
		// worker is armed, or the one after.
		claims := w.asked()
		for claims[1].at-claims[0].at < 4*time.Millisecond {
			claims = claims[1:]
		}
		wantWaits(t, claims, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 1500, 1500)
		equal(t, "times armed", len(w.calls("Arm")), 1)
	})
}

func TestWake_SaturatedQueueDoesNotRing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newListeningWorld(t)
		w.config.Concurrency = 2
		g := newGate(t)
		w.start(g.handler())
		w.advance(5 * time.Second)
		w.enqueueSome(20)
		w.advance(900 * time.Millisecond)
		equal(t, "times disarmed within a second", len(w.calls("Disarm")), 0)
		w.advance(200 * time.Millisecond)
		equal(t, "times disarmed after a second", len(w.calls("Disarm")), 1)

		w.advance(10 * time.Second)
		g.open(20, nil)
		w.advance(time.Second)
		equal(t, "jobs completed", w.count(domain.StatusCompleted), 20)
		equal(t, "times disarmed", len(w.calls("Disarm")), 1)
		equal(t, "times armed", len(w.calls("Arm")), 2)
		w.advance(10 * time.Second)
		id := w.enqueue(model.NewJob{})
		synctest.Wait()
		w.wantJob(id, domain.StatusProcessing, 1)
		g.open(1, nil)
	})
}

func TestWake_LostListenerIsReplaced(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newListeningWorld(t)
		w.spoil("Listen", fault{err: errCut, takes: time.Minute, times: 3})
		w.start(returning(nil))
		w.advance(30 * time.Second)
		equal(t, "times armed while nothing is heard", len(w.calls("Arm")), 0)
		w.advance(3 * time.Minute)
		equal(t, "times that it was lost", w.log.count("level=WARN", "cannot listen for jobs", errCut.Error()), 3)
		id := w.enqueue(model.NewJob{})
		synctest.Wait()
		w.wantJob(id, domain.StatusCompleted, 1)
	})
}

func TestWake_CutListenerLeavesTheWorkerPolling(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newListeningWorld(t)
		w.spoil("Listen", fault{err: errCut, lost: true, takes: 5 * time.Second})
		w.spoil("Listen", fault{err: errCut, takes: time.Hour})
		w.start(returning(nil))
		w.advance(4 * time.Second)
		equal(t, "times armed", len(w.calls("Arm")), 1)
		w.advance(20 * time.Second)
		equal(t, "wake mode", w.facts().Wake, "poll")
		id := w.enqueue(model.NewJob{})
		w.advance(1500 * time.Millisecond)
		w.wantJob(id, domain.StatusCompleted, 1)
	})
}

// As behind a pooler in transaction mode.
func TestWake_WhereNotificationsDoNotArriveItPollsAndSaysSoOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newListeningWorld(t)
		w.spoil("Listen", fault{err: domain.ErrNoNotifications, times: math.MaxInt})
		w.start(returning(nil))
		w.advance(4 * time.Minute)
		equal(t, "warnings", w.log.count("level=WARN", "cannot listen for jobs", "notifications do not arrive"), 1)
		equal(t, "wake mode", w.facts().Wake, "poll")
		equal(t, "times armed", len(w.calls("Arm")), 0)
		id := w.enqueue(model.NewJob{})
		w.advance(1500 * time.Millisecond)
		w.wantJob(id, domain.StatusCompleted, 1)
	})
}

func TestWake_SleepEndsWhenTheNextJobIsDue(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newListeningWorld(t)
		w.start(returning(nil))
		w.advance(20 * time.Second)
		id := w.enqueue(model.NewJob{Delay: 3300 * time.Millisecond})
		w.advance(3299 * time.Millisecond)
		w.wantJob(id, domain.StatusPending, 0)
		w.advance(time.Millisecond)
		w.wantJob(id, domain.StatusCompleted, 1)
	})
}

func TestWake_RingForAnotherWorkersBucketWakesNobodyElse(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newListeningWorld(t)
		w.members = with("w1", "w2")
		w.start(returning(nil))
		w.advance(20 * time.Second)
		own := w.ownClaims()[0].request.Buckets
		before := len(w.ownClaims())
		w.enqueue(model.NewJob{Key: keyOutside(own)})
		synctest.Wait()
		equal(t, "claims after a ring for the other worker", len(w.ownClaims())-before, 0)
		w.enqueue(model.NewJob{Key: keyWithin(own)})
		synctest.Wait()
		if len(w.ownClaims()) == before {
			t.Error("no claim after a ring for this worker")
		}
	})
}

// A claim of every bucket takes longer than one of the bucket that has rung.
func TestWake_ClaimsFirstWhatHasRung(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newListeningWorld(t)
		w.start(returning(nil))
		w.advance(5 * time.Second)
		before := len(w.ownClaims())
		id := w.enqueue(model.NewJob{})
		synctest.Wait()
		w.wantJob(id, domain.StatusCompleted, 1)
		after := w.ownClaims()[before:]
		if len(after) < 2 || len(after[0].request.Buckets) != 1 || after[0].request.Buckets[0] != id.Bucket() || len(after[1].request.Buckets) != buckets {
			t.Errorf("claims of %d buckets, want one of that which rang, then one of all", len(after))
		}
	})
}
