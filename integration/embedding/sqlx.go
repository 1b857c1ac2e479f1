package embedding

import (
	"context"

	"github.com/jmoiron/sqlx"

	"github.com/holdfast-pg/holdfast"
)

func placeWithSqlx(ctx context.Context, db *sqlx.DB, order int64) error {
	tx, err := db.BeginTxx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	if _, err := tx.ExecContext(ctx, insertOrder, order); err != nil {
		return err
	}
	if _, err := holdfast.Enqueue(ctx, holdfast.FromSQL(tx), SendReceipt{order}); err != nil {
		return err
	}
	return tx.Commit()
}
