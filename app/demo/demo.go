// Package demo shows on real processes what Holdfast promises: receipts are sent once, though
// one worker is killed between the sending of a receipt and the completion of its job, and
// another in the middle of a handler; and a worker that was paused for longer than its lease
// changes nothing when it wakes.
package demo

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/holdfast-pg/holdfast"
	"github.com/holdfast-pg/holdfast/app"
	"github.com/holdfast-pg/holdfast/app/orders"
	"github.com/holdfast-pg/holdfast/db"
	"github.com/holdfast-pg/holdfast/db/demo"
	"github.com/holdfast-pg/holdfast/db/embedded"
	"github.com/holdfast-pg/holdfast/domain"
)

const (
	// midwayOrder is the order whose worker dies while its receipt is being sent.
	midwayOrder = 9377
	// otherOrders are those around them.
	otherOrders = 300

	patience        = 45 * time.Second // for anything that the demo waits for
	connectPatience = 10 * time.Second // for a database that somebody else runs
)

// ErrBroken says that a row of the table does not hold.
var ErrBroken = errors.New("the demo found other numbers than it expected")

// Options say how the demo runs.
type Options struct {
	DatabaseURL  string    // "" starts a private Postgres that is gone afterwards.
	WithoutMark  bool      // Leave the mark out, to see a receipt sent twice.
	WithoutFence bool      // Leave the guard out, to see a label overwritten by an older run.
	Program      string    // The holdfast binary.
	Out          io.Writer // Gets the story and the table.
}

// show is one run of the demo.
type show struct {
	Options
	story   *story
	url     string
	pool    *pgxpool.Pool
	queue   string // Of the receipts.
	labels  string // The queue of the labels.
	queries *demo.Queries
	workers []*workerProcess

	facts    facts
	reclaims *reclaims
	steps    *steps
	paused   step // Where the paused worker stood.
}

// Run plays the demo. ErrBroken: what was found is not what was expected.
func Run(ctx context.Context, options Options) (err error) {
	queue := "holdfast-demo-" + rand.Text()[:8]
	s := &show{
		Options:  options,
		story:    newStory(options.Out),
		queue:    queue,
		labels:   queue + "-labels",
		queries:  demo.New(),
		reclaims: newReclaims(),
		steps:    &steps{},
	}
	s.story.title(fmt.Sprintf("%d receipts and a parcel's label, five workers, two crashes and a pause", otherOrders+2))
	stop, err := s.openDatabase(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stop()) }()
	defer s.stopWorkers()
	if err := s.play(ctx); err != nil {
		return err
	}
	return s.judge(ctx)
}

// openDatabase finds or starts the server and makes the tables. stop undoes it.
func (s *show) openDatabase(ctx context.Context) (stop func() error, err error) {
	s.url = s.DatabaseURL
	stop = func() error { return nil }
	if s.url == "" {
		server, err := embedded.Start(ctx, embedded.Options{Progress: s.Out})
		if err != nil {
			return nil, err
		}
		stop = server.Stop
		s.url = server.URL()
		s.story.tell("%s started from %s, private to this demo", server.Version(), server.Source())
	}
	s.pool, err = app.Connect(ctx, s.url, connectPatience, slog.New(slog.DiscardHandler))
	if err == nil {
		_, err = db.Migrate(ctx, s.pool.Config().ConnConfig)
	}
	if err == nil {
		err = s.queries.DropSchema(ctx, s.pool)
	}
	if err == nil {
		_, err = s.pool.Exec(ctx, demo.Schema)
	}
	if err != nil {
		return nil, errors.Join(err, stop())
	}
	s.story.tell("schema migrated")
	return s.closer(stop), nil
}

// closer removes the demo's tables, also after Ctrl-C, and then stops the server.
func (s *show) closer(stop func() error) func() error {
	return func() error {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		err := s.queries.DropSchema(ctx, s.pool)
		s.pool.Close()
		return errors.Join(err, stop())
	}
}

func (s *show) play(ctx context.Context) error {
	first := []int64{orders.Sent, orders.Label}
	for id := int64(1); id <= otherOrders; id++ {
		first = append(first, id)
	}
	if err := s.placeOrders(ctx, first); err != nil {
		return err
	}
	s.story.tell("%d orders placed, each request sent twice: %d jobs enqueued, %d duplicates refused", len(first), s.facts.placed, s.facts.duplicates)
	if err := s.startWorkers(ctx); err != nil {
		return err
	}
	if err := s.pausePrinter(ctx); err != nil {
		return err
	}
	if err := s.killAt(ctx, afterCommit(orders.Sent), "committed the receipt of order:%d and is killed before it completes the job", orders.Sent); err != nil {
		return err
	}
	if err := s.placeOrders(ctx, []int64{midwayOrder}); err != nil {
		return err
	}
	if err := s.killAt(ctx, beforeCommit(midwayOrder), "is killed in the middle of sending the receipt of order:%d", midwayOrder); err != nil {
		return err
	}
	if err := s.wakePrinter(ctx); err != nil {
		return err
	}
	return s.awaitCompletion(ctx)
}

