package worker_test

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-pg/holdfast/domain"
	"github.com/holdfast-pg/holdfast/domain/model"
)

// waits are the times between calls, rounded to the millisecond.
func waits(calls []call) []time.Duration {
	var waits []time.Duration
	for i := range len(calls) - 1 {
		waits = append(waits, (calls[i+1].at - calls[i].at).Round(time.Millisecond))
	}
	return waits
}

func milliseconds(numbers ...int) []time.Duration {
	var durations []time.Duration
	for _, n := range numbers {
		durations = append(durations, time.Duration(n)*time.Millisecond)
	}
	return durations
}

func wantWaits(t *testing.T, calls []call, want ...int) {
	t.Helper()
	got := waits(calls)
	if len(got) < len(want) || !slices.Equal(got[:len(want)], milliseconds(want...)) {
		t.Errorf("waits between claims %v, want %v", got, milliseconds(want...))
	}
}

func TestClaim_EmptyQueueIsAskedLessAndLessOften(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.config.Random = func() float64 { return 0 }
		w.start(returning(nil))
		w.advance(10 * time.Second)
		wantWaits(t, w.asked(), 75, 150, 300, 600, 1200, 1500, 1500)
		equal(t, "claims", len(w.calls("Claim")), 1)
	})
}

func TestClaim_JitterAddsUpToAThird(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.config.Random = func() float64 { return math.Nextafter(1, 0) }
		w.start(returning(nil))
		w.advance(15 * time.Second)
		wantWaits(t, w.asked(), 100, 200, 400, 800, 1600, 2000, 2000)
	})
}

func TestClaim_WhereThereWasWorkTheNextClaimFollowsAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.config.Random = func() float64 { return 0 }
		w.config.Concurrency = 1
		w.enqueueSome(3)
		w.start(returning(nil))
		wantWaits(t, w.ownClaims(), 0, 0, 0)
		equal(t, "jobs completed", w.count(domain.StatusCompleted), 3)

		w.advance(10 * time.Second)
		w.enqueueSome(1)
		before := len(w.asked())
		w.advance(5 * time.Second)
		// A look finds the job, a claim takes it, and the next claim finds nothing.
		wantWaits(t, w.asked()[before:], 0, 0, 75, 150)
	})
}

func TestClaim_ErrorsBackOff(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.config.Random = func() float64 { return 0 }
		id := w.enqueue(model.NewJob{})
		w.spoil("Claim", fault{err: errCut, times: 7})
		w.start(returning(nil))
		w.advance(10 * time.Second)
		wantWaits(t, w.ownClaims(), 75, 150, 300, 600, 1200, 1500, 1500)
		w.wantJob(id, domain.StatusCompleted, 1)
		equal(t, "errors logged", w.log.count("level=ERROR", "cannot claim", errCut.Error()), 7)
	})
}

// A worker that relies on rings may poll once an hour, but not because a claim failed.
func TestClaim_ErrorIsNoReasonToSleepLong(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.config.ActivePoll, w.config.IdlePoll = time.Hour, time.Hour
		w.spoil("Claim", fault{err: errCut})
		id := w.enqueue(model.NewJob{})
		w.start(returning(nil))
		w.advance(3 * time.Second)
		w.wantJob(id, domain.StatusCompleted, 1)
	})
}

func TestClaim_TakesNoMoreThanCanStart(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.config.Concurrency, w.config.ClaimBatch = 10, 4
		w.enqueueSome(30)
		g := newGate(t)
		w.start(g.handler())
		g.open(1, nil)
		var batches []int
		for _, c := range w.ownClaims() {
			batches = append(batches, c.request.Batch)
			equal(t, "lease", c.request.Lease, lease)
		}
		if !slices.Equal(batches, []int{4, 4, 2, 1}) {
			t.Errorf("claims asked for %v jobs, want 4, 4, 2 and 1", batches)
		}
		g.open(29, nil)
	})
}

func TestClaim_NoBucketIsAlwaysFirst(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.start(returning(nil))
		for range 2 * buckets {
			w.enqueueSome(1)
			w.advance(2 * time.Second)
		}
		firsts := map[int]bool{}
		for _, c := range w.ownClaims() {
			firsts[c.request.Buckets[0]] = true
			probed := slices.Sorted(slices.Values(c.request.Buckets))
			if len(probed) != buckets || len(slices.Compact(probed)) != buckets {
				t.Fatalf("a claim probes %d buckets, want each of %d once", len(probed), buckets)
			}
		}
		if len(firsts) < buckets/2 {
			t.Errorf("%d claims began at %d buckets", len(w.ownClaims()), len(firsts))
		}
	})
}

func TestClaim_OneBusyBucketLeavesRoomForOthers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.config.Random = func() float64 { return 0 } // The first bucket is probed first.
		for i := 0; w.count(domain.StatusPending) < 50; i++ {
			if key := strconv.Itoa(i); domain.BucketOf(key, buckets) == 0 {
				w.enqueue(model.NewJob{Key: key})
			}
		}
		w.enqueueSome(50)
		g := newGate(t)
		w.start(g.handler())
		busy := 0
		for _, job := range g.jobs() {
			if job.Bucket == 0 {
				busy++
			}
		}
		equal(t, "jobs of the busy bucket among the first 8", busy, 2)
		g.open(100, nil)
	})
}

