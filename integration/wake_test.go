package integration

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/holdfast-pg/holdfast/domain"
	"github.com/holdfast-pg/holdfast/integration/pgtest"
)

// ear hears the rings of a database until its test ends.
type ear struct {
	mutex sync.Mutex
	rings []domain.Ring
}

func newEar(t *testing.T, database *pgtest.Database) *ear {
	t.Helper()
	heard := &ear{}
	queue := database.Direct(t).Queue(t) // A pooler passes no notification on.
	ready := make(chan struct{})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- queue.Listen(ctx, func() { close(ready) }, heard.hear) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil && !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	})
	select {
	case <-ready:
	case err := <-ended:
		ended <- nil
		t.Fatal(err)
	}
	return heard
}

func (e *ear) hear(ring domain.Ring) {
	e.mutex.Lock()
	defer e.mutex.Unlock()
	e.rings = append(e.rings, ring)
}

func (e *ear) count() int {
	e.mutex.Lock()
	defer e.mutex.Unlock()
	return len(e.rings)
}

// quiet makes sure that nothing was heard: a ring that is sent afterwards is the first.
func (e *ear) quiet(t *testing.T, database *pgtest.Database) {
	t.Helper()
	database.Exec(t, "SELECT pg_notify('holdfast_wake', '7 last')")
	pgtest.Eventually(t, 5*time.Second, "the last ring is heard", func() bool { return e.count() > 0 })
	e.mutex.Lock()
	defer e.mutex.Unlock()
	if e.rings[0] != (domain.Ring{Queue: "last", Bucket: 7}) {
		t.Errorf("heard %v, want nothing", e.rings)
	}
}

func TestWake_ArmedWorkersHearOfTheBucketOfANewJob(t *testing.T) {
	t.Parallel()
	database := pgtest.New(t)
	queue := database.Queue(t)
	heard := newEar(t, database)
	if err := queue.Arm(t.Context(), "w1", []string{"default", "mail"}); err != nil {
		t.Fatal(err)
	}
	var want []domain.Ring
	for _, option := range []domain.EnqueueOption{domain.Key("order:9182"), domain.Once("receipt:9182")} {
		id := enqueue(t, database, domain.OnQueue("mail"), option)
		want = append(want, domain.Ring{Queue: "mail", Bucket: id.Bucket()})
	}
	pgtest.Eventually(t, 5*time.Second, "the rings are heard", func() bool { return heard.count() >= len(want) })
	if !slices.Equal(heard.rings, want) {
		t.Errorf("heard %v, want %v", heard.rings, want)
	}
}

func TestWake_NoRingWithoutANeed(t *testing.T) {
	t.Parallel()
	for name, prepare := range map[string]func(t *testing.T, database *pgtest.Database, queue *domain.Queue) []domain.EnqueueOption{
		"nobody is armed": func(t *testing.T, _ *pgtest.Database, queue *domain.Queue) []domain.EnqueueOption {
			t.Helper()
			if err := queue.Disarm(t.Context(), "w1", []string{"default"}); err != nil {
				t.Fatal(err)
			}
			return nil
		},
		"only another queue is armed": func(*testing.T, *pgtest.Database, *domain.Queue) []domain.EnqueueOption {
			return []domain.EnqueueOption{domain.OnQueue("mail")}
		},
		"the producer wants no ring": func(*testing.T, *pgtest.Database, *domain.Queue) []domain.EnqueueOption {
			return []domain.EnqueueOption{domain.NoRing()}
		},
		"the queue wants no ring": func(t *testing.T, database *pgtest.Database, _ *domain.Queue) []domain.EnqueueOption {
			t.Helper()
			database.Exec(t, "UPDATE holdfast.queues SET ring = false")
			return nil
		},
		"the job is due later": func(*testing.T, *pgtest.Database, *domain.Queue) []domain.EnqueueOption {
			return []domain.EnqueueOption{domain.In(time.Minute)}
		},
		"the job is there already": func(t *testing.T, database *pgtest.Database, queue *domain.Queue) []domain.EnqueueOption {
			t.Helper()
			if err := queue.Disarm(t.Context(), "w1", []string{"default"}); err != nil {
				t.Fatal(err)
			}
			enqueue(t, database, domain.Once("receipt:9182"))
			if err := queue.Arm(t.Context(), "w1", []string{"default"}); err != nil {
				t.Fatal(err)
			}
			return []domain.EnqueueOption{domain.Once("receipt:9182")}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			database := pgtest.New(t)
			queue := database.Queue(t)
			if err := queue.Arm(t.Context(), "w1", []string{"default"}); err != nil {
				t.Fatal(err)
			}
			heard := newEar(t, database)
			options := prepare(t, database, queue)
			enqueue(t, database, options...)
			enqueueNotes(t, database, 2, options...)
			heard.quiet(t, database)
		})
	}
}

