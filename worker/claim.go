package worker

import (
	"context"
	"slices"
	"time"

	"github.com/holdfast-pg/holdfast/domain"
)

// strayAfter is how long a due job waits for the worker whose bucket it is in; then it is
// anybody's. So a ring that is wrong, or an owner that is busy, delays jobs and strands none.
const strayAfter = 2 * time.Second

// pace is how the claim loop takes its time.
type pace struct {
	wait      time.Duration // The next pause, before jitter.
	busySince time.Time     // When the last pause ended.
	armed     bool          // Producers ring for this worker.
	strayedAt time.Time     // When it last looked for strays.
	strays    int           // How often it has.
}

// claimLoop claims jobs into free slots until the context ends. It is the only one that
// takes slots.
func (s *session) claimLoop(ctx context.Context) {
	if !s.awaitMembership(ctx) {
		return
	}
	now := s.Clock.Now()
	p := &pace{wait: s.ActivePoll, busySince: now, strayedAt: now}
	for turn := 0; s.awaitSlot(ctx, p); turn++ {
		claimed, err := s.claimTurn(ctx, p, turn)
		switch {
		case err != nil:
			s.log.Error("cannot claim, trying again", "error", err)
			if !pause(ctx, s.Clock, s.nextWait(p)) {
				return
			}
		case claimed > 0:
			p.wait = s.ActivePoll
		default:
			if !s.sleep(ctx, p) {
				return
			}
		}
	}
}

// awaitSlot waits until a handler could start; the slot stays free. A worker that has been
// busy for long asks meanwhile not to be woken.
func (s *session) awaitSlot(ctx context.Context, p *pace) bool {
	var saturated <-chan time.Time
	if p.armed {
		fired, stop := s.Clock.NewTimer(saturatedAfter - s.Clock.Now().Sub(p.busySince))
		defer stop()
		saturated = fired
	}
	for {
		select {
		case <-ctx.Done():
			return false
		case <-saturated:
			s.disarm(ctx, p)
			saturated = nil
		case <-s.slots:
			s.slots <- struct{}{}
			return ctx.Err() == nil
		}
	}
}

// claimTurn claims what is the worker's own. What has been left lying by others comes after
// that when the worker has nothing to do, and now and then before it when it always has.
func (s *session) claimTurn(ctx context.Context, p *pace, turn int) (claimed int, err error) {
	if s.Clock.Now().Sub(p.strayedAt) >= s.RingCache {
		claimed, err = s.claimLeftovers(ctx, p, turn)
	}
	if err == nil {
		var own int
		own, err = s.claimAround(ctx, turn, s.claimOwn)
		claimed += own
	}
	if err == nil && claimed == 0 && s.Clock.Now().Sub(p.strayedAt) >= s.IdlePoll {
		claimed, err = s.claimLeftovers(ctx, p, turn)
	}
	return claimed, err
}

// claimLeftovers looks for strays and for misfits in turns.
func (s *session) claimLeftovers(ctx context.Context, p *pace, turn int) (claimed int, err error) {
	p.strayedAt = s.Clock.Now()
	p.strays++
	if p.strays%2 == 0 {
		return s.claimAround(ctx, turn, s.claimMisfits)
	}
	return s.claimAround(ctx, turn, s.claimStrays)
}

// claimAround claims from each queue in turn, starting with another one each time, as long
// as slots are free.
func (s *session) claimAround(ctx context.Context, turn int, claim func(ctx context.Context, queue string, free int) (int, error)) (claimed int, err error) {
	for i := range s.Queues {
		free := min(len(s.slots), s.ClaimBatch)
		if free == 0 || ctx.Err() != nil {
			break
		}
		jobs, err := claim(ctx, s.Queues[(turn+i)%len(s.Queues)], free)
		claimed += jobs
		if err != nil {
			return claimed, err
		}
	}
	return claimed, nil
}

// claimOwn claims from the worker's own buckets.
func (s *session) claimOwn(ctx context.Context, queue string, free int) (int, error) {
	share := s.members.of(queue)
	return s.claim(ctx, domain.ClaimRequest{
		Queue: queue, Lanes: share.ordered, Buckets: s.rotated(share.buckets), Batch: free,
	})
}

// claimStrays claims from anybody's buckets what has waited for long.
func (s *session) claimStrays(ctx context.Context, queue string, free int) (int, error) {
	share := s.members.of(queue)
	if len(share.buckets) == s.bucketCount {
		return 0, nil
	}
	return s.claim(ctx, domain.ClaimRequest{
		Queue: queue, Lanes: share.ordered, Buckets: s.rotated(s.allBuckets()), Batch: free, DueFor: strayAfter,
	})
}

// claimMisfits claims jobs that were being enqueued when the queue became ordered, or ceased
// to be: they are claimed the way that they were enqueued for.
func (s *session) claimMisfits(ctx context.Context, queue string, free int) (int, error) {
	return s.claim(ctx, domain.ClaimRequest{
		Queue: queue, Lanes: !s.members.of(queue).ordered, Buckets: s.rotated(s.allBuckets()), Batch: free, DueFor: strayAfter,
	})
}

// claim takes jobs and starts them. The statement is not broken off at once when the worker
// stops: its claims would have been made without anybody knowing of them until it leaves.
func (s *session) claim(ctx context.Context, request domain.ClaimRequest) (int, error) {
	if len(request.Buckets) == 0 {
		return 0, nil
	}
	lasting, release := outlast(ctx)
	defer release()
	call, cancel := s.call(lasting)
	defer cancel()
	request.WorkerID = s.id
	request.Quota = bucketQuota(request.Batch)
	request.Lease = s.Lease
	sent := s.Clock.Now()
	jobs, err := s.queue.Claim(call, request)
	s.claimTimes.add(s.Clock.Now().Sub(sent))
	for _, job := range jobs {
		if s.isStopping() {
			s.log.Info("a claim came too late to start its jobs: they are given back", "jobs", len(jobs))
			break
		}
		<-s.slots
		s.waitTimes.add(job.Waited)
		s.start(context.WithoutCancel(ctx), job, sent)
	}
	return len(jobs), err
}

// rotated lists buckets from a random one on, so that none is always first.
func (s *session) rotated(buckets []int) []int {
	start := int(s.Random() * float64(len(buckets)))
	return slices.Concat(buckets[start:], buckets[:start])
}

// bucketQuota keeps a bucket from filling more than a quarter of a batch, as long as others
// have work.
func bucketQuota(batch int) int {
	return (batch + 3) / 4
}

// nextWait returns the next pause, with up to a third added, so that idle workers do not poll
// in step, and doubles the one after it.
func (s *session) nextWait(p *pace) time.Duration {
	wait := p.wait + time.Duration(s.Random()*float64(p.wait)/3)
	p.wait = min(2*p.wait, s.IdlePoll)
	return wait
}

// contains searches an ascending list.
func contains(buckets []int, bucket int) bool {
	_, found := slices.BinarySearch(buckets, bucket)
	return found
}
