package main

import (
	"context"
	"crypto/rand"
	"errors"
	"log/slog"
	"os"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/holdfast-pg/holdfast"
	"github.com/holdfast-pg/holdfast/domain"
	"github.com/holdfast-pg/holdfast/integration/soak/history"
	"github.com/holdfast-pg/holdfast/worker"
)

// The times of a worker are the usual ones divided by 45, so that their ratios are kept.
const (
	lease         = 2 * time.Second
	housekeeping  = 250 * time.Millisecond
	drainPatience = 30 * time.Second
)

func workerConfig(given orders) worker.Config {
	config := worker.Config{
		Queues:        []string{ordinaryQueue, orderedQueue},
		Concurrency:   16,
		ClaimBatch:    50,
		Lease:         lease,
		RenewEvery:    600 * time.Millisecond,
		LeaseMargin:   200 * time.Millisecond,
		Heartbeat:     500 * time.Millisecond,
		WorkerTTL:     1500 * time.Millisecond,
		Housekeeping:  housekeeping,
		RingCache:     500 * time.Millisecond,
		ActivePoll:    10 * time.Millisecond,
		IdlePoll:      200 * time.Millisecond,
		DrainDeadline: 3 * time.Second,
		Logger:        slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelInfo})),
	}
	if given.NoHousekeeping {
		config.Housekeeping = time.Hour
	}
	if given.ClockOffset != 0 {
		config.Clock = wrongClock{worker.SystemClock{}, given.ClockOffset}
	}
	return config
}

// wrongClock tells another time than it is. Durations are right.
type wrongClock struct {
	worker.Clock
	offset time.Duration
}

func (c wrongClock) Now() time.Time { return c.Clock.Now().Add(c.offset) }

// work is the life of a worker process: until it is told to drain.
func work(ctx context.Context, given orders) (err error) {
	file, err := history.Create(given.Dir, history.ClientFile(given.Name))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	jobs, err := pgxpool.New(ctx, given.JobsURL)
	if err != nil {
		return err
	}
	defer jobs.Close()
	sink, err := pgxpool.New(ctx, given.SinkURL)
	if err != nil {
		return err
	}
	defer sink.Close()
	queue, err := domain.NewQueue(jobs, domain.Connections(0), domain.ListenOn(given.JobsURL))
	if err != nil {
		return err
	}
	diary := &diary{file: file, process: given.Name}
	hands := &hands{diary: diary, jobs: jobs, sink: sink}
	config := workerConfig(given)
	var id atomic.Value // The latest: a worker that has to rejoin takes another.
	config.NewID = func() string {
		id.Store(given.Name + "-" + rand.Text()[:8])
		return id.Load().(string)
	}
	created, err := worker.New(&recorder{Queue: queue, diary: diary}, config, hands.handlers()...)
	if err != nil {
		return err
	}
	drained := make(chan time.Time, 1)
	context.AfterFunc(ctx, func() { drained <- time.Now() })
	if err := created.Run(ctx); err != nil {
		return err
	}
	diary.write(history.Op{Op: history.OpDrain, Begin: <-drained, Outcome: history.OK, WorkerID: id.Load().(string)})
	return nil
}

// diary is the history of one process.
type diary struct {
	file    *history.Writer
	process string
}

// write adds an operation that ends now. A process that cannot say what it did must not do it.
func (d *diary) write(op history.Op) {
	op.Process, op.End = d.process, time.Now()
	if err := d.file.Write(op); err != nil {
		panic(err)
	}
}

// outcomeOf names what a call returned.
func outcomeOf(err error) (outcome, text string) {
	switch {
	case err == nil:
		return history.OK, ""
	case errors.Is(err, holdfast.ErrLeaseLost):
		return history.Stale, ""
	case errors.Is(err, holdfast.ErrFenced):
		return history.Refused, ""
	case didNotHappen(err):
		return history.Error, err.Error()
	}
	return history.Ambiguous, err.Error()
}
