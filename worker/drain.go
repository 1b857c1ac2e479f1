package worker

import (
	"context"
	"time"

	"github.com/holdfast-pg/holdfast/domain"
)

const (
	// stopGrace is how long a cancelled handler has to return before it is given up.
	stopGrace = time.Second

	// lastWords bounds each statement of a stopping worker.
	lastWords = 5 * time.Second
)

// drain leaves the ring, so that the others take over, lets handlers finish until the
// deadline, cancels those that have not, gives up those that ignore it, and waits until every
// result is recorded.
func (s *session) drain(ctx context.Context, claimed, settled <-chan struct{}) {
	s.log.Info("worker draining", "in_flight", s.inFlight(), "deadline", s.DrainDeadline)
	s.leaveRing(ctx)
	s.giveBack(s.stock.removeExcess())
	returned := inBackground(func() {
		<-claimed
		s.giveBack(s.stock.removeExcess())
		s.stock.close()
		s.running.Wait()
	})
	if !s.await(returned, s.DrainDeadline, s.stopNow) {
		s.cancelHandlers()
		if !s.await(returned, stopGrace, nil) {
			s.giveUpHandlers()
		}
	}
	// A claim that still has no answer is given up; what it made goes back at the end.
	s.await(claimed, lastWords, nil)
	s.results.close()
	if !s.await(settled, lastWords, nil) {
		s.log.Error("results were not recorded in time; their jobs run again when their leases end", "jobs", s.inFlight())
	}
}

// leaveRing tells the other workers that this one claims no more, and producers not to ring.
func (s *session) leaveRing(ctx context.Context) {
	call, cancel := context.WithTimeout(ctx, lastWords)
	defer cancel()
	err := s.queue.Drain(call, s.id)
	if err == nil {
		err = s.queue.Disarm(call, s.id, s.Queues)
	}
	if err != nil {
		s.log.Warn("cannot leave the ring, draining all the same", "error", err)
	}
}

// outlast returns a context that ends when the given one has been over for lastWords, for
// statements whose answer tells what they have done.
func outlast(ctx context.Context) (lasting context.Context, release func()) {
	lasting, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() { time.AfterFunc(lastWords, cancel) })
	return lasting, func() {
		stop()
		cancel()
	}
}

// await waits for a channel to close, and tells whether it did within the time and before
// somebody wanted the worker to stop at once; a nil hurry stands for nobody.
func (s *session) await(done <-chan struct{}, limit time.Duration, hurry <-chan struct{}) bool {
	fired, stop := s.Clock.NewTimer(limit)
	defer stop()
	select {
	case <-done:
		return true
	case <-fired:
		return false
	case <-hurry:
		s.log.Warn("stopping at once: handlers are cancelled", "in_flight", s.inFlight())
		return false
	}
}

func (s *session) inFlight() int {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return len(s.held)
}

// isStopping tells whether handlers have been cancelled.
func (s *session) isStopping() bool {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return s.stopping
}

func (s *session) cancelHandlers() {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.stopping = true
	for _, r := range s.held {
		if r.cancel != nil {
			r.cancel(domain.ErrStopping)
		}
	}
}

// giveUpHandlers leaves handlers behind that ignore their context. Their jobs go back when
// the worker leaves, and what they return is refused.
func (s *session) giveUpHandlers() {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	for _, r := range s.held {
		if r.cancel != nil && !r.ended {
			r.ended = true
			r.log().Warn("the handler ignores its context: the job is given back while it still runs")
		}
	}
}

// leave gives back what is still held and ends the registration. One broken connection is
// no reason to keep jobs for a whole lease.
func (s *session) leave(ctx context.Context) error {
	last := s.Clock.Now().Add(lastWords)
	for tries := 1; ; tries++ {
		err := s.tryLeave(ctx)
		if err == nil {
			s.log.Info("worker left")
			return nil
		}
		wait := reconnectWait(tries, s.Random())
		if !domain.IsTemporary(err) || s.Clock.Now().Add(wait).After(last) {
			return err
		}
		s.log.Warn("cannot leave, trying again", "error", err, "wait", wait)
		pause(ctx, s.Clock, wait)
	}
}

func (s *session) tryLeave(ctx context.Context) error {
	call, cancel := context.WithTimeout(ctx, lastWords)
	defer cancel()
	return s.queue.Leave(call, s.id)
}
