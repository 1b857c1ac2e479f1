package model_test

import (
	"strings"
	"testing"
	"time"

	"github.com/holdfast-pg/holdfast/domain"
	"github.com/holdfast-pg/holdfast/domain/model"
)

// said tells the events in words: what happened, and what was said.
func (w world) said() (lines []string) {
	for _, event := range w.Tables().Events {
		line := string(event.Kind)
		if event.Detail != nil {
			line += ": " + *event.Detail
		}
		lines = append(lines, line)
	}
	return lines
}

func TestEvents_TellOfTheClaimThatEnded(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	id := w.enqueue(model.NewJob{Kind: "send", Key: "a", MaxAttempts: 3})
	job := w.claimOne("w1")
	w.settle(job, domain.Outcome{Verdict: domain.Retry, Error: "no answer"})
	equal(t, w.Tables().Events, []domain.Event{{
		ID: 1, At: noon, Kind: domain.EventRetried, JobID: &id, Generation: &job.Generation, Attempt: new(1),
		Queue: new(domain.DefaultQueue), JobKind: new("send"), PartitionKey: new("a"), WorkerID: new("w1"), Detail: new("no answer"),
	}})
}

func TestEvents_NoneOfACompletionOrASnooze(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.enqueue(model.NewJob{})
	w.settle(w.claimOne("w1"), domain.OutcomeOf(domain.Snooze(0), 1, 0))
	w.settle(w.claimOne("w1"), domain.Outcome{})
	equal(t, w.said(), nil)
}

func TestEvents_RepeatedReleaseLeavesOneForEachAttemptAndWorker(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.enqueue(model.NewJob{})
	for _, workerID := range []string{"w1", "w1", "w2"} {
		w.settle(w.claimOne(workerID), domain.ReleaseFor("by "+workerID, 0))
	}
	equal(t, w.said(), []string{"released: by w1", "released: by w2"})
	w.settle(w.claimOne("w1"), domain.Outcome{Verdict: domain.Retry, Error: "no answer"})
	w.settle(w.claimOne("w1"), domain.ReleaseFor("again", 0))
	equal(t, w.said(), []string{"released: by w1", "released: by w2", "retried: no answer", "released: again"})
}

func TestEvents_LostLeaseIsNotedOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.enqueue(model.NewJob{MaxAttempts: 1})
	job := w.claimOne("w1")
	w.clock.Advance(lease + time.Second)
	for range 2 {
		_, err := w.Renew(t.Context(), "w1", lease, []domain.Claim{job.Claim})
		wantError(t, err, nil)
		w.reclaim()
		wantError(t, w.settle(job, domain.Outcome{}).Err, domain.ErrLeaseLost)
	}
	equal(t, w.said(), []string{"lease_lost: its renewal was refused", "dead_lettered: the lease of worker w1 ended at the last attempt"})
}

func TestEvents_RenewalOfWhatTheWorkerHasSettledIsNoLoss(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.enqueue(model.NewJob{})
	job := w.claimOne("w1")
	w.settle(job, domain.Outcome{})
	_, err := w.Renew(t.Context(), "w1", lease, []domain.Claim{job.Claim})
	wantError(t, err, nil)
	equal(t, w.said(), nil)
}

func TestEvents_LongDetailIsCut(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.enqueue(model.NewJob{})
	w.settle(w.claimOne("w1"), domain.Outcome{Verdict: domain.Fail, Error: strings.Repeat("é", 4097)})
	equal(t, w.said(), []string{"failed: " + strings.Repeat("é", 2048)})
}

func TestEvents_FailoverLeavesOne(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.enqueue(model.NewJob{})
	w.Promote(0)
	w.claimOne("w1")
	equal(t, w.said(), []string{"epoch_advanced"})
}

func TestKeepHouse_ForgetsOldEvents(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.enqueue(model.NewJob{})
	w.settle(w.claimOne("w1"), domain.Outcome{Verdict: domain.Retry})
	w.clock.Advance(30 * day)
	equal(t, w.keepHouse(house).EventsExpired, int64(0))
	w.clock.Advance(time.Microsecond)
	equal(t, w.keepHouse(house).EventsExpired, int64(1))
	equal(t, w.said(), nil)
}
