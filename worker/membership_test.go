package worker_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-pg/holdfast/domain"
	"github.com/holdfast-pg/holdfast/domain/model"
	"github.com/holdfast-pg/holdfast/worker"
)

// with makes a worker see these workers, whoever there is.
func with(ids ...string) func([]domain.Membership) []domain.Membership {
	return func(seen []domain.Membership) []domain.Membership {
		for i := range seen {
			seen[i].Workers = ids
		}
		return seen
	}
}

// keyWithin returns a partition key whose bucket is one of these.
func keyWithin(owned []int) string {
	for i := 0; ; i++ {
		if key := fmt.Sprintf("order:%d", i); slices.Contains(owned, domain.BucketOf(key, buckets)) {
			return key
		}
	}
}

// keyOutside returns a partition key whose bucket is none of these.
func keyOutside(owned []int) string {
	for i := 0; ; i++ {
		if key := fmt.Sprintf("order:%d", i); !slices.Contains(owned, domain.BucketOf(key, buckets)) {
			return key
		}
	}
}

// facts are what the worker said of itself at its latest heartbeat.
type facts struct {
	Wake     string  `json:"wake"`
	Affinity string  `json:"affinity"`
	Buckets  int     `json:"buckets"`
	InFlight int     `json:"in_flight"`
	HandleMS float64 `json:"handle_p99_ms"`
	ClaimMS  float64 `json:"claim_p50_ms"`
	WaitMS   float64 `json:"wait_p50_ms"`
}

func (w *world) facts() (said facts) {
	w.t.Helper()
	live, err := w.LiveWorkers(w.t.Context(), domain.DefaultQueue, time.Hour, 9)
	if err != nil || len(live) == 0 {
		w.t.Fatalf("no live worker (error %v)", err)
	}
	if err := json.Unmarshal(live[0].Metadata, &said); err != nil {
		w.t.Fatal(err)
	}
	return said
}

func TestRing_WorkerClaimsFromItsOwnBuckets(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.members = with("w1", "w2", "w3")
		w.start(returning(nil))
		own := w.ownClaims()[0].request.Buckets
		if len(own) == 0 || len(own) > buckets/2 {
			t.Fatalf("owns %d of %d buckets among three workers", len(own), buckets)
		}
		mine := w.enqueue(model.NewJob{Key: keyWithin(own)})
		w.advance(10 * time.Second)
		w.wantJob(mine, domain.StatusCompleted, 1)
		equal(t, "buckets in the registry", w.facts().Buckets, len(own))
		// Its owner has two seconds for a job, whenever the others look; then it is anybody's
		// who is idle.
		for i := range 10 {
			w.advance(time.Duration(i) * 370 * time.Millisecond)
			other := w.enqueue(model.NewJob{Key: keyOutside(own)})
			w.advance(1999 * time.Millisecond)
			w.wantJob(other, domain.StatusPending, 0)
			w.advance(5 * time.Second)
			w.wantJob(other, domain.StatusCompleted, 1)
		}
	})
}

func TestRing_OnlyWorkerLooksForNoStrays(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.start(returning(nil))
		w.advance(time.Minute)
		for _, c := range w.calls("Claim") {
			if c.request.DueFor > 0 && !c.request.Lanes {
				t.Fatal("looked for strays though every bucket is its own")
			}
		}
	})
}

// However wrong the ring is, every job is found.
func TestRing_WrongRingsStrandNoJob(t *testing.T) {
	t.Parallel()
	for name, members := range map[string]func([]domain.Membership) []domain.Membership{
		"nobody is there":      with(),
		"others only":          with("x", "y"),
		"the queue is unknown": func([]domain.Membership) []domain.Membership { return nil },
		"another at each look": func() func([]domain.Membership) []domain.Membership {
			looks := 0
			return func(seen []domain.Membership) []domain.Membership {
				looks++
				return with("w1", strconv.Itoa(looks))(seen)
			}
		}(),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				w.members = members
				w.start(returning(nil))
				w.enqueueSome(50)
				// Two seconds until anybody may take them, and eight jobs a pass from then on.
				w.advance(30 * time.Second)
				equal(t, "jobs completed", w.count(domain.StatusCompleted), 50)
			})
		})
	}
}

// A worker that has nothing of its own to do rests from strays only when there are none: the
// cost of a slow claim is for those who have.
func TestRing_IdleWorkerTakesAllStraysAtOnceThoughClaimsAreSlow(t *testing.T) {
	t.Parallel()
	for name, members := range map[string]func([]domain.Membership) []domain.Membership{
		"it owns half":    with("w1", "dead"),
		"it owns nothing": with("dead"),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				w.members = members
				w.enqueueSome(500)
				w.spoil("Claim", fault{takes: 100 * time.Millisecond, times: always})
				w.spoil("Look", fault{takes: 100 * time.Millisecond, times: always})
				w.start(returning(nil))
				w.advance(time.Minute)
				equal(t, "jobs completed", w.count(domain.StatusCompleted), 500)
			})
		})
	}
}

