package app

import (
	"context"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/holdfast-pg/holdfast/relay"
)

// Relay publishes the jobs of a queue until the context ends, as Work works. A database or a
// destination that cannot be reached is waited for. Metrics and probes are served on the address;
// "" for none. Errors: ErrInvalidURL, an address that cannot be listened on, and those of
// relay.Relay.Run. The publisher is closed.
func Relay(ctx context.Context, url, address string, config relay.Config, publisher relay.Publisher) error {
	pool, err := openPool(ctx, url)
	if err != nil {
		_ = publisher.Close() // It has nothing to lose yet.
		return err
	}
	defer pool.Close()
	if address != "" {
		return relayObserved(ctx, pool, address, config, publisher)
	}
	created, err := relay.New(pool, config, publisher)
	if err != nil {
		_ = publisher.Close()
		return err
	}
	return run(ctx, created.Worker(), config.WithDefaults().Worker.Logger, created.Run)
}

// relayObserved serves metrics and probes beside the relay.
func relayObserved(ctx context.Context, pool *pgxpool.Pool, address string, config relay.Config, publisher relay.Publisher) (err error) {
	ran := false
	defer func() {
		if !ran {
			_ = publisher.Close()
		}
	}()
	config = config.WithDefaults()
	socket, err := listen(ctx, address)
	if err != nil {
		return err
	}
	defer socket.Close()
	metrics, err := NewMetrics(config.Worker.Version, nil)
	if err != nil {
		return err
	}
	defer metrics.Close()
	if _, err := metrics.WatchQueues(pool, config.Queue); err != nil {
		return err
	}
	config.Worker.Observer = metrics.Observer()
	created, err := relay.New(pool, config, publisher)
	if err != nil {
		return err
	}
	defer serve(socket, routes(metrics.Endpoint, &probes{worker: created.Worker(), db: pool}), config.Worker.Logger)()
	ran = true
	return run(ctx, created.Worker(), config.Worker.Logger, created.Run)
}

// Destination opens a pool to a database that jobs are published to. It connects to nothing yet:
// a relay waits for it. Errors: ErrInvalidURL.
func Destination(ctx context.Context, url string) (*pgxpool.Pool, error) {
	return openPool(ctx, url)
}
