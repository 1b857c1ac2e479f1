package model_test

import (
	"testing"

	"github.com/holdfast-pg/holdfast/domain"
	"github.com/holdfast-pg/holdfast/domain/model"
)

func (w world) mark(id domain.JobID, name string) bool {
	w.t.Helper()
	first, err := w.MarkHandled(w.t.Context(), id, name)
	if err != nil {
		w.t.Fatal(err)
	}
	return first
}

func TestMarkHandled_OnlyTheFirstTime(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	id, other := w.enqueue(model.NewJob{}), w.enqueue(model.NewJob{})
	equal(t, w.mark(id, "receipt"), true)
	equal(t, w.mark(id, "receipt"), false)
	equal(t, w.mark(id, "invoice"), true)
	equal(t, w.mark(other, "receipt"), true)
}

func TestMarkHandled_OutlivesEveryRunOfItsJob(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	id := w.enqueue(model.NewJob{})
	w.mark(id, "receipt")
	w.clock.Advance(100 * day)
	equal(t, w.keepHouse(house).MarksExpired, int64(0))
	w.settle(w.claimOne("w1"), domain.Outcome{})
	equal(t, w.keepHouse(house).MarksExpired, int64(1))
	equal(t, w.mark(id, "receipt"), true)
}
