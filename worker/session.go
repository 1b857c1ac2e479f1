package worker

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/holdfast-pg/holdfast/domain"
)

// session is one membership in the registry, from joining to leaving.
type session struct {
	Config

	id           string
	registration domain.Registration
	queue        Queue
	handlers     map[string]Handler
	buckets      []int
	log          *slog.Logger

	slots   chan struct{} // Holds one token for each handler that could start now.
	running sync.WaitGroup
	results *results

	mutex sync.Mutex
	held  map[domain.Claim]*run
}

func newSession(w *Worker, registration domain.Registration, meta domain.Meta) *session {
	s := &session{
		Config:       w.config,
		id:           registration.ID,
		registration: registration,
		queue:        w.queue,
		handlers:     w.handlers,
		buckets:      make([]int, meta.BucketCount),
		log:          w.config.Logger.With("worker_id", registration.ID),
		slots:        make(chan struct{}, w.config.Concurrency),
		results:      newResults(w.config.Concurrency),
		held:         map[domain.Claim]*run{},
	}
	for i := range s.buckets {
		s.buckets[i] = i
	}
	for range w.config.Concurrency {
		s.slots <- struct{}{}
	}
	return s
}

// run works until the context ends, a drain is ordered or the worker is declared dead, and
// returns which, after the worker let go of everything it held.
func (s *session) run(ctx context.Context) (reason, err error) {
	s.log.Info("worker joined", "queues", s.Queues, "concurrency", s.Concurrency)
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
	settled := make(chan struct{})
	go func() {
		defer close(settled)
		s.settleLoop(lasting)
	}()

	s.claimLoop(claiming)
	reason = context.Cause(claiming)
	s.drain(context.WithoutCancel(ctx), settled)
	stopLasting()
	background.Wait()
	<-settled
	return reason, s.leave(context.WithoutCancel(ctx))
}

// call bounds one statement: no answer within a third of the lease is as good as none.
func (s *session) call(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, s.Lease/3)
}

// every runs a step at jittered intervals until the context ends.
func (s *session) every(ctx context.Context, interval time.Duration, step func(ctx context.Context)) {
	for {
		jittered := interval + time.Duration((s.Random()-0.5)*float64(interval)/5)
		if !pause(ctx, s.Clock, jittered) {
			return
		}
		step(ctx)
	}
}
