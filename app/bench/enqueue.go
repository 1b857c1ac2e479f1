package bench

import (
	"context"
	"encoding/json"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgtype"
	"github.com/jackc/pgx/v5/pgxpool"
	"golang.org/x/sync/errgroup"

	"github.com/holdfast-pg/holdfast"
	"github.com/holdfast-pg/holdfast/db/bench"
	"github.com/holdfast-pg/holdfast/domain"
)

const (
	setEnqueuers = 2      // Connections that enqueue sets.
	setSize      = 1000   // Jobs of a set.
	rowEnqueuers = 16     // Connections that enqueue one job after the other.
	rowTurns     = 5      // Turns of both ways of it, the one to warm up included.
	rowRate      = 20_000 // Rows a second, for the room to make sure of.
)

// enqueues asks what it costs to add jobs while nobody works on them: in sets, and one by one
// beside an INSERT of the same row, which is the least that it can cost, and beside the function
// that other languages call.
var enqueues = scenario{
	name:  "enqueue",
	about: "jobs are added, in sets and one by one; nobody works on them",
	trials: func(o Options) []trial {
		jobs := o.jobs(5_000, 200_000)
		each := bySize(o, 500*time.Millisecond, 5*time.Second)
		ofSets := needs{producers: setEnqueuers, jobs: jobs, payload: o.Payload}
		ofRows := needs{producers: rowEnqueuers, jobs: int(rowRate * (rowTurns * each).Seconds()), payload: o.Payload}
		return []trial{
			{"sets", ofSets, func(ctx context.Context, s *stage) ([]Figure, error) { return s.enqueueSets(ctx, jobs, false) }},
			{"sets with keys", ofSets, func(ctx context.Context, s *stage) ([]Figure, error) { return s.enqueueSets(ctx, jobs, true) }},
			{"one by one", ofRows, func(ctx context.Context, s *stage) ([]Figure, error) { return s.enqueueRows(ctx, each) }},
			{"in SQL", ofRows, func(ctx context.Context, s *stage) ([]Figure, error) { return s.enqueueInSQL(ctx, each) }},
		}
	},
}

// addition is how many jobs were added, in which time, and how much log they made.
type addition struct {
	jobs    int
	elapsed time.Duration
	log     int64
}

func (a *addition) add(other addition) {
	a.jobs += other.jobs
	a.elapsed += other.elapsed
	a.log += other.log
}

func (a addition) rate() float64 { return float64(a.jobs) / a.elapsed.Seconds() }

func (a addition) logEach() float64 { return float64(a.log) / float64(a.jobs) }

// enqueueSets enqueues so many jobs with EnqueueMany, each with an idempotency key of its own
// or without.
func (s *stage) enqueueSets(ctx context.Context, jobs int, keyed bool) ([]Figure, error) {
	pool, err := s.openAll(ctx, setEnqueuers)
	if err != nil {
		return nil, err
	}
	defer pool.Close()
	s.server.progress.begin(s.title, 0)
	added, err := s.timed(ctx, setEnqueuers, func(ctx context.Context, i int) (int, error) {
		source := newJobSource(s.Seed*setEnqueuers+int64(i), s.Payload)
		share := (jobs + i) / setEnqueuers
		for done := 0; done < share; done += setSize {
			set := source.batch(min(setSize, share-done), time.Now())
			for j := range set {
				if keyed {
					set[j].Options = append(set[j].Options, holdfast.Once(source.key()))
				}
			}
			if _, err := holdfast.EnqueueMany(ctx, pool, set...); err != nil {
				return 0, err
			}
		}
		return share, nil
	})
	if err != nil {
		return nil, err
	}
	return []Figure{
		{"jobs", "", float64(added.jobs)},
		{"rate", "jobs/s", added.rate()},
		{"log", "bytes/job", added.logEach()},
	}, s.checkWaiting(ctx, added.jobs)
}

// enqueueRows enqueues one job after the other, each in a transaction of its own, and inserts
// bare rows, in turns.
func (s *stage) enqueueRows(ctx context.Context, each time.Duration) ([]Figure, error) {
	enqueued, inserted, err := s.inTurns(ctx, each, enqueueOne, s.insertBare)
	if err != nil {
		return nil, err
	}
	return []Figure{
		{"jobs", "", float64(enqueued.jobs)},
		{"rate", "jobs/s", enqueued.rate()},
		{"log", "bytes/job", enqueued.logEach()},
		{"rate of a bare INSERT", "rows/s", inserted.rate()},
		{"log of a bare INSERT", "bytes/row", inserted.logEach()},
		{"enqueue / INSERT", "", enqueued.rate() / inserted.rate()},
	}, nil
}

// enqueueInSQL enqueues one job after the other with holdfast.enqueue, as any language can, and
// with Enqueue, in turns.
func (s *stage) enqueueInSQL(ctx context.Context, each time.Duration) ([]Figure, error) {
	inSQL, inGo, err := s.inTurns(ctx, each, s.enqueueSQL, enqueueOne)
	if err != nil {
		return nil, err
	}
	return []Figure{
		{"jobs", "", float64(inSQL.jobs)},
		{"rate", "jobs/s", inSQL.rate()},
		{"log", "bytes/job", inSQL.logEach()},
		{"rate of Enqueue", "jobs/s", inGo.rate()},
		{"holdfast.enqueue / Enqueue", "", inSQL.rate() / inGo.rate()},
	}, nil
}

