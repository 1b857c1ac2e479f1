package embedding

import (
	"context"

	entsql "entgo.io/ent/dialect/sql"

	"github.com/holdfast-pg/holdfast"
)

// A generated client's own *ent.Tx takes the place of the driver's with --feature sql/execquery.
func placeWithEnt(ctx context.Context, driver *entsql.Driver, order int64) error {
	tx, err := driver.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	through := tx.(holdfast.SQLTX)
	if _, err := through.ExecContext(ctx, insertOrder, order); err != nil {
		return err
	}
	if _, err := holdfast.Enqueue(ctx, holdfast.FromSQL(through), SendReceipt{order}); err != nil {
		return err
	}
	return tx.Commit()
}
