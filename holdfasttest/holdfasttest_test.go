package holdfasttest_test

import (
	"context"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/holdfast-pg/holdfast"
	"github.com/holdfast-pg/holdfast/holdfasttest"
)

// fake is a test that may fail: it ends the function run under it and keeps what it said.
type fake struct {
	testing.TB
	said strings.Builder
}

type failed struct{}

func (f *fake) Fatalf(format string, args ...any) {
	fmt.Fprintf(&f.said, format, args...)
	panic(failed{})
}

func (f *fake) Fatal(args ...any) { f.Fatalf("%s", fmt.Sprint(args...)) }

func (f *fake) Errorf(format string, args ...any) { fmt.Fprintf(&f.said, format+"\n", args...) }

func (f *fake) Output() io.Writer { return io.Discard }

// failure returns what a test is told that fails, "" for one that does not.
func failure(t *testing.T, test func(tb *fake)) string {
	t.Helper()
	f := &fake{TB: t}
	func() {
		defer func() {
			if reason := recover(); reason != nil && reason != any(failed{}) {
				panic(reason)
			}
		}()
		test(f)
	}()
	return f.said.String()
}

// wantFailure expects that a test fails with these words in what it says.
func wantFailure(t *testing.T, test func(tb *fake), words ...string) {
	t.Helper()
	said := failure(t, test)
	for _, word := range words {
		if !strings.Contains(said, word) {
			t.Errorf("the failure says\n%s\nwant it to say %q", said, word)
		}
	}
}

type sendReceipt struct {
	Email string `json:"email"`
}

func (sendReceipt) Kind() string { return "send_receipt" }

type bookPayment struct {
	Payment string `json:"payment"`
	Cents   int64  `json:"cents"`
}

func (bookPayment) Kind() string { return "book_payment" }

// begin returns a transaction that is rolled back when the test ends.
func begin(t *testing.T, pool *pgxpool.Pool) pgx.Tx {
	t.Helper()
	tx, err := pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = tx.Rollback(context.Background()) })
	return tx
}

func enqueue(t *testing.T, db holdfast.DBTX, args holdfast.Args, options ...holdfast.EnqueueOption) holdfast.JobID {
	t.Helper()
	result, err := holdfast.Enqueue(t.Context(), db, args, options...)
	if err != nil {
		t.Fatal(err)
	}
	return result.ID
}

func execute(t *testing.T, db holdfast.DBTX, sql string, args ...any) {
	t.Helper()
	if _, err := db.Exec(t.Context(), sql, args...); err != nil {
		t.Fatal(err)
	}
}

func value[T any](t *testing.T, db holdfast.DBTX, sql string) T {
	t.Helper()
	rows, _ := db.Query(t.Context(), sql)
	one, err := pgx.CollectExactlyOneRow(rows, pgx.RowTo[T])
	if err != nil {
		t.Fatal(err)
	}
	return one
}

func wantEnding(t *testing.T, outcome holdfasttest.Outcome, want holdfasttest.Ending) {
	t.Helper()
	if outcome.Ending != want {
		t.Errorf("%s, want %s", outcome, want)
	}
}
