//go:build unix && !aix && !solaris

package embedded

import (
	"errors"
	"os"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
)

func TestStandby_LacksWhatWasCommittedAfterIt(t *testing.T) {
	t.Parallel()
	s := start(t, Options{Parameters: map[string]string{"fsync": "off", "work_mem": "7MB"}})
	ask(t, s, "CREATE TABLE kept AS SELECT 7 AS n")
	standby, err := s.Standby(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = standby.Stop() })
	ask(t, s, "INSERT INTO kept VALUES (8)")

	if n := ask(t, standby, "SELECT count(*) FROM kept"); n != "1" {
		t.Errorf("the standby has %s rows", n)
	}
	if memory := ask(t, standby, "SHOW work_mem"); memory != "7MB" {
		t.Errorf("the standby has work_mem %s", memory)
	}
	wantReadOnly(t, standby)

	open := connect(t, standby)
	if err := standby.Promote(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := open.Ping(t.Context()); err != nil {
		t.Errorf("a connection does not outlive the promotion: %v", err)
	}
	ask(t, standby, "INSERT INTO kept VALUES (9)")
	timeline := "SELECT left(pg_walfile_name(pg_current_wal_lsn()), 8)"
	if before, after := ask(t, s, timeline), ask(t, standby, timeline); before != "00000001" || after != "00000002" {
		t.Errorf("the timelines are %s and %s", before, after)
	}
	if err := s.Stop(); err != nil {
		t.Fatal(err)
	}
	if sum := ask(t, standby, "SELECT sum(n) FROM kept"); sum != "16" {
		t.Errorf("the promoted server holds %s in all", sum)
	}
	if err := standby.Stop(); err != nil {
		t.Fatal(err)
	}
	for _, each := range []*Server{s, standby} {
		if _, err := os.Stat(each.dir); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("the folder of a server is left behind: %v", err)
		}
	}
}

func TestPromote_PrimaryIsRefused(t *testing.T) {
	t.Parallel()
	s := start(t, Options{Parameters: map[string]string{"fsync": "off"}})
	var refused *pgconn.PgError
	if err := s.Promote(t.Context()); !errors.As(err, &refused) || refused.Code != "55000" {
		t.Errorf("a primary is promoted: %v", err)
	}
}
