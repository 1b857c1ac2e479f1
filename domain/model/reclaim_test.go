package model_test

import (
	"testing"
	"time"

	"github.com/holdfast-pg/holdfast/domain"
	"github.com/holdfast-pg/holdfast/domain/model"
)

func TestNeverTakenEarly(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.enqueue(model.NewJob{})
	job := w.claimOne("w1")
	w.clock.Advance(lease)
	equal(t, len(w.reclaim()), 0)
	w.clock.Advance(time.Microsecond)
	equal(t, w.reclaim(), []domain.Reclaimed{{
		Claim: job.Claim, Queue: domain.DefaultQueue, Kind: "send", Attempts: 1, Status: domain.StatusPending,
	}})
}

func TestNeverTakenEarly_WhateverAWorkersClockSays(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.enqueue(model.NewJob{})
	w.SetSkew(-time.Hour)
	equal(t, len(w.claim("w1", 9)), 0) // By the database's clock it is not due.
	w.SetSkew(time.Hour)
	job := w.claimOne("w1")
	equal(t, *w.find(job.ID).LeaseExpiresAt, noon.Add(time.Hour+lease))
	w.clock.Advance(lease)
	equal(t, len(w.reclaim()), 0)
}

func TestComesBack(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.enqueue(model.NewJob{})
	w.claimOne("w1")
	w.clock.Advance(lease + time.Second)
	w.reclaim()
	equal(t, len(w.claim("w2", 9)), 0)
	w.clock.Advance(2 * time.Second)
	equal(t, w.claimOne("w2").Attempt, 2)
}

func TestReclaim_DeadLettersWithoutAttemptsLeft(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	id := w.enqueue(model.NewJob{MaxAttempts: 1})
	w.claimOne("w1")
	w.clock.Advance(lease + time.Second)
	equal(t, w.reclaim()[0].Status, domain.StatusDeadLetter)
	job := w.find(id)
	equal(t, *job.LastError, "the lease of worker w1 ended at the last attempt")
	equal(t, *job.FinishedBy, "w1")
	equal(t, *job.FinishedAt, w.Now())
}

func TestReclaim_KeepsWhatAnEarlierAttemptSaid(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	id := w.enqueue(model.NewJob{MaxAttempts: 2})
	w.settle(w.claimOne("w1"), domain.Outcome{Verdict: domain.Retry, Error: "no answer"})
	w.claimOne("w1")
	w.clock.Advance(lease + time.Second)
	w.reclaim()
	equal(t, w.find(id).Status, domain.StatusDeadLetter)
	equal(t, *w.find(id).LastError, "the lease of worker w1 ended at the last attempt; the error before: no answer")
}

func TestReclaim_OldestClaimFirst(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, workerID := range []string{"w2", "w1", "w2"} {
		w.enqueue(model.NewJob{})
		w.claimOne(workerID)
	}
	w.clock.Advance(2 * lease)
	var order []string
	for _, reclaimed := range w.reclaim() {
		order = append(order, reclaimed.Claim.WorkerID)
	}
	equal(t, order, []string{"w2", "w1", "w2"})
}
