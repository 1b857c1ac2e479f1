package model_test

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/holdfast-pg/holdfast/domain"
	"github.com/holdfast-pg/holdfast/domain/model"
)

func TestTokensOnlyGrow_ThoughFailoversLoseClaims(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		w := newWorld(t)
		for i := range 6 {
			w.enqueue(model.NewJob{MaxAttempts: 1000, Ordered: new(i%2 == 0)})
		}
		var last int64
		for range rapid.IntRange(1, 20).Draw(rt, "steps") {
			jobs := append(w.claim("w1", rapid.IntRange(0, 3).Draw(rt, "plain")), w.claimLanes("w1", rapid.IntRange(0, 3).Draw(rt, "ordered"))...)
			for _, job := range jobs {
				if job.Fence() <= last {
					rt.Fatalf("token %d after %d", job.Fence(), last)
				}
				last = job.Fence()
				if rapid.Bool().Draw(rt, "settled") {
					w.settle(job, domain.Outcome{Verdict: domain.Retry})
				}
			}
			if rapid.Bool().Draw(rt, "failover") {
				w.Promote(rapid.IntRange(0, 9).Draw(rt, "lost"))
			}
			w.clock.Advance(lease)
		}
	})
}

func TestPromote_LostClaimsWereNeverMade(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	kept, lost := w.enqueue(model.NewJob{}), w.enqueue(model.NewJob{})
	first := w.claimOne("w1")
	stale := w.claimOne("w1")
	equal(t, []domain.JobID{first.ID, stale.ID}, []domain.JobID{kept, lost})

	w.Promote(1)
	equal(t, w.find(kept).Status, domain.StatusProcessing)
	equal(t, w.find(lost).Status, domain.StatusPending)
	equal(t, w.find(lost).Attempts, 0)
	wantError(t, w.settle(stale, domain.Outcome{}).Err, domain.ErrLeaseLost)
	equal(t, w.settle(first, domain.Outcome{}).Status, domain.StatusCompleted)
	equal(t, w.claimOne("w1").Fence(), int64(2<<40+2))
	meta, err := w.Open(t.Context())
	wantError(t, err, nil)
	equal(t, meta.Epoch, 2)
}
