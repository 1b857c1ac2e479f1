package domain

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/holdfast-pg/holdfast/gen"
)

// Snapshotter is a *pgxpool.Pool or a *pgx.Conn.
type Snapshotter interface {
	BeginTx(ctx context.Context, options pgx.TxOptions) (pgx.Tx, error)
}

// Snapshot reads in one transaction: all that is read was true at one moment, and durations
// that the database counts end at it. It writes nothing, so a replica will do. Statements
// take their rows in the order of an index, whatever the statistics say.
func Snapshot(ctx context.Context, db Snapshotter, read func(db DBTX) error) error {
	tx, err := db.BeginTx(ctx, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly})
	if err != nil {
		return fmt.Errorf("begin to read: %w", explain(err))
	}
	defer func() { _ = tx.Rollback(context.WithoutCancel(ctx)) }()
	if err := gen.New().PlanInOrder(ctx, tx); err != nil {
		return fmt.Errorf("begin to read: %w", explain(err))
	}
	return read(tx)
}
