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

func TestMarkApplied_EachNumberOnceInAnyOrder(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, test := range []struct {
		projection string
		seq        int64
		first      bool
		position   int64
	}{{"a", 9, true, 9}, {"a", 10, true, 10}, {"a", 3, true, 10}, {"a", 9, false, 10}, {"b", 9, true, 9}} {
		first, err := w.MarkApplied(t.Context(), test.projection, test.seq, domain.JobID{})
		if err != nil {
			t.Fatal(err)
		}
		equal(t, first, test.first)
		position, err := w.ProjectionPosition(t.Context(), test.projection)
		if err != nil {
			t.Fatal(err)
		}
		equal(t, position, test.position)
	}
	position, err := w.ProjectionPosition(t.Context(), "c")
	if err != nil {
		t.Fatal(err)
	}
	equal(t, position, 0)
}
