package integration

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/holdfast-pg/holdfast/domain"
	"github.com/holdfast-pg/holdfast/integration/pgtest"
)

var retentions = []domain.RetentionMode{domain.RetentionArchive, domain.RetentionKeep, domain.RetentionDrop}

// ledger is a table for the effects of handlers.
const ledger = "CREATE TABLE ledger (job uuid NOT NULL)"

// enter writes the job's effect.
func enter(ctx context.Context, tx pgx.Tx, job domain.ClaimedJob) error {
	_, err := tx.Exec(ctx, "INSERT INTO ledger (job) VALUES ($1)", job.ID.String())
	return err
}

func entries(t *testing.T, database *pgtest.Database) int {
	t.Helper()
	return pgtest.Value[int](t, database, "SELECT count(*) FROM ledger")
}

// stillOpen expects a job that is claimed as it was and has no effect.
func stillOpen(t *testing.T, database *pgtest.Database, job domain.ClaimedJob) {
	t.Helper()
	found := find(t, database, job.ID)
	if found.Status != domain.StatusProcessing || found.Generation != job.Generation || *found.ClaimedBy != job.WorkerID {
		t.Errorf("the job is %+v, want it claimed as it was", found)
	}
	if n := entries(t, database); n != 0 {
		t.Errorf("%d effects of a job that was not completed", n)
	}
}

// setRetention sets what the default queue does with completed jobs.
func setRetention(t *testing.T, database *pgtest.Database, mode domain.RetentionMode) {
	t.Helper()
	database.Exec(t, "UPDATE holdfast.queues SET retention_mode = $1::text::holdfast.retention_mode", string(mode))
}

// wantGone expects the one job completed, where the mode puts it.
func wantGone(t *testing.T, database *pgtest.Database, mode domain.RetentionMode) {
	t.Helper()
	got := [2]int{
		pgtest.Value[int](t, database, "SELECT count(*) FROM holdfast.inbox WHERE status = 'completed' AND finished_by = 'w1'"),
		pgtest.Value[int](t, database, "SELECT count(*) FROM holdfast.inbox_archive WHERE finished_by = 'w1'"),
	}
	want := map[domain.RetentionMode][2]int{domain.RetentionArchive: {0, 1}, domain.RetentionKeep: {1, 0}, domain.RetentionDrop: {0, 0}}[mode]
	if got != want {
		t.Errorf("mode %s left %v completed rows in inbox and archive, want %v", mode, got, want)
	}
	if left := pgtest.Value[int](t, database, "SELECT count(*) FROM holdfast.inbox WHERE status <> 'completed'"); left != 0 {
		t.Errorf("mode %s left %d jobs uncompleted", mode, left)
	}
}

func TestTogether_HandleTxCommitsWritesAndCompletionAtOnce(t *testing.T) {
	t.Parallel()
	for _, mode := range retentions {
		t.Run(string(mode), func(t *testing.T) {
			t.Parallel()
			database := pgtest.New(t)
			database.Exec(t, ledger)
			setRetention(t, database, mode)
			enqueue(t, database)
			job := claimOne(t, database.Queue(t), "w1")
			handle := domain.HandleTx(database.Pool, func(ctx context.Context, tx pgx.Tx, job domain.ClaimedJob) error {
				err := enter(ctx, tx, job)
				stillOpen(t, database, job)
				return err
			})
			if err := handle(t.Context(), job); err != nil {
				t.Fatal(err)
			}
			wantGone(t, database, mode)
			if n := entries(t, database); n != 1 {
				t.Errorf("%d effects of the completed job", n)
			}
			wantError(t, handle(t.Context(), job), domain.ErrLeaseLost)
		})
	}
}

func TestTogether_HandleTxWorksInEveryModeOfPgx(t *testing.T) {
	t.Parallel()
	for _, mode := range modes {
		t.Run(mode.String(), func(t *testing.T) {
			t.Parallel()
			database := pgtest.New(t)
			database.Exec(t, ledger)
			config := database.Pool.Config()
			config.ConnConfig.DefaultQueryExecMode = mode
			pool, err := pgxpool.NewWithConfig(t.Context(), config)
			if err != nil {
				t.Fatal(err)
			}
			defer pool.Close()
			enqueue(t, database)
			if err := domain.HandleTx(pool, enter)(t.Context(), claimOne(t, database.Queue(t), "w1")); err != nil {
				t.Fatal(err)
			}
			wantGone(t, database, domain.RetentionArchive)
			if n := entries(t, database); n != 1 {
				t.Errorf("%d effects of the completed job", n)
			}
		})
	}
}

