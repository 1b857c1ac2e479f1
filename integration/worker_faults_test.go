package integration

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/holdfast-pg/holdfast"
	"github.com/holdfast-pg/holdfast/domain"
	"github.com/holdfast-pg/holdfast/integration/pgtest"
)

func TestLeavesNothingBehind_DrainInTheMiddleLosesNothing(t *testing.T) {
	t.Parallel()
	database := pgtest.New(t)
	const jobs = 300
	enqueueNotes(t, database, jobs)
	var ran runs
	half := make(chan struct{})
	config := quick()
	config.DrainDeadline = 100 * time.Millisecond
	first := startWorker(t, database, database.Pool, "first", config, holdfast.Handle(func(ctx context.Context, job holdfast.Job[note]) error {
		n := ran.add(job.ID)
		if n == jobs/2 {
			close(half)
		}
		if n%50 == 0 {
			<-ctx.Done() // Until the drain passes its deadline.
			return context.Cause(ctx)
		}
		return nil
	}))
	waitFor(t, half, "half of the jobs have run")
	first.drain()

	held := pgtest.Value[int](t, database, "SELECT count(*) FROM holdfast.inbox WHERE status <> 'pending' OR attempts <> 0")
	if held != 0 {
		t.Errorf("%d jobs that were not completed are not as they were before", held)
	}
	completed := pgtest.Value[int](t, database, "SELECT count(*) FROM holdfast.inbox_archive")
	if completed < jobs/2-3 || completed >= jobs {
		t.Errorf("%d jobs were completed before the drain, want about half of %d", completed, jobs)
	}
	startWorker(t, database, database.Pool, "second", quick(), holdfast.Handle(func(_ context.Context, job holdfast.Job[note]) error {
		ran.add(job.ID)
		return nil
	}))
	untilCompleted(t, database, jobs)
	ran.wantEvery(t, jobs, 2)
}

func TestDrain_OrderedByAnOperatorEndsTheWorker(t *testing.T) {
	t.Parallel()
	database := pgtest.New(t)
	run := startWorker(t, database, database.Pool, "w", quick(), holdfast.Handle(func(context.Context, holdfast.Job[note]) error { return nil }))
	pgtest.Eventually(t, patience, "the worker has joined", func() bool {
		return domain.Drain(t.Context(), database.Pool, "w-1") == nil
	})
	run.mustReturn()
}

// The server has committed the claim, and nobody knows of it.
func TestLeavesNothingBehind_ClaimWhoseReplyWasLost(t *testing.T) {
	t.Parallel()
	database := pgtest.New(t)
	pool, wire := wired(t, database)
	ids := enqueueNotes(t, database, 5)
	lost := wire.loseReply("-- name: ClaimJobs", "w-1")
	handled := make(chan struct{}, len(ids))
	run := startWorker(t, database, pool, "w", quick(), holdfast.Handle(func(context.Context, holdfast.Job[note]) error {
		handled <- struct{}{}
		return nil
	}))
	waitFor(t, lost, "the reply is lost")
	if held, err := domain.HeldJobs(t.Context(), database.Pool, "w-1"); err != nil || held != int64(len(ids)) {
		t.Fatalf("worker w-1 holds %d jobs: %v", held, err)
	}
	run.drain()
	for _, id := range ids {
		if job := find(t, database, id); job.Status != domain.StatusPending || job.Attempts != 0 {
			t.Errorf("job %s is %s after %d attempts, want pending after none", id, job.Status, job.Attempts)
		}
	}
	if len(handled) != 0 {
		t.Errorf("%d handlers ran", len(handled))
	}
}

func TestComesBack_ClaimWhoseReplyWasLost(t *testing.T) {
	t.Parallel()
	database := pgtest.New(t)
	pool, wire := wired(t, database)
	const jobs = 5
	ids := enqueueNotes(t, database, jobs)
	lost := wire.loseReply("-- name: ClaimJobs", "w-1")
	startWorker(t, database, pool, "w", quick(), holdfast.Handle(func(context.Context, holdfast.Job[note]) error { return nil }))
	waitFor(t, lost, "the reply is lost")
	for _, id := range ids {
		database.ExpireLease(t, id)
	}
	endWaits(t, database, jobs)
	untilCompleted(t, database, jobs)
	if spent := pgtest.Value[int](t, database, "SELECT sum(attempts) FROM holdfast.inbox_archive"); spent != 2*jobs {
		t.Errorf("%d attempts were spent, want %d", spent, 2*jobs)
	}
}

