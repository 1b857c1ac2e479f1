package integration

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/holdfast-pg/holdfast"
	"github.com/holdfast-pg/holdfast/domain"
	"github.com/holdfast-pg/holdfast/integration/pgtest"
)

var anna = domain.By{Actor: "anna@ops-1", Reason: "the order is void"}

// wantChanged expects an operation to have changed exactly these jobs.
func wantChanged(t *testing.T, changed []domain.JobID, err error, want ...domain.JobID) {
	t.Helper()
	byID := func(a, b domain.JobID) int { return slices.Compare(a[:], b[:]) }
	slices.SortFunc(changed, byID)
	slices.SortFunc(want, byID)
	if err != nil || !slices.Equal(changed, want) {
		t.Fatalf("changed %v, error %v; want %v", changed, err, want)
	}
}

// orders are the events of what people ordered, in their order.
func orders(t *testing.T, database *pgtest.Database) []string {
	t.Helper()
	return pgtest.Values[string](t, database, `
		SELECT concat_ws(' ', event, queue, kind, partition_key, 'attempt ' || attempt, CASE WHEN lease_generation > 0 THEN 'with its token' END, worker_id, 'by', actor, detail)
		FROM holdfast.events
		WHERE actor IS NOT NULL
		ORDER BY id`)
}

// stubborn starts a worker whose handler goes on until its context ends, and tells why it did.
func stubborn(t *testing.T, database *pgtest.Database) (run *workerRun, ended chan error) {
	t.Helper()
	ended = make(chan error, 9)
	return startWorker(t, database, database.Pool, "w", quick(), holdfast.Handle(func(ctx context.Context, _ holdfast.Job[note]) error {
		<-ctx.Done()
		ended <- context.Cause(ctx)
		return nil // A completion, which comes too late.
	})), ended
}

func wantLost(t *testing.T, ended chan error) {
	t.Helper()
	var cause error
	pgtest.Eventually(t, patience, "the handler's context ends", func() bool {
		select {
		case cause = <-ended:
			return true
		default:
			return false
		}
	})
	wantError(t, cause, domain.ErrLeaseLost)
}

func TestOperate_CancelledJobIsTakenFromItsHandler(t *testing.T) {
	t.Parallel()
	database := pgtest.New(t)
	run, ended := stubborn(t, database)
	id := enqueue(t, database)
	pgtest.Eventually(t, patience, "the job runs", func() bool { return find(t, database, id).Status == domain.StatusProcessing })
	cancelled, err := anna.Cancel(t.Context(), database.Pool, id)
	wantChanged(t, cancelled, err, id)
	wantLost(t, ended)
	run.drain() // With it, the handler's result is refused for good.
	job := find(t, database, id)
	if job.Status != domain.StatusFailed || *job.LastError != "cancelled by anna@ops-1: the order is void" || *job.FinishedBy != "anna@ops-1" || job.Attempts != 1 {
		t.Errorf("the job is %+v", job)
	}
}

func TestOperate_CancelledClaimCanNeitherRenewNorSettle(t *testing.T) {
	t.Parallel()
	database := pgtest.New(t)
	queue := database.Queue(t)
	held, waiting := enqueue(t, database), enqueue(t, database, domain.MaxAttempts(1))
	jobs := claim(t, queue, "w1", 9)
	mustSettle(t, queue, jobs[slices.IndexFunc(jobs, func(job domain.ClaimedJob) bool { return job.ID == waiting })], domain.Outcome{Verdict: domain.Release}, domain.StatusPending)
	job := jobs[slices.IndexFunc(jobs, func(job domain.ClaimedJob) bool { return job.ID == held })]
	cancelled, err := anna.Cancel(t.Context(), database.Pool, waiting, held, held)
	wantChanged(t, cancelled, err, held, waiting)
	if renewed, err := queue.Renew(t.Context(), "w1", lease, []domain.Claim{job.Claim}); err != nil || len(renewed) != 0 {
		t.Errorf("renewed %v, error %v", renewed, err)
	}
	for _, verdict := range []domain.Verdict{domain.Complete, domain.Retry, domain.Fail, domain.Release} {
		wantError(t, settle(t, queue, job, domain.Outcome{Verdict: verdict}).Err, domain.ErrLeaseLost)
	}
	again, err := anna.Cancel(t.Context(), database.Pool, waiting, held)
	wantChanged(t, again, err)
	if left := claim(t, queue, "w2", 9); len(left) != 0 {
		t.Errorf("claimed %v", left)
	}
}