func TestTogether_ErrorOfAHandleTxLeavesNeither(t *testing.T) {
	t.Parallel()
	database := pgtest.New(t)
	database.Exec(t, ledger)
	enqueue(t, database)
	job := claimOne(t, database.Queue(t), "w1")
	for _, want := range []error{
		errChangedMind,
		domain.RetryIn(time.Minute, errChangedMind),
		domain.FailWith(errChangedMind),
		domain.Snooze(time.Minute),
	} {
		handle := domain.HandleTx(database.Pool, func(ctx context.Context, tx pgx.Tx, job domain.ClaimedJob) error {
			return errors.Join(enter(ctx, tx, job), want)
		})
		if err := handle(t.Context(), job); domain.OutcomeOf(err, 1, 0) != domain.OutcomeOf(want, 1, 0) {
			t.Errorf("the handler said %v, HandleTx says %v", want, err)
		}
		stillOpen(t, database, job)
	}
}

func TestTogether_PanicInAHandleTxLeavesNeither(t *testing.T) {
	t.Parallel()
	database := pgtest.New(t)
	database.Exec(t, ledger)
	enqueue(t, database)
	job := claimOne(t, database.Queue(t), "w1")
	handle := domain.HandleTx(database.Pool, func(ctx context.Context, tx pgx.Tx, job domain.ClaimedJob) error {
		panic(fmt.Sprint("boom ", enter(ctx, tx, job)))
	})
	func() {
		defer func() {
			if value := recover(); value != "boom <nil>" {
				t.Errorf("the panic became %v", value)
			}
		}()
		_ = handle(t.Context(), job)
	}()
	stillOpen(t, database, job)
	if held := database.Pool.Stat().AcquiredConns(); held != 0 {
		t.Errorf("%d connections were not given back", held)
	}
}

// A handler that ends its transaction would commit half of its work, or complete a job
// whose writes are gone.
func TestTogether_HandlerCannotEndItsHandleTx(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		misuse func(ctx context.Context, tx pgx.Tx) error
		writes int // What the handler itself has committed.
	}{
		"commits":                  {func(ctx context.Context, tx pgx.Tx) error { return tx.Commit(ctx) }, 0},
		"commits unheard":          {func(ctx context.Context, tx pgx.Tx) error { _ = tx.Commit(ctx); return nil }, 0},
		"rolls back unheard":       {func(ctx context.Context, tx pgx.Tx) error { _ = tx.Rollback(ctx); return nil }, 0},
		"says ROLLBACK":            {func(ctx context.Context, tx pgx.Tx) error { return run(ctx, tx, "ROLLBACK") }, 0},
		"says COMMIT":              {func(ctx context.Context, tx pgx.Tx) error { return run(ctx, tx, "COMMIT") }, 1},
		"does not heed a failure":  {func(ctx context.Context, tx pgx.Tx) error { _ = run(ctx, tx, "SELECT 1 / 0"); return nil }, 0},
		"finishes its transaction": {func(ctx context.Context, tx pgx.Tx) error { return tx.Conn().Close(ctx) }, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			database := pgtest.New(t)
			database.Exec(t, ledger)
			enqueue(t, database)
			job := claimOne(t, database.Queue(t), "w1")
			err := domain.HandleTx(database.Pool, func(ctx context.Context, tx pgx.Tx, job domain.ClaimedJob) error {
				return errors.Join(enter(ctx, tx, job), test.misuse(ctx, tx))
			})(t.Context(), job)
			if err == nil {
				t.Error("the misuse went unnoticed")
			}
			t.Log(err)
			wantStatus(t, database, job.ID, domain.StatusProcessing)
			if n := entries(t, database); n != test.writes {
				t.Errorf("%d writes were committed, want %d", n, test.writes)
			}
		})
	}
}

func run(ctx context.Context, tx pgx.Tx, sql string) error {
	_, err := tx.Exec(ctx, sql)
	return err
}

// A nested transaction is the handler's own, and may fail.
func TestTogether_NestedTransactionMayFailInAHandleTx(t *testing.T) {
	t.Parallel()
	database := pgtest.New(t)
	database.Exec(t, ledger)
	enqueue(t, database)
	err := domain.HandleTx(database.Pool, func(ctx context.Context, tx pgx.Tx, job domain.ClaimedJob) error {
		err := pgx.BeginFunc(ctx, tx, func(nested pgx.Tx) error { return errors.Join(enter(ctx, nested, job), errChangedMind) })
		if !errors.Is(err, errChangedMind) {
			return fmt.Errorf("the nested transaction said %w", err)
		}
		return pgx.BeginFunc(ctx, tx, func(nested pgx.Tx) error { return enter(ctx, nested, job) })
	})(t.Context(), claimOne(t, database.Queue(t), "w1"))
	if err != nil {
		t.Fatal(err)
	}
	wantGone(t, database, domain.RetentionArchive)
	if n := entries(t, database); n != 1 {
		t.Errorf("%d effects, want that of the second nested transaction", n)
	}
}
