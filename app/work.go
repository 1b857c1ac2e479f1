package app

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/holdfast-pg/holdfast"
)

// Work runs a worker until the context ends, which the first SIGINT or SIGTERM is taken to
// do. A second one cancels the handlers and gives their jobs back at once; a third has its
// usual effect. A database that cannot be reached is waited for, as long as it takes. Errors: ErrInvalidURL, and those of Worker.Run.
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
	defer onSecondSignal(worker.StopNow)()
	return worker.Run(ctx)
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