func TestOperate_LaneGoesOnWithoutACancelledJob(t *testing.T) {
	t.Parallel()
	database := pgtest.New(t)
	queue := database.Queue(t)
	setQueue(t, database, "mail", domain.QueueChange{Ordered: new(true)})
	first, second, third := enqueue(t, database, domain.OnQueue("mail"), domain.Key("a")), enqueue(t, database, domain.OnQueue("mail"), domain.Key("a")), enqueue(t, database, domain.OnQueue("mail"), domain.Key("a"))
	wantLanes(t, queue, first)
	cancelled, err := anna.Cancel(t.Context(), database.Pool, second)
	wantChanged(t, cancelled, err, second)
	wantLanes(t, queue)
	cancelled, err = anna.Cancel(t.Context(), database.Pool, first)
	wantChanged(t, cancelled, err, first)
	wantLanes(t, queue, third)
}

func TestOperate_ReleasedJobIsTakenFromItsHandler(t *testing.T) {
	t.Parallel()
	database := pgtest.New(t)
	_, ended := stubborn(t, database)
	id := enqueue(t, database, domain.MaxAttempts(1))
	pgtest.Eventually(t, patience, "the job runs", func() bool { return find(t, database, id).Status == domain.StatusProcessing })
	found, err := domain.Examine(t.Context(), database.Pool, id)
	wantError(t, err, nil)
	wantError(t, domain.PauseQueue(t.Context(), database.Pool, domain.DefaultQueue), nil)
	released, err := anna.Release(t.Context(), database.Pool, found[0].Claim)
	wantChanged(t, released, err, id)
	wantLost(t, ended)
	if job := find(t, database, id); job.Status != domain.StatusPending || job.Attempts != 0 {
		t.Errorf("the job is %+v", job)
	}
}

func TestNeverTakenEarly_ReleasedClaimIsOverBeforeTheNextBegins(t *testing.T) {
	t.Parallel()
	database := pgtest.New(t)
	queue := database.Queue(t)
	id := enqueue(t, database)
	first := claimOne(t, queue, "w1")
	released, err := anna.Release(t.Context(), database.Pool, first.Claim)
	wantChanged(t, released, err, id)
	wantError(t, settle(t, queue, first, domain.Outcome{}).Err, domain.ErrLeaseLost)
	second := claimOne(t, queue, "w1") // The same worker wins it again.
	if second.Generation <= first.Generation || second.Attempt != 1 {
		t.Errorf("the next claim is %+v after %+v", second.Claim, first.Claim)
	}
	wantError(t, settle(t, queue, first, domain.Outcome{}).Err, domain.ErrLeaseLost)
	// Who saw the first claim does not mean the second.
	released, err = anna.Release(t.Context(), database.Pool, first.Claim)
	wantChanged(t, released, err)
	mustSettle(t, queue, second, domain.Outcome{}, domain.StatusCompleted)
}

func TestNeverTakenEarly_EvictedWorkerWakesUpWithNothing(t *testing.T) {
	t.Parallel()
	const jobs = 1500 // More than one batch.
	database := pgtest.New(t)
	queue := database.Queue(t)
	join(t, queue, "w1")
	enqueueNotes(t, database, jobs, domain.MaxAttempts(1))
	held := claim(t, queue, "w1", jobs) // And then it is paused.
	released, left, err := anna.Evict(t.Context(), database.Pool, "w1")
	if err != nil || released != jobs || left != 0 {
		t.Fatalf("released %d, left %d, error %v", released, left, err)
	}
	if status, err := queue.Beat(t.Context(), registration("w1")); err != nil || status != domain.WorkerDead {
		t.Errorf("its heartbeat is answered %q, %v", status, err)
	}
	wantError(t, settle(t, queue, held[0], domain.Outcome{}).Err, domain.ErrLeaseLost)
	if again := claim(t, queue, "w2", jobs); len(again) != jobs || again[0].Attempt != 1 {
		t.Errorf("another worker gets %d jobs", len(again))
	}
	// It is dead: there is nothing more to take, and that is fine.
	released, left, err = anna.Evict(t.Context(), database.Pool, "w1")
	if err != nil || released != 0 || left != 0 {
		t.Errorf("the second time: released %d, left %d, error %v", released, left, err)
	}
	_, _, err = anna.Evict(t.Context(), database.Pool, "nobody")
	wantError(t, err, domain.ErrWorkerUnknown)
}

