package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
)

// The scenarios.
const (
	drain  = "drain"  // All jobs are there before the work begins.
	steady = "steady" // Jobs are added while others are done.
)

const (
	// backlog is how many waiting jobs the producer of steady keeps: enough that no system
	// waits, and few enough that none works through a heap.
	backlog = 20_000

	// glance is the pause between two looks of that producer: less than any system needs for
	// the backlog, and long enough that looking costs nothing.
	glance = 200 * time.Millisecond
)

// sample is what one system did in one round.
type sample struct {
	Jobs      int     `json:"jobs"`
	Seconds   float64 `json:"seconds"`
	Rate      float64 `json:"jobs_per_second"`
	WALPerJob float64 `json:"wal_bytes_per_job"`
	Waiting   float64 `json:"mean_waiting"` // Jobs that the looks of steady found waiting.
	versions  string
}

// course is one system at work in one round.
type course struct {
	options
	system system
	pool   *pgxpool.Pool
	worker *workerProcess
	added  int

	started  time.Time
	startWAL int
}

// measure lets a system run through a scenario in a fresh database.
func measure(ctx context.Context, o options, on *server, system system, scenario string) (result sample, err error) {
	const database = "holdfast_bench_peers"
	url, err := on.create(ctx, database)
	if err != nil {
		return sample{}, fmt.Errorf("create a database: %w", err)
	}
	defer func() { err = errors.Join(err, on.drop(context.WithoutCancel(ctx), database)) }()
	if err := system.Migrate(ctx, url); err != nil {
		return sample{}, fmt.Errorf("make the schema: %w", err)
	}
	pool, err := pgxpool.New(ctx, url)
	if err != nil {
		return sample{}, err
	}
	defer pool.Close()
	c := course{options: o, system: system, pool: pool}
	first := backlog
	if scenario == drain {
		first = o.jobs
	}
	if err := c.prepare(ctx, first); err != nil {
		return sample{}, err
	}
	c.worker, err = startWorker(ctx, system.Worker(), url)
	if err != nil {
		return sample{}, fmt.Errorf("start the worker: %w", err)
	}
	defer func() {
		if err != nil {
			_ = c.worker.stop() // The error that is there says more.
		}
	}()
	return c.run(ctx, scenario)
}

// prepare adds the first jobs. Statistics are fresh for all: otherwise autovacuum would bring
// them in the middle of some runs.
func (c *course) prepare(ctx context.Context, jobs int) error {
	for c.added < jobs {
		if err := c.add(ctx, min(addBatch, jobs-c.added)); err != nil {
			return err
		}
	}
	if _, err := c.pool.Exec(ctx, "ANALYZE"); err != nil {
		return fmt.Errorf("analyze: %w", err)
	}
	return nil
}

func (c *course) add(ctx context.Context, n int) error {
	if err := c.system.Add(ctx, c.pool, n); err != nil {
		return fmt.Errorf("add jobs: %w", err)
	}
	c.added += n
	return nil
}

func (c *course) run(ctx context.Context, scenario string) (result sample, err error) {
	if c.startWAL, err = c.wal(ctx); err != nil {
		return sample{}, err
	}
	c.started = time.Now()
	if err := c.worker.begin(); err != nil {
		return sample{}, err
	}
	if scenario == drain {
		result, err = c.untilDone(ctx)
	} else {
		result, err = c.forDuration(ctx)
	}
	if err != nil {
		return sample{}, err
	}
	// A worker that does not end well has failed, whatever it did before.
	return result, c.worker.stop()
}

// untilDone waits until the tables show every job as done. It looks the more often the nearer
// that is: a look takes time from the system, and the last one decides.
func (c *course) untilDone(ctx context.Context) (sample, error) {
	most, progress := 0, c.started
	for {
		result, err := c.look(ctx)
		if err != nil || result.Jobs == c.added {
			return result, err
		}
		now := time.Now()
		if result.Jobs > most {
			most, progress = result.Jobs, now
		}
		if now.Sub(progress) > patience {
			return sample{}, fmt.Errorf("no job was done in %s: %d of %d are left", patience, c.added-most, c.added)
		}
		wait := 100 * time.Millisecond
		if result.Rate > 0 {
			left := float64(c.added-result.Jobs) / result.Rate
			wait = time.Duration(left / 2 * float64(time.Second))
		}
		pause(ctx, min(max(wait, 20*time.Millisecond), 2*time.Second))
	}
}

// forDuration keeps jobs waiting and counts at the end how many were done.
func (c *course) forDuration(ctx context.Context) (sample, error) {
	looks, found := 0, 0
	for time.Since(c.started) < c.duration {
		if err := errors.Join(ctx.Err(), c.worker.check()); err != nil {
			return sample{}, err
		}
		waiting, err := c.system.Waiting(ctx, c.pool, backlog)
		if err != nil {
			return sample{}, fmt.Errorf("count waiting jobs: %w", err)
		}
		looks++
		found += waiting
		if waiting == backlog {
			pause(ctx, glance)
		}
		for ; waiting < backlog && time.Since(c.started) < c.duration; waiting += addBatch {
			if err := c.add(ctx, addBatch); err != nil {
				return sample{}, err
			}
		}
	}
	result, err := c.look(ctx)
	if err == nil && result.Jobs == 0 {
		err = fmt.Errorf("no job was done in %s", c.duration)
	}
	result.Waiting = float64(found) / float64(max(looks, 1))
	return result, err
}

// look counts what is done. The time is that before the question: whatever the answer shows
// was done by then, or a moment later.
func (c *course) look(ctx context.Context) (sample, error) {
	if err := errors.Join(ctx.Err(), c.worker.check()); err != nil {
		return sample{}, err
	}
	passed := time.Since(c.started).Seconds()
	done, err := c.system.Done(ctx, c.pool, c.added)
	if err != nil {
		return sample{}, fmt.Errorf("count jobs that are done: %w", err)
	}
	if done > c.added {
		return sample{}, fmt.Errorf("%d jobs are done, and %d were added", done, c.added)
	}
	end, err := c.wal(ctx)
	if err != nil {
		return sample{}, err
	}
	return sample{
		Jobs:      done,
		Seconds:   passed,
		Rate:      float64(done) / passed,
		WALPerJob: float64(end-c.startWAL) / float64(max(done, 1)),
		versions:  c.worker.versions,
	}, nil
}

// wal returns how many bytes of WAL the server has written.
func (c *course) wal(ctx context.Context) (int, error) {
	bytes, err := count(ctx, c.pool, "SELECT pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')::bigint")
	if err != nil {
		return 0, fmt.Errorf("read the WAL position: %w", err)
	}
	return bytes, nil
}
