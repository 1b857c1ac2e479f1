package relay

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"net/url"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/holdfast-pg/holdfast"
	"github.com/holdfast-pg/holdfast/domain"
	"github.com/holdfast-pg/holdfast/worker"
)

// Config says how a relay works. The zero value of every field is the default named here.
type Config struct {
	// Queue is the outbox. Default: "default".
	Queue string

	// Destination names the publisher's other end for people, without secrets. Default: "".
	Destination string

	// Source is the source of the CloudEvents, a URI reference; with the id it is unique.
	// Default: "/holdfast/" and the queue.
	Source string

	// Batch is the most messages that are published at once. Default: 256.
	Batch int

	// Timeout is how long a batch may take. A message without an answer by then is given back,
	// and may be published again. Default: 10 s; at most a third of the worker's lease.
	Timeout time.Duration

	// Worker is the configuration of the relay's worker, but for Queues, Gate and Says, which are
	// the relay's. Its Concurrency, if it is 0, is Batch.
	Worker worker.Config
}

// WithDefaults returns the configuration with every zero field replaced by its default.
func (c Config) WithDefaults() Config {
	c.Queue = cmp.Or(c.Queue, domain.DefaultQueue)
	c.Source = cmp.Or(c.Source, "/holdfast/"+url.PathEscape(c.Queue))
	c.Batch = cmp.Or(c.Batch, 256)
	c.Timeout = cmp.Or(c.Timeout, 10*time.Second)
	c.Worker.Concurrency = cmp.Or(c.Worker.Concurrency, c.Batch)
	c.Worker.Queues = []string{c.Queue}
	c.Worker = c.Worker.WithDefaults()
	return c
}

// Validate checks a configuration with its defaults filled in.
func (c Config) Validate() error {
	c = c.WithDefaults()
	switch {
	case c.Batch < 1:
		return fmt.Errorf("relay configuration: Batch must be positive, it is %d", c.Batch)
	case c.Timeout < 0 || c.Timeout > c.Worker.Lease/3:
		return fmt.Errorf("relay configuration: Timeout (%s) must be positive and at most a third of the worker's Lease (%s): a batch must not outlive the leases of its jobs", c.Timeout, c.Worker.Lease)
	}
	return c.Worker.Validate()
}

// Relay publishes the jobs of a queue.
type Relay struct {
	config    Config
	publisher Publisher
	worker    *worker.Worker
	log       *slog.Logger

	batches *batches
	gate    *worker.Gate
	shut    chan time.Duration // Holds how long the destination is left alone, once it is away.
	status  status
}

// New returns a relay of a queue in the pool's database. Run closes the publisher at its end.
// Errors: a Config that does not validate, and those of holdfast.NewWorker.
func New(pool *pgxpool.Pool, config Config, publisher Publisher) (*Relay, error) {
	if err := config.Validate(); err != nil {
		return nil, err
	}
	r := newRelay(config, publisher)
	created, err := holdfast.NewWorker(pool, r.workerConfig(), worker.HandleRest(r.handle))
	r.worker = created
	return r, err
}

func newRelay(config Config, publisher Publisher) *Relay {
	config = config.WithDefaults()
	return &Relay{
		config:    config,
		publisher: publisher,
		log:       config.Worker.Logger.With("queue", config.Queue, "destination", config.Destination),
		batches:   newBatches(config.Batch),
		gate:      &worker.Gate{},
		shut:      make(chan time.Duration, 1),
	}
}

// workerConfig is the worker's configuration with what is the relay's in it.
func (r *Relay) workerConfig() worker.Config {
	config := r.config.Worker
	config.Gate = r.gate
	config.Says = func() any { return said{Relay: r.Status()} }
	return config
}

// Worker returns the worker that the relay is, for its health and to stop it at once.
func (r *Relay) Worker() *worker.Worker { return r.worker }

// Run publishes until the context ends, as a worker works: see worker.Worker.Run. What was given
// to the publisher is answered before it returns, or within Config.Timeout.
func (r *Relay) Run(ctx context.Context) error {
	lasting, stop := context.WithCancel(context.WithoutCancel(ctx))
	var background sync.WaitGroup
	background.Go(func() { r.publishLoop(lasting) })
	background.Go(func() { r.gateLoop(lasting) })
	err := r.worker.Run(ctx)
	stop()
	background.Wait()
	if closing := r.publisher.Close(); closing != nil {
		r.log.Warn("the publisher did not close in good order", "error", closing)
	}
	return err
}

// handle is the handler of every job: it hands the message over and waits for its result.
func (r *Relay) handle(ctx context.Context, job domain.ClaimedJob) error {
	if r.gate.IsClosed() {
		return domain.Snooze(0) // It was claimed before the destination went away.
	}
	parcel := &parcel{ctx: ctx, message: newMessage(r.config.Source, job), result: make(chan error, 1)}
	r.batches.add(parcel)
	select {
	case result := <-parcel.result:
		return outcome(result)
	case <-ctx.Done():
		return fmt.Errorf("the message had no answer: %w", context.Cause(ctx))
	}
}
