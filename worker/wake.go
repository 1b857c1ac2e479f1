package worker

import (
	"context"
	"errors"
	"slices"
	"sync"
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

	// lookCost is how many times as long as it took a look is not repeated: where many dead index
	// entries have to be stepped over, it takes long.
	lookCost = 50

	// severalBuckets is the bucket of a ring that is for more than one.
	severalBuckets = -1

	// listenAgain is how long the worker polls before it tries again to listen where
	// notifications did not arrive.
	listenAgain = 5 * time.Minute
)

// bell is where rings arrive.
type bell struct {
	rung    chan struct{} // Holds one token when somebody rang since the last look.
	listens atomic.Bool   // Notifications arrive.

	mutex   sync.Mutex
	buckets map[string][]int // Those that rang since the last claim, by queue, ascending.
}

func newBell() *bell {
	return &bell{rung: make(chan struct{}, 1), buckets: map[string][]int{}}
}

// note remembers which bucket of a queue rings.
func (b *bell) note(queue string, bucket int) {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	if at, known := slices.BinarySearch(b.buckets[queue], bucket); !known {
		b.buckets[queue] = slices.Insert(b.buckets[queue], at, bucket)
	}
}

// take returns the buckets of a queue that have rung, and forgets them. None: any may have, or
// so many that it is no use to tell them apart.
func (b *bell) take(queue string) []int {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	rung := b.buckets[queue]
	delete(b.buckets, queue)
	if len(rung) > claimWindow || contains(rung, severalBuckets) {
		return nil
	}
	return rung
}

func (b *bell) ring() {
	signal(b.rung)
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
		s.bell.note(ring.Queue, max(ring.Bucket, severalBuckets))
		s.bell.ring()
	}
}

// idle pauses the claim loop until there may be something to claim, and returns false when the
// context ended. After a short pause, a ring, or when the next known job is due, the loop just
// claims; after a long one a look tells first whether that is any use.
func (s *session) idle(ctx context.Context, p *pace) bool {
	if !p.armed && s.bell.listens.Load() {
		s.arm(ctx, p)
	}
	next := s.horizon()
	for {
		wait := s.nextWait(p)
		rung := s.sleep(ctx, min(wait, next))
		p.busySince, p.woken = s.Clock.Now(), rung
		if ctx.Err() != nil {
			return false
		}
		tell(s, s.Observer.Woken, Woken{By: wakeSource(rung, next < wait)})
		switch {
		case rung, next < wait, wait < s.ActivePoll, p.busySince.Before(p.lookAgain):
			return true
		}
		var something bool
		if next, something = s.look(ctx, p); something {
			return true
		}
	}
}

func wakeSource(rung, due bool) WakeSource {
	switch {
	case rung:
		return WakeNotify
	case due:
		return WakeDue
	default:
		return WakePoll
	}
}

// sleep waits for the time, or until somebody rings.
func (s *session) sleep(ctx context.Context, wait time.Duration) (rung bool) {
	s.tick(&s.claimPulse)
	fired, stop := s.Clock.NewTimer(wait)
	defer stop()
	select {
	case <-fired:
	case <-s.bell.rung:
		rung = true
	case <-ctx.Done():
	}
	return rung
}

// look tells whether there is something to claim in any queue, and how long it takes until
// there is, as far as the next pause may go. It sees what lies below the floors too.
func (s *session) look(ctx context.Context, p *pace) (next time.Duration, something bool) {
	s.tick(&s.claimPulse)
	call, cancel := s.call(ctx)
	defer cancel()
	began := s.Clock.Now()
	next = s.horizon()
	for _, queue := range s.Queues {
		share, watch := s.members.of(queue), s.watches[queue]
		outlook, err := s.queue.Look(call, domain.LookRequest{
			Queue: queue, Own: share.buckets, Others: share.others, Lanes: share.ordered, DueFor: strayAfter, Horizon: next,
		})
		if err != nil {
			s.log.Debug("cannot look around", "error", err)
			return next, true
		}
		next = min(next, outlook.NextDue)
		something = watch.heed(outlook, s.Clock.Now()) || something
	}
	took := s.Clock.Now().Sub(began)
	p.lookAgain = began.Add(lookCost * took)
	return next, something
}

// horizon is beyond the longest pause.
func (s *session) horizon() time.Duration {
	return 2 * s.IdlePoll
}

func (s *session) arm(ctx context.Context, p *pace) {
	s.tick(&s.claimPulse)
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
