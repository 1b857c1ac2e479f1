package main

import (
	"context"
	"fmt"
	"os/exec"
	"strconv"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/holdfast-pg/holdfast"
	"github.com/holdfast-pg/holdfast/db"
)

// inbox is a database of Holdfast whose queue has a retention mode.
type inbox struct {
	retention holdfast.RetentionMode
}

func (i inbox) Deletes() bool { return i.retention == holdfast.RetentionDrop }

func (i inbox) Migrate(ctx context.Context, url string) error {
	config, err := pgx.ParseConfig(url)
	if err != nil {
		return err
	}
	if _, err := db.Migrate(ctx, config); err != nil {
		return err
	}
	connection, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return err
	}
	_, err = holdfast.SetQueue(ctx, connection, queueName, holdfast.QueueChange{RetentionMode: &i.retention})
	if closeErr := connection.Close(ctx); err == nil {
		err = closeErr
	}
	return err
}

func (inbox) Add(ctx context.Context, pool *pgxpool.Pool, n int) error {
	jobs := make([]holdfast.NewJob, n)
	for i := range jobs {
		jobs[i].Args = newPayload()
	}
	_, err := holdfast.EnqueueMany(ctx, pool, jobs...)
	return err
}

func (i inbox) Done(ctx context.Context, pool *pgxpool.Pool, added int) (int, error) {
	if i.Deletes() {
		left, err := count(ctx, pool, "SELECT count(*) FROM holdfast.inbox")
		return added - left, err
	}
	return count(ctx, pool, "SELECT count(*) FROM holdfast.inbox_archive")
}

func (inbox) Waiting(ctx context.Context, pool *pgxpool.Pool, limit int) (int, error) {
	return count(ctx, pool, `
		SELECT count(*)
		FROM (
			SELECT FROM holdfast.inbox
			WHERE status = 'pending' AND NOT ordered AND queue = $1
			LIMIT $2
		) AS job`, queueName, limit)
}

// done says for the report what counts as done.
func (i inbox) done() string {
	if i.Deletes() {
		return "no row in inbox"
	}
	return "a row in inbox_archive"
}

// queueName is Holdfast's default queue.
const queueName = "default"

// holdfastSystem is Holdfast as its users run it.
type holdfastSystem struct {
	inbox
	concurrency int
}

func (h holdfastSystem) Name() string { return "holdfast " + string(h.retention) }

func (h holdfastSystem) Settings() string {
	return fmt.Sprintf("Concurrency %d, otherwise the defaults of a worker, EnqueueMany of %d; done: %s", h.concurrency, addBatch, h.done())
}

func (h holdfastSystem) Worker() *exec.Cmd { return workerOf("holdfast", strconv.Itoa(h.concurrency)) }

func workHoldfast(ctx context.Context, url string, concurrency int, ready func(versions string)) error {
	pool, err := pgxpool.New(ctx, url)
	if err != nil {
		return err
	}
	defer pool.Close()
	worker, err := holdfast.NewWorker(pool, holdfast.Config{Concurrency: concurrency, Logger: quietLogger()},
		holdfast.Handle(func(context.Context, holdfast.Job[payload]) error { return nil }))
	if err != nil {
		return err
	}
	ready(moduleVersions("github.com/holdfast-pg/holdfast", "github.com/jackc/pgx/v5"))
	return worker.Run(ctx)
}
