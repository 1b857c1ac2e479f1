package integration

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/holdfast-pg/holdfast"
	"github.com/holdfast-pg/holdfast/domain"
	"github.com/holdfast-pg/holdfast/integration/pgtest"
)

// workerRun is a worker that runs until the test ends.
type workerRun struct {
	t        *testing.T
	database *pgtest.Database
	stop     context.CancelFunc
	returned chan struct{}
	err      error        // Run's, once it returned.
	log      bytes.Buffer // What was logged; complete once Run returned.

	mutex sync.Mutex
	ids   []string // One for each time it tried to join.
}

// quick are timings with which much happens in a second, but no lease ends and no worker is
// taken for dead because the machine is busy.
func quick() holdfast.Config {
	return holdfast.Config{
		Lease:         30 * time.Second,
		RenewEvery:    500 * time.Millisecond,
		Heartbeat:     500 * time.Millisecond,
		WorkerTTL:     15 * time.Second,
		Housekeeping:  500 * time.Millisecond,
		ActivePoll:    10 * time.Millisecond,
		IdlePoll:      50 * time.Millisecond,
		DrainDeadline: 10 * time.Second,
	}
}

// shortLease are quick timings with which a lease ends in seconds. A busy machine may then
// lose one, so a test must not count attempts.
func shortLease() holdfast.Config {
	config := quick()
	config.Lease = 4 * time.Second
	config.LeaseMargin = 2 * time.Second
	return config
}

// startWorker runs a worker through the pool. When the test ends, it must drain.
func startWorker(t *testing.T, database *pgtest.Database, pool *pgxpool.Pool, name string, config holdfast.Config, handlers ...holdfast.Handler) *workerRun {
	t.Helper()
	return startMade(t, database, name, config, func(config holdfast.Config) (*holdfast.Worker, error) {
		return holdfast.NewWorker(pool, config, handlers...)
	})
}

// startMade runs the worker that is made of the configuration, as startWorker does.
func startMade(t *testing.T, database *pgtest.Database, name string, config holdfast.Config, newWorker func(holdfast.Config) (*holdfast.Worker, error)) *workerRun {
	t.Helper()
	run := &workerRun{t: t, database: database, returned: make(chan struct{})}
	config.NewID = func() string { return run.nextID(name) }
	config.Logger = slog.New(slog.NewMultiHandler(
		slog.NewTextHandler(t.Output(), nil),
		slog.NewTextHandler(&run.log, &slog.HandlerOptions{Level: slog.LevelDebug}),
	))
	worker, err := newWorker(config)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	run.stop = stop
	go func() {
		defer close(run.returned)
		run.err = worker.Run(ctx)
	}()
	t.Cleanup(run.drain)
	return run
}

func (r *workerRun) nextID(name string) string {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.ids = append(r.ids, fmt.Sprintf("%s-%d", name, len(r.ids)+1))
	return r.ids[len(r.ids)-1]
}

// drain stops the worker and fails the test unless Run returns nil and leaves nothing behind.
func (r *workerRun) drain() {
	r.t.Helper()
	r.stop()
	r.mustReturn()
}

func (r *workerRun) mustReturn() {
	r.t.Helper()
	select {
	case <-r.returned:
	case <-time.After(patience):
		r.t.Fatalf("gave up after %s waiting until Run returns", patience)
	}
	if r.err != nil {
		r.t.Fatalf("Run returned %v", r.err)
	}
	for _, id := range r.ids {
		held, err := domain.HeldJobs(context.Background(), r.database.Pool, id)
		if err != nil || held != 0 {
			r.t.Errorf("after its drain worker %s holds %d jobs: %v", id, held, err)
		}
	}
}

// wantRunning fails the test if Run has returned.
func (r *workerRun) wantRunning() {
	r.t.Helper()
	select {
	case <-r.returned:
		r.t.Fatalf("Run has returned, with %v", r.err)
	default:
	}
}

// untilCompleted waits until so many jobs are in the archive.
func untilCompleted(t *testing.T, database *pgtest.Database, want int) {
	t.Helper()
	pgtest.Eventually(t, patience, fmt.Sprintf("%d jobs are completed", want), func() bool {
		return pgtest.Value[int](t, database, "SELECT count(*) FROM holdfast.inbox_archive") == want
	})
}

// runs counts how often the handler of each job was called.
type runs struct {
	mutex sync.Mutex
	byJob map[holdfast.JobID]int
	total int
}

// add counts a call and returns how many there have been of any job.
func (r *runs) add(id holdfast.JobID) int {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if r.byJob == nil {
		r.byJob = map[holdfast.JobID]int{}
	}
	r.byJob[id]++
	r.total++
	return r.total
}

// wantEvery fails the test unless each of so many jobs has run at least once, and so often
// at most.
func (r *runs) wantEvery(t *testing.T, jobs, most int) {
	t.Helper()
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if len(r.byJob) != jobs {
		t.Errorf("%d jobs have run, want %d", len(r.byJob), jobs)
	}
	for id, n := range r.byJob {
		if n > most {
			t.Errorf("job %s has run %d times, want %d at most", id, n, most)
		}
	}
}
