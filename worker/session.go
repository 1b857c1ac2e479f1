package worker

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-pg/holdfast/domain"
)

// session is one membership in the registry, from joining to leaving.
type session struct {
	Config

	id          string
	queue       Queue
	handlers    map[string]Handler
	bucketCount int
	allBuckets  []int
	members     *membership
	bell        *bell
	stopNow     <-chan struct{}
	log         *slog.Logger
	debug       bool            // Lines at level debug are kept.
	handling    context.Context // What the contexts of handlers are made from.

	began    time.Time
	draining atomic.Bool

	observerPanicked atomic.Bool

	// What health.go goes by.
	claimPulse, beatPulse, renewPulse, housePulse pulse

	stock   *stock
	running sync.WaitGroup // Handlers, and those that wait for a job to handle.
	results *results

	claimTimes  recent // Of claim statements.
	waitTimes   recent // Of jobs, from due to claimed.
	handleTimes recent // Of handlers.

	mutex    sync.Mutex
	held     map[int64]*run // By generation, which no two claims share.
	stopping bool           // Handlers are cancelled, and no other is started.

	// The claim loop's.
	watches map[string]*watch // By queue.

	// Housekeeping's.
	recall recall

	accepting sync.Mutex
	phase     int             // The turn in which the latest job is renewed.
	heavies   map[string]bool // Kinds whose payloads were warned about.
}

func newSession(w *Worker, id string, meta domain.Meta) *session {
	s := &session{
		Config:      w.config,
		id:          id,
		queue:       w.queue,
		handlers:    w.handlers,
		bucketCount: meta.BucketCount,
		bell:        newBell(),
		stopNow:     w.stopNow,
		log:         w.config.Logger.With("worker_id", id),
		stock:       newStock(w.config.Concurrency),
		results:     newResults(),
		held:        map[int64]*run{},
		heavies:     map[string]bool{},
		watches:     map[string]*watch{},
		phase:       int(w.config.Random() * renewalTurns),
		began:       w.config.Clock.Now(),
	}
	s.startPulses()
	s.allBuckets = bucketsUpTo(s.bucketCount)
	s.members = newMembership(s.Queues, s.allBuckets)
	s.debug = s.log.Enabled(context.Background(), slog.LevelDebug)
	for _, queue := range s.Queues {
		s.watches[queue] = newWatch(s.Config, s.bucketCount)
	}
	return s
}

// run works until the context ends, a drain is ordered or the worker is declared dead, and
// returns which, after the worker let go of everything it held.
func (s *session) run(ctx context.Context) (reason, err error) {
	s.log.Info("worker joined", "queues", s.Queues, "concurrency", s.Concurrency, "affinity", s.Affinity)
	s.handling = context.WithoutCancel(ctx)
	claiming, stopClaiming := context.WithCancelCause(ctx)
	defer stopClaiming(nil)

	// These go on while the worker drains: leases are renewed to the last.
	lasting, stopLasting := context.WithCancel(context.WithoutCancel(ctx))
	defer stopLasting()
	var background sync.WaitGroup
	background.Go(func() { s.beatLoop(lasting, stopClaiming) })
	background.Go(func() { s.renewLoop(lasting) })
	background.Go(func() { s.deadlineLoop(lasting) })
	background.Go(func() { s.housekeepingLoop(lasting) })
	background.Go(func() { s.membershipLoop(claiming) })
	background.Go(func() { s.listenLoop(claiming) })
	for range s.Concurrency {
		s.running.Go(s.handleLoop)
	}
	claimed := inBackground(func() { s.claimLoop(claiming) })
	settled := inBackground(func() { s.settleLoop(lasting) })

	<-claiming.Done()
	reason = context.Cause(claiming)
	s.draining.Store(true)
	drainBegan := s.Clock.Now()
	s.drain(context.WithoutCancel(ctx), claimed, settled)
	stopLasting()
	background.Wait()
	<-settled
	err = s.leave(context.WithoutCancel(ctx))
	s.tellLeft(Drained{Reason: reason, Took: s.Clock.Now().Sub(drainBegan), Err: err})
	return reason, err
}

// tellLeft tells that the worker owns nothing any more, and how it left.
func (s *session) tellLeft(drained Drained) {
	for _, queue := range s.Queues {
		if before := len(s.members.of(queue).buckets); before > 0 {
			tell(s, s.Observer.RingChanged, RingChanged{Queue: queue, Before: before})
		}
	}
	tell(s, s.Observer.Drained, drained)
}

// inBackground starts a loop and returns a channel that is closed when it has ended.
func inBackground(loop func()) <-chan struct{} {
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		loop()
	}()
	return ended
}

// call bounds one statement: no answer within a third of the lease is as good as none.
func (s *session) call(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, s.Lease/3)
}

// every runs a step at jittered intervals until the context ends.
func (s *session) every(ctx context.Context, interval time.Duration, step func(ctx context.Context)) {
	for {
		if !pause(ctx, s.Clock, s.jittered(interval)) {
			return
		}
		step(ctx)
	}
}

// jittered gives or takes a tenth, so that workers do not act in step.
func (s *session) jittered(interval time.Duration) time.Duration {
	return interval + time.Duration((s.Random()-0.5)*float64(interval)/5)
}
