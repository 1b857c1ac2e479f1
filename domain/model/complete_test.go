package model_test

import (
	"errors"
	"testing"
	"time"

	"github.com/holdfast-pg/holdfast/domain"
	"github.com/holdfast-pg/holdfast/domain/model"
)

func (w world) setRetention(mode domain.RetentionMode) {
	w.t.Helper()
	w.setQueue(domain.DefaultQueue, domain.QueueChange{RetentionMode: &mode})
}

// loseLease lets another worker claim the job of a claim.
func (w world) loseLease(job domain.ClaimedJob, to string) domain.ClaimedJob {
	w.t.Helper()
	w.clock.Advance(lease + time.Second)
	w.reclaim()
	w.clock.Advance(time.Hour)
	again := w.claimOne(to)
	equal(w.t, again.ID, job.ID)
	return again
}

func TestFenced_StaleWorkerCannotComplete(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	id := w.enqueue(model.NewJob{})
	stale := w.claimOne("w1")
	current := w.loseLease(stale, "w2")
	for _, verdict := range []domain.Verdict{domain.Complete, domain.Retry, domain.Fail, domain.Release} {
		wantError(t, w.settle(stale, domain.Outcome{Verdict: verdict}).Err, domain.ErrLeaseLost)
	}
	equal(t, *w.find(id).ClaimedBy, "w2")
	equal(t, w.settle(current, domain.Outcome{}), domain.Settled{Status: domain.StatusCompleted})
}

func TestFenced_TheSameWorkerWithAnOlderClaimCannotComplete(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.enqueue(model.NewJob{})
	stale := w.claimOne("w1")
	current := w.loseLease(stale, "w1")
	// Both in one set: the answer to one says nothing of the other.
	answers := w.Settle(t.Context(), "w1", []domain.Settlement{{Claim: stale.Claim}, {Claim: current.Claim}})
	wantError(t, answers[0].Err, domain.ErrLeaseLost)
	equal(t, answers[1], domain.Settled{Status: domain.StatusCompleted})
}

func TestFenced_EveryFieldCounts(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	id := w.enqueue(model.NewJob{})
	job := w.claimOne("w1")
	forged := map[string]domain.Claim{
		"id":         {ID: domain.NewJobID(noon, 0), Bucket: job.Bucket, Generation: job.Generation, WorkerID: "w1"},
		"bucket":     {ID: id, Bucket: job.Bucket + 1, Generation: job.Generation, WorkerID: "w1"},
		"generation": {ID: id, Bucket: job.Bucket, Generation: job.Generation + 1, WorkerID: "w1"},
		"worker":     {ID: id, Bucket: job.Bucket, Generation: job.Generation, WorkerID: "w2"},
	}
	for field, claim := range forged {
		held, err := w.Renew(t.Context(), claim.WorkerID, lease, []domain.Claim{claim})
		if len(held) != 0 || err != nil {
			t.Errorf("a claim with another %s renewed the lease, %v", field, err)
		}
		if answer := w.settle(domain.ClaimedJob{Claim: claim}, domain.Outcome{}); !errors.Is(answer.Err, domain.ErrLeaseLost) {
			t.Errorf("a claim with another %s completed the job", field)
		}
	}
}

func TestObservedCompleteOnce(t *testing.T) {
	t.Parallel()
	for _, mode := range []domain.RetentionMode{domain.RetentionArchive, domain.RetentionKeep, domain.RetentionDrop} {
		w := newWorld(t)
		w.setRetention(mode)
		w.enqueue(model.NewJob{})
		job := w.claimOne("w1")
		equal(t, w.settle(job, domain.Outcome{}), domain.Settled{Status: domain.StatusCompleted})
		wantError(t, w.settle(job, domain.Outcome{}).Err, domain.ErrLeaseLost)
	}
}

func TestSettle_WorksAfterTheLeaseHasEnded(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.enqueue(model.NewJob{})
	job := w.claimOne("w1")
	w.clock.Advance(time.Hour)
	equal(t, w.settle(job, domain.Outcome{}), domain.Settled{Status: domain.StatusCompleted})
}

