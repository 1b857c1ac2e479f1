package integration

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/holdfast-pg/holdfast"
	"github.com/holdfast-pg/holdfast/domain"
	"github.com/holdfast-pg/holdfast/integration/pgtest"
)

// runNamed runs a worker whose every id is the same, until it returns.
func runNamed(t *testing.T, pool *pgxpool.Pool, id string) error {
	t.Helper()
	config := quick()
	config.NewID = func() string { return id }
	config.Logger = slog.New(slog.NewTextHandler(t.Output(), nil))
	worker, err := holdfast.NewWorker(pool, config, completing())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	return worker.Run(ctx)
}

func TestWorker_SecondOfOneIDIsRefused(t *testing.T) {
	t.Parallel()
	database := pgtest.New(t)
	first := startWorker(t, database, database.Pool, "w", quick(), completing())
	enqueue(t, database)
	untilCompleted(t, database, 1)
	wantError(t, runNamed(t, database.Pool, "w-1"), domain.ErrWorkerExists)

	enqueue(t, database) // The first does not notice.
	untilCompleted(t, database, 2)
	first.wantRunning()
}

// A try whose reply was lost has taken its id. A second one under the same id would be refused
// for ever, and says so at once.
func TestWorker_IDsThatRepeatEndInAnError(t *testing.T) {
	t.Parallel()
	database := pgtest.New(t)
	pool, wire := wired(t, database)
	lost := wire.loseReply("-- name: JoinWorker", "same")
	err := runNamed(t, pool, "same")
	waitFor(t, lost, "the reply is lost")
	wantError(t, err, domain.ErrWorkerExists)
	wantWords(t, err.Error(), "same", "NewID")
}

func TestWorker_WrongConfigurationsAreRefusedInWords(t *testing.T) {
	t.Parallel()
	database := pgtest.New(t)
	for name, test := range map[string]struct {
		poolSize int32
		config   holdfast.Config
		words    []string
	}{
		"a pool of one connection": {1, holdfast.Config{}, []string{"pool_max_conns", "is 1, 2 at least", "another connection", "wait for itself"}},
		"one connection":           {4, holdfast.Config{Connections: 1}, []string{"Connections (1)", "at least 4", "never wait for a claim"}},
		"three connections":        {4, holdfast.Config{Connections: 3}, []string{"Connections (3)", "at least 4", "claims and housekeeping"}},
		"no port":                  {4, holdfast.Config{DirectURL: "postgres://u:canary@127.0.0.1:nosuch/db"}, []string{"direct URL", "postgres://user@host:port/database"}},
		"a broken escape":          {4, holdfast.Config{DirectURL: "postgres://u:can%zzcanary@127.0.0.1/db"}, []string{"direct URL", "postgres://user@host:port/database"}},
		"not a URL":                {4, holdfast.Config{DirectURL: "password=canary port=nosuch"}, []string{"direct URL", "postgres://user@host:port/database"}},
		"other buckets":            {4, holdfast.Config{Buckets: 512}, []string{"Buckets", "512 are expected", "has 1024"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			config := database.Pool.Config()
			config.MaxConns = test.poolSize
			pool, err := pgxpool.NewWithConfig(t.Context(), config)
			if err != nil {
				t.Fatal(err)
			}
			defer pool.Close()
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			worker, err := holdfast.NewWorker(pool, test.config, completing())
			if err == nil {
				err = worker.Run(ctx)
			}
			if err == nil {
				t.Fatal("the worker ran")
			}
			wantWords(t, err.Error(), test.words...)
			if whole := fmt.Sprintf("%+v %v", err, errors.Unwrap(err)); strings.Contains(whole, "canary") {
				t.Errorf("the password is printed: %s", whole)
			}
		})
	}
	refused := runCLI(t, database, 2, "work", "--exec", "true", "--direct-url", "postgres://u:canary@127.0.0.1:nosuch/db")
	wantOutput(t, &refused.stderr, "direct URL", "postgres://user@host:port/database")
	if strings.Contains(refused.stderr.String()+refused.stdout.String(), "canary") {
		t.Errorf("the password is printed: %s", refused.stderr.String())
	}
}