func TestOperate_EvictedWorkerStops(t *testing.T) {
	t.Parallel()
	database := pgtest.New(t)
	_, ended := stubborn(t, database)
	enqueue(t, database)
	pgtest.Eventually(t, patience, "the job runs", func() bool {
		held, err := domain.HeldJobs(t.Context(), database.Pool, "w-1")
		return err == nil && held == 1
	})
	wantError(t, domain.PauseQueue(t.Context(), database.Pool, domain.DefaultQueue), nil)
	if released, _, err := anna.Evict(t.Context(), database.Pool, "w-1"); err != nil || released != 1 {
		t.Fatalf("released %d, error %v", released, err)
	}
	wantLost(t, ended)
	pgtest.Eventually(t, patience, "it comes back under another id", func() bool {
		return pgtest.Value[int](t, database, "SELECT count(*) FROM holdfast.workers WHERE id = 'w-2' AND status = 'alive'") == 1
	})
	if status := pgtest.Value[string](t, database, "SELECT status::text FROM holdfast.workers WHERE id = 'w-1'"); status != "dead" {
		t.Errorf("the worker is %s", status)
	}
}

func TestOperate_LockedJobIsLeftAlone(t *testing.T) {
	t.Parallel()
	database := pgtest.New(t)
	queue := database.Queue(t)
	join(t, queue, "w1")
	ids := enqueueNotes(t, database, 2)
	jobs := claim(t, queue, "w1", 2)
	locked := jobs[0]
	err := pgx.BeginFunc(t.Context(), database.Pool, func(tx pgx.Tx) error {
		// As a handler's transaction does.
		if _, err := tx.Exec(t.Context(), "SELECT FROM holdfast.inbox WHERE id = $1 FOR UPDATE", locked.ID.String()); err != nil {
			return err
		}
		cancelled, err := anna.Cancel(t.Context(), database.Pool, locked.ID)
		wantChanged(t, cancelled, err)
		released, left, err := anna.Evict(t.Context(), database.Pool, "w1")
		if err != nil || released != 1 || left != 1 {
			t.Errorf("released %d, left %d, error %v", released, left, err)
		}
		return nil
	})
	wantError(t, err, nil)
	if released, left, err := anna.Evict(t.Context(), database.Pool, "w1"); err != nil || released != 1 || left != 0 {
		t.Errorf("afterwards: released %d, left %d, error %v", released, left, err)
	}
	cancelled, err := anna.Cancel(t.Context(), database.Pool, ids...)
	wantChanged(t, cancelled, err, ids...)
}

func TestOperate_PurgedJobFreesItsKeyAndNoOther(t *testing.T) {
	t.Parallel()
	database := pgtest.New(t)
	queue := database.Queue(t)
	first := enqueue(t, database, domain.Once("receipt:1"))
	mustSettle(t, queue, claimOne(t, queue, "w1"), domain.Outcome{Verdict: domain.Fail}, domain.StatusFailed)
	if again := enqueue(t, database, domain.Once("receipt:1")); again != first {
		t.Fatalf("the dead job does not hold its key: %s", again)
	}
	purged, err := anna.Purge(t.Context(), database.Pool, first)
	wantChanged(t, purged, err, first)
	second := enqueue(t, database, domain.Once("receipt:1"))
	if second == first {
		t.Fatal("the key is still that of the purged job")
	}
	// The window of the second has passed, and a third has the key when the second is purged.
	mustSettle(t, queue, claimOne(t, queue, "w1"), domain.Outcome{Verdict: domain.Fail}, domain.StatusFailed)
	database.Exec(t, "UPDATE holdfast.idempotency_keys SET expires_at = now() - interval '1 second'")
	third := enqueue(t, database, domain.Once("receipt:1"))
	purged, err = anna.Purge(t.Context(), database.Pool, second, third)
	wantChanged(t, purged, err, second)
	if again := enqueue(t, database, domain.Once("receipt:1")); again != third {
		t.Errorf("the purge freed the key of another job: %s", again)
	}
}

func TestOperate_RedriveGivesAsManyAttemptsAsAreAskedFor(t *testing.T) {
	t.Parallel()
	database := pgtest.New(t)
	queue := database.Queue(t)
	id := enqueue(t, database, domain.MaxAttempts(1))
	mustSettle(t, queue, claimOne(t, queue, "w1"), domain.Outcome{Verdict: domain.Retry}, domain.StatusDeadLetter)
	redriven, err := anna.Redrive(t.Context(), database.Pool, 7, id)
	wantChanged(t, redriven, err, id)
	if job := claimOne(t, queue, "w1"); job.MaxAttempts != 7 || job.Attempt != 1 {
		t.Errorf("the claim is %+v", job)
	}
	var invalid *domain.InvalidError
	for _, attempts := range []int{-1, 1_000_001} {
		if _, err := anna.Redrive(t.Context(), database.Pool, attempts, id); !errors.As(err, &invalid) {
			t.Errorf("%d attempts: %v", attempts, err)
		}
	}
}
