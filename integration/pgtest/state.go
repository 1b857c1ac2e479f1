package pgtest

import (
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/holdfast-pg/holdfast/domain"
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
	d.touchOne(tb, id, "a claimed job", "UPDATE holdfast.inbox SET lease_expires_at = now() - interval '1 second' WHERE id = $1 AND status = 'processing'")
}

// EndWait makes a pending job due, as if its delay or backoff had passed.
func (d *Database) EndWait(tb testing.TB, id domain.JobID) {
	tb.Helper()
	d.touchOne(tb, id, "a pending job", "UPDATE holdfast.inbox SET available_at = now() WHERE id = $1 AND status = 'pending'")
}

func (d *Database) touchOne(tb testing.TB, id domain.JobID, what, sql string) {
	tb.Helper()
	if d.Exec(tb, sql, id.String()) != 1 {
		tb.Fatalf("job %s is not %s", id, what)
	}
}
