package embedding

import (
	"context"
	"database/sql"

	_ "github.com/jackc/pgx/v5/stdlib" // The driver "pgx".

	"github.com/holdfast-pg/holdfast"
)

func placeWithSQL(ctx context.Context, db *sql.DB, order int64) error {
	tx, err := db.BeginTx(ctx, nil)
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
