package plans

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// record returns the text and the arguments that a statement sends for a set of the size.
func record(ctx context.Context, statement Statement, size int) (recorder, error) {
	var recorded recorder
	err := statement.Call(ctx, &recorded, size)
	if !errors.Is(err, errRecorded) {
		return recorder{}, errors.New(statement.Name + " sent nothing")
	}
	return recorded, nil
}

// errRecorded is the recorder's answer to every statement: there are no rows.
var errRecorded = errors.New("the statement was recorded, not run")

// recorder is a DBTX that runs nothing and keeps the statement.
type recorder struct {
	sql  string
	args []any
}

func (r *recorder) Exec(_ context.Context, sql string, args ...any) (pgconn.CommandTag, error) {
	r.sql, r.args = sql, args
	return pgconn.CommandTag{}, errRecorded
}

func (r *recorder) Query(_ context.Context, sql string, args ...any) (pgx.Rows, error) {
	r.sql, r.args = sql, args
	return nil, errRecorded
}

func (r *recorder) QueryRow(_ context.Context, sql string, args ...any) pgx.Row {
	r.sql, r.args = sql, args
	return recordedRow{}
}

type recordedRow struct{}

func (recordedRow) Scan(...any) error { return errRecorded }
