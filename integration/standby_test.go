package integration

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/holdfast-pg/holdfast"
	"github.com/holdfast-pg/holdfast/domain"
	"github.com/holdfast-pg/holdfast/integration/pgtest"
)

// A worker or a producer that reaches a standby is told what to do, and does not try again.
func TestStandby_IsRefusedInWords(t *testing.T) {
	t.Parallel()
	database, server := pgtest.Alone(t)
	id := enqueue(t, database)
	if err := server.RestartAsStandby(t.Context()); err != nil {
		t.Fatal(err)
	}
	database = database.Direct(t)

	worker, err := holdfast.NewWorker(database.Pool, quick(), completing())
	if err != nil {
		t.Fatal(err)
	}
	err = worker.Run(t.Context())
	wantError(t, err, holdfast.ErrStandby)
	wantWords(t, err.Error(), "standby", "name the primary", "target_session_attrs=read-write")

	refused := work(t, database, "true").ends(t, 1)
	wantOutput(t, &refused.stderr, "standby", "name the primary", "target_session_attrs=read-write")

	_, err = domain.Enqueue(t.Context(), database.Pool, note{Text: "hello"})
	wantReadOnly(t, err)
	_, err = domain.EnqueueMany(t.Context(), database.Pool, domain.NewJob{Args: note{Text: "hello"}})
	wantReadOnly(t, err)
	refused = runCLI(t, database, 1, "enqueue", "note")
	wantOutput(t, &refused.stderr, "read-only", "primary")

	wantStatus(t, database, id, domain.StatusPending) // It can be read.
}

// A primary refuses to write just the same when the caller's transaction says so.
func TestStandby_ReadOnlyTransactionIsRefusedInWords(t *testing.T) {
	t.Parallel()
	database := pgtest.New(t)
	err := pgx.BeginTxFunc(t.Context(), database.Pool, pgx.TxOptions{AccessMode: pgx.ReadOnly}, func(tx pgx.Tx) error {
		_, err := domain.Enqueue(context.WithoutCancel(t.Context()), tx, note{Text: "hello"})
		return err
	})
	wantReadOnly(t, err)
}

func wantReadOnly(t *testing.T, err error) {
	t.Helper()
	wantError(t, err, domain.ErrReadOnly)
	wantWords(t, err.Error(), "read-only", "primary", "25006")
	if domain.IsTemporary(err) {
		t.Errorf("%v is held to pass by itself", err)
	}
	var invalid *domain.InvalidError
	if errors.As(err, &invalid) {
		t.Errorf("%v blames an argument", err)
	}
}

func wantWords(t *testing.T, text string, words ...string) {
	t.Helper()
	for _, word := range words {
		if !strings.Contains(text, word) {
			t.Errorf("%q does not say %q", text, word)
		}
	}
}
