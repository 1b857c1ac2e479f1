package domain

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/holdfast-pg/holdfast/gen"
)

// reading is a DBTX that sends PlanInOrder in front of each statement, in one round trip. In a
// caller's transaction the settings hold until its end.
type reading struct {
	pipeline
}

var planInOrder = record(func(db DBTX) error { return gen.New().PlanInOrder(context.Background(), db) })

// inOrder returns a DBTX for statements that a person waits for, and that must not read more
// than they say, whatever the planner was told. One that cannot send two statements at once is
// returned as it is.
func inOrder(db DBTX) DBTX {
	if able, ok := db.(batcher); ok {
		return reading{pipeline{db: able, before: []statement{planInOrder}}}
	}
	return db
}

// QueryRow runs a statement on at most one row.
func (r reading) QueryRow(ctx context.Context, sql string, args ...any) pgx.Row {
	rows, err := r.Query(ctx, sql, args...)
	return firstRow{rows: rows, err: err}
}

// firstRow is the first of some rows.
type firstRow struct {
	rows pgx.Rows
	err  error
}

// Scan reads the row, and ends the statement. pgx.ErrNoRows: there is none.
func (f firstRow) Scan(into ...any) error {
	if f.err != nil {
		return f.err
	}
	defer f.rows.Close()
	if !f.rows.Next() {
		if err := f.rows.Err(); err != nil {
			return err
		}
		return pgx.ErrNoRows
	}
	if err := f.rows.Scan(into...); err != nil {
		return err
	}
	f.rows.Close()
	return f.rows.Err()
}
