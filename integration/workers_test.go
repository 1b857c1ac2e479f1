package integration

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/holdfast-pg/holdfast/domain"
	"github.com/holdfast-pg/holdfast/integration/pgtest"
)

// houseRules are those of a worker with the default settings.
var houseRules = domain.HouseRules{
	WorkerTTL:      30 * time.Second,
	DeadWorkersFor: 24 * time.Hour,
	MarksFor:       30 * 24 * time.Hour,
	FencesFor:      30 * 24 * time.Hour,
	EventsFor:      30 * 24 * time.Hour,
	ArchiveAhead:   14,
}

func registration(id string) domain.Registration {
	return domain.Registration{ID: id, Queues: []string{domain.DefaultQueue}, Metadata: json.RawMessage(`{"version": "1.2.0"}`)}
}

func join(t *testing.T, queue *domain.Queue, id string) {
	t.Helper()
	if err := queue.Join(t.Context(), registration(id)); err != nil {
		t.Fatal(err)
	}
}

func TestWorkers_TwoOfOneIDAreRefused(t *testing.T) {
	t.Parallel()
	queue := pgtest.New(t).Queue(t)
	join(t, queue, "w1")
	wantError(t, queue.Join(t.Context(), registration("w1")), domain.ErrWorkerExists)
}

func TestWorkers_JoinCreatesTheQueuesServed(t *testing.T) {
	t.Parallel()
	database := pgtest.New(t)
	worker := registration("w1")
	worker.Queues = []string{"invoices", domain.DefaultQueue}
	if err := database.Queue(t).Join(t.Context(), worker); err != nil {
		t.Fatal(err)
	}
	if queues := pgtest.Value[int64](t, database, "SELECT count(*) FROM holdfast.queues WHERE name IN ('invoices', 'default')"); queues != 2 {
		t.Fatalf("%d of the 2 queues exist", queues)
	}
}

func TestWorkers_HeartbeatNeverRevives(t *testing.T) {
	t.Parallel()
	database := pgtest.New(t)
	queue := database.Queue(t)
	join(t, queue, "w1")
	for _, status := range []domain.WorkerStatus{domain.WorkerAlive, domain.WorkerDraining, domain.WorkerDead} {
		database.Exec(t, "UPDATE holdfast.workers SET status = $1::text::holdfast.worker_status, last_seen_at = now() - interval '1 minute'", string(status))
		found, err := queue.Beat(t.Context(), registration("w1"))
		if err != nil || found != status {
			t.Fatalf("a beat of a worker that is %s found %q, error %v", status, found, err)
		}
		if kept := pgtest.Value[string](t, database, "SELECT status::text FROM holdfast.workers"); kept != string(status) {
			t.Fatalf("a beat made a worker that was %s %s", status, kept)
		}
		seen := pgtest.Value[bool](t, database, "SELECT last_seen_at > now() - interval '30 seconds' FROM holdfast.workers")
		if wantSeen := status != domain.WorkerDead; seen != wantSeen {
			t.Fatalf("after a beat of a worker that is %s, seen is %v", status, seen)
		}
	}
	_, err := queue.Beat(t.Context(), registration("w2"))
	wantError(t, err, domain.ErrWorkerUnknown)
}

func TestWorkers_OnlyLiveOnesAreListed(t *testing.T) {
	t.Parallel()
	database := pgtest.New(t)
	queue := database.Queue(t)
	for _, id := range []string{"w3", "w1", "w2", "stale", "drained"} {
		join(t, queue, id)
	}
	database.Exec(t, "UPDATE holdfast.workers SET last_seen_at = now() - interval '31 seconds' WHERE id = 'stale'")
	if err := domain.Drain(t.Context(), database.Pool, "drained"); err != nil {
		t.Fatal(err)
	}
	workers, err := domain.LiveWorkers(t.Context(), database.Pool, domain.DefaultQueue, 30*time.Second, 10)
	if err != nil || len(workers) != 3 || workers[0].ID != "w1" || workers[2].ID != "w3" || string(workers[0].Metadata) != `{"version": "1.2.0"}` {
		t.Fatalf("live workers are %+v, error %v", workers, err)
	}
	if others, err := domain.LiveWorkers(t.Context(), database.Pool, "another", 30*time.Second, 10); err != nil || len(others) != 0 {
		t.Fatalf("workers of a queue that nobody serves: %+v, error %v", others, err)
	}
}

func TestWorkers_StaleOnesDieAndAreForgotten(t *testing.T) {
	t.Parallel()
	database := pgtest.New(t)
	queue := database.Queue(t)
	join(t, queue, "fresh")
	join(t, queue, "stale")
	database.Exec(t, "UPDATE holdfast.workers SET last_seen_at = now() - interval '31 seconds' WHERE id = 'stale'")
	report, err := queue.KeepHouse(t.Context(), houseRules)
	if err != nil || len(report.WorkersDied) != 1 || report.WorkersDied[0] != "stale" || report.WorkersForgotten != 0 {
		t.Fatalf("keeping house reported %+v, error %v", report, err)
	}
	database.Exec(t, "UPDATE holdfast.workers SET last_seen_at = now() - interval '25 hours' WHERE id = 'stale'")
	report, err = queue.KeepHouse(t.Context(), houseRules)
	if err != nil || report.WorkersForgotten != 1 {
		t.Fatalf("a day later it reported %+v, error %v", report, err)
	}
}

func TestLeavesNothingBehind_LeaveGivesBackWhatTheWorkerForgot(t *testing.T) {
	t.Parallel()
	const jobs = 1500 // More than one batch.
	database := pgtest.New(t)
	queue := database.Queue(t)
	join(t, queue, "w1")
	enqueueNotes(t, database, jobs, domain.MaxAttempts(1))
	if forgotten := claim(t, queue, "w1", jobs); len(forgotten) != jobs {
		t.Fatalf("claimed %d jobs", len(forgotten))
	}
	if held, err := domain.HeldJobs(t.Context(), database.Pool, "w1"); err != nil || held != jobs {
		t.Fatalf("the worker holds %d jobs, error %v", held, err)
	}
	if err := queue.Drain(t.Context(), "w1"); err != nil {
		t.Fatal(err)
	}
	if err := queue.Leave(t.Context(), "w1"); err != nil {
		t.Fatal(err)
	}
	if held, err := domain.HeldJobs(t.Context(), database.Pool, "w1"); err != nil || held != 0 {
		t.Fatalf("after it left the worker holds %d jobs, error %v", held, err)
	}
	if spent := pgtest.Value[int64](t, database, "SELECT count(*) FROM holdfast.inbox WHERE attempts <> 0 OR status <> 'pending'"); spent != 0 {
		t.Fatalf("%d jobs lost an attempt", spent)
	}
	if status := pgtest.Value[string](t, database, "SELECT status::text FROM holdfast.workers"); status != "dead" {
		t.Fatalf("the worker that left is %s", status)
	}
	wantError(t, domain.Drain(t.Context(), database.Pool, "w1"), domain.ErrWorkerUnknown)
}
