package integration

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-pg/holdfast"
	"github.com/holdfast-pg/holdfast/domain"
	"github.com/holdfast-pg/holdfast/integration/pgtest"
)

// sleepy are timings with which a worker that waits finds nothing by polling in time.
func sleepy() holdfast.Config {
	config := quick()
	config.ActivePoll, config.IdlePoll = time.Hour, time.Hour
	return config
}

// startSleepyWorker starts a worker that has fallen asleep, and waits to be woken.
func startSleepyWorker(t *testing.T, database *pgtest.Database, handlers ...holdfast.Handler) *workerRun {
	t.Helper()
	config := sleepy()
	config.DirectURL = database.Config().ConnString()
	run := startWorker(t, database, database.Pool, "w", config, handlers...)
	pgtest.Eventually(t, patience, "the worker wants to be woken", func() bool {
		return pgtest.Value[int](t, database, "SELECT count(*) FROM holdfast.wake") > 0
	})
	return run
}

func completing() holdfast.Handler {
	return holdfast.Handle(func(context.Context, holdfast.Job[note]) error { return nil })
}

func TestWake_SleepingWorkerIsWokenByAnEnqueue(t *testing.T) {
	t.Parallel()
	database := pgtest.New(t)
	startSleepyWorker(t, database, completing())
	for i := range 20 {
		enqueue(t, database, domain.Key(fmt.Sprint("order:", i)))
		untilCompleted(t, database, i+1)
	}
	enqueueNotes(t, database, 20)
	untilCompleted(t, database, 40)
}

// The listener's connection may end at any time; the next one looks for what was missed.
func TestWake_LostListenerMissesNothing(t *testing.T) {
	t.Parallel()
	database := pgtest.New(t)
	startSleepyWorker(t, database, completing())
	for i := range 3 {
		if ended := pgtest.Value[int](t, database, `
			SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
			WHERE datname = current_database() AND pid <> pg_backend_pid() AND query LIKE '%name: SubscribeToProbes%'`); ended == 0 {
			t.Fatal("no session listens") // An earlier one may be seen while it ends.
		}
		enqueue(t, database)
		untilCompleted(t, database, i+1)
		pgtest.Eventually(t, patience, "the worker listens again", func() bool {
			return pgtest.Value[int](t, database, `
				SELECT count(*) FROM pg_stat_activity
				WHERE datname = current_database() AND state = 'idle' AND query LIKE '%name: SubscribeToProbes%'`) == 1
		})
	}
}

// A producer that began before the worker was armed, and commits after, does not ring.
func TestWake_CommitThatDidNotRingIsFoundSoon(t *testing.T) {
	t.Parallel()
	database := pgtest.New(t)
	tx, err := database.Pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(context.WithoutCancel(t.Context())) }()
	if _, err := domain.Enqueue(t.Context(), tx, note{Text: "early"}); err != nil {
		t.Fatal(err)
	}
	startSleepyWorker(t, database, completing())
	if err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	untilCompleted(t, database, 1)
}

// With every notification lost, all that holds otherwise still holds.
func TestHintsAreHints_WithoutNotificationsEveryJobIsFound(t *testing.T) {
	t.Parallel()
	database := pgtest.New(t)
	config := quick()
	config.PollOnly = true
	startWorker(t, database, database.Pool, "w", config, completing())
	for i := range 5 {
		enqueue(t, database)
		untilCompleted(t, database, i+1)
	}
}

func TestWake_SaturatedWorkerIsNotRungForEveryEnqueue(t *testing.T) {
	t.Parallel()
	database := pgtest.New(t)
	heard := newEar(t, database)
	config := quick()
	config.Concurrency = 1
	config.DirectURL = database.Config().ConnString()
	finish := make(chan struct{})
	startWorker(t, database, database.Pool, "w", config, holdfast.Handle(func(ctx context.Context, _ holdfast.Job[note]) error {
		select {
		case <-finish:
		case <-ctx.Done():
		}
		return nil
	}))
	pgtest.Eventually(t, patience, "the worker wants to be woken", func() bool {
		return pgtest.Value[int](t, database, "SELECT count(*) FROM holdfast.wake") == 1
	})
	enqueueNotes(t, database, 5)
	pgtest.Eventually(t, patience, "the saturated worker does not want to be woken", func() bool {
		return pgtest.Value[int](t, database, "SELECT count(*) FROM holdfast.wake") == 0
	})
	before := heard.count()
	for range 50 {
		enqueue(t, database)
	}
	database.Exec(t, "SELECT pg_notify('holdfast_wake', '7 last')")
	pgtest.Eventually(t, patience, "the last ring is heard", func() bool { return heard.count() > before })
	if rings := heard.count() - before - 1; rings > 1 {
		t.Errorf("%d rings for 50 enqueues to a saturated queue", rings)
	}
	close(finish)
	untilCompleted(t, database, 55)
}

// The registry tells what a worker is like.
func TestHeartbeat_TellsHowTheWorkerStands(t *testing.T) {
	t.Parallel()
	database := pgtest.New(t)
	config := quick()
	config.Version = "1.2.3"
	config.DirectURL = database.Config().ConnString()
	startWorker(t, database, database.Pool, "w", config, completing())
	enqueueNotes(t, database, 20)
	untilCompleted(t, database, 20)
	pgtest.Eventually(t, patience, "a heartbeat tells of it", func() bool {
		return pgtest.Value[bool](t, database, `
			SELECT metadata @> '{"version": "1.2.3", "affinity": "ring", "wake": "listen", "buckets": 1024, "concurrency": 8, "in_flight": 0, "kinds": ["note"], "worker_ttl_seconds": 15, "housekeeping_seconds": 0.5}'
				AND (metadata ->> 'claim_p99_ms')::float > 0 AND (metadata ->> 'wait_p99_ms')::float > 0 AND (metadata ->> 'handle_p99_ms')::float >= 0
			FROM holdfast.workers`)
	})
	keys := pgtest.Values[string](t, database, "SELECT jsonb_object_keys(metadata) FROM holdfast.workers ORDER BY 1")
	want := "affinity buckets claim_p50_ms claim_p99_ms concurrency connections handle_p50_ms handle_p99_ms host housekeeping_seconds in_flight kinds lease_seconds pid version wait_p50_ms wait_p99_ms wake worker_ttl_seconds"
	if got := strings.Join(slices.Sorted(slices.Values(keys)), " "); got != want {
		t.Errorf("metadata has %s, want %s", got, want)
	}
}

func TestTogether_RolledBackEnqueueDoesNotRing(t *testing.T) {
	t.Parallel()
	database := pgtest.New(t)
	queue := database.Queue(t)
	if err := queue.Arm(t.Context(), "w1", []string{"default"}); err != nil {
		t.Fatal(err)
	}
	heard := newEar(t, database)
	tx, err := database.Pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := domain.Enqueue(t.Context(), tx, note{Text: "hello"}); err != nil {
		t.Fatal(err)
	}
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	heard.quiet(t, database)
}
