package model_test

import (
	"testing"
	"time"

	"github.com/holdfast-pg/holdfast/domain"
	"github.com/holdfast-pg/holdfast/domain/model"
)

func TestRenew_MovesTheDeadline(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.enqueue(model.NewJob{})
	job := w.claimOne("w1")
	for range 5 {
		w.clock.Advance(lease - time.Microsecond)
		held, err := w.Renew(t.Context(), "w1", lease, []domain.Claim{job.Claim})
		if err != nil {
			t.Fatal(err)
		}
		equal(t, held, []domain.Claim{job.Claim})
	}
	equal(t, len(w.reclaim()), 0)
}

func TestRenew_DoesNotReviveAnEndedLease(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.enqueue(model.NewJob{})
	job := w.claimOne("w1")
	w.clock.Advance(lease)
	held, err := w.Renew(t.Context(), "w1", lease, []domain.Claim{job.Claim})
	if err != nil {
		t.Fatal(err)
	}
	equal(t, held, []domain.Claim{})
}
