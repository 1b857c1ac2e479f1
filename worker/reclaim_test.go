package worker_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-pg/holdfast/domain"
	"github.com/holdfast-pg/holdfast/domain/model"
)

// claimFor claims a job for a worker that does nothing with it.
func (w *world) claimFor(t *testing.T, workerID string, lease time.Duration) domain.Claim {
	t.Helper()
	id := w.enqueue(model.NewJob{})
	jobs, err := w.Queue.Claim(t.Context(), domain.ClaimRequest{
		WorkerID: workerID, Queue: domain.DefaultQueue, Buckets: []int{id.Bucket()}, Quota: 1, Batch: 1, Lease: lease,
	})
	if err != nil || len(jobs) != 1 {
		t.Fatalf("claimed %d jobs, error %v", len(jobs), err)
	}
	return jobs[0].Claim
}

// afters are the generations after which the rounds so far looked for ended leases.
func (w *world) afters() string {
	var all []int64
	for _, call := range w.calls("Reclaim") {
		all = append(all, call.after)
	}
	return fmt.Sprint(all)
}

// A walk over all claims that takes long, because it has to step over what settled claims left,
// is made seldom. In between it begins behind the claims that were over a round ago.
func TestReclaim_BeginsBehindWhatIsOverWhereAWholeWalkTakesLong(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		busy := w.claimFor(t, "busy", time.Hour)
		w.spoil("Reclaim", fault{takes: time.Second})
		w.start(returning(nil))
		w.advance(5*31*time.Second + time.Second)
		over := busy.Generation - 1
		equal(t, "where the walks began", w.afters(), fmt.Sprint([]int64{0, 0, over, over, 0}))
		w.giveBack(busy.ID, time.Hour)
	})
}

func TestReclaim_WholeWalksAreMadeInEachRoundWhereTheyCostLittle(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		busy := w.claimFor(t, "busy", time.Hour)
		w.start(returning(nil))
		w.advance(4*31*time.Second + time.Second)
		equal(t, "where the walks began", w.afters(), fmt.Sprint([]int64{0, 0, 0, 0}))
		w.giveBack(busy.ID, time.Hour)
	})
}

// A claim may be committed after others that are newer. What was being committed while the last
// round looked is older than where that one found the oldest claim.
func TestComesBack_ThoughTheClaimWasCommittedAfterNewerOnes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		late := w.claimFor(t, "dead", 40*time.Second)
		busy := w.claimFor(t, "busy", time.Hour)
		// The first round comes while the late claim is being committed, and takes long.
		w.overs = []int64{late.Generation}
		w.spoil("Reclaim", fault{takes: time.Second})
		w.start(returning(nil))
		w.advance(4 * 31 * time.Second)
		w.wantJob(late.ID, domain.StatusCompleted, 2)
		w.giveBack(busy.ID, time.Hour)
	})
}

func TestReclaim_RoundWhoseWholeWalkFailsIsMadeFromWhereItIsKnownToEnd(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		busy := w.claimFor(t, "busy", time.Hour)
		over := busy.Generation - 1
		w.start(returning(nil))
		w.advance(2*31*time.Second + time.Second)
		w.spoil("Reclaim", fault{err: errCut})
		w.advance(31 * time.Second)
		equal(t, "where the walks began", w.afters(), fmt.Sprint([]int64{0, 0, 0, over}))
		w.giveBack(busy.ID, time.Hour)
	})
}
