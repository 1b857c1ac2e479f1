package model_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/holdfast-pg/holdfast/domain"
	"github.com/holdfast-pg/holdfast/domain/model"
)

func (w world) enqueueOnce(key string) domain.EnqueueResult {
	w.t.Helper()
	result, err := w.Enqueue(w.t.Context(), model.NewJob{Kind: "send", IdempotencyKey: key})
	if err != nil {
		w.t.Fatal(err)
	}
	return result
}

func TestEnqueue_KeepsWhatItWasGiven(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	result, err := w.Enqueue(t.Context(), model.NewJob{
		Queue: "mail", Kind: "send", Key: "order:9182", IdempotencyKey: "receipt:9182", Delay: time.Minute, MaxAttempts: 3,
		Headers: json.RawMessage(`{"trace":"a"}`), Payload: json.RawMessage(`{"order":9182}`),
	})
	if err != nil {
		t.Fatal(err)
	}
	key := "receipt:9182"
	equal(t, w.find(result.ID), domain.JobRecord{
		ID: result.ID, Seq: 1, Queue: "mail", Kind: "send", PartitionKey: "order:9182", Status: domain.StatusPending, MaxAttempts: 3,
		AvailableAt: noon.Add(time.Minute), CreatedAt: noon, IdempotencyKey: &key,
		Headers: json.RawMessage(`{"trace":"a"}`), Payload: json.RawMessage(`{"order":9182}`),
	})
}

func TestEnqueue_IDCarriesTheBucketOfTheKey(t *testing.T) {
	t.Parallel()
	queue := model.New(model.Settings{BucketCount: 1024})
	w := world{Queue: queue, t: t}
	job := w.find(w.enqueue(model.NewJob{Key: "order:9182"}))
	equal(t, job.Bucket, 999)
	equal(t, job.ID.Bucket(), 999)
}

func TestEnqueue_LaterOfDelayAndTimeCounts(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	early := w.enqueue(model.NewJob{Delay: time.Hour, RunAt: noon.Add(time.Minute)})
	late := w.enqueue(model.NewJob{Delay: time.Minute, RunAt: noon.Add(time.Hour)})
	past := w.enqueue(model.NewJob{RunAt: noon.Add(-time.Hour)})
	equal(t, w.find(early).AvailableAt, noon.Add(time.Hour))
	equal(t, w.find(late).AvailableAt, noon.Add(time.Hour))
	equal(t, w.find(past).AvailableAt, noon)
}

func TestOncePerKey_EveryEnqueueIsTheSameJob(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	first := w.enqueueOnce("a")
	equal(t, first.Duplicate, false)
	equal(t, w.enqueueOnce("a"), domain.EnqueueResult{ID: first.ID, Duplicate: true, State: domain.StatusPending})
	if other := w.enqueueOnce("b"); other.Duplicate {
		t.Error("another key found the job")
	}
	if elsewhere := w.enqueue(model.NewJob{Queue: "mail", IdempotencyKey: "a"}); elsewhere == first.ID {
		t.Error("the key of another queue found the job")
	}
}

func TestOncePerKey_HoldsAfterTheJobIsOver(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	first := w.enqueueOnce("a")
	w.settle(w.claimOne("w1"), domain.Outcome{Verdict: domain.Fail, Error: "no such order"})
	equal(t, w.enqueueOnce("a"), domain.EnqueueResult{ID: first.ID, Duplicate: true, State: domain.StatusFailed})
}

func TestOncePerKey_StateOfADroppedJobIsUnknown(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.setRetention(domain.RetentionDrop)
	first := w.enqueueOnce("a")
	w.settle(w.claimOne("w1"), domain.Outcome{})
	equal(t, w.enqueueOnce("a"), domain.EnqueueResult{ID: first.ID, Duplicate: true})
}

func TestOncePerKey_WindowCountsFromWhenTheJobMayRun(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	week := domain.DefaultQueueSettings(domain.DefaultQueue).DedupeWindow
	w.enqueue(model.NewJob{IdempotencyKey: "a", Delay: time.Hour})
	w.clock.Advance(week + time.Hour - time.Microsecond)
	equal(t, w.enqueueOnce("a").Duplicate, true)
	w.clock.Advance(time.Microsecond)
	equal(t, w.enqueueOnce("a").Duplicate, false)
	equal(t, w.enqueueOnce("a").Duplicate, true)
}

func TestOncePerKey_TwiceInASetIsOneJob(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	once := model.NewJob{Kind: "send", IdempotencyKey: "a"}
	results, err := w.EnqueueMany(t.Context(), once, model.NewJob{Kind: "send"}, once)
	if err != nil {
		t.Fatal(err)
	}
	equal(t, []bool{results[0].Duplicate, results[1].Duplicate, results[2].Duplicate}, []bool{false, false, true})
	equal(t, results[2].ID, results[0].ID)
	equal(t, len(w.Jobs()), 2)
}

func TestEnqueue_GivenIDIsTakenOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	id := domain.NewJobID(noon, 0)
	equal(t, w.enqueue(model.NewJob{ID: id, IdempotencyKey: "a"}), id)
	if _, err := w.Enqueue(t.Context(), model.NewJob{ID: id}); err == nil {
		t.Error("two jobs have one id")
	}
	if again, err := w.Enqueue(t.Context(), model.NewJob{ID: id, IdempotencyKey: "a"}); err != nil || !again.Duplicate {
		t.Errorf("a duplicate that gives the job's id: %+v, %v", again, err)
	}
}
