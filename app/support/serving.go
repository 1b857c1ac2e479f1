package support

import (
	"context"

	"github.com/holdfast-pg/holdfast/domain"
	"github.com/holdfast-pg/holdfast/worker"
)

// Serving returns what the live workers of a queue say of themselves, in the order of their ids.
func Serving(ctx context.Context, db domain.DBTX, queue string) ([]worker.Facts, error) {
	workers, err := readFleet(ctx, db)
	if err != nil {
		return nil, err
	}
	var said []worker.Facts
	for _, each := range workers.serving(queue) {
		said = append(said, each.says)
	}
	return said, nil
}
