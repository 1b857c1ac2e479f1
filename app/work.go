package app

import (
	"context"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/holdfast-pg/holdfast"
)

// Work runs a worker until the context ends, which the first SIGINT or SIGTERM is taken to
// do. A second one cancels the handlers and gives their jobs back at once; a third has its
// usual effect. A database that cannot be reached is waited for, as long as it takes. Metrics and
// probes are served on the address, from before the worker joins until it has left; "" for none.
// Errors: ErrInvalidURL, an address that cannot be listened on, and those of Worker.Run.
func Work(ctx context.Context, url, address string, config holdfast.Config, handlers ...holdfast.Handler) error {
	pool, err := openPool(ctx, url)
	if err != nil {
		return err
	}
	defer pool.Close()
	if address != "" {
		return workObserved(ctx, pool, address, config, handlers)
	}
	worker, err := holdfast.NewWorker(pool, config, handlers...)
	if err != nil {
		return err
	}
	return run(ctx, worker, config.WithDefaults().Logger, worker.Run)
}

// workObserved serves metrics and probes beside the worker. The address comes first: nobody would
// notice a worker without them.
func workObserved(ctx context.Context, pool *pgxpool.Pool, address string, config holdfast.Config, handlers []holdfast.Handler) error {
	config = config.WithDefaults()
	socket, err := listen(ctx, address)
	if err != nil {
		return err
	}
	defer socket.Close()
	metrics, err := NewMetrics(config.Version, nil)
	if err != nil {
		return err
	}
	defer metrics.Close()
	if _, err := metrics.WatchQueues(pool, config.Queues...); err != nil {
		return err
	}
	config.Observer = metrics.Observer()
	worker, err := holdfast.NewWorker(pool, config, handlers...)
	if err != nil {
		return err
	}
	defer serve(socket, routes(metrics.Endpoint, &probes{worker: worker, db: pool}), config.Logger)()
	return run(ctx, worker, config.Logger, worker.Run)
}

// run works under the eyes of systemd, and until the second signal at most.
func run(ctx context.Context, worker *holdfast.Worker, log *slog.Logger, work func(context.Context) error) error {
	defer supervise(worker.Health, log)()
	defer onSecondSignal(worker.StopNow)()
	return work(ctx)
}

// onSecondSignal calls a function at the second signal to end that arrives before the
// returned function is called.
func onSecondSignal(call func()) (stop func()) {
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	done := make(chan struct{})
	go func() {
		defer signal.Stop(signals)
		for range 2 {
			select {
			case <-signals:
			case <-done:
				return
			}
		}
		call()
	}()
	return func() { close(done) }
}
