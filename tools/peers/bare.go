package main

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/holdfast-pg/holdfast"
	"github.com/holdfast-pg/holdfast/gen"
)

// bareSystem is the ceiling: Holdfast's own statements in a loop with nothing around them. It
// has no handlers, no leases to renew, no ring, and asks nobody whether a claim still holds.
type bareSystem struct {
	inbox
}

const (
	bareConnections = 2
	bareBatch       = 500
	bareBuckets     = 1024
	bareWindow      = 64                   // Buckets that one claim probes.
	bareQuota       = (bareBatch + 3) / 4  // At most so many jobs from one bucket, by the worker's own rule.
	bareWait        = 5 * time.Millisecond // After a claim of each window that found nothing.
	bareWorkerID    = "bare"
)

func (b bareSystem) Name() string { return "bare loop " + string(b.retention) }

func (b bareSystem) Settings() string {
	return fmt.Sprintf("%d connections, each claims %d jobs from %d of the %d buckets (at most %d from one) and completes them; PlanByIndex in each pipeline, QueryExecModeCacheStatement; done: %s",
		bareConnections, bareBatch, bareWindow, bareBuckets, bareQuota, b.done())
}

func (b bareSystem) Worker() *exec.Cmd { return workerOf("bare", string(b.retention)) }

// workBare runs the loop on each of its connections until ctx ends or one fails.
func workBare(ctx context.Context, url string, retention holdfast.RetentionMode, ready func(versions string)) error {
	config, err := pgx.ParseConfig(url)
	if err != nil {
		return err
	}
	loops := make([]bareLoop, bareConnections)
	for i := range loops {
		connection, err := pgx.ConnectConfig(ctx, config)
		if err != nil {
			return err
		}
		defer connection.Close(context.WithoutCancel(ctx))
		// Loops on different windows do not meet.
		first := i * bareBuckets / bareConnections
		loops[i] = bareLoop{db: planned{connection}, retention: retention, first: int32(first)}
	}
	ready(moduleVersions("github.com/holdfast-pg/holdfast", "github.com/jackc/pgx/v5"))

	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var running sync.WaitGroup
	for _, loop := range loops {
		running.Go(func() {
			if err := loop.run(ctx); err != nil {
				cancel(err)
			}
		})
	}
	running.Wait()
	if err := context.Cause(ctx); !errors.Is(err, context.Canceled) {
		return err
	}
	return nil
}

// bareLoop claims and completes on one connection.
type bareLoop struct {
	db        gen.DBTX
	retention holdfast.RetentionMode
	first     int32 // Bucket of the next window.
}

// run goes round all windows. A batch that was begun is finished: no statement is cancelled.
func (b *bareLoop) run(ctx context.Context) error {
	empty := 0
	for ctx.Err() == nil {
		claimed, err := b.claim(context.WithoutCancel(ctx))
		if err != nil {
			return err
		}
		if len(claimed) > 0 {
			empty = 0
			if err := b.complete(context.WithoutCancel(ctx), claimed); err != nil {
				return err
			}
		} else if empty++; empty%(bareBuckets/bareWindow) == 0 {
			pause(ctx, bareWait)
		}
	}
	return nil
}

func (b *bareLoop) claim(ctx context.Context) ([]gen.ClaimJobsRow, error) {
	window := make([]int32, bareWindow)
	for i := range window {
		window[i] = b.first + int32(i)
	}
	b.first = (b.first + bareWindow) % bareBuckets
	return gen.New().ClaimJobs(ctx, b.db, gen.ClaimJobsParams{
		WorkerID:         bareWorkerID,
		Lease:            90 * time.Second,
		Queue:            queueName,
		PartitionBuckets: window,
		Floors:           make([]time.Time, bareWindow),
		Quota:            bareQuota,
		Batch:            bareBatch,
	})
}

func (b *bareLoop) complete(ctx context.Context, claimed []gen.ClaimJobsRow) error {
	params := gen.CompleteJobsParams{
		WorkerID:         bareWorkerID,
		PartitionBuckets: make([]int32, len(claimed)),
		IDs:              make([]pgtype.UUID, len(claimed)),
		LeaseGenerations: make([]int64, len(claimed)),
	}
	for i, job := range claimed {
		params.PartitionBuckets[i], params.IDs[i], params.LeaseGenerations[i] = job.PartitionBucket, job.ID, job.LeaseGeneration
	}
	var completed int
	if b.retention == holdfast.RetentionDrop {
		rows, err := gen.New().CompleteAndDropJobs(ctx, b.db, gen.CompleteAndDropJobsParams(params))
		if err != nil {
			return err
		}
		completed = len(rows)
	} else {
		rows, err := gen.New().CompleteJobs(ctx, b.db, params)
		if err != nil {
			return err
		}
		completed = len(rows)
	}
	if completed != len(claimed) {
		return fmt.Errorf("%d of %d claimed jobs were completed", completed, len(claimed))
	}
	return nil
}

// planned is a DBTX that sends PlanByIndex in front of a statement, in one round trip, as
// package domain does.
type planned struct{ *pgx.Conn }

func (p planned) Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error) {
	var batch pgx.Batch
	if err := gen.New().PlanByIndex(ctx, queued{batch: &batch}); err != nil {
		return nil, err
	}
	batch.Queue(sql, args...)
	results := p.SendBatch(ctx, &batch)
	if _, err := results.Exec(); err != nil {
		_ = results.Close()
		return nil, err
	}
	rows, err := results.Query()
	if err != nil {
		_ = results.Close()
		return nil, err
	}
	return &batchRows{Rows: rows, results: results}, nil
}

// queued is a DBTX that queues a statement in place of running it.
type queued struct {
	gen.DBTX
	batch *pgx.Batch
}

func (q queued) Exec(_ context.Context, sql string, args ...any) (pgconn.CommandTag, error) {
	q.batch.Queue(sql, args...)
	return pgconn.CommandTag{}, nil
}

// batchRows are rows that end only when the batch has committed.
type batchRows struct {
	pgx.Rows
	results pgx.BatchResults
	err     error
}

func (r *batchRows) Next() bool {
	if r.Rows.Next() {
		return true
	}
	r.Close()
	return false
}

func (r *batchRows) Close() {
	r.Rows.Close()
	if err := r.results.Close(); err != nil && r.err == nil {
		r.err = err
	}
}

func (r *batchRows) Err() error {
	if err := r.Rows.Err(); err != nil {
		return err
	}
	return r.err
}
