package model_test

import (
	"testing"

	"github.com/holdfast-pg/holdfast/domain"
	"github.com/holdfast-pg/holdfast/domain/model"
)

func TestGuard_NeverALowerTokenAfterAHigherOne(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.enqueue(model.NewJob{})
	stale := w.claimOne("w1")
	wantError(t, w.Guard(t.Context(), "invoice:1", stale.Claim), nil)
	current := w.loseLease(stale, "w2")
	wantError(t, w.Guard(t.Context(), "invoice:1", current.Claim), nil)
	wantError(t, w.Guard(t.Context(), "invoice:1", current.Claim), nil)
	wantError(t, w.Guard(t.Context(), "invoice:1", stale.Claim), domain.ErrFenced)
	wantError(t, w.Guard(t.Context(), "invoice:2", stale.Claim), nil)
}

func TestKeepHouse_ForgetsFencesThatNobodyUses(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.enqueue(model.NewJob{})
	job := w.claimOne("w1")
	wantError(t, w.Guard(t.Context(), "a", job.Claim), nil)
	wantError(t, w.Guard(t.Context(), "b", job.Claim), nil)
	w.clock.Advance(20 * day)
	wantError(t, w.Guard(t.Context(), "b", job.Claim), nil)
	w.clock.Advance(20 * day)
	equal(t, w.keepHouse(house).FencesExpired, int64(1))
}
