//go:build unix && !aix && !solaris

package embedded

import (
	"context"
	"errors"
	"os"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

func TestRestart_WhatWasCommittedIsThereAgain(t *testing.T) {
	t.Parallel()
	s := start(t, Options{Parameters: map[string]string{"fsync": "off"}})
	ask(t, s, "CREATE TABLE kept AS SELECT 7 AS n")
	open := connect(t, s)
	for range 2 {
		if err := s.Restart(t.Context()); err != nil {
			t.Fatal(err)
		}
		if open.Ping(t.Context()) == nil {
			t.Error("a connection outlives the server")
		}
		if n := ask(t, s, "SELECT n::text FROM kept"); n != "7" {
			t.Errorf("after a restart n is %q", n)
		}
	}
	if err := s.Stop(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(s.dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the folder of a restarted server is left behind: %v", err)
	}
}

func TestRestart_StandbyAnswersAndRefusesToWrite(t *testing.T) {
	t.Parallel()
	s := start(t, Options{})
	ask(t, s, "CREATE TABLE kept AS SELECT 7 AS n")
	if err := s.RestartAsStandby(t.Context()); err != nil {
		t.Fatal(err)
	}
	if answer := ask(t, s, "SELECT n::text || pg_is_in_recovery()::text FROM kept"); answer != "7true" {
		t.Errorf("the standby answers %q", answer)
	}
	wantReadOnly(t, s)
}

// wantReadOnly fails the test if the server accepts a write to the table kept.
func wantReadOnly(t *testing.T, s *Server) {
	t.Helper()
	_, err := connect(t, s).Exec(t.Context(), "UPDATE kept SET n = 8")
	var refused *pgconn.PgError
	if !errors.As(err, &refused) || refused.Code != "25006" {
		t.Errorf("a write on the standby: %v", err)
	}
}

func connect(t *testing.T, s *Server) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), s.URL())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	return conn
}

// ask runs a command and returns the first value of its answer, if it has one.
func ask(t *testing.T, s *Server, sql string) string {
	t.Helper()
	results, err := connect(t, s).PgConn().Exec(t.Context(), sql).ReadAll()
	if err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	for _, result := range results {
		for _, row := range result.Rows {
			return string(row[0])
		}
	}
	return ""
}