// placeOrders places each order in the transaction that enqueues its job, twice, as a client
// does that got no answer to its first request.
func (s *show) placeOrders(ctx context.Context, ids []int64) error {
	for range 2 {
		for _, id := range ids {
			if err := s.placeOrder(ctx, id); err != nil {
				return fmt.Errorf("place order %d: %w", id, err)
			}
		}
	}
	s.facts.orders += len(ids)
	return nil
}

func (s *show) placeOrder(ctx context.Context, id int64) error {
	tx, err := s.pool.Begin(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback(context.WithoutCancel(ctx)) }()
	email := fmt.Sprintf("customer%d@example.com", id)
	if _, err := s.queries.PlaceOrder(ctx, tx, demo.PlaceOrderParams{ID: id, Email: email, Address: orders.OldAddress}); err != nil {
		return err
	}
	var args holdfast.Args = orders.SendReceipt{OrderID: id, Email: email}
	queue := s.queue
	if id == orders.Label { // It gets no receipt, so that each order has one job.
		args, queue = orders.PrintLabel{OrderID: id}, s.labels
	}
	result, err := holdfast.Enqueue(ctx, tx, args,
		holdfast.OnQueue(queue), holdfast.Key(orders.Key(id)), holdfast.Once(fmt.Sprintf("%s:%d", args.Kind(), id)))
	if err != nil {
		return err
	}
	if err := tx.Commit(ctx); err != nil {
		return err
	}
	if result.Duplicate {
		s.facts.duplicates++
	} else {
		s.facts.placed++
	}
	return nil
}

// killAt waits until some worker's handler stands at the given point and kills that worker.
func (s *show) killAt(ctx context.Context, point, story string, order int) error {
	victim, err := s.awaitPoint(ctx, point)
	if err != nil {
		return err
	}
	s.story.warn("%s "+story+" (SIGKILL)", victim.name, order)
	if err := victim.kill(); err != nil {
		return err
	}
	held, err := s.heldByDead(ctx, victim)
	if err != nil {
		return err
	}
	s.facts.killed++
	// On a busy machine a lease may have ended, and its job been reclaimed, before the kill.
	s.facts.lost += held + s.reclaimedFrom(victim)
	if held == 1 {
		s.story.tell("%s held 1 job; its lease ends within %s", victim.name, demoLease)
	} else {
		s.story.tell("%s held %d jobs; their leases end within %s", victim.name, held, demoLease)
	}
	return nil
}

// heldByDead counts what a killed worker still holds, once the server has noticed that its
// connections are gone: until then something it sent may still take effect.
func (s *show) heldByDead(ctx context.Context, dead *workerProcess) (int, error) {
	err := s.until(ctx, "the server to close the connections of "+dead.name, func() (bool, error) {
		sessions, err := s.queries.CountSessions(ctx, s.pool, dead.applicationName)
		return sessions == 0, err
	})
	if err != nil {
		return 0, err
	}
	total := 0
	for _, id := range dead.allIDs() {
		held, err := domain.HeldJobs(ctx, s.pool, id)
		if err != nil {
			return 0, err
		}
		total += int(held)
	}
	return total, nil
}

func (s *show) awaitCompletion(ctx context.Context) error {
	err := s.until(ctx, "all jobs to complete", func() (bool, error) {
		jobs, err := s.queries.CountJobs(ctx, s.pool, []string{s.queue, s.labels})
		return jobs.Completed == jobs.Enqueued, err
	})
	if err != nil {
		return err
	}
	s.tellReclaims(true)
	s.story.tell("every job is completed")
	return s.drainSurvivors()
}

// until asks a condition twenty times a second, for as long as patience lasts, and tells of
// reclaims meanwhile.
func (s *show) until(ctx context.Context, what string, condition func() (bool, error)) error {
	ctx, cancel := context.WithTimeoutCause(ctx, patience, fmt.Errorf("waited %s in vain for %s", patience, what))
	defer cancel()
	ticker := time.NewTicker(50 * time.Millisecond)
	defer ticker.Stop()
	for {
		s.tellReclaims(false)
		holds, err := condition()
		if holds || err != nil && ctx.Err() == nil {
			return err
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-ticker.C:
		}
	}
}