func TestWake_ASetRingsOnceAQueue(t *testing.T) {
	t.Parallel()
	database := pgtest.New(t)
	queue := database.Queue(t)
	if err := queue.Arm(t.Context(), "w1", []string{"default"}); err != nil {
		t.Fatal(err)
	}
	heard := newEar(t, database)
	enqueueNotes(t, database, 100)
	enqueueNotes(t, database, 100, domain.Key("order:9182"))
	enqueueNotes(t, database, 100, domain.Key("order:9182"), domain.Once("receipt:9182"))
	bucket := domain.BucketOf("order:9182", 1024)
	want := []domain.Ring{{Queue: "default", Bucket: -1}, {Queue: "default", Bucket: bucket}, {Queue: "default", Bucket: bucket}}
	pgtest.Eventually(t, 5*time.Second, "the sets are heard", func() bool { return heard.count() >= len(want) })
	if !slices.Equal(heard.rings, want) {
		t.Errorf("heard %v, want %v", heard.rings, want)
	}
}

// A producer whose transaction stays open holds up no other: the ring takes its lock at the
// commit only.
func TestWake_OpenTransactionDelaysNoOtherEnqueue(t *testing.T) {
	t.Parallel()
	database := pgtest.New(t)
	queue := database.Queue(t)
	if err := queue.Arm(t.Context(), "w1", []string{"default"}); err != nil {
		t.Fatal(err)
	}
	open, err := database.Pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = open.Rollback(context.WithoutCancel(t.Context())) }()
	if _, err := domain.Enqueue(t.Context(), open, note{Text: "first"}); err != nil {
		t.Fatal(err)
	}
	err = pgx.BeginFunc(t.Context(), database.Pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(t.Context(), "SET LOCAL lock_timeout = '1ms'"); err != nil {
			return err
		}
		_, err := domain.Enqueue(t.Context(), tx, note{Text: "second"})
		return err
	})
	if err != nil {
		t.Errorf("the second enqueue had to wait: %v", err)
	}
}

// Postgres prepares no transaction that has notified.
func TestWake_ProducerWithoutRingCanPrepareItsTransaction(t *testing.T) {
	t.Parallel()
	database := pgtest.New(t)
	if pgtest.Value[string](t, database, "SELECT current_setting('max_prepared_transactions')") == "0" {
		t.Fatal("the server allows no prepared transaction: set max_prepared_transactions")
	}
	queue := database.Queue(t)
	if err := queue.Arm(t.Context(), "w1", []string{"default"}); err != nil {
		t.Fatal(err)
	}
	prepare := func(name string, options ...domain.EnqueueOption) (domain.JobID, error) {
		conn := database.Conn(t)
		if _, err := conn.Exec(t.Context(), "BEGIN"); err != nil {
			t.Fatal(err)
		}
		result, err := domain.Enqueue(t.Context(), conn, note{Text: "hello"}, options...)
		if err != nil {
			t.Fatal(err)
		}
		_, err = conn.Exec(t.Context(), "PREPARE TRANSACTION '"+name+"'")
		return result.ID, err
	}
	id, err := prepare("quiet", domain.NoRing())
	if err != nil {
		t.Fatalf("without a ring: %v", err)
	}
	database.Exec(t, "COMMIT PREPARED 'quiet'")
	wantStatus(t, database, id, domain.StatusPending)
	if _, err := prepare("loud"); err == nil {
		t.Error("a transaction that rang could be prepared: then nobody needs NoRing")
	}
}
