package worker

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/holdfast-pg/holdfast/domain"
)

const (
	// firstLook is the first wait after asking to be woken; each further one doubles it. An
	// enqueue whose transaction was open meanwhile did not know, and is found in about the
	// time that its transaction took.
	firstLook = 2 * time.Millisecond

	// saturatedAfter is how long the loop has to find work without a pause before producers
	// need not ring any more.
	saturatedAfter = time.Second

	// listenAgain is how long the worker polls before it tries again to listen where
	// notifications did not arrive.
	listenAgain = 5 * time.Minute
)

// bell is where rings arrive.
type bell struct {
	rung    chan struct{} // Holds one token when somebody rang since the last look.
	listens atomic.Bool   // Notifications arrive.
}

func newBell() *bell {
	return &bell{rung: make(chan struct{}, 1)}
}

func (b *bell) ring() {
	select {
	case b.rung <- struct{}{}:
	default:
	}
}

// mode says how the worker learns of jobs, for people.
func (b *bell) mode() string {
	if b.listens.Load() {
		return "listen"
	}
	return "poll"
}

// listenLoop listens for rings. Whenever it cannot, the claim loop polls all the same.
func (s *session) listenLoop(ctx context.Context) {
	if s.PollOnly {
		return
	}
	for failures := 0; ; {
		err := s.queue.Listen(ctx, func() {
			failures = 0
			s.bell.listens.Store(true)
			s.log.Info("listening for jobs")
			s.bell.ring() // What was missed meanwhile.
		}, s.hear)
		s.bell.listens.Store(false)
		if ctx.Err() != nil {
			return
		}
		failures++
		wait := reconnectWait(failures, s.Random())
		if errors.Is(err, domain.ErrNoNotifications) {
			wait = s.jittered(listenAgain)
		}
		s.log.Warn("cannot listen for jobs, polling meanwhile", "error", err, "wait", wait)
		if !pause(ctx, s.Clock, wait) {
			return
		}
	}
}

// hear wakes the claim loop when a ring may be for this worker.
func (s *session) hear(ring domain.Ring) {
	share := s.members.of(ring.Queue)
	if ring.Bucket < 0 && len(share.buckets) > 0 || contains(share.buckets, ring.Bucket) {
		s.bell.ring()
	}
}

// sleep pauses the claim loop until there may be work: until somebody rings, the next job is
// due, or the pause is over. It returns false when the context ended.
func (s *session) sleep(ctx context.Context, p *pace) bool {
	if !p.armed && s.bell.listens.Load() {
		s.arm(ctx, p)
	}
	wait := s.untilDue(ctx, s.nextWait(p))
	fired, stop := s.Clock.NewTimer(wait)
	defer stop()
	select {
	case <-fired:
	case <-s.bell.rung:
	case <-ctx.Done():
	}
	p.busySince = s.Clock.Now()
	return ctx.Err() == nil
}

// untilDue shortens a wait to when the next job of the worker's buckets is due.
func (s *session) untilDue(ctx context.Context, wait time.Duration) time.Duration {
	if wait < s.ActivePoll {
		return wait
	}
	call, cancel := s.call(ctx)
	defer cancel()
	for _, queue := range s.Queues {
		next, err := s.queue.NextDue(call, queue, s.members.of(queue).buckets, wait)
		if err != nil {
			s.log.Debug("cannot look for the next job", "error", err)
			break
		}
		wait = next
	}
	return wait
}

func (s *session) arm(ctx context.Context, p *pace) {
	call, cancel := s.call(ctx)
	defer cancel()
	if err := s.queue.Arm(call, s.id, s.Queues); err != nil {
		s.log.Debug("cannot ask to be woken", "error", err)
		return
	}
	p.armed = true
	p.wait = firstLook
}

// disarm asks not to be woken any more. If that fails, producers ring in vain.
func (s *session) disarm(ctx context.Context, p *pace) {
	call, cancel := s.call(context.WithoutCancel(ctx))
	defer cancel()
	p.armed = false
	if err := s.queue.Disarm(call, s.id, s.Queues); err != nil {
		s.log.Debug("cannot ask not to be woken", "error", err)
	}
}
