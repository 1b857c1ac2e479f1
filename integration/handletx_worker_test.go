package integration

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/holdfast-pg/holdfast"
	"github.com/holdfast-pg/holdfast/domain"
	"github.com/holdfast-pg/holdfast/integration/pgtest"
	"github.com/holdfast-pg/holdfast/worker"
)

func TestTogether_HandleTxJobsOfAWorkerHaveOneEffectEach(t *testing.T) {
	t.Parallel()
	database := pgtest.New(t)
	database.Exec(t, ledger)
	const jobs = 200
	enqueueNotes(t, database, jobs)
	var ran runs
	handler := holdfast.HandleTx(database.Pool, func(ctx context.Context, tx pgx.Tx, job holdfast.Job[note]) error {
		ran.add(job.ID)
		if job.Args.Text != "hello" {
			return fmt.Errorf("the payload is %+v", job.Args)
		}
		if err := enter(ctx, tx, job.ClaimedJob); err != nil {
			return err
		}
		if job.Seq%2 == 1 && job.Attempt == 1 {
			return holdfast.RetryIn(0, errFirstTime)
		}
		return nil
	})
	one := startWorker(t, database, database.Pool, "one", quick(), handler)
	two := startWorker(t, database, database.Pool, "two", quick(), handler)
	untilCompleted(t, database, jobs)
	one.drain()
	two.drain()
	ran.wantEvery(t, jobs, 2)
	if n := entries(t, database); n != jobs {
		t.Errorf("%d effects of %d jobs", n, jobs)
	}
	if wrong := pgtest.Value[int](t, database, "SELECT count(*) FROM holdfast.inbox_archive WHERE attempts <> 1 + seq % 2"); wrong != 0 {
		t.Errorf("%d jobs do not show their attempts", wrong)
	}
	settled := strings.Count(one.log.String(), "status=completed") + strings.Count(two.log.String(), "status=completed")
	if settled != jobs {
		t.Errorf("the workers take %d jobs for completed, want %d", settled, jobs)
	}
	if flushed := database.Executed("CompleteJobs"); flushed != jobs {
		t.Errorf("%d completions ran for %d jobs", flushed, jobs)
	}
}

func TestHandleTx_UndecodablePayloadFailsTheJob(t *testing.T) {
	t.Parallel()
	database := pgtest.New(t)
	result, err := domain.Enqueue(t.Context(), database.Pool, domain.RawArgs{JobKind: "note", Payload: []byte(`{"text": 7}`)})
	if err != nil {
		t.Fatal(err)
	}
	startWorker(t, database, database.Pool, "w", quick(), holdfast.HandleTx(database.Pool, func(context.Context, pgx.Tx, holdfast.Job[note]) error {
		t.Error("the handler ran")
		return nil
	}))
	pgtest.Eventually(t, patience, "the job failed", func() bool { return find(t, database, result.ID).Status == domain.StatusFailed })
}

// The row of a job in an open HandleTx is locked, and a renewal that waits for it holds up
// all others.
func TestHandleTx_DelaysNoRenewalOfOthers(t *testing.T) {
	t.Parallel()
	database := pgtest.New(t)
	long, err := domain.Enqueue(t.Context(), database.Pool, domain.RawArgs{JobKind: "long"})
	if err != nil {
		t.Fatal(err)
	}
	short := enqueue(t, database)
	locked, finish := make(chan struct{}), make(chan struct{})
	run := startWorker(t, database, database.Pool, "w", quick(),
		holdfast.HandleTx(database.Pool, func(ctx context.Context, _ pgx.Tx, _ holdfast.Job[note]) error {
			close(locked)
			return untilClosed(ctx, finish)
		}),
		worker.HandleKind("long", func(ctx context.Context, _ domain.ClaimedJob) error { return untilClosed(ctx, finish) }))
	waitFor(t, locked, "the row is locked")
	pgtest.Eventually(t, 10*time.Second, "the other job was renewed three times", func() bool {
		job := find(t, database, long.ID)
		return job.LeaseExpiresAt != nil && job.LeaseExpiresAt.Sub(*job.ClaimedAt) > quick().Lease+3*quick().RenewEvery
	})
	close(finish)
	untilCompleted(t, database, 2)
	if job := find(t, database, short); job.Attempts != 1 {
		t.Errorf("the job of the HandleTx took %d attempts", job.Attempts)
	}
	run.drain()
	if warned := strings.Count(run.log.String(), "keep it short"); warned != 1 {
		t.Errorf("%d warnings of a transaction that was open for long, want one", warned)
	}
}

func untilClosed(ctx context.Context, finish <-chan struct{}) error {
	select {
	case <-finish:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// The worker gives the job of a handler that ignores its context back, with all the others,
// and what the handler wrote is gone.
func TestLeavesNothingBehind_DrainTakesTheTransactionFromAStubbornHandler(t *testing.T) {
	t.Parallel()
	database := pgtest.New(t)
	database.Exec(t, ledger)
	config := quick()
	config.DrainDeadline = 100 * time.Millisecond
	ids := enqueueNotes(t, database, 2)
	entered, finish, returned := make(chan struct{}, 2), make(chan struct{}), make(chan error, 2)
	release := sync.OnceFunc(func() { close(finish) })
	defer release()
	run := startWorker(t, database, database.Pool, "w", config, holdfast.HandleTx(database.Pool, func(ctx context.Context, tx pgx.Tx, job holdfast.Job[note]) error {
		err := enter(ctx, tx, job.ClaimedJob)
		entered <- struct{}{}
		<-finish
		returned <- err
		return err
	}))
	for range ids {
		waitFor(t, entered, "the handlers have written")
	}
	run.drain()
	for _, id := range ids {
		if job := find(t, database, id); job.Status != domain.StatusPending || job.Attempts != 0 {
			t.Errorf("the job is %s after %d attempts, want pending after none", job.Status, job.Attempts)
		}
	}
	release()
	for range ids {
		if err := <-returned; err != nil {
			t.Error(err)
		}
	}
	if n := entries(t, database); n != 0 {
		t.Errorf("%d effects of handlers that were given up", n)
	}
}
