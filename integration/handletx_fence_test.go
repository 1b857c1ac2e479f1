package integration

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/holdfast-pg/holdfast"
	"github.com/holdfast-pg/holdfast/domain"
	"github.com/holdfast-pg/holdfast/integration/pgtest"
)

// untouched is a handler that must not be called.
func untouched(t *testing.T) func(context.Context, pgx.Tx, domain.ClaimedJob) error {
	t.Helper()
	return func(context.Context, pgx.Tx, domain.ClaimedJob) error {
		t.Error("the handler of a lost claim was called")
		return nil
	}
}

func TestFenced_HandleTxOfALostClaimIsToldBeforeItWrites(t *testing.T) {
	t.Parallel()
	for name, winner := range map[string]string{"another worker": "w2", "the same worker": "w1"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			database := pgtest.New(t)
			queue := database.Queue(t)
			id := enqueue(t, database)
			stale := claimOne(t, queue, "w1")
			handle := domain.HandleTx(database.Pool, untouched(t))
			database.ExpireLease(t, id)
			mustReclaim(t, queue, 1)
			wantError(t, handle(t.Context(), stale), domain.ErrLeaseLost)
			database.EndWait(t, id)
			current := claimOne(t, queue, winner)
			wantError(t, handle(t.Context(), stale), domain.ErrLeaseLost)
			mustSettle(t, queue, current, domain.Outcome{}, domain.StatusCompleted)
			wantError(t, handle(t.Context(), stale), domain.ErrLeaseLost)
		})
	}
}

func TestFenced_EveryPartOfTheFenceCountsInAHandleTx(t *testing.T) {
	t.Parallel()
	database := pgtest.New(t)
	enqueue(t, database)
	job := claimOne(t, database.Queue(t), "w1")
	for part, forge := range map[string]func(*domain.Claim){
		"generation": func(c *domain.Claim) { c.Generation++ },
		"bucket":     func(c *domain.Claim) { c.Bucket = (c.Bucket + 1) % 1024 },
		"id":         func(c *domain.Claim) { c.ID[0]++ },
		"worker":     func(c *domain.Claim) { c.WorkerID = "w2" },
	} {
		forged := job
		forge(&forged.Claim)
		if err := domain.HandleTx(database.Pool, untouched(t))(t.Context(), forged); !errors.Is(err, domain.ErrLeaseLost) {
			t.Errorf("a claim with a wrong %s was told %v", part, err)
		}
	}
	wantStatus(t, database, job.ID, domain.StatusProcessing)
}

// The reclaim skips the row that the transaction holds, also after the lease has ended.
func TestFenced_ClaimCannotBeLostWhileItsHandleTxRuns(t *testing.T) {
	t.Parallel()
	database := pgtest.New(t)
	database.Exec(t, ledger)
	queue := database.Queue(t)
	id := enqueue(t, database)
	job := claimOne(t, queue, "w1")
	database.ExpireLease(t, id)
	err := domain.HandleTx(database.Pool, func(ctx context.Context, tx pgx.Tx, job domain.ClaimedJob) error {
		mustReclaim(t, queue, 0)
		return enter(ctx, tx, job)
	})(t.Context(), job)
	if err != nil {
		t.Fatal(err)
	}
	mustReclaim(t, queue, 0)
	wantGone(t, database, domain.RetentionArchive)
	if n := entries(t, database); n != 1 {
		t.Errorf("%d effects, want one", n)
	}
}

func TestCompleteOnce_LostReplyOfAHandleTxIsDone(t *testing.T) {
	t.Parallel()
	for _, mode := range retentions {
		t.Run(string(mode), func(t *testing.T) {
			t.Parallel()
			database := pgtest.New(t)
			database.Exec(t, ledger)
			setRetention(t, database, mode)
			pool, wire := wired(t, database)
			enqueue(t, database)
			lost := wire.loseReply("commit\x00")
			if err := domain.HandleTx(pool, enter)(t.Context(), claimOne(t, database.Queue(t), "w1")); err != nil {
				t.Fatalf("the commit took effect, and the handler was told %v", err)
			}
			waitFor(t, lost, "the reply is lost")
			wantGone(t, database, mode)
			if n := entries(t, database); n != 1 {
				t.Errorf("%d effects, want one", n)
			}
		})
	}
}

func TestCompleteOnce_LostCommitOfAHandleTxIsAnErrorAndARetryIsHarmless(t *testing.T) {
	t.Parallel()
	for _, mode := range retentions {
		t.Run(string(mode), func(t *testing.T) {
			t.Parallel()
			database := pgtest.New(t)
			database.Exec(t, ledger)
			setRetention(t, database, mode)
			queue := database.Queue(t)
			pool, wire := wired(t, database)
			enqueue(t, database)
			job := claimOne(t, queue, "w1")
			lost := wire.loseRequest("commit\x00")
			if err := domain.HandleTx(pool, enter)(t.Context(), job); err == nil {
				t.Fatal("the commit was lost, and the handler was told nothing")
			}
			waitFor(t, lost, "the commit is lost")
			stillOpen(t, database, job)
			mustSettle(t, queue, job, domain.Outcome{Verdict: domain.Retry}, domain.StatusPending)
		})
	}
}

