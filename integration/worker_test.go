package integration

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/holdfast-pg/holdfast"
	"github.com/holdfast-pg/holdfast/domain"
	"github.com/holdfast-pg/holdfast/integration/pgtest"
)

var errFirstTime = errors.New("the first attempt fails")

func TestWorker_EveryJobCompletes(t *testing.T) {
	t.Parallel()
	database := pgtest.New(t)
	const jobs = 500
	enqueueNotes(t, database, jobs)
	var ran runs
	startWorker(t, database, database.Pool, "w", quick(), holdfast.Handle(func(_ context.Context, job holdfast.Job[note]) error {
		ran.add(job.ID)
		return nil
	}))
	untilCompleted(t, database, jobs)
	ran.wantEvery(t, jobs, 1)
	if left := pgtest.Value[int](t, database, "SELECT count(*) FROM holdfast.inbox"); left != 0 {
		t.Errorf("%d jobs are left in the inbox", left)
	}
}

func TestWorker_EveryJobCompletesWhenHalfOfThemFailOnce(t *testing.T) {
	t.Parallel()
	database := pgtest.New(t)
	const jobs = 400
	enqueueNotes(t, database, jobs)
	var ran runs
	handler := holdfast.Handle(func(_ context.Context, job holdfast.Job[note]) error {
		ran.add(job.ID)
		if job.Seq%2 == 1 && job.Attempt == 1 {
			return holdfast.RetryIn(100*time.Millisecond, errFirstTime)
		}
		return nil
	})
	startWorker(t, database, database.Pool, "one", quick(), handler)
	startWorker(t, database, database.Pool, "two", quick(), handler)
	untilCompleted(t, database, jobs)
	ran.wantEvery(t, jobs, 2)
	wrong := pgtest.Value[int](t, database, `
		SELECT count(*) FROM holdfast.inbox_archive
		WHERE attempts <> 1 + seq % 2 OR (seq % 2 = 1) <> (last_error IS NOT DISTINCT FROM $1)`, errFirstTime.Error())
	if wrong != 0 {
		t.Errorf("%d jobs do not show how their first attempt ended", wrong)
	}
}

func TestWorker_CompletionFollowsTheRetentionOfTheQueue(t *testing.T) {
	t.Parallel()
	database := pgtest.New(t)
	const jobs = 100
	config := quick()
	for _, mode := range []string{"archive", "keep", "drop"} {
		config.Queues = append(config.Queues, mode)
		database.Exec(t, "INSERT INTO holdfast.queues (name, retention_mode) VALUES ($1, $1::text::holdfast.retention_mode)", mode)
		enqueueNotes(t, database, jobs, domain.OnQueue(mode))
	}
	var ran runs
	run := startWorker(t, database, database.Pool, "w", config, holdfast.Handle(func(_ context.Context, job holdfast.Job[note]) error {
		ran.add(job.ID)
		return nil
	}))
	pgtest.Eventually(t, patience, "no job is left to do", func() bool {
		return pgtest.Value[int](t, database, "SELECT count(*) FROM holdfast.inbox WHERE status <> 'completed'") == 0
	})
	run.drain()
	ran.wantEvery(t, 3*jobs, 1)
	rows := pgtest.Values[string](t, database, `
		SELECT 'inbox ' || queue || ' ' || status || ' ' || count(*) FROM holdfast.inbox GROUP BY queue, status
		UNION ALL
		SELECT 'archive ' || queue || ' ' || count(*) FROM holdfast.inbox_archive GROUP BY queue
		ORDER BY 1`)
	want := []string{fmt.Sprintf("archive archive %d", jobs), fmt.Sprintf("inbox keep completed %d", jobs)}
	if fmt.Sprint(rows) != fmt.Sprint(want) {
		t.Errorf("what is left of the jobs: %v, want %v", rows, want)
	}
}

func TestHandled_EffectsHappenOnceThoughHandlersRunTwice(t *testing.T) {
	t.Parallel()
	database := pgtest.New(t)
	database.Exec(t, "CREATE TABLE charge (job uuid NOT NULL)")
	const jobs = 200
	enqueueNotes(t, database, jobs)
	var ran runs
	startWorker(t, database, database.Pool, "w", quick(), holdfast.Handle(func(ctx context.Context, job holdfast.Job[note]) error {
		ran.add(job.ID)
		tx, err := database.Pool.Begin(ctx)
		if err != nil {
			return err
		}
		defer tx.Rollback(context.WithoutCancel(ctx))
		first, err := holdfast.MarkHandled(ctx, tx, job, "charge")
		if err != nil {
			return err
		}
		if first {
			if _, err := tx.Exec(ctx, "INSERT INTO charge (job) VALUES ($1)", job.ID.String()); err != nil {
				return err
			}
		}
		if err := tx.Commit(ctx); err != nil {
			return err
		}
		if job.Seq%2 == 1 && job.Attempt == 1 {
			return holdfast.RetryIn(0, errFirstTime)
		}
		return nil
	}))
	untilCompleted(t, database, jobs)
	ran.wantEvery(t, jobs, 2)
	if ran.total != jobs*3/2 {
		t.Errorf("handlers ran %d times, want %d", ran.total, jobs*3/2)
	}
	if charges := pgtest.Value[int](t, database, "SELECT count(*) FROM charge"); charges != jobs {
		t.Errorf("%d charges were made for %d jobs", charges, jobs)
	}
}

// Handlers may hold every connection of the pool that they share with the worker.
func TestWorker_SaturatedPoolStarvesNeitherRenewalsNorSettlements(t *testing.T) {
	t.Parallel()
	database := pgtest.New(t)
	config := database.Pool.Config()
	config.MaxConns = 2
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	for range config.MaxConns {
		conn, err := pool.Acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Release()
	}

	const jobs = 8
	enqueueNotes(t, database, jobs)
	finish := make(chan struct{})
	run := startWorker(t, database, pool, "w", quick(), holdfast.Handle(func(ctx context.Context, _ holdfast.Job[note]) error {
		select {
		case <-finish:
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}))
	pgtest.Eventually(t, patience, "every lease has been renewed twice", func() bool {
		return pgtest.Value[int](t, database, `
			SELECT count(*) FROM holdfast.inbox
			WHERE status = 'processing' AND lease_expires_at > claimed_at + interval '31 seconds'`) == jobs
	})
	close(finish)
	untilCompleted(t, database, jobs)
	if again := pgtest.Value[int](t, database, "SELECT count(*) FROM holdfast.inbox_archive WHERE attempts > 1"); again != 0 {
		t.Errorf("%d jobs were claimed again", again)
	}
	run.drain()
}
