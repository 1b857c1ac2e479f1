package model_test

import (
	"context"
	"errors"
	"testing"

	"github.com/holdfast-pg/holdfast/domain"
	"github.com/holdfast-pg/holdfast/domain/model"
)

func (w world) handle(job domain.ClaimedJob, answer error) (ran bool, err error) {
	err = w.HandleTx(func(context.Context, domain.ClaimedJob) error {
		ran = true
		return answer
	})(w.t.Context(), job)
	return ran, err
}

func TestHandleTx_CompletesWhenItsHandlerReturnsNil(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	id := w.enqueue(model.NewJob{})
	ran, err := w.handle(w.claimOne("w1"), nil)
	wantError(t, err, nil)
	equal(t, ran, true)
	equal(t, w.find(id).Status, domain.StatusCompleted)
}

func TestHandleTx_ErrorOfTheHandlerLeavesTheClaim(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.enqueue(model.NewJob{})
	job := w.claimOne("w1")
	broken := errors.New("broken")
	ran, err := w.handle(job, broken)
	wantError(t, err, broken)
	equal(t, ran, true)
	equal(t, w.settle(job, domain.Outcome{}).Status, domain.StatusCompleted)
}

func TestHandleTx_OfALostClaimDoesNotRun(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.enqueue(model.NewJob{})
	stale := w.claimOne("w1")
	w.settle(stale, domain.Outcome{Verdict: domain.Release})
	current := w.claimOne("w1")
	ran, err := w.handle(stale, nil)
	wantError(t, err, domain.ErrLeaseLost)
	equal(t, ran, false)
	_, err = w.handle(current, nil)
	wantError(t, err, nil)
}
