package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"
)

// riverSystem is River, tuned as its own `river bench` tunes it, on a pool of the size that
// has there: pgx's default.
type riverSystem struct{}

const (
	riverFetchCooldown     = 2 * time.Millisecond
	riverFetchPollInterval = 20 * time.Millisecond
	riverMaxWorkers        = 2_000
)

func (riverSystem) Name() string { return "river" }

func (riverSystem) Settings() string {
	return fmt.Sprintf("FetchCooldown %s, FetchPollInterval %s, MaxWorkers %d, InsertManyFast of %d, pool of pgx's default size; done: state completed",
		riverFetchCooldown, riverFetchPollInterval, riverMaxWorkers, addBatch)
}

func (riverSystem) Deletes() bool { return false }

func (riverSystem) Migrate(ctx context.Context, url string) error {
	pool, err := pgxpool.New(ctx, url)
	if err != nil {
		return err
	}
	defer pool.Close()
	migrator, err := rivermigrate.New(riverpgxv5.New(pool), &rivermigrate.Config{Logger: quietLogger()})
	if err != nil {
		return err
	}
	_, err = migrator.Migrate(ctx, rivermigrate.DirectionUp, nil)
	return err
}

func (riverSystem) Add(ctx context.Context, pool *pgxpool.Pool, n int) error {
	// Without queues the client only inserts.
	client, err := river.NewClient(riverpgxv5.New(pool), riverConfig())
	if err != nil {
		return err
	}
	jobs := make([]river.InsertManyParams, n)
	for i := range jobs {
		jobs[i].Args = newPayload()
	}
	_, err = client.InsertManyFast(ctx, jobs)
	return err
}

func (riverSystem) Done(ctx context.Context, pool *pgxpool.Pool, _ int) (int, error) {
	return count(ctx, pool, "SELECT count(*) FROM river_job WHERE state = 'completed'")
}

func (riverSystem) Waiting(ctx context.Context, pool *pgxpool.Pool, limit int) (int, error) {
	return count(ctx, pool, "SELECT count(*) FROM (SELECT FROM river_job WHERE state = 'available' LIMIT $1) AS job", limit)
}

func (riverSystem) Worker() *exec.Cmd { return workerOf("river") }

// riverConfig is what the client that inserts and the client that works have in common.
func riverConfig() *river.Config {
	return &river.Config{
		FetchCooldown:     riverFetchCooldown,
		FetchPollInterval: riverFetchPollInterval,
		Logger:            quietLogger(),
	}
}

// noopWorker is River's handler.
type noopWorker struct {
	river.WorkerDefaults[payload]
}

func (noopWorker) Work(context.Context, *river.Job[payload]) error { return nil }

func workRiver(ctx context.Context, url string, ready func(versions string)) error {
	pool, err := pgxpool.New(ctx, url)
	if err != nil {
		return err
	}
	defer pool.Close()
	config := riverConfig()
	config.Queues = map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: riverMaxWorkers}}
	config.Workers = river.NewWorkers()
	river.AddWorker(config.Workers, noopWorker{})
	client, err := river.NewClient(riverpgxv5.New(pool), config)
	if err != nil {
		return err
	}
	ready(moduleVersions("github.com/riverqueue/river", "github.com/riverqueue/river/riverdriver/riverpgxv5", "github.com/jackc/pgx/v5"))
	if err := client.Start(context.WithoutCancel(ctx)); err != nil {
		return err
	}
	<-ctx.Done()
	return client.Stop(context.WithoutCancel(ctx))
}

// quietLogger passes on what goes wrong and nothing else.
func quietLogger() *slog.Logger {
	return slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
}
