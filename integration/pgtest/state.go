package pgtest

import (
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/holdfast-pg/holdfast/domain"
	"github.com/holdfast-pg/holdfast/holdfasttest"
)

// Exec runs a statement and returns how many rows it touched.
func (d *Database) Exec(tb testing.TB, sql string, args ...any) int64 {
	tb.Helper()
	tag, err := d.Pool.Exec(tb.Context(), sql, args...)
	if err != nil {
		tb.Fatalf("%s: %v", sql, err)
	}
	return tag.RowsAffected()
}

// Value returns the one column of the one row that a query answers with.
func Value[T any](tb testing.TB, database *Database, sql string, args ...any) T {
	tb.Helper()
	rows, _ := database.Pool.Query(tb.Context(), sql, args...)
	value, err := pgx.CollectExactlyOneRow(rows, pgx.RowTo[T])
	if err != nil {
		tb.Fatalf("%s: %v", sql, err)
	}
	return value
}

// Values returns the one column of all rows that a query answers with.
func Values[T any](tb testing.TB, database *Database, sql string, args ...any) []T {
	tb.Helper()
	rows, _ := database.Pool.Query(tb.Context(), sql, args...)
	values, err := pgx.CollectRows(rows, pgx.RowTo[T])
	if err != nil {
		tb.Fatalf("%s: %v", sql, err)
	}
	return values
}

// ExpireLease makes the lease of a claimed job end a second ago, as if its worker had died
// a lease ago.
func (d *Database) ExpireLease(tb testing.TB, id domain.JobID) {
	tb.Helper()
	holdfasttest.ExpireLease(tb, d.Pool, id)
}

// EndWait makes a pending job due, as if its delay or backoff had passed.
func (d *Database) EndWait(tb testing.TB, id domain.JobID) {
	tb.Helper()
	holdfasttest.MakeDue(tb, d.Pool, id)
}
