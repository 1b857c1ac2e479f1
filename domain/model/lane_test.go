package model_test

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/holdfast-pg/holdfast/domain"
	"github.com/holdfast-pg/holdfast/domain/model"
)

// newOrderedWorld returns an installation whose default queue is ordered.
func newOrderedWorld(t *testing.T) world {
	t.Helper()
	w := newWorld(t)
	w.setQueue(domain.DefaultQueue, domain.QueueChange{Ordered: new(true)})
	return w
}

// claimLanes claims at most so many ordered jobs of the default queue for the worker.
func (w world) claimLanes(workerID string, batch int) []domain.ClaimedJob {
	w.t.Helper()
	jobs, err := w.Claim(w.t.Context(), domain.ClaimRequest{
		WorkerID: workerID, Queue: domain.DefaultQueue, Buckets: []int{0}, Quota: batch, Batch: batch, Lease: lease, Lanes: true,
	})
	if err != nil {
		w.t.Fatalf("Claim: %v", err)
	}
	return jobs
}

// wantClaimed claims all that a worker can get and expects these jobs.
func (w world) wantClaimed(want ...domain.JobID) []domain.ClaimedJob {
	w.t.Helper()
	jobs := w.claimLanes("w1", 100)
	equal(w.t, idsOf(jobs), append([]domain.JobID{}, want...))
	return jobs
}

func TestInOrder_OneJobOfALaneAtATime(t *testing.T) {
	t.Parallel()
	w := newOrderedWorld(t)
	first, second := w.enqueue(model.NewJob{Key: "a"}), w.enqueue(model.NewJob{Key: "a"})
	other := w.enqueue(model.NewJob{Key: "b"})
	jobs := w.wantClaimed(first, other)
	w.wantClaimed()
	w.settle(jobs[0], domain.Outcome{})
	w.wantClaimed(second)
}

func TestInOrder_RetryAndDelayHoldTheLane(t *testing.T) {
	t.Parallel()
	w := newOrderedWorld(t)
	first := w.enqueue(model.NewJob{Key: "a", Delay: time.Minute})
	second := w.enqueue(model.NewJob{Key: "a"})
	w.wantClaimed()
	w.clock.Advance(time.Minute)
	w.settle(w.wantClaimed(first)[0], domain.Outcome{Verdict: domain.Retry, Delay: time.Hour})
	w.wantClaimed()
	w.clock.Advance(time.Hour)
	w.settle(w.wantClaimed(first)[0], domain.Outcome{})
	w.wantClaimed(second)
}

func TestInOrder_EndedLeaseHoldsTheLaneUntilItsJobRuns(t *testing.T) {
	t.Parallel()
	w := newOrderedWorld(t)
	first := w.enqueue(model.NewJob{Key: "a"})
	w.enqueue(model.NewJob{Key: "a"})
	w.wantClaimed(first)
	w.clock.Advance(2 * lease)
	w.wantClaimed()
	w.reclaim()
	w.wantClaimed()
	w.clock.Advance(2 * time.Second)
	w.wantClaimed(first)
}

func TestInOrder_FailedAndDeadJobsFreeTheLane(t *testing.T) {
	t.Parallel()
	w := newOrderedWorld(t)
	dead := w.enqueue(model.NewJob{Key: "a", MaxAttempts: 1})
	failed, next := w.enqueue(model.NewJob{Key: "a"}), w.enqueue(model.NewJob{Key: "a"})
	w.settle(w.wantClaimed(dead)[0], domain.Outcome{Verdict: domain.Retry})
	w.settle(w.wantClaimed(failed)[0], domain.Outcome{Verdict: domain.Fail})
	w.wantClaimed(next)
}

func TestInOrder_RedrivenJobRunsAfterTheOneInFlight(t *testing.T) {
	t.Parallel()
	w := newOrderedWorld(t)
	first, second := w.enqueue(model.NewJob{Key: "a"}), w.enqueue(model.NewJob{Key: "a"})
	third := w.enqueue(model.NewJob{Key: "a"})
	w.settle(w.wantClaimed(first)[0], domain.Outcome{Verdict: domain.Fail})
	running := w.wantClaimed(second)
	if _, err := w.Redrive(t.Context(), anna, 0, first); err != nil {
		t.Fatal(err)
	}
	w.wantClaimed()
	w.settle(running[0], domain.Outcome{})
	w.settle(w.wantClaimed(first)[0], domain.Outcome{})
	w.wantClaimed(third)
}

func TestInOrder_LanesTakeTurns(t *testing.T) {
	t.Parallel()
	w := newOrderedWorld(t)
	for _, key := range []string{"a", "b", "c", "a", "b", "c"} {
		w.enqueue(model.NewJob{Key: key})
	}
	var keys []string
	for range 6 {
		job := w.claimLanes("w1", 1)[0]
		keys = append(keys, job.PartitionKey)
		w.settle(job, domain.Outcome{})
	}
	equal(t, keys, []string{"a", "b", "c", "a", "b", "c"})
}

func TestInOrder_WalkThatFindsNothingLeavesWhereTheNextBegins(t *testing.T) {
	t.Parallel()
	w := newOrderedWorld(t)
	w.enqueue(model.NewJob{Key: "a"})
	w.enqueue(model.NewJob{Key: "a"})
	first := w.claimLanes("w1", 1)
	equal(t, len(first), 1)
	equal(t, len(w.claimLanes("w1", 1)), 0)
	w.settle(first[0], domain.Outcome{})
	last := w.enqueue(model.NewJob{Key: "b"})
	equal(t, idsOf(w.claimLanes("w1", 1)), []domain.JobID{last})
}

// laneOf names the lane that a job is enqueued to, "" for none.
func laneOf(job model.NewJob, settings domain.QueueSettings) string {
	ordered := settings.Ordered
	if job.Ordered != nil {
		ordered = *job.Ordered
	}
	if !ordered {
		return ""
	}
	return job.Queue + "/" + job.Key
}

// inOrder holds that a claim of lanes takes ordered jobs and no others, none while another of
// its lane is being processed, and none before an earlier one that waits.
func (l *ledger) inOrder(t *rapid.T, job domain.ClaimedJob, lanes bool) {
	lane := l.jobs[job.ID].lane
	if lanes != (lane != "") {
		t.Fatalf("job %s of lane %q was claimed with lanes: %t", job.ID, lane, lanes)
	}
	earlier := true
	for _, id := range l.ids {
		other := l.jobs[id]
		switch {
		case id == job.ID:
			earlier = false
		case lane == "" || other.lane != lane:
		case other.status == domain.StatusProcessing:
			t.Fatalf("job %s was claimed while %s of its lane was being processed", job.ID, id)
		case earlier && other.status == domain.StatusPending:
			t.Fatalf("job %s was claimed before %s of its lane", job.ID, id)
		}
	}
}