// act adds one row.
type act func(context.Context, *pgxpool.Pool, *jobSource) error

// inTurns adds rows in one way and in another, in turns whose order is the same from either end.
// One that does not count comes first: whoever is first after a checkpoint writes whole pages
// into the log.
func (s *stage) inTurns(ctx context.Context, each time.Duration, one, other act) (ofOne, ofOther addition, err error) {
	pool, err := s.openAll(ctx, rowEnqueuers)
	if err != nil {
		return ofOne, ofOther, err
	}
	defer pool.Close()
	s.server.progress.begin(s.title, rowTurns)
	var first addition
	turns := [rowTurns]struct {
		act   act
		total *addition
	}{{other, &first}, {one, &ofOne}, {other, &ofOther}, {other, &ofOther}, {one, &ofOne}}
	for i, turn := range turns {
		added, err := s.timed(ctx, rowEnqueuers, func(ctx context.Context, enqueuer int) (int, error) {
			source := newJobSource(s.Seed*rowTurns*rowEnqueuers+int64(i*rowEnqueuers+enqueuer), s.Payload)
			n, end := 0, time.Now().Add(each)
			for ; time.Now().Before(end); n++ {
				if err := turn.act(ctx, pool, source); err != nil {
					return 0, err
				}
			}
			return n, nil
		})
		if err != nil {
			return ofOne, ofOther, err
		}
		turn.total.add(added)
		s.server.progress.at(i + 1)
	}
	return ofOne, ofOther, s.checkWaiting(ctx, first.jobs+ofOne.jobs+ofOther.jobs)
}

// enqueueOne enqueues a job of the source.
func enqueueOne(ctx context.Context, pool *pgxpool.Pool, source *jobSource) error {
	job := source.batch(1, time.Now())[0]
	_, err := holdfast.Enqueue(ctx, pool, job.Args, job.Options...)
	return err
}

// enqueueSQL enqueues the job that enqueueOne would, by the function for any language.
func (s *stage) enqueueSQL(ctx context.Context, pool *pgxpool.Pool, source *jobSource) error {
	job := source.batch(1, time.Now())[0]
	terms, err := domain.TermsOf(job.Options...)
	if err != nil {
		return err
	}
	body, err := json.Marshal(job.Args)
	if err != nil {
		return err
	}
	return s.queries.EnqueueInSQL(ctx, pool, bench.EnqueueInSQLParams{Kind: job.Args.Kind(), Payload: body, Key: terms.Key, Queue: terms.Queue})
}

// insertBare inserts the row that enqueueOne would.
func (s *stage) insertBare(ctx context.Context, pool *pgxpool.Pool, source *jobSource) error {
	job, key := source.batch(1, time.Now())[0], source.key()
	body, err := json.Marshal(job.Args)
	if err != nil {
		return err
	}
	bucket := domain.BucketOf(key, bucketCount)
	return s.queries.InsertBare(ctx, pool, bench.InsertBareParams{
		ID:              pgtype.UUID{Bytes: domain.NewJobID(time.Now(), bucket), Valid: true},
		PartitionBucket: int32(bucket), Queue: queueName, Kind: job.Args.Kind(), PartitionKey: key, Payload: body,
	})
}

// timed runs the action so many times at once, after a checkpoint, and adds up how many jobs
// each says it added.
func (s *stage) timed(ctx context.Context, concurrency int, act func(ctx context.Context, i int) (int, error)) (added addition, err error) {
	if err := s.server.checkpoint(ctx); err != nil {
		return added, err
	}
	before, err := s.queries.WALPosition(ctx, s.server.pool)
	if err != nil {
		return added, err
	}
	var jobs atomic.Int64
	group, groupCtx := errgroup.WithContext(ctx)
	began := time.Now()
	for i := range concurrency {
		group.Go(func() error {
			n, err := act(groupCtx, i)
			jobs.Add(int64(n))
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return added, err
	}
	added.jobs, added.elapsed = int(jobs.Load()), time.Since(began)
	after, err := s.queries.WALPosition(ctx, s.server.pool)
	added.log = after - before
	return added, err
}

// openAll opens as many connections. All are there when it returns.
func (s *stage) openAll(ctx context.Context, connections int) (*pgxpool.Pool, error) {
	config := s.pool.Config()
	config.MaxConns = int32(connections)
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, err
	}
	var held []*pgxpool.Conn
	for range connections {
		var conn *pgxpool.Conn
		if conn, err = pool.Acquire(ctx); err != nil {
			break
		}
		held = append(held, conn)
	}
	for _, conn := range held {
		conn.Release()
	}
	if err != nil {
		pool.Close()
		return nil, err
	}
	return pool, nil
}

// checkWaiting makes sure that so many jobs wait.
func (s *stage) checkWaiting(ctx context.Context, jobs int) error {
	waiting, err := s.queries.CountInbox(ctx, s.pool)
	if err == nil && waiting != int64(jobs) {
		err = fmt.Errorf("%d jobs were added and %d are there", jobs, waiting)
	}
	return err
}
