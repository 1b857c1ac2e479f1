package app

import (
	"context"

	"github.com/holdfast-pg/holdfast"
)

// Work runs a worker until the context ends. A database that cannot be reached is waited
// for, as long as it takes. Errors: ErrInvalidURL, and those of Worker.Run.
func Work(ctx context.Context, url string, config holdfast.Config, handlers ...holdfast.Handler) error {
	pool, err := openPool(ctx, url)
	if err != nil {
		return err
	}
	defer pool.Close()
	worker, err := holdfast.NewWorker(pool, config, handlers...)
	if err != nil {
		return err
	}
	return worker.Run(ctx)
}
