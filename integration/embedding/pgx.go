package embedding

import (
	"context"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/holdfast-pg/holdfast"
)

func placeWithPgx(ctx context.Context, pool *pgxpool.Pool, order int64) error {
	return pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, insertOrder, order); err != nil {
			return err
		}
		_, err := holdfast.Enqueue(ctx, tx, SendReceipt{order})
		return err
	})
}
