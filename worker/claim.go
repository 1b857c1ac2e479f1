package worker

import (
	"context"
	"time"

	"github.com/holdfast-pg/holdfast/domain"
)

// claimLoop claims jobs into free slots until the context ends. It is the only one that
// takes slots.
func (s *session) claimLoop(ctx context.Context) {
	wait := s.ActivePoll
	for turn := 0; s.awaitSlot(ctx); turn++ {
		claimed, err := s.claimAround(ctx, turn)
		switch {
		case err != nil:
			s.log.Error("cannot claim, trying again", "error", err)
		case claimed > 0:
			wait = s.ActivePoll
			continue
		}
		if !pause(ctx, s.Clock, s.withJitter(wait)) {
			return
		}
		wait = min(2*wait, s.IdlePoll)
	}
}

// withJitter adds up to a third, so that idle workers do not poll in step.
func (s *session) withJitter(wait time.Duration) time.Duration {
	return wait + time.Duration(s.Random()*float64(wait)/3)
}

// awaitSlot waits until a handler could start; the slot stays free.
func (s *session) awaitSlot(ctx context.Context) bool {
	select {
	case <-ctx.Done():
		return false
	case <-s.slots:
		s.slots <- struct{}{}
		return ctx.Err() == nil
	}
}

// claimAround claims from each queue in turn, starting with another one each time, as long
// as slots are free.
func (s *session) claimAround(ctx context.Context, turn int) (claimed int, err error) {
	for i := range s.Queues {
		free := min(len(s.slots), s.ClaimBatch)
		if free == 0 || ctx.Err() != nil {
			break
		}
		jobs, err := s.claim(ctx, s.Queues[(turn+i)%len(s.Queues)], free)
		if err != nil {
			return claimed, err
		}
		claimed += len(jobs)
	}
	return claimed, nil
}

// claim takes jobs and starts them. The statement is not broken off when the worker stops:
// its claims would have been made without anybody knowing of them.
func (s *session) claim(ctx context.Context, queue string, batch int) ([]domain.ClaimedJob, error) {
	call, cancel := s.call(context.WithoutCancel(ctx))
	defer cancel()
	sent := s.Clock.Now()
	jobs, err := s.queue.Claim(call, domain.ClaimRequest{
		WorkerID: s.id,
		Queue:    queue,
		Buckets:  s.rotatedBuckets(),
		Quota:    bucketQuota(batch),
		Batch:    batch,
		Lease:    s.Lease,
	})
	for _, job := range jobs {
		<-s.slots
		s.start(context.WithoutCancel(ctx), job, sent)
	}
	return jobs, err
}

// rotatedBuckets lists all buckets from a random one on, so that none is always first.
func (s *session) rotatedBuckets() []int {
	start := int(s.Random() * float64(len(s.buckets)))
	return append(append(make([]int, 0, len(s.buckets)), s.buckets[start:]...), s.buckets[:start]...)
}

// bucketQuota keeps a bucket from filling more than a quarter of a batch, as long as others
// have work.
func bucketQuota(batch int) int {
	return (batch + 3) / 4
}
