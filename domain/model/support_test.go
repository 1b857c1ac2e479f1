package model_test

import (
	"errors"
	"testing"
	"time"

	"github.com/holdfast-pg/holdfast/domain"
	"github.com/holdfast-pg/holdfast/domain/model"
)

func TestOldestPendingJob_IsTheLongestDue(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	if _, err := w.OldestPendingJob(t.Context(), domain.DefaultQueue); !errors.Is(err, domain.ErrNotFound) {
		t.Errorf("an empty queue has an oldest job: %v", err)
	}
	w.enqueue(model.NewJob{Delay: 2 * time.Second})
	oldest := w.enqueue(model.NewJob{Delay: time.Second, Key: "k"})
	w.clock.Advance(time.Minute)
	job, err := w.OldestPendingJob(t.Context(), domain.DefaultQueue)
	if err != nil {
		t.Fatal(err)
	}
	equal(t, job, domain.PendingJob{ID: oldest, Kind: "send", PartitionKey: "k", AvailableAt: noon.Add(time.Second), Age: 59 * time.Second})
}
