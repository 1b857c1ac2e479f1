package demo

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/holdfast-pg/holdfast"
	"github.com/holdfast-pg/holdfast/app"
	"github.com/holdfast-pg/holdfast/app/orders"
	"github.com/holdfast-pg/holdfast/db/demo"
)

// printer is a worker that prints labels, and the handler in it.
type printer struct {
	pool         *pgxpool.Pool
	queries      *demo.Queries
	withoutFence bool
	stdout       *json.Encoder
}

// RunPrinter runs a worker that prints the labels of one queue, until the context ends. Its
// handler is in the worker's own process, so that both stop when the process is paused, and
// both go on when it wakes. It tells its steps on stdout and logs to stderr, in JSON.
func RunPrinter(ctx context.Context, queue string, withoutFence bool, stdout, stderr io.Writer) error {
	log, err := app.NewLogger(stderr, "debug", "json") // That a result was accepted is logged at this level.
	if err != nil {
		return err
	}
	pool, err := app.Connect(ctx, os.Getenv(app.EnvDatabaseURL), connectPatience, log)
	if err != nil {
		return err
	}
	defer pool.Close()
	p := &printer{pool: pool, queries: demo.New(), withoutFence: withoutFence, stdout: json.NewEncoder(stdout)}
	worker, err := holdfast.NewWorker(pool, holdfast.Config{
		Queues:       []string{queue},
		Concurrency:  1, // Whoever is stuck in a job cannot be the one who runs it again.
		Lease:        demoLease,
		Housekeeping: demoHousekeeping,
		Heartbeat:    demoHeartbeat,
		Logger:       log,
	}, holdfast.Handle(p.handle))
	if err != nil {
		return err
	}
	return worker.Run(ctx)
}

// handle prints a label, and is careless on purpose: it looks neither at its context, which
// ends when the lease is lost, nor at what became of its write.
func (p *printer) handle(ctx context.Context, job holdfast.Job[orders.PrintLabel]) error {
	ctx = context.WithoutCancel(ctx)
	address, err := p.queries.FindAddress(ctx, p.pool, job.Args.OrderID)
	if err != nil {
		return err
	}
	if job.Attempt == 1 {
		if err := p.awaitPause(job, address); err != nil {
			return err
		}
	}
	err = p.print(ctx, job, address)
	switch {
	case errors.Is(err, holdfast.ErrFenced):
		p.say(stepRefused, job, address)
	case err != nil:
		return err
	default:
		p.say(stepPrinted, job, address)
	}
	return nil
}

// awaitPause waits, the address in hand, until the process has been paused and woken.
func (p *printer) awaitPause(job holdfast.Job[orders.PrintLabel], address string) error {
	awake, stop := awakenings()
	defer stop()
	p.say(stepReady, job, address)
	select {
	case <-awake:
		p.say(stepAwake, job, address)
		return nil
	case <-time.After(2 * patience): // The demo may need all of its own to get here and back.
		return fmt.Errorf("order:%d: nobody paused and woke the worker", job.Args.OrderID)
	}
}

// print writes the label in the transaction that shows the order the job's fence token. The
// database outlives the demo, so the order is named together with the demo's queue.
func (p *printer) print(ctx context.Context, job holdfast.Job[orders.PrintLabel], address string) error {
	tx, err := p.pool.Begin(ctx)
	if err != nil {
		return fmt.Errorf("begin: %w", err)
	}
	defer func() { _ = tx.Rollback(ctx) }()
	if !p.withoutFence {
		if err := holdfast.Guard(ctx, tx, job.Queue+"/"+job.PartitionKey, job); err != nil {
			return err
		}
	}
	if _, err := p.queries.PrintLabel(ctx, tx, demo.PrintLabelParams{ID: job.Args.OrderID, Label: address, Token: job.Fence()}); err != nil {
		return err
	}
	if err := tx.Commit(ctx); err != nil {
		return fmt.Errorf("commit: %w", err)
	}
	return nil
}

func (p *printer) say(name stepName, job holdfast.Job[orders.PrintLabel], address string) {
	_ = p.stdout.Encode(step{Name: name, Token: job.Fence(), Address: address})
}
