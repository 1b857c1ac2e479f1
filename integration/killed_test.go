package integration

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/holdfast-pg/holdfast"
	"github.com/holdfast-pg/holdfast/domain"
	"github.com/holdfast-pg/holdfast/integration/pgtest"
)

// A hundred workers that settle as fast as they can are killed, and cannot say a last word.
func TestKept_KilledAtAnyMomentLosesNothing(t *testing.T) {
	t.Parallel()
	const kills, atOnce = 100, 3
	start := rand.Uint64()
	t.Logf("the moments of the kills follow from %d", start)
	random := rand.New(rand.NewPCG(start, 0))
	database := pgtest.New(t)
	flow := startFlow(t, database)

	var dead, living []*process
	for range atOnce {
		living = append(living, startVictim(t, database))
	}
	for range kills {
		victim := living[0]
		some := random.IntN(200)
		pgtest.Eventually(t, patience, fmt.Sprintf("a worker has begun %d jobs", some), func() bool {
			return strings.Count(victim.stdout.String(), "\n") >= some
		})
		victim.signal(t, syscall.SIGKILL)
		living, dead = append(living[1:], startVictim(t, database)), append(dead, victim.ends(t, -1))
	}
	enqueued := flow.stop(t)
	pgtest.Eventually(t, patience, "the rest is worked off", func() bool {
		// The backoff of a job whose workers were killed one after the other is long.
		database.Exec(t, "UPDATE holdfast.inbox SET available_at = now() WHERE status = 'pending' AND available_at > now()")
		return pgtest.Value[int](t, database, "SELECT count(*) FROM holdfast.inbox") == 0
	})
	for _, worker := range living {
		drains(t, worker)
	}
	wantNothingHeld(t, database)
	wantCompletedOnce(t, database, enqueued)
	wantHandled(t, enqueued, slices.Concat(dead, living))
	claimedAgain := pgtest.Value[int](t, database, "SELECT count(*) FROM holdfast.inbox_archive WHERE attempts > 1")
	if claimedAgain == 0 {
		t.Errorf("no kill found a worker with a job in its hands")
	}
	t.Logf("%d kills, %d jobs, %d of them claimed more than once", kills, len(enqueued), claimedAgain)
}

// wantCompletedOnce checks that the archive holds each of the jobs once, and no other.
func wantCompletedOnce(t *testing.T, database *pgtest.Database, enqueued []string) {
	t.Helper()
	completions := map[string]int{}
	for _, id := range pgtest.Values[string](t, database, "SELECT id::text FROM holdfast.inbox_archive") {
		completions[id]++
	}
	for _, id := range enqueued {
		if completions[id] != 1 {
			t.Errorf("job %s is completed %d times", id, completions[id])
		}
		delete(completions, id)
	}
	if len(completions) != 0 {
		t.Errorf("%d jobs are completed that no producer knows", len(completions))
	}
}

// wantHandled checks that a handler ran for each of the jobs, and tells how many ran again:
// their worker was killed after the handler returned and before the completion was durable.
func wantHandled(t *testing.T, enqueued []string, workers []*process) {
	t.Helper()
	runs, total := map[string]int{}, 0
	for _, worker := range workers {
		for line := range strings.Lines(worker.stdout.String()) {
			runs[strings.TrimSuffix(line, "\n")]++
			total++
		}
	}
	for _, id := range enqueued {
		if runs[id] == 0 {
			t.Errorf("job %s is completed, and no handler ran", id)
		}
	}
	t.Logf("handlers ran %d times for %d jobs", total, len(enqueued))
}

// flow keeps a backlog of jobs in front of the workers.
type flow struct {
	cancel   context.CancelFunc
	ended    sync.WaitGroup
	enqueued []string // Ids of the jobs whose enqueue returned; complete once it has ended.
	err      error
}

func startFlow(t *testing.T, database *pgtest.Database) *flow {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	f := &flow{cancel: cancel}
	f.ended.Go(func() {
		again := time.NewTicker(10 * time.Millisecond)
		defer again.Stop()
		for f.err == nil {
			select {
			case <-again.C:
				// An enqueue that was begun returns, so that its jobs are known.
				f.err = f.refill(context.WithoutCancel(ctx), database.Pool)
			case <-ctx.Done():
				return
			}
		}
	})
	t.Cleanup(func() {
		cancel()
		f.ended.Wait()
	})
	return f
}

// refill enqueues 200 jobs when fewer than 1,000 are due.
func (f *flow) refill(ctx context.Context, pool *pgxpool.Pool) error {
	var due int
	err := pool.QueryRow(ctx, "SELECT count(*) FROM holdfast.inbox WHERE status = 'pending' AND available_at <= now()").Scan(&due)
	if err != nil || due >= 1000 {
		return err
	}
	jobs := make([]domain.NewJob, 200)
	for i := range jobs {
		jobs[i] = domain.NewJob{Args: note{Text: "hello"}, Options: []domain.EnqueueOption{domain.MaxAttempts(1000)}}
	}
	results, err := domain.EnqueueMany(ctx, pool, jobs...)
	for _, result := range results {
		f.enqueued = append(f.enqueued, result.ID.String())
	}
	return err
}

// stop ends the flow and returns the ids of its jobs.
func (f *flow) stop(t *testing.T) []string {
	t.Helper()
	f.cancel()
	f.ended.Wait()
	if f.err != nil {
		t.Fatal(f.err)
	}
	return f.enqueued
}

// victimURL is the variable that makes this program a worker instead of a test.
const victimURL = "HOLDFAST_TEST_VICTIM_URL"

// startVictim starts a worker in a process of its own: this program, once more. It writes the
// id of each job to its standard output when the job's handler runs.
func startVictim(t *testing.T, database *pgtest.Database) *process {
	t.Helper()
	p := &process{command: exec.Command(os.Args[0]), exited: make(chan struct{})}
	p.command.Env = append(os.Environ(), victimURL+"="+database.URL)
	p.command.Stdout, p.command.Stderr = &p.stdout, &p.stderr
	// It ends with this program, however that ends, because the pipe does.
	if _, err := p.command.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	return p.start(t)
}

// runVictim works until the process is killed or told to stop, and returns its exit code.
func runVictim(url string) int {
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(3)
	}()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	if err := workAsVictim(ctx, url); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

func workAsVictim(ctx context.Context, url string) error {
	pool, err := pgxpool.New(ctx, url)
	if err != nil {
		return err
	}
	defer pool.Close()
	config := quick()
	config.Lease = 2 * time.Second
	config.Housekeeping = 200 * time.Millisecond // Few workers live for long.
	config.WorkerTTL = 1500 * time.Millisecond
	config.RingCache = 100 * time.Millisecond
	config.Affinity = holdfast.AffinityNone // The killed own no buckets that would wait for their heartbeats to end.
	config.Logger = slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
	worker, err := holdfast.NewWorker(pool, config, holdfast.Handle(func(_ context.Context, job holdfast.Job[note]) error {
		_, err := fmt.Println(job.ID)
		return err
	}))
	if err != nil {
		return err
	}
	return worker.Run(ctx)
}
