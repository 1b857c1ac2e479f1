package bench

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"golang.org/x/sync/errgroup"

	"github.com/holdfast-pg/holdfast"
	"github.com/holdfast-pg/holdfast/app"
	"github.com/holdfast-pg/holdfast/db"
	"github.com/holdfast-pg/holdfast/db/bench"
)

const (
	preloaders   = 4    // Connections that fill the queue.
	preloadBatch = 1000 // Jobs of one statement of theirs.

	stuckAfter  = time.Minute      // without any progress.
	dropTimeout = 30 * time.Second // for a database to be dropped.
)

// stage is a database of one trial's own, and what the trial does with it.
type stage struct {
	Options
	server   *server
	title    string
	name     string // Of the database.
	url      string
	pool     *pgxpool.Pool // The bench's own connections: what they do counts in no figure.
	own      *trips
	queries  *bench.Queries
	jobs     *jobSource
	children []*child
}

func (s *server) newStage(ctx context.Context, options Options, title string) (*stage, error) {
	s.progress.begin(title+": make a database", 0)
	made := &stage{
		Options: options, server: s, title: title,
		name:    "holdfast_bench_" + strings.ToLower(rand.Text()[:12]),
		queries: bench.New(), jobs: newJobSource(options.Seed, options.Payload), own: &trips{},
	}
	if err := made.open(ctx); err != nil {
		return nil, errors.Join(err, made.close())
	}
	return made, nil
}

func (s *stage) open(ctx context.Context) (err error) {
	if s.url, err = withDatabase(s.server.url, s.name); err != nil {
		return err
	}
	if err := db.CreateDatabase(ctx, s.server.pool.Config().ConnConfig, s.name); err != nil {
		return err
	}
	if s.pool, err = openTraced(ctx, s.url, preloaders+1, s.own); err != nil {
		return err
	}
	_, err = db.Migrate(ctx, s.pool.Config().ConnConfig)
	return err
}

// close ends what is left of the workers and drops the database, also when the context ended.
func (s *stage) close() error {
	for _, child := range s.children {
		child.kill()
	}
	if s.pool != nil {
		s.pool.Close()
	}
	ctx, cancel := context.WithTimeout(context.Background(), dropTimeout)
	defer cancel()
	return db.DropDatabase(ctx, s.server.pool.Config().ConnConfig, s.name)
}

// setQueue changes the queue that all jobs are in.
func (s *stage) setQueue(ctx context.Context, change holdfast.QueueChange) error {
	_, err := holdfast.SetQueue(ctx, s.pool, queueName, change)
	return err
}

// preload enqueues jobs that nobody works on yet, behind a checkpoint. After one, the first
// change of each page puts the whole page into the log: the enqueue makes those changes, so that
// what is measured later holds no such image, which a checkpoint behind the enqueue would put
// there. The statistics of the tables stay as they are: nobody analyses a production table
// before a burst either.
func (s *stage) preload(ctx context.Context, jobs int) error {
	if err := s.server.checkpoint(ctx); err != nil {
		return err
	}
	s.server.progress.begin(s.title+": enqueue", jobs)
	group, groupCtx := errgroup.WithContext(ctx)
	group.SetLimit(preloaders)
	for done := 0; done < jobs && groupCtx.Err() == nil; {
		batch := s.jobs.batch(min(preloadBatch, jobs-done), time.Now())
		done += len(batch)
		group.Go(func() error {
			_, err := holdfast.EnqueueMany(groupCtx, s.pool, batch...)
			return err
		})
		s.server.progress.at(done)
	}
	return group.Wait()
}

// awaitDone waits until the handlers of the crew have run so many jobs and nothing is left in
// the inbox.
func (s *stage) awaitDone(ctx context.Context, crew *crew, jobs int) error {
	err := s.until(ctx, crew, func() (bool, error) {
		s.server.progress.at(crew.handled())
		return crew.handled() >= jobs, nil
	})
	if err != nil {
		return err
	}
	return s.until(ctx, crew, func() (bool, error) { return s.queries.IsInboxEmpty(ctx, s.pool) })
}

// until asks a condition every two milliseconds for as long as the crew is well and gets on.
func (s *stage) until(ctx context.Context, crew *crew, condition func() (bool, error)) error {
	again := time.NewTicker(2 * time.Millisecond)
	defer again.Stop()
	handled, progressed := -1, time.Now()
	for {
		if err := crew.failure(); err != nil {
			return err
		}
		if holds, err := condition(); holds || err != nil {
			return err
		}
		if now := crew.handled(); now != handled {
			handled, progressed = now, time.Now()
		} else if time.Since(progressed) > stuckAfter {
			return fmt.Errorf("the workers are stuck: %d jobs handled, and none for %s", handled, stuckAfter)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-again.C:
		}
	}
}

// checkArchived makes sure that every job was completed, and once.
func (s *stage) checkArchived(ctx context.Context, jobs int) error {
	left, err := s.queries.CountInbox(ctx, s.pool)
	if err != nil {
		return err
	}
	archived, err := s.queries.CountArchived(ctx, s.pool)
	if err != nil {
		return err
	}
	if left != 0 || archived.Jobs != int64(jobs) || archived.Completions != int64(jobs) {
		return fmt.Errorf("%d jobs were enqueued, %d of them completed %d times, %d left: every one must be completed once",
			jobs, archived.Jobs, archived.Completions, left)
	}
	return nil
}

// tracer follows the round trips of a pool: trips, or a stopwatch around them.
type tracer interface {
	pgx.QueryTracer

	// shouldPing sees the pings, which no pgx.QueryTracer does.
	shouldPing(ctx context.Context, params pgxpool.ShouldPingParams) bool
}

// openTraced opens a pool whose round trips a tracer follows. It sends statements as an application's
// pool does, which keeps them prepared unless its URL says otherwise.
func openTraced(ctx context.Context, url string, connections int, tracer tracer) (*pgxpool.Pool, error) {
	plain, err := app.Connect(ctx, url, connectPatience, slog.New(slog.DiscardHandler))
	if err != nil {
		return nil, err
	}
	config := plain.Config()
	plain.Close()
	config.MaxConns = int32(connections)
	if !strings.Contains(url, "default_query_exec_mode") {
		config.ConnConfig.DefaultQueryExecMode = pgx.QueryExecModeCacheStatement
	}
	config.ConnConfig.Tracer = tracer
	config.ShouldPing = tracer.shouldPing
	return pgxpool.NewWithConfig(ctx, config)
}
