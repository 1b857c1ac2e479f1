package model_test

import (
	"errors"
	"testing"
	"time"

	"github.com/holdfast-pg/holdfast/domain"
	"github.com/holdfast-pg/holdfast/domain/model"
)

func (w world) setQueue(name string, change domain.QueueChange) domain.QueueSettings {
	w.t.Helper()
	settings, err := w.SetQueue(w.t.Context(), name, change)
	if err != nil {
		w.t.Fatalf("SetQueue: %v", err)
	}
	return settings
}

func TestSetQueue_ChangesWhatIsGivenAndCreatesTheQueue(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	want := domain.DefaultQueueSettings("mail")
	want.KeepFor = time.Hour
	equal(t, w.setQueue("mail", domain.QueueChange{KeepFor: new(time.Hour)}), want)
	want.MaxAttempts = 2
	equal(t, w.setQueue("mail", domain.QueueChange{MaxAttempts: new(2)}), want)
	_, err := w.SetQueue(t.Context(), "mail", domain.QueueChange{MaxAttempts: new(3), Retention: new(time.Minute)})
	if invalid := new(domain.InvalidError); !errors.As(err, &invalid) || invalid.Field != "keep for" {
		t.Errorf("a retention that is shorter than keep for: %v", err)
	}
	found, err := w.FindQueue(t.Context(), "mail")
	wantError(t, err, nil)
	equal(t, found, want)
}

func TestSetQueue_OrderedIsFixedWhileTheQueueHasJobsThatMayRun(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	keep := domain.RetentionKeep
	w.setQueue(domain.DefaultQueue, domain.QueueChange{RetentionMode: &keep})
	w.enqueue(model.NewJob{MaxAttempts: 1})
	refused := func(state string) {
		t.Helper()
		_, err := w.SetQueue(t.Context(), domain.DefaultQueue, domain.QueueChange{Ordered: new(true), MaxAttempts: new(9)})
		if invalid := new(domain.InvalidError); !errors.As(err, &invalid) || invalid.Field != "ordered" {
			t.Errorf("with a %s job: %v", state, err)
		}
	}
	refused("pending")
	job := w.claimOne("w1")
	refused("claimed")
	w.settle(job, domain.Outcome{Verdict: domain.Retry})
	refused("dead")
	equal(t, w.setQueue(domain.DefaultQueue, domain.QueueChange{Ordered: new(false)}).MaxAttempts, 5)
	if _, err := w.Redrive(t.Context(), anna, 0, job.ID); err != nil {
		t.Fatal(err)
	}
	w.settle(w.claimOne("w1"), domain.Outcome{})
	equal(t, w.find(job.ID).Status, domain.StatusCompleted)
	equal(t, w.setQueue(domain.DefaultQueue, domain.QueueChange{Ordered: new(true)}).Ordered, true)
	equal(t, w.find(w.enqueue(model.NewJob{})).Ordered, true)
}

func TestPauseQueue_NamesAQueueThatDoesNotExist(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	wantError(t, w.PauseQueue(t.Context(), "nowhere"), domain.ErrUnknownQueue)
	wantError(t, w.ResumeQueue(t.Context(), "nowhere"), domain.ErrUnknownQueue)
	_, err := w.FindQueue(t.Context(), "nowhere")
	wantError(t, err, domain.ErrUnknownQueue)
}