func TestClaim_QueuesAreServedInTurns(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.config.Queues = []string{"a", "b", "c"}
		w.config.Concurrency = 1
		for range 3 {
			for _, name := range w.config.Queues {
				w.enqueue(model.NewJob{Queue: name})
			}
		}
		g := newGate(t)
		w.start(g.handler())
		g.open(9, nil)
		var order []string
		for _, job := range g.jobs() {
			order = append(order, job.Queue)
		}
		equal(t, "order of the queues", strings.Join(order, ""), "abcabcabc")
	})
}

func TestClaim_EveryQueueIsAskedBeforeAWait(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.config.Queues = []string{"a", "b", "c"}
		w.start(returning(nil))
		w.advance(250 * time.Millisecond)
		asked := map[time.Duration]string{}
		for _, c := range w.asked() {
			asked[c.at] += c.request.Queue + c.looked.Queue
		}
		var rounds []string
		for _, round := range asked {
			rounds = append(rounds, round)
		}
		slices.Sort(rounds)
		equal(t, "rounds", strings.Join(rounds, " "), "abc abc")
	})
}

func TestClaim_LostReplyComesBackWhenTheLeaseEnds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.spoil("Claim", fault{err: errCut, lost: true})
		id := w.enqueue(model.NewJob{})
		w.start(returning(nil))
		w.advance(lease)
		w.wantJob(id, domain.StatusProcessing, 1)
		// One round of housekeeping, the backoff of the first attempt, and one idle poll.
		w.advance(30*time.Second + 2*time.Second + 2*time.Second)
		w.wantJob(id, domain.StatusCompleted, 2)
		equal(t, "reclaims logged", w.log.count("level=WARN", "job reclaimed", id.String(), "from=w1", "attempt=1"), 1)
	})
}

func TestComesBack_DeadWorkersJobsAreReclaimed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		id := w.enqueue(model.NewJob{})
		if _, err := w.Queue.Claim(t.Context(), domain.ClaimRequest{
			WorkerID: "dead", Queue: domain.DefaultQueue, Buckets: []int{id.Bucket()}, Quota: 1, Batch: 1, Lease: lease,
		}); err != nil {
			t.Fatal(err)
		}
		if err := w.Queue.Join(t.Context(), domain.Registration{ID: "dead"}); err != nil {
			t.Fatal(err)
		}
		w.spoil("Reclaim", fault{err: errCut})
		w.spoil("KeepHouse", fault{err: errCut})
		w.start(returning(nil))
		w.advance(lease)
		w.wantJob(id, domain.StatusProcessing, 1)
		w.advance(30*time.Second + 2*time.Second + 2*time.Second)
		w.wantJob(id, domain.StatusCompleted, 2)
		equal(t, "deaths logged", w.log.count("level=WARN", "worker declared dead", "dead_worker_id=dead"), 1)
		for _, what := range []string{"cannot reclaim", "cannot keep house"} {
			equal(t, fmt.Sprintf("%q logged", what), w.log.count("level=ERROR", what, errCut.Error()), 1)
		}
	})
}

// With a backlog a claim looks into a window of the buckets. That it finds nothing there says
// nothing of the others.
func TestClaim_EmptyWindowIsNoReasonToSleep(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.Queue = model.New(model.Settings{BucketCount: 1024, Now: w.clock.Now})
		w.config.ActivePoll, w.config.IdlePoll = time.Hour, time.Hour
		// The first claim begins in the middle, and the window after it is far from the rest.
		enqueueInto := func(jobs, from, to int) {
			for i := 0; jobs > 0; i++ {
				if bucket := domain.BucketOf(strconv.Itoa(i), 1024); bucket >= from && bucket < to {
					w.enqueue(model.NewJob{Key: strconv.Itoa(i)})
					jobs--
				}
			}
		}
		enqueueInto(8, 512, 540)
		enqueueInto(4, 0, 400)
		w.start(returning(nil))
		w.advance(time.Second)
		equal(t, "jobs completed", w.count(domain.StatusCompleted), 12)
	})
}

// What fills a batch is counted in the buckets that were asked, of which half may be another
// worker's: a window of twice that many is enough.
func TestClaim_WindowsAreCountedInTheWorkersOwnBuckets(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.Queue = model.New(model.Settings{BucketCount: 2048, Now: w.clock.Now})
		w.members = with("w1", "w2", "w3", "w4")
		w.config.ClaimBatch, w.config.Concurrency = 100, 100
		w.enqueueSome(8192)
		w.start(returning(nil))
		windows := 0
		for _, c := range w.ownClaims() {
			if probed := len(c.request.Buckets); probed == 64 {
				windows++
			} else if probed < 400 {
				t.Errorf("a claim probes %d buckets, want 64 or the whole share", probed)
			}
		}
		if windows < 10 {
			t.Errorf("%d claims of windows, want 10 at least", windows)
		}
	})
}
