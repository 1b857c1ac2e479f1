package domain

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
)

func TestPermissionError_NamesWhatTheStatementNeeds(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		statement, object string
		want              []string
	}{
		{"EnqueueJob", "schema holdfast", []string{"USAGE"}},
		{"EnqueueJob", "table inbox", []string{"SELECT", "INSERT"}},
		{"EnqueueJob", "table idempotency_keys", []string{"SELECT", "INSERT", "UPDATE"}},
		{"EnqueueJob", "table wake", []string{"SELECT"}},
		{"EnqueueJob", "sequence inbox_seq", []string{"USAGE"}},
		{"ClaimJobs", "table inbox", []string{"SELECT", "UPDATE"}},
		{"CompleteJobs", "table inbox_archive", []string{"SELECT", "INSERT"}},
		{"DeleteOldEvents", "table events", []string{"SELECT", "UPDATE", "DELETE"}},
		{"CreateArchiveDays", "function create_archive_days", []string{"EXECUTE"}},
	} {
		refused := &pgconn.PgError{Code: "42501", Message: "permission denied for " + test.object}
		err := explain(fmt.Errorf("query %s: %w", test.statement, refused))
		var lacking *PermissionError
		if !errors.As(err, &lacking) || !errors.Is(err, refused) || lacking.Statement != test.statement || lacking.Object != test.object || !slices.Equal(lacking.Privileges, test.want) {
			t.Errorf("%s on %s: %+v", test.statement, test.object, lacking)
		}
	}
	// A server that speaks another language, and a statement that is not ours.
	for _, err := range []error{
		fmt.Errorf("query EnqueueJob: %w", &pgconn.PgError{Code: "42501", Message: "keine Berechtigung für Tabelle inbox"}),
		&pgconn.PgError{Code: "42501", Message: "permission denied for table orders"},
	} {
		if got := explain(err); got.Error() != err.Error() {
			t.Errorf("%v became %v", err, got)
		}
	}
}

func TestNameRole_RewordsWhatWrapsTheError(t *testing.T) {
	t.Parallel()
	inner := explain(fmt.Errorf("query GetMeta: %w", &pgconn.PgError{Code: "42501", Message: "permission denied for table meta"}))
	err := NameRole(nil, fmt.Errorf("look: %w", inner))
	want := "look: the connection's role lacks SELECT on table meta, which GetMeta needs: the owner of the schema runs `holdfast roles grant producer|worker|operator|viewer ROLE`"
	if err.Error()[:len(want)] != want {
		t.Errorf("says %s", err)
	}
	if plain := errors.New("plain"); NameRole(nil, plain).Error() != "plain" || NameRole(nil, nil) != nil {
		t.Error("it touches other errors")
	}
}
