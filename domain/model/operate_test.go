package model_test

import (
	"strings"
	"testing"
	"time"

	"github.com/holdfast-pg/holdfast/domain"
	"github.com/holdfast-pg/holdfast/domain/model"
)

var anna = domain.By{Actor: "anna@ops-1", Reason: "the order is void"}

func TestRedrive_GivesAllAttemptsBack(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	dead := w.enqueue(model.NewJob{MaxAttempts: 1})
	failed := w.enqueue(model.NewJob{})
	pending := w.enqueue(model.NewJob{Delay: time.Hour})
	w.settle(w.claimOne("w1"), domain.Outcome{Verdict: domain.Retry, Error: "no answer"})
	w.settle(w.claimOne("w1"), domain.Outcome{Verdict: domain.Fail, Error: "no such order"})
	redriven, err := w.Redrive(t.Context(), anna, 0, failed, pending, dead, domain.NewJobID(noon, 0), dead)
	if err != nil {
		t.Fatal(err)
	}
	equal(t, redriven, []domain.JobID{failed, dead})
	for _, id := range redriven {
		job := w.find(id)
		equal(t, job.Status, domain.StatusPending)
		equal(t, job.Attempts, 0)
		equal(t, job.FinishedAt, nil)
		equal(t, job.FinishedBy, nil)
	}
	equal(t, *w.find(dead).LastError, "no answer")
	equal(t, idsOf(w.claim("w1", 9)), []domain.JobID{dead, failed})
}

func TestRedrive_GivesAsManyAttemptsAsAreAskedFor(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	id := w.enqueue(model.NewJob{MaxAttempts: 1})
	w.settle(w.claimOne("w1"), domain.Outcome{Verdict: domain.Retry})
	redriven, err := w.Redrive(t.Context(), anna, 3, id)
	wantError(t, err, nil)
	equal(t, redriven, []domain.JobID{id})
	equal(t, w.find(id).MaxAttempts, 3)
}

func TestCancel_EndsWhatIsNotFinished(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	held, waiting, done := w.enqueue(model.NewJob{}), w.enqueue(model.NewJob{Delay: time.Hour}), w.enqueue(model.NewJob{Delay: time.Second})
	job := w.claimOne("w1")
	w.clock.Advance(time.Second)
	w.settle(w.claimOne("w1"), domain.Outcome{Verdict: domain.Fail, Error: "no such order"})
	cancelled, err := w.Cancel(t.Context(), anna, held, waiting, done, held)
	wantError(t, err, nil)
	equal(t, cancelled, []domain.JobID{held, waiting})
	for _, id := range cancelled {
		found := w.find(id)
		equal(t, found.Status, domain.StatusFailed)
		equal(t, *found.FinishedBy, "anna@ops-1")
		equal(t, *found.LastError, "cancelled by anna@ops-1: the order is void")
	}
	wantError(t, w.Settle(t.Context(), "w1", []domain.Settlement{{Claim: job.Claim}})[0].Err, domain.ErrLeaseLost)
	equal(t, *w.find(done).LastError, "no such order")
	w.clock.Advance(2 * time.Hour)
	equal(t, len(w.claim("w1", 9)), 0)
}

func TestCancel_KeepsTheErrorBeforeAndBoundsTheText(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	id := w.enqueue(model.NewJob{})
	w.settle(w.claimOne("w1"), domain.Outcome{Verdict: domain.Retry, Error: strings.Repeat("ä", 3000)})
	_, err := w.Cancel(t.Context(), domain.By{Actor: "anna"}, id)
	wantError(t, err, nil)
	text := *w.find(id).LastError
	equal(t, len([]rune(text)), 2000)
	equal(t, strings.HasPrefix(text, "cancelled by anna; the error before: ää"), true)
}

func TestCancel_LaneGoesOnWithoutTheJob(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.setQueue(domain.DefaultQueue, domain.QueueChange{Ordered: new(true)})
	first, second, third := w.enqueue(model.NewJob{Key: "a"}), w.enqueue(model.NewJob{Key: "a"}), w.enqueue(model.NewJob{Key: "a"})
	equal(t, idsOf(w.claimLanes("w1", 9)), []domain.JobID{first})
	_, err := w.Cancel(t.Context(), anna, second)
	wantError(t, err, nil)
	equal(t, len(w.claimLanes("w1", 9)), 0) // The first one runs.
	_, err = w.Cancel(t.Context(), anna, first)
	wantError(t, err, nil)
	equal(t, idsOf(w.claimLanes("w1", 9)), []domain.JobID{third})
}

func TestRelease_EndsTheClaimThatIsMeantAndNoOther(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	id := w.enqueue(model.NewJob{})
	old := w.claimOne("w1")
	released, err := w.Release(t.Context(), anna, old.Claim)
	wantError(t, err, nil)
	equal(t, released, []domain.JobID{id})
	equal(t, w.find(id).Attempts, 0)
	wantError(t, w.Settle(t.Context(), "w1", []domain.Settlement{{Claim: old.Claim}})[0].Err, domain.ErrLeaseLost)
	current := w.claimOne("w1")
	released, err = w.Release(t.Context(), anna, old.Claim)
	wantError(t, err, nil)
	equal(t, len(released), 0)
	w.settle(current, domain.Outcome{})
}

func TestPurge_FreesTheKeyOfADeadJob(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	id := w.enqueue(model.NewJob{IdempotencyKey: "once"})
	purged, err := w.Purge(t.Context(), anna, id)
	wantError(t, err, nil)
	equal(t, len(purged), 0)
	w.settle(w.claimOne("w1"), domain.Outcome{Verdict: domain.Fail})
	again, err := w.Enqueue(t.Context(), model.NewJob{Kind: "send", IdempotencyKey: "once"})
	wantError(t, err, nil)
	equal(t, again.Duplicate, true)
	purged, err = w.Purge(t.Context(), anna, id)
	wantError(t, err, nil)
	equal(t, purged, []domain.JobID{id})
	_, err = w.FindJob(t.Context(), id)
	wantError(t, err, domain.ErrNotFound)
	again, err = w.Enqueue(t.Context(), model.NewJob{Kind: "send", IdempotencyKey: "once"})
	wantError(t, err, nil)
	equal(t, again.Duplicate, false)
}

func TestEvict_TakesTheClaimsAndTheWorkerStaysDead(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	_, err := w.Evict(t.Context(), anna, "w1")
	wantError(t, err, domain.ErrWorkerUnknown)
	worker := domain.Registration{ID: "w1", Queues: []string{domain.DefaultQueue}}
	wantError(t, w.Join(t.Context(), worker), nil)
	w.enqueue(model.NewJob{})
	w.enqueue(model.NewJob{})
	equal(t, len(w.claim("w1", 9)), 2)
	released, err := w.Evict(t.Context(), anna, "w1")
	wantError(t, err, nil)
	equal(t, released, 2)
	status, err := w.Beat(t.Context(), worker)
	wantError(t, err, nil)
	equal(t, status, domain.WorkerDead)
	equal(t, len(w.claim("w2", 9)), 2)
}