// The server has committed the completion, and the worker asks again.
func TestCompleteOnce_LostReplyOfACompletionIsDone(t *testing.T) {
	t.Parallel()
	for query, mode := range map[string]string{"CompleteJobs": "archive", "CompleteAndKeepJobs": "keep", "CompleteAndDropJobs": "drop"} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			database := pgtest.New(t)
			database.Exec(t, "UPDATE holdfast.queues SET retention_mode = $1::text::holdfast.retention_mode", mode)
			pool, wire := wired(t, database)
			lost := wire.loseReply("-- name: "+query, "w-1")
			enqueueNotes(t, database, 5)
			var ran runs
			run := startWorker(t, database, pool, "w", quick(), holdfast.Handle(func(_ context.Context, job holdfast.Job[note]) error {
				ran.add(job.ID)
				return nil
			}))
			waitFor(t, lost, "the reply is lost")
			pgtest.Eventually(t, patience, "no job is left to do", func() bool {
				return pgtest.Value[int](t, database, "SELECT count(*) FROM holdfast.inbox WHERE status <> 'completed'") == 0
			})
			run.drain()
			ran.wantEvery(t, 5, 1)
			if settled := strings.Count(run.log.String(), `msg="job settled"`); settled != 5 {
				t.Errorf("the worker takes %d results for recorded, want 5", settled)
			}
		})
	}
}

func TestJoin_LostReplyDoesNotKeepTheWorkerOut(t *testing.T) {
	t.Parallel()
	database := pgtest.New(t)
	pool, wire := wired(t, database)
	lost := wire.loseReply("-- name: JoinWorker", "w-1")
	enqueueNotes(t, database, 1)
	startWorker(t, database, pool, "w", quick(), holdfast.Handle(func(context.Context, holdfast.Job[note]) error { return nil }))
	waitFor(t, lost, "the reply is lost")
	untilCompleted(t, database, 1)
}

func TestWorker_GoesOnWhenItsBackendsAreTerminated(t *testing.T) {
	t.Parallel()
	database := pgtest.New(t)
	config := database.Pool.Config()
	config.ConnConfig.RuntimeParams["application_name"] = "victim"
	database = database.Direct(t) // A pooler's backend may be the victim's one moment and the test's the next.
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)

	const jobs = 300
	enqueueNotes(t, database, jobs, domain.MaxAttempts(1000))
	var ran runs
	run := startWorker(t, database, pool, "w", shortLease(), holdfast.Handle(func(ctx context.Context, job holdfast.Job[note]) error {
		if n := ran.add(job.ID); n < jobs && n%25 == 0 {
			_, err := database.Pool.Exec(ctx, `
				SELECT pg_terminate_backend(pid) FROM pg_stat_activity
				WHERE datname = current_database() AND application_name = 'victim'`)
			return err
		}
		return nil
	}))
	untilCompleted(t, database, jobs)
	run.wantRunning()
	run.drain()
	ran.wantEvery(t, jobs, 1000)
}

// A worker whose network swallows its packets stops before another can start its job, and
// works on when the network is back.
func TestFenced_WorkerThatIsCutOffGivesItsJobUpBeforeAnotherStartsIt(t *testing.T) {
	t.Parallel()
	database := pgtest.New(t)
	pool, wire := wired(t, database)
	id := enqueueNotes(t, database, 1)[0]
	started, givenUp := make(chan struct{}), make(chan error, 1)
	startWorker(t, database, pool, "cut", shortLease(), holdfast.Handle(func(ctx context.Context, job holdfast.Job[note]) error {
		if job.ID != id {
			return nil
		}
		close(started)
		<-ctx.Done()
		givenUp <- context.Cause(ctx)
		return nil // It believes that it is done.
	}))
	waitFor(t, started, "the job is started")
	wire.cut()

	other := startWorker(t, database, database.Pool, "other", quick(), holdfast.Handle(func(context.Context, holdfast.Job[note]) error {
		select {
		case cause := <-givenUp:
			if !errors.Is(cause, holdfast.ErrLeaseLost) {
				t.Errorf("the first handler was stopped by %v, want ErrLeaseLost", cause)
			}
		default:
			t.Error("another worker started the job while the first handler ran")
		}
		return nil
	}))
	endWaits(t, database, 1)
	untilCompleted(t, database, 1)
	other.drain()

	wire.mend()
	enqueueNotes(t, database, 1)
	untilCompleted(t, database, 2)
	if job := find(t, database, id); job.Attempts != 2 || *job.FinishedBy != "other-1" {
		t.Errorf("the job was finished by %s at attempt %d, want other-1 at the second", *job.FinishedBy, job.Attempts)
	}
}

// endWaits waits until so many jobs were reclaimed, and makes them due as if their backoff
// had passed.
func endWaits(t *testing.T, database *pgtest.Database, want int) {
	t.Helper()
	ended := int64(0)
	pgtest.Eventually(t, patience, "the jobs are reclaimed", func() bool {
		ended += database.Exec(t, "UPDATE holdfast.inbox SET available_at = now() WHERE status = 'pending' AND available_at > now()")
		return ended == int64(want)
	})
}

// waitFor waits for a signal and fails the test when it does not come. What completes the
// sentence "gave up after … waiting until …".
func waitFor(t *testing.T, signal <-chan struct{}, what string) {
	t.Helper()
	select {
	case <-signal:
	case <-time.After(patience):
		t.Fatalf("gave up after %s waiting until %s", patience, what)
	}
}
