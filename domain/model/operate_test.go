package model_test

import (
	"testing"
	"time"

	"github.com/holdfast-pg/holdfast/domain"
	"github.com/holdfast-pg/holdfast/domain/model"
)

func TestRedrive_GivesAllAttemptsBack(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	dead := w.enqueue(model.NewJob{MaxAttempts: 1})
	failed := w.enqueue(model.NewJob{})
	pending := w.enqueue(model.NewJob{Delay: time.Hour})
	w.settle(w.claimOne("w1"), domain.Outcome{Verdict: domain.Retry, Error: "no answer"})
	w.settle(w.claimOne("w1"), domain.Outcome{Verdict: domain.Fail, Error: "no such order"})
	redriven, err := w.Redrive(t.Context(), failed, pending, dead, domain.NewJobID(noon, 0), dead)
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
