package worker

import (
	"context"
	"slices"
	"sync"

	"github.com/holdfast-pg/holdfast/domain"
)

// membership is what the worker knows of the queues that it serves. It is a hint that may be
// wrong in any way: two workers that both take a bucket for theirs meet at row locks, and a
// bucket that nobody takes for its own is served as soon as its jobs have waited.
type membership struct {
	known chan struct{} // Closed when there is something to go by.

	mutex  sync.Mutex
	shares map[string]share
}

// share is the worker's part of a queue.
type share struct {
	ordered bool
	workers []string
	buckets []int // The worker's own, ascending.
	others  []int // The other ones, ascending.
}

// newMembership knows of nobody: every bucket is somebody else's.
func newMembership(queues []string, buckets []int) *membership {
	m := &membership{known: make(chan struct{}), shares: map[string]share{}}
	for _, queue := range queues {
		m.shares[queue] = share{others: buckets}
	}
	return m
}

func (m *membership) of(queue string) share {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	return m.shares[queue]
}

// buckets counts the buckets that are the worker's own, in all queues.
func (m *membership) buckets() (count int) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	for _, share := range m.shares {
		count += len(share.buckets)
	}
	return count
}

// workers counts the workers of the queue that has most of them.
func (m *membership) workers() (most int) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	for _, share := range m.shares {
		most = max(most, len(share.workers))
	}
	return most
}

// membershipLoop looks at once and then every RingCache which workers there are.
func (s *session) membershipLoop(ctx context.Context) {
	for failures := 0; ; {
		wait := s.jittered(s.RingCache)
		err := s.lookAround(ctx)
		if err == nil {
			failures = 0
		} else if ctx.Err() == nil {
			failures++
			wait = reconnectWait(failures, s.Random())
			s.log.Error("cannot see the other workers, going by what is known", "error", err)
		}
		if !pause(ctx, s.Clock, wait) {
			return
		}
	}
}

func (s *session) lookAround(ctx context.Context) error {
	call, cancel := s.call(ctx)
	defer cancel()
	members, err := s.queue.Members(call, s.Queues, s.WorkerTTL)
	if err != nil {
		return err
	}
	for _, queue := range members {
		if changed, fact := s.noteMembers(queue); changed {
			tell(s, s.Observer.RingChanged, fact)
		}
	}
	select {
	case <-s.members.known:
	default:
		close(s.members.known)
	}
	return nil
}

// noteMembers builds the ring of a queue again if its members have changed.
func (s *session) noteMembers(found domain.Membership) (changed bool, fact RingChanged) {
	s.members.mutex.Lock()
	defer s.members.mutex.Unlock()
	before := s.members.shares[found.Queue]
	after := share{ordered: found.Ordered, workers: found.Workers, buckets: before.buckets, others: before.others}
	changed = !slices.Equal(before.workers, found.Workers)
	if changed {
		after.buckets = s.ownBuckets(found.Workers)
		after.others = slices.DeleteFunc(slices.Clone(s.allBuckets), func(bucket int) bool { return contains(after.buckets, bucket) })
		s.log.Info("the workers of the queue have changed", "queue", found.Queue, "workers", len(found.Workers), "buckets", len(after.buckets))
		if s.bucketCount < 10*len(found.Workers) {
			s.log.Warn("so few buckets cannot be shared evenly: ten times the workers would do", "queue", found.Queue, "buckets", s.bucketCount, "workers", len(found.Workers))
		}
	}
	s.members.shares[found.Queue] = after
	return changed, RingChanged{Queue: found.Queue, Workers: len(found.Workers), Buckets: len(after.buckets), Before: len(before.buckets)}
}

func (s *session) ownBuckets(workers []string) []int {
	if s.Affinity == AffinityNone {
		return s.allBuckets
	}
	return NewRing(workers, s.bucketCount).Owned(s.id)
}

func bucketsUpTo(count int) []int {
	buckets := make([]int, count)
	for i := range buckets {
		buckets[i] = i
	}
	return buckets
}

// awaitMembership waits until there is something to go by.
func (s *session) awaitMembership(ctx context.Context) bool {
	select {
	case <-s.members.known:
		return true
	case <-ctx.Done():
		return false
	}
}
