package pgtest

import (
	"os"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/holdfast-pg/holdfast/db"
	"github.com/holdfast-pg/holdfast/db/embedded"
	"github.com/holdfast-pg/holdfast/internal/testdb"
)

// Alone returns a migrated database on a server of the test's own, which may come to harm. It
// is an embedded one, of the version that HOLDFAST_TEST_POSTGRES_VERSION names, and never
// behind a pooler. It is gone when the test ends.
func Alone(tb testing.TB) (*Database, *embedded.Server) {
	tb.Helper()
	return AloneWith(tb, testdb.Parameters)
}

// AloneWith is Alone with settings of the test's choice.
func AloneWith(tb testing.TB, parameters map[string]string) (*Database, *embedded.Server) {
	tb.Helper()
	private, err := embedded.Start(tb.Context(), embedded.Options{
		Version:    os.Getenv("HOLDFAST_TEST_POSTGRES_VERSION"),
		Parameters: parameters,
		Progress:   os.Stderr,
	})
	if err != nil {
		tb.Fatalf("pgtest: %v", err)
	}
	tb.Cleanup(func() {
		if err := private.Stop(); err != nil {
			tb.Errorf("pgtest: %v", err)
		}
	})
	database := &Database{URL: private.URL(), DirectURL: private.URL(), counts: &counts{}}
	if database.direct, err = pgx.ParseConfig(private.URL()); err != nil {
		tb.Fatalf("pgtest: %v", err)
	}
	database.direct.Tracer = database.counts
	if _, err := db.Migrate(tb.Context(), database.Config()); err != nil {
		tb.Fatalf("pgtest: migrate the server that is the test's alone: %v", err)
	}
	database.Pool = database.open(tb)
	return database, private
}
