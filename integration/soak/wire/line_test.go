package wire_test

import (
	"context"
	"net/url"
	"os"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/holdfast-pg/holdfast/integration/pgtest"
	"github.com/holdfast-pg/holdfast/integration/soak/wire"
)

func TestMain(m *testing.M) {
	os.Exit(pgtest.Main(m))
}

const patience = 10 * time.Second

// lined is a database, and a line to it that ends with the test.
func lined(t *testing.T) (*pgtest.Database, *wire.Line, string) {
	t.Helper()
	database := pgtest.Empty(t)
	database.Exec(t, "CREATE TABLE notes (text text)")
	address, err := url.Parse(database.DirectURL)
	if err != nil {
		t.Fatal(err)
	}
	line, err := wire.Listen(address.Host)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := line.Close(); err != nil {
			t.Error(err)
		}
	})
	address.Host = line.Address()
	return database, line, address.String()
}

func connect(t *testing.T, url string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	return conn
}

const note = "-- name: AddNote :exec\nINSERT INTO notes VALUES ($1)"

func notes(t *testing.T, database *pgtest.Database) int {
	t.Helper()
	return pgtest.Value[int](t, database, "SELECT count(*) FROM notes")
}

func TestLine_PassesEverythingOn(t *testing.T) {
	t.Parallel()
	database, line, url := lined(t)
	line.Delay(time.Millisecond, time.Millisecond)
	conn := connect(t, url)
	for range 3 {
		if _, err := conn.Exec(t.Context(), note, "hello"); err != nil {
			t.Fatal(err)
		}
	}
	var batch pgx.Batch
	for range 5 {
		batch.Queue(note, "in a batch")
	}
	if err := conn.SendBatch(t.Context(), &batch).Close(); err != nil {
		t.Fatal(err)
	}
	if n := notes(t, database); n != 8 {
		t.Errorf("%d notes, want 8", n)
	}
}

// To the client both look the same; to the server they do not.
func TestCutAt_IsBeforeOrAfterTheCommit(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		moment    wire.Moment
		statement string
		committed int // One of the commits came before the statement "commit".
	}{
		{wire.Unsent, "AddNote", 0},
		{wire.Unanswered, "AddNote", 1},
		{wire.Unsent, "commit", 1},
		{wire.Unanswered, "commit", 2},
	} {
		t.Run(test.statement+" "+string(test.moment), func(t *testing.T) {
			t.Parallel()
			database, line, url := lined(t)
			conn := connect(t, url)
			// A statement that is known by its name alone.
			if _, err := conn.Prepare(t.Context(), "prepared", note); err != nil {
				t.Fatal(err)
			}
			sprung := line.CutAt(test.moment, test.statement)
			if err := conn.Ping(t.Context()); err != nil {
				t.Fatal("another statement sprang the trap:", err)
			}
			_, err := conn.Exec(t.Context(), "prepared", "hello")
			if test.statement == "commit" && err == nil {
				err = pgx.BeginFunc(t.Context(), conn, func(tx pgx.Tx) error {
					_, err := tx.Exec(t.Context(), "prepared", "hello")
					return err
				})
			}
			if err == nil {
				t.Error("the client has an answer")
			}
			select {
			case <-sprung:
			case <-time.After(patience):
				t.Fatal("the trap did not spring")
			}
			if n := notes(t, database); n != test.committed {
				t.Errorf("%d notes were committed, want %d", n, test.committed)
			}
			if err := connect(t, url).Ping(t.Context()); err != nil {
				t.Error("the line is not whole for the next connection:", err)
			}
		})
	}
}

func TestStall_HoldsBackAndLetsGo(t *testing.T) {
	t.Parallel()
	for _, direction := range []wire.Direction{wire.ToServer, wire.ToClient} {
		t.Run(string(direction), func(t *testing.T) {
			t.Parallel()
			_, line, url := lined(t)
			conn := connect(t, url)
			line.Stall(direction, true)
			done := make(chan error, 1)
			go func() { done <- conn.Ping(t.Context()) }()
			select {
			case err := <-done:
				t.Fatal("an answer passed a stalled line:", err)
			case <-time.After(50 * time.Millisecond):
			}
			line.Stall(direction, false)
			select {
			case err := <-done:
				if err != nil {
					t.Error(err)
				}
			case <-time.After(patience):
				t.Error("no answer after the stall")
			}
		})
	}
}

func TestCutAndRefuse_EndConnections(t *testing.T) {
	t.Parallel()
	_, line, url := lined(t)
	conn := connect(t, url)
	if n := line.Cut(); n != 1 {
		t.Errorf("%d connections were cut, want 1", n)
	}
	if err := conn.Ping(t.Context()); err == nil {
		t.Error("a cut connection answers")
	}
	line.Refuse(true)
	if conn, err := pgx.Connect(t.Context(), url); err == nil {
		_ = conn.Close(t.Context())
		t.Error("a refusing line took a connection")
	}
	line.Refuse(false)
	connect(t, url)
}
