package holdfasttest

import (
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/holdfast-pg/holdfast"
	"github.com/holdfast-pg/holdfast/domain"
	"github.com/holdfast-pg/holdfast/internal/testdb"
	"github.com/holdfast-pg/holdfast/worker"
)

// drainLimit bounds a drain.
const drainLimit = 30 * time.Second

// Drain runs a real worker until nothing is due that the handlers are for, also of what they
// enqueue meanwhile, and returns how each run of a handler ended, in the order of their ends.
// Leases that have ended are reclaimed first. Jobs that wait for a delay or a retry stay, and
// so do those of other kinds and of paused queues. A drain that takes longer than 30 s fails
// the test. The handlers run in goroutines of the worker's, up to 8 at once, under ctx.
func Drain(tb testing.TB, ctx context.Context, pool *pgxpool.Pool, handlers ...holdfast.Handler) []Outcome {
	tb.Helper()
	return drainWithin(tb, ctx, drainLimit, pool, handlers, false)
}

// DrainAll is Drain for what waits as well: delays and backoffs end at once, until each job of
// the handlers' kinds is completed, failed or dead-lettered. A handler that snoozes for ever fails
// the test after 30 s.
func DrainAll(tb testing.TB, ctx context.Context, pool *pgxpool.Pool, handlers ...holdfast.Handler) []Outcome {
	tb.Helper()
	return drainWithin(tb, ctx, drainLimit, pool, handlers, true)
}

func drainWithin(tb testing.TB, ctx context.Context, limit time.Duration, pool *pgxpool.Pool, handlers []holdfast.Handler, waiting bool) []Outcome {
	tb.Helper()
	if len(handlers) == 0 {
		tb.Fatal("holdfasttest: Drain needs the handlers of the jobs to work off")
	}
	d := &drain{tb: tb, pool: pool, waiting: waiting, name: "holdfasttest-" + rand.Text() + "-", end: time.Now().Add(limit), limit: limit}
	for _, handler := range handlers {
		d.add(handler)
	}
	d.reclaim()
	// A handler may enqueue to a queue that the worker does not serve; then there is another one.
	for d.left() {
		d.work(ctx, d.busy())
	}
	return d.outcomes
}

// drain is one drain under way.
type drain struct {
	tb       testing.TB
	pool     *pgxpool.Pool
	waiting  bool   // What waits is made due.
	name     string // What the ids of the workers begin with.
	limit    time.Duration
	end      time.Time
	handlers []worker.Handler
	kinds    []string // Theirs; "" among them stands for all.
	workers  atomic.Int64

	mutex    sync.Mutex
	outcomes []Outcome
}

// add takes a handler, and notes how its runs end.
func (d *drain) add(handler holdfast.Handler) {
	run := func(ctx context.Context, job domain.ClaimedJob) error {
		err := handler.Try(ctx, job)
		outcome, _ := read(job, err)
		d.mutex.Lock()
		defer d.mutex.Unlock()
		d.outcomes = append(d.outcomes, outcome)
		return err
	}
	noted := worker.HandleKind(handler.Kind(), run)
	if handler.Settles() {
		noted = worker.HandleSettling(handler.Kind(), run)
	}
	d.handlers = append(d.handlers, noted)
	d.kinds = append(d.kinds, handler.Kind())
}

func (d *drain) reclaim() {
	d.tb.Helper()
	queue, err := domain.NewQueue(d.pool)
	if err != nil {
		d.tb.Fatalf("holdfasttest: drain: %v", err)
	}
	defer queue.Close()
	if _, _, err := queue.Reclaim(d.tb.Context(), 0); err != nil {
		d.tb.Fatalf("holdfasttest: drain: %v", err)
	}
}

// work runs a worker of the queues until it has nothing to do there.
func (d *drain) work(ctx context.Context, queues []string) {
	d.tb.Helper()
	var strays strays
	handlers := d.handlers
	if !slices.Contains(d.kinds, "") {
		handlers = append(slices.Clip(handlers), worker.HandleRest(strays.putOff))
	}
	created, err := holdfast.NewWorker(d.pool, holdfast.Config{
		Queues:        queues,
		Affinity:      holdfast.AffinityNone,
		ActivePoll:    5 * time.Millisecond,
		IdlePoll:      50 * time.Millisecond,
		DrainDeadline: time.Second,
		Logger:        slog.New(slog.NewTextHandler(d.tb.Output(), &slog.HandlerOptions{Level: slog.LevelWarn})),
		NewID:         func() string { return d.name + strconv.FormatInt(d.workers.Add(1), 10) },
	}, handlers...)
	if err != nil {
		d.tb.Fatalf("holdfasttest: drain: %v", err)
	}
	working, stop := context.WithCancel(ctx)
	defer stop()
	returned := make(chan error, 1)
	go func() { returned <- created.Run(working) }()
	var failure error
	ended := false
	done := testdb.Poll(time.Until(d.end), func() bool {
		select {
		case failure = <-returned:
			ended = true
			return true
		default:
			return !d.left(queues...)
		}
	})
	stop()
	if !ended {
		failure = <-returned
	}
	strays.putBack(d.tb, d.pool)
	switch {
	case failure != nil:
		d.tb.Fatalf("holdfasttest: drain: the worker says: %v", failure)
	case ctx.Err() != nil:
		d.tb.Fatalf("holdfasttest: drain: the context has ended: %v", context.Cause(ctx))
	case !done:
		d.giveUp()
	}
}

func (d *drain) giveUp() {
	d.tb.Helper()
	d.mutex.Lock()
	defer d.mutex.Unlock()
	var text strings.Builder
	for i, outcome := range slices.Backward(d.outcomes) {
		if i < len(d.outcomes)-shown {
			fmt.Fprintf(&text, "\n  and %d before", i+1)
			break
		}
		text.WriteString("\n  " + outcome.String())
	}
	if text.Len() == 0 {
		text.WriteString(" none")
	}
	d.tb.Fatalf("holdfasttest: drain: there was still something to do after %s. Does a handler wait for something, or come back for ever? The latest runs:%s", d.limit, text.String())
}

// strays are jobs for which there is no handler. The worker claims them like any other; they
// are put off meanwhile, and back to where they were in the end.
type strays struct {
	mutex sync.Mutex
	jobs  []domain.ClaimedJob
}

func (s *strays) putOff(_ context.Context, job domain.ClaimedJob) error {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.jobs = append(s.jobs, job)
	return holdfast.Snooze(time.Hour)
}

func (s *strays) putBack(tb testing.TB, pool *pgxpool.Pool) {
	tb.Helper()
	s.mutex.Lock()
	defer s.mutex.Unlock()
	for _, job := range s.jobs {
		_, err := pool.Exec(context.WithoutCancel(tb.Context()), `
			UPDATE holdfast.inbox
			SET available_at = $2
			WHERE id = $1
				AND status = 'pending'`, job.ID.String(), job.AvailableAt)
		if err != nil {
			tb.Errorf("holdfasttest: drain: put job %s of kind %s back: %v", job.ID, job.Kind, err)
		}
	}
}
