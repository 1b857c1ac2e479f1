package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/jackc/pgx/v5/pgxpool"
)

// graphileSystem is Graphile Worker, on node, with the batching that its own documentation of
// performance describes. It deletes a job that is done.
type graphileSystem struct {
	folder string // Of worker.mjs.
}

// graphileSettings are Graphile Worker's own names. The pool has a connection more than there
// are concurrent jobs, as in its own performance test.
const graphileSettings = `{"concurrentJobs":96,"maxPoolSize":97,"localQueue":{"size":500},"completeJobBatchDelay":0,"failJobBatchDelay":0}`

// The variables that worker.mjs reads.
const (
	urlVariable      = "HOLDFAST_PEERS_URL"
	graphileVariable = "HOLDFAST_PEERS_GRAPHILE"
)

func (graphileSystem) Name() string { return "graphile worker" }

func (graphileSystem) Settings() string {
	return fmt.Sprintf("%s, add_jobs of %d; done: no row in _private_jobs", graphileSettings, addBatch)
}

func (graphileSystem) Deletes() bool { return true }

func (g graphileSystem) Migrate(ctx context.Context, url string) error {
	migrate := exec.CommandContext(ctx, "node", filepath.Join(g.folder, "worker.mjs"), "migrate")
	migrate.Env = append(os.Environ(), graphileVariable+"="+graphileSettings, urlVariable+"="+url)
	migrate.Stderr = os.Stderr
	return migrate.Run()
}

func (graphileSystem) Add(ctx context.Context, pool *pgxpool.Pool, n int) error {
	body, err := json.Marshal(newPayload())
	if err != nil {
		return err
	}
	_, err = count(ctx, pool, `
		SELECT count(*)
		FROM graphile_worker.add_jobs(ARRAY(
			SELECT ROW('noop', $1::json, NULL, NULL, NULL, NULL, NULL, NULL)::graphile_worker.job_spec
			FROM generate_series(1, $2)
		))`, body, n)
	return err
}

func (graphileSystem) Done(ctx context.Context, pool *pgxpool.Pool, added int) (int, error) {
	left, err := count(ctx, pool, "SELECT count(*) FROM graphile_worker._private_jobs")
	return added - left, err
}

func (graphileSystem) Waiting(ctx context.Context, pool *pgxpool.Pool, limit int) (int, error) {
	return count(ctx, pool, "SELECT count(*) FROM (SELECT FROM graphile_worker._private_jobs WHERE is_available LIMIT $1) AS job", limit)
}

func (g graphileSystem) Worker() *exec.Cmd {
	worker := exec.Command("node", filepath.Join(g.folder, "worker.mjs"), "work")
	worker.Env = append(os.Environ(), graphileVariable+"="+graphileSettings)
	return worker
}
