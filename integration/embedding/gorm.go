package embedding

import (
	"context"

	"gorm.io/gorm"

	"github.com/holdfast-pg/holdfast"
)

func placeWithGorm(ctx context.Context, db *gorm.DB, order int64) error {
	return db.WithContext(ctx).Transaction(func(tx *gorm.DB) error {
		if err := tx.Exec("INSERT INTO orders (id) VALUES (?)", order).Error; err != nil {
			return err
		}
		_, err := holdfast.Enqueue(ctx, holdfast.FromSQL(tx.Statement.ConnPool), SendReceipt{order})
		return err
	})
}
