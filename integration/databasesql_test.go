package integration

import (
	"database/sql"
	"errors"
	"testing"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib" // The driver "pgx".

	"github.com/holdfast-pg/holdfast/domain"
	"github.com/holdfast-pg/holdfast/integration/pgtest"
)

// openSQL opens the database as services do that use database/sql.
func openSQL(t *testing.T, database *pgtest.Database) *sql.DB {
	t.Helper()
	db, err := sql.Open("pgx", database.URL)
	wantError(t, err, nil)
	t.Cleanup(func() { wantError(t, db.Close(), nil) })
	return db
}

// The promise "Together" holds for whoever writes through database/sql too.
func TestTogether_EnqueueInATransactionOfDatabaseSQL(t *testing.T) {
	t.Parallel()
	database := pgtest.New(t)
	db := openSQL(t, database)
	for _, end := range []func(*sql.Tx) error{(*sql.Tx).Rollback, (*sql.Tx).Commit} {
		tx, err := db.BeginTx(t.Context(), nil)
		wantError(t, err, nil)
		result, err := domain.Enqueue(t.Context(), domain.FromSQL(tx), note{Text: "a"}, domain.Key("order:7"), domain.In(time.Hour))
		wantError(t, err, nil)
		var inside int
		wantError(t, tx.QueryRowContext(t.Context(), "SELECT count(*) FROM holdfast.inbox WHERE id = $1 AND partition_key = 'order:7' AND available_at > now() + interval '59 minutes'", result.ID.String()).Scan(&inside), nil)
		wantError(t, end(tx), nil)
		if inside != 1 {
			t.Error("the transaction does not see its own job")
		}
	}
	if jobs := pgtest.Value[int](t, database, "SELECT count(*) FROM holdfast.inbox"); jobs != 1 {
		t.Errorf("%d jobs after a rollback and a commit, want 1", jobs)
	}
}

func TestFromSQL_EnqueuesAsAPoolDoes(t *testing.T) {
	t.Parallel()
	database := pgtest.New(t)
	db := openSQL(t, database)
	tx, err := db.BeginTx(t.Context(), nil)
	wantError(t, err, nil)
	defer func() { _ = tx.Rollback() }()
	through := domain.FromSQL(tx)

	first, err := domain.Enqueue(t.Context(), through, note{Text: "a"}, domain.Once("a"), domain.Headers(map[string]string{"trace": "1"}))
	wantError(t, err, nil)
	again, err := domain.Enqueue(t.Context(), through, note{Text: "a"}, domain.Once("a"))
	wantError(t, err, nil)
	if !again.Duplicate || again.ID != first.ID || first.Duplicate {
		t.Errorf("%+v, then %+v", first, again)
	}
	many, err := domain.EnqueueMany(t.Context(), through,
		domain.NewJob{Args: note{Text: "b"}}, domain.NewJob{Args: note{Text: "a"}, Options: []domain.EnqueueOption{domain.Once("a")}})
	wantError(t, err, nil)
	if len(many) != 2 || many[0].Duplicate || !many[1].Duplicate || many[1].ID != first.ID {
		t.Errorf("%+v", many)
	}
	job, err := domain.FindJob(t.Context(), through, first.ID)
	wantError(t, err, nil)
	if string(job.Headers) != `{"trace": "1"}` || job.IdempotencyKey == nil || *job.IdempotencyKey != "a" {
		t.Errorf("%+v", job)
	}
	if _, err := domain.FindJob(t.Context(), through, domain.JobID{1}); !errors.Is(err, domain.ErrNotFound) {
		t.Errorf("a job that is not there: %v", err)
	}
	if _, err := domain.Enqueue(t.Context(), through, note{}, domain.OnQueue("nosuch\x00")); err == nil {
		t.Error("a name that no queue has is taken")
	}
}

func TestFromSQL_GuardRefusesAStaleClaim(t *testing.T) {
	t.Parallel()
	database := pgtest.New(t)
	db := openSQL(t, database)
	queue := database.Queue(t)
	enqueueNotes(t, database, 1)
	stale := claim(t, queue, "w1", 1)[0]
	newer := stale
	newer.Generation++
	tx, err := db.BeginTx(t.Context(), nil)
	wantError(t, err, nil)
	defer func() { _ = tx.Rollback() }()
	wantError(t, domain.Guard(t.Context(), domain.FromSQL(tx), "label:7", newer.Claim), nil)
	wantError(t, domain.Guard(t.Context(), domain.FromSQL(tx), "label:7", stale.Claim), domain.ErrFenced)
}