func TestComplete_RetentionDecidesWhereTheJobGoes(t *testing.T) {
	t.Parallel()
	for mode, archived := range map[domain.RetentionMode]bool{domain.RetentionArchive: true, domain.RetentionKeep: false} {
		w := newWorld(t)
		w.setRetention(mode)
		id := w.enqueue(model.NewJob{})
		w.settle(w.claimOne("w1"), domain.Outcome{})
		job := w.find(id)
		equal(t, job.Archived, archived)
		equal(t, job.Status, domain.StatusCompleted)
		equal(t, *job.CompletedAt, noon)
		equal(t, *job.FinishedAt, noon)
		equal(t, *job.FinishedBy, "w1")
		equal(t, job.ClaimedBy, nil)
	}
	w := newWorld(t)
	w.setRetention(domain.RetentionDrop)
	id := w.enqueue(model.NewJob{})
	w.settle(w.claimOne("w1"), domain.Outcome{})
	if _, err := w.FindJob(t.Context(), id); !errors.Is(err, domain.ErrNotFound) {
		t.Errorf("FindJob of a dropped job: %v", err)
	}
}

// A settlement that is sent again because its reply got lost.
func TestSettle_LostReplyIsConfirmedByTheJobsState(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		mode    domain.RetentionMode
		outcome domain.Outcome
		want    domain.Status
	}{
		"archived":      {domain.RetentionArchive, domain.Outcome{Verdict: domain.Complete}, domain.StatusCompleted},
		"kept":          {domain.RetentionKeep, domain.Outcome{Verdict: domain.Complete}, domain.StatusCompleted},
		"dropped":       {domain.RetentionDrop, domain.Outcome{Verdict: domain.Complete}, domain.StatusCompleted},
		"failed":        {domain.RetentionArchive, domain.Outcome{Verdict: domain.Fail}, domain.StatusFailed},
		"retried":       {domain.RetentionArchive, domain.Outcome{Verdict: domain.Retry}, domain.StatusPending},
		"released":      {domain.RetentionArchive, domain.Outcome{Verdict: domain.Release}, domain.StatusPending},
		"dead-lettered": {domain.RetentionArchive, domain.Outcome{Verdict: domain.Retry, Delay: -1}, domain.StatusDeadLetter},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.setRetention(test.mode)
			maxAttempts := 5
			if test.want == domain.StatusDeadLetter {
				maxAttempts = 1
			}
			w.enqueue(model.NewJob{MaxAttempts: maxAttempts})
			job := w.claimOne("w1")
			equal(t, w.settle(job, test.outcome), domain.Settled{Status: test.want})
			again := domain.Settlement{Claim: job.Claim, Retention: job.Retention, Outcome: test.outcome, Unconfirmed: true}
			equal(t, w.Settle(t.Context(), "w1", []domain.Settlement{again}), []domain.Settled{{Status: test.want}})
		})
	}
}

func TestSettle_UnconfirmedAndNeverArrivedIsLostWithItsClaim(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.enqueue(model.NewJob{})
	stale := w.claimOne("w1")
	w.loseLease(stale, "w2")
	for _, verdict := range []domain.Verdict{domain.Complete, domain.Retry, domain.Fail, domain.Release} {
		again := domain.Settlement{Claim: stale.Claim, Outcome: domain.Outcome{Verdict: verdict}, Unconfirmed: true}
		answer := w.Settle(t.Context(), "w1", []domain.Settlement{again})[0]
		wantError(t, answer.Err, domain.ErrLeaseLost)
	}
}

func TestSettle_UnconfirmedIsNotConfirmedByWhatAnotherClaimDid(t *testing.T) {
	t.Parallel()
	for _, verdict := range []domain.Verdict{domain.Complete, domain.Retry, domain.Fail, domain.Release} {
		w := newWorld(t)
		w.enqueue(model.NewJob{})
		stale := w.claimOne("w1")
		current := w.loseLease(stale, "w2")
		outcome := domain.Outcome{Verdict: verdict}
		wantError(t, w.settle(current, outcome).Err, nil)
		again := domain.Settlement{Claim: stale.Claim, Outcome: outcome, Unconfirmed: true}
		wantError(t, w.Settle(t.Context(), "w1", []domain.Settlement{again})[0].Err, domain.ErrLeaseLost)
	}
}

func TestSettle_FirstSortOfOutcomeWins(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.enqueue(model.NewJob{})
	w.enqueue(model.NewJob{})
	jobs := w.claim("w1", 2)
	answers := w.Settle(t.Context(), "w1", []domain.Settlement{
		{Claim: jobs[0].Claim},
		{Claim: jobs[1].Claim, Outcome: domain.Outcome{Verdict: domain.Fail}},
		{Claim: jobs[1].Claim},
	})
	wantError(t, answers[1].Err, domain.ErrLeaseLost)
	equal(t, answers[2], domain.Settled{Status: domain.StatusCompleted})
}
