package integration

import (
	"context"
	"testing"
	"time"

	"github.com/holdfast-pg/holdfast"
	"github.com/holdfast-pg/holdfast/domain"
	"github.com/holdfast-pg/holdfast/integration/pgtest"
)

// The floor of a bucket hides what became available before its latest jobs.
func TestFloor_ClaimStartsThere(t *testing.T) {
	t.Parallel()
	database := pgtest.New(t)
	queue := database.Queue(t)
	id := enqueue(t, database, domain.Key("order:1"))
	floor := pgtest.Value[time.Time](t, database, "SELECT available_at FROM holdfast.inbox")
	request := domain.ClaimRequest{
		WorkerID: "w", Queue: domain.DefaultQueue, Buckets: []int{id.Bucket()}, Quota: 1, Batch: 1, Lease: time.Minute,
	}
	for _, test := range []struct {
		floors []time.Time
		want   int
	}{{[]time.Time{floor.Add(time.Microsecond)}, 0}, {[]time.Time{floor}, 1}} {
		request.Floors = test.floors
		jobs, err := queue.Claim(t.Context(), request)
		if err != nil || len(jobs) != test.want {
			t.Errorf("from %s on: %d jobs, %v, want %d", test.floors[0], len(jobs), err, test.want)
		}
	}
}

// A producer's transaction is open for a minute, while a worker is busy with jobs of the same
// key that were enqueued later and committed earlier.
func TestSweep_FindsWhatWasCommittedLate(t *testing.T) {
	t.Parallel()
	database := pgtest.New(t)
	key := domain.Key("order:1")
	found := make(chan domain.JobID, 1)
	var late domain.JobID
	tx, err := database.Pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(context.WithoutCancel(t.Context())) }()
	result, err := domain.Enqueue(t.Context(), tx, note{}, key)
	if err != nil {
		t.Fatal(err)
	}
	late = result.ID
	if _, err := tx.Exec(t.Context(), "UPDATE holdfast.inbox SET available_at = now() - interval '60 seconds' WHERE id = $1", late.String()); err != nil {
		t.Fatal(err)
	}

	// Each job enqueues the next one, so that the worker has never nothing to do.
	again := make(chan struct{}, 1000)
	startWorker(t, database, database.Pool, "w", quick(), holdfast.Handle(func(ctx context.Context, job holdfast.Job[note]) error {
		if job.ID == late {
			found <- job.ID
			return nil
		}
		select {
		case again <- struct{}{}:
		default:
		}
		_, err := domain.Enqueue(ctx, database.Pool, note{}, key)
		return err
	}))
	enqueue(t, database, key)
	for range 100 {
		<-again // By then the bucket has a floor.
	}
	if err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	select {
	case <-found:
	case <-time.After(patience):
		t.Error("the sweep does not find it")
	}
}
