package domain

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// Elect runs the work if no other worker is running its own, and tells whether it did. The
// election ends with the work. It only spares the database the same work twice: whatever
// housekeeping does is harmless when two do it at once.
func (q *Queue) Elect(ctx context.Context, work func(ctx context.Context)) (elected bool, err error) {
	err = pgx.BeginFunc(ctx, q.work, func(tx pgx.Tx) error {
		elected, err = q.queries.TryHousekeeping(ctx, simple{tx})
		if err == nil && elected {
			work(ctx)
		}
		return err
	})
	if err != nil {
		return elected, fmt.Errorf("elect a housekeeper: %w", explain(err))
	}
	return elected, nil
}

// simple is a DBTX that sends its statements by the simple protocol. In the extended one the
// server keeps the snapshot of a transaction's latest statement until the next, and vacuum
// would wait for it as long as the work takes.
type simple struct {
	pgx.Tx
}

// QueryRow runs a statement without arguments.
func (s simple) QueryRow(ctx context.Context, sql string, _ ...any) pgx.Row {
	return s.Tx.QueryRow(ctx, sql, pgx.QueryExecModeSimpleProtocol)
}