func TestRing_BusyWorkerLooksForStraysToo(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.members = with("w1", "w2")
		w.config.Concurrency = 1
		g := newGate(t)
		w.start(g.handler())
		own := w.ownClaims()[0].request.Buckets
		stray := w.enqueue(model.NewJob{Key: keyOutside(own)})
		for range 60 {
			w.enqueue(model.NewJob{Key: keyWithin(own)})
		}
		w.advance(2 * time.Second)
		for range 40 {
			g.open(1, nil)
			w.advance(time.Second)
		}
		if job := w.find(stray); job.Status == domain.StatusPending {
			t.Error("the stray still waits after 40 seconds")
		}
		g.open(21, nil)
	})
}

func TestRing_IsBuiltAgainOnlyWhenMembersChange(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.start(returning(nil))
		w.enqueueSome(100)
		w.advance(81 * time.Second)
		equal(t, "looks in 80 s", len(w.calls("Members")), 11)
		equal(t, "rings built", w.log.count("the workers of the queue have changed"), 1)
		w.members = with("w1", "w2")
		w.advance(8 * time.Second)
		equal(t, "rings built after a join", w.log.count("the workers of the queue have changed", "workers=2"), 1)
	})
}

func TestRing_FailedLookKeepsTheRing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.start(returning(nil))
		w.spoil("Members", fault{err: errCut, times: always})
		w.advance(time.Minute)
		if looks := len(w.calls("Members")); looks < 10 {
			t.Errorf("%d looks in a minute: it waits too long after a failed one", looks)
		}
		id := w.enqueue(model.NewJob{})
		w.advance(1750 * time.Millisecond)
		w.wantJob(id, domain.StatusCompleted, 1)
	})
}

func TestRing_TooFewBucketsAreWarnedOf(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.members = with("w1", "w2", "w3")
		w.start(returning(nil))
		equal(t, "warnings with 32 buckets for three workers", w.log.count("level=WARN", "so few buckets"), 0)
		w.members = with("w1", "w2", "w3", "w4")
		w.advance(9 * time.Second)
		equal(t, "warnings with 32 buckets for four workers", w.log.count("level=WARN", "so few buckets"), 1)
	})
}

func TestAffinityNone_EveryBucketIsTheWorkers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.config.Affinity = worker.AffinityNone
		w.members = with("w1", "w2", "w3")
		w.start(returning(nil))
		equal(t, "buckets", len(w.ownClaims()[0].request.Buckets), buckets)
	})
}

func TestOrdered_QueueIsClaimedLaneByLane(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		if _, err := w.SetQueue(t.Context(), domain.DefaultQueue, domain.QueueChange{Ordered: new(true)}); err != nil {
			t.Fatal(err)
		}
		late := w.enqueue(model.NewJob{Ordered: new(false)}) // Its enqueue was under way as the queue changed.
		first, second := w.enqueue(model.NewJob{Key: "a"}), w.enqueue(model.NewJob{Key: "a"})
		g := newGate(t)
		w.start(g.handler())
		w.wantJob(first, domain.StatusProcessing, 1)
		w.wantJob(second, domain.StatusPending, 0)
		w.advance(10 * time.Second)
		w.wantJob(second, domain.StatusPending, 0)
		w.wantJob(late, domain.StatusProcessing, 1)
		g.open(2, nil)
		w.advance(2 * time.Second)
		w.wantJob(second, domain.StatusProcessing, 1)
		g.open(1, nil)
	})
}

// A key's next job may start when the one before it is settled: an idle worker does not wait for
// its poll.
func TestOrdered_NextJobOfAKeyFollowsAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.config.ActivePoll, w.config.IdlePoll = time.Hour, time.Hour
		if _, err := w.SetQueue(t.Context(), domain.DefaultQueue, domain.QueueChange{Ordered: new(true)}); err != nil {
			t.Fatal(err)
		}
		for range 20 {
			w.enqueue(model.NewJob{Key: "order:7"})
		}
		w.start(returning(nil))
		w.advance(time.Second)
		equal(t, "jobs completed", w.count(domain.StatusCompleted), 20)
	})
}

// A busy key is claimed from its own bucket as soon as its last job is settled, and the others are
// not forgotten over it.
func TestOrdered_BusyKeyIsFollowedAndOthersAreNotForgotten(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.config.ActivePoll, w.config.IdlePoll = time.Hour, time.Hour
		w.spoil("Claim", fault{takes: time.Millisecond, times: always})
		w.spoil("Settle", fault{takes: time.Millisecond, times: always})
		if _, err := w.SetQueue(t.Context(), domain.DefaultQueue, domain.QueueChange{Ordered: new(true)}); err != nil {
			t.Fatal(err)
		}
		for range 200 {
			w.enqueue(model.NewJob{Key: "order:7"})
		}
		w.start(returning(nil))
		w.advance(500 * time.Millisecond)
		equal(t, "jobs completed in 500 ms", w.count(domain.StatusCompleted), 200)
		followed, whole := 0, w.ownClaims()[0].at
		for _, c := range w.ownClaims() {
			if c.at-whole > 15*time.Millisecond {
				t.Fatalf("for %s no claim asked all buckets", c.at-whole)
			}
			if len(c.request.Buckets) == 1 {
				followed++
			} else {
				whole = c.at
			}
		}
		if followed < 120 {
			t.Errorf("%d claims asked for the busy key alone, want 120 at least", followed)
		}
	})
}
