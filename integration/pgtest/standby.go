package pgtest

import (
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/holdfast-pg/holdfast/db/embedded"
)

// Standby returns the database on a standby that is as old as the call: it lacks whatever is
// committed from then on. The server, on which the database is, restarts for it, so other
// connections to it break. The standby is gone when the test ends.
func (d *Database) Standby(tb testing.TB, server *embedded.Server) (*Database, *embedded.Server) {
	tb.Helper()
	copied, err := server.Standby(tb.Context())
	if err != nil {
		tb.Fatalf("pgtest: %v", err)
	}
	tb.Cleanup(func() {
		if err := copied.Stop(); err != nil {
			tb.Errorf("pgtest: %v", err)
		}
	})
	d.Pool.Reset()
	standby := &Database{URL: copied.URL(), DirectURL: copied.URL(), counts: &counts{}}
	if standby.direct, err = pgx.ParseConfig(standby.URL); err != nil {
		tb.Fatalf("pgtest: %v", err)
	}
	standby.direct.Tracer = standby.counts
	standby.Pool = standby.open(tb)
	return standby, copied
}
