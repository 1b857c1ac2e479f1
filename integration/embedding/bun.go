package embedding

import (
	"context"

	"github.com/uptrace/bun"

	"github.com/holdfast-pg/holdfast"
)

func placeWithBun(ctx context.Context, db *bun.DB, order int64) error {
	return db.RunInTx(ctx, nil, func(ctx context.Context, tx bun.Tx) error {
		if _, err := tx.ExecContext(ctx, "INSERT INTO orders (id) VALUES (?)", order); err != nil {
			return err
		}
		// tx.Tx is the plain transaction: bun's own would put values in place of question marks.
		_, err := holdfast.Enqueue(ctx, holdfast.FromSQL(tx.Tx), SendReceipt{order})
		return err
	})
}
