package model_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/holdfast-pg/holdfast/domain"
	"github.com/holdfast-pg/holdfast/domain/model"
)

func TestTables_HoldWhatIsKeptBesideJobs(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.join("w2", domain.DefaultQueue)
	w.join("w1", domain.DefaultQueue)
	w.enqueueOnce("b")
	id := w.enqueueOnce("a").ID
	job := w.claim("w1", 2)[1]
	_, err := w.MarkHandled(t.Context(), id, "mailed")
	wantError(t, err, nil)
	wantError(t, w.Guard(t.Context(), "account", job.Claim), nil)
	wantError(t, w.Arm(t.Context(), "w1", []string{domain.DefaultQueue}), nil)
	w.clock.Advance(time.Minute)

	found := w.Tables()
	equal(t, found.Keys[0], model.Key{Queue: domain.DefaultQueue, Key: "a", JobID: id, ExpiresAt: noon.Add(7 * day)})
	equal(t, found.Marks, []model.Mark{{Scope: "mailed", Key: id.String(), JobID: id, HandledAt: noon}})
	equal(t, found.Fences, []model.Fence{{Resource: "account", Token: job.Generation, TouchedAt: noon}})
	equal(t, found.Bells, []model.Bell{{Queue: domain.DefaultQueue, WorkerID: "w1"}})
	equal(t, found.Workers[0], domain.WorkerRecord{
		ID: "w1", Status: domain.WorkerAlive, Queues: []string{domain.DefaultQueue}, StartedAt: noon, LastSeenAt: noon,
		Silence: time.Minute, Metadata: json.RawMessage("{}"),
	})
}

func TestListQueues_InTheOrderOfTheirNames(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.join("w1", "mail")
	queues, err := w.ListQueues(t.Context(), 1)
	wantError(t, err, nil)
	equal(t, queues, []domain.QueueSettings{domain.DefaultQueueSettings(domain.DefaultQueue)})
	queues, err = w.ListQueues(t.Context(), 5)
	wantError(t, err, nil)
	equal(t, queues[1], domain.DefaultQueueSettings("mail"))
}
