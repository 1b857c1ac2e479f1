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
		elected, err = q.queries.TryHousekeeping(ctx, tx)
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
