package embedding

import (
	"context"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/holdfast-pg/holdfast"
	"github.com/holdfast-pg/holdfast/domain"
	"github.com/holdfast-pg/holdfast/gen"
	"github.com/holdfast-pg/holdfast/integration/embedding/orders"
)

func placeWithSqlc(ctx context.Context, pool *pgxpool.Pool, order int64) error {
	return pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
		if err := orders.New().InsertOrder(ctx, tx, order); err != nil {
			return err
		}
		_, err := holdfast.Enqueue(ctx, tx, SendReceipt{order})
		return err
	})
}

// isBusy asks the generated store itself.
func isBusy(ctx context.Context, pool *pgxpool.Pool) (bool, error) {
	ready, err := gen.New().CountReadyJobs(ctx, pool, gen.CountReadyJobsParams{Queue: domain.DefaultQueue, Most: 1000})
	return ready == 1000, err
}