// A guard that refuses rolls back what the handler wrote, and the job comes back without
// having spent the attempt.
func TestFencedEffects_RefusedGuardInAHandleTxSpendsNoAttempt(t *testing.T) {
	t.Parallel()
	database := pgtest.New(t)
	database.Exec(t, ledger)
	database.Exec(t, "INSERT INTO holdfast.fences (resource, token) VALUES ('order:9182', 1::bigint << 60)")
	id := enqueueNotes(t, database, 1, domain.MaxAttempts(1))[0]
	refused := make(chan struct{}, 1)
	startWorker(t, database, database.Pool, "w", quick(), holdfast.HandleTx(database.Pool, func(ctx context.Context, tx pgx.Tx, job holdfast.Job[note]) error {
		if err := enter(ctx, tx, job.ClaimedJob); err != nil {
			return err
		}
		err := holdfast.Guard(ctx, tx, "order:9182", job)
		if errors.Is(err, holdfast.ErrFenced) {
			select {
			case refused <- struct{}{}:
			default:
			}
		}
		return err
	}))
	waitFor(t, refused, "the guard refuses")
	pgtest.Eventually(t, patience, "the job is given back", func() bool { return find(t, database, id).Status == domain.StatusPending })
	if job := find(t, database, id); job.Attempts != 0 {
		t.Errorf("%d attempts are spent", job.Attempts)
	}
	if n := entries(t, database); n != 0 {
		t.Errorf("%d effects of a run that was refused", n)
	}
	database.Exec(t, "DELETE FROM holdfast.fences")
	untilCompleted(t, database, 1)
	if n := entries(t, database); n != 1 {
		t.Errorf("%d effects, want one", n)
	}
}

// Its worker cannot be reached, and neither side of the broken connection was told. The
// server must not keep the row locked for the hours that TCP takes.
func TestComesBack_JobOfAHandleTxWhoseClientVanished(t *testing.T) {
	t.Parallel()
	database := pgtest.New(t)
	database.Exec(t, ledger)
	queue := database.Queue(t)
	pool, wire := wired(t, database)
	id := enqueue(t, database)
	jobs, err := queue.Claim(t.Context(), domain.ClaimRequest{
		WorkerID: "w1", Queue: domain.DefaultQueue, Buckets: everyBucket(), Quota: 1, Batch: 1, Lease: 100 * time.Millisecond,
	})
	if err != nil || len(jobs) != 1 {
		t.Fatalf("claimed %d jobs: %v", len(jobs), err)
	}
	err = domain.HandleTx(pool, func(ctx context.Context, tx pgx.Tx, job domain.ClaimedJob) error {
		err := enter(ctx, tx, job)
		wire.cut()
		defer wire.mend()
		pgtest.Eventually(t, 20*time.Second, "the job is reclaimed", func() bool {
			reclaimed, _, err := queue.Reclaim(ctx, 0)
			return err == nil && len(reclaimed) == 1
		})
		return err
	})(t.Context(), jobs[0])
	if err == nil {
		t.Error("the handler of a lost claim was told nothing")
	}
	wantStatus(t, database, id, domain.StatusPending)
	if n := entries(t, database); n != 0 {
		t.Errorf("%d effects of a lost claim", n)
	}
}

func TestComesBack_HandleTxKeepsAStricterIdleTimeout(t *testing.T) {
	t.Parallel()
	for setting, want := range map[string]string{"0": "85", "10min": "85", "7s": "7", "200ms": "1"} {
		t.Run(setting, func(t *testing.T) {
			t.Parallel()
			database := pgtest.New(t)
			config := database.Direct(t).Pool.Config() // A pooler refuses settings of a session.
			config.ConnConfig.RuntimeParams["idle_in_transaction_session_timeout"] = setting
			pool, err := pgxpool.NewWithConfig(t.Context(), config)
			if err != nil {
				t.Fatal(err)
			}
			defer pool.Close()
			enqueue(t, database)
			err = domain.HandleTx(pool, func(ctx context.Context, tx pgx.Tx, _ domain.ClaimedJob) error {
				// The lease has 90 s, of which a busy machine may have spent some.
				var bounded bool
				err := tx.QueryRow(ctx, `
					SELECT extract(epoch FROM current_setting('idle_in_transaction_session_timeout')::interval)
						BETWEEN $1::text::integer AND $1::text::integer + 5`, want).Scan(&bounded)
				if !bounded {
					t.Errorf("the server does not wait about %s s for the client", want)
				}
				return err
			})(t.Context(), claimOne(t, database.Queue(t), "w1"))
			if err != nil {
				t.Fatal(err)
			}
		})
	}
}
