package worker

import (
	"context"
	"slices"
	"time"

	"github.com/holdfast-pg/holdfast/domain"
)

const (
	// strayAfter is how long a due job waits for the worker whose bucket it is in; then it is
	// anybody's. So a ring that is wrong, or an owner that is busy, delays jobs and strands none.
	strayAfter = 2 * time.Second

	// firstBatch is the most jobs that the first claim takes. Full claims double it.
	firstBatch = 25

	// slowClaim is the time of a claim that halves the batch.
	slowClaim = 50 * time.Millisecond

	// longestRetry bounds the rest after a claim that failed: no ring ends it, and IdlePoll may be
	// long where rings do.
	longestRetry = 2 * time.Second

	// longestRest bounds the rest after a claim that found less than it asked for.
	longestRest = 3 * time.Millisecond

	// wholeEvery is for how long claims of what has rung may follow each other without one of
	// everything.
	wholeEvery = 10 * time.Millisecond
)

// pace is how the claim loop takes its time.
type pace struct {
	wait      time.Duration // The next pause, before jitter.
	busySince time.Time     // When the last pause ended.
	armed     bool          // Producers ring for this worker.
	batch     int           // The most jobs that the next claim takes.
	lookAgain time.Time     // Not before then, because looking was slow.
	woken     bool          // A ring has ended the last pause.
	whole     time.Time     // When it last claimed from all buckets, whatever had rung.
}

// claimLoop claims jobs for free slots until the context ends. It is the only one that adds
// to the stock.
func (s *session) claimLoop(ctx context.Context) {
	defer s.claimPulse.rest()
	if !s.awaitMembership(ctx) {
		return
	}
	p := &pace{wait: s.ActivePoll, busySince: s.Clock.Now(), batch: min(firstBatch, s.ClaimBatch)}
	for turn := 0; s.awaitRoom(ctx, p) && s.awaitGate(ctx, p); turn++ {
		began := s.Clock.Now()
		if !p.woken {
			p.whole = began
		}
		claimed, full, err := s.claimTurn(ctx, p, turn)
		p.woken = false
		goesOn := true
		switch {
		case err != nil:
			s.log.Error("cannot claim, trying again", "error", err)
			goesOn = pause(ctx, s.Clock, min(s.nextWait(p), longestRetry))
		case claimed == 0 && !full:
			goesOn = s.idle(ctx, p)
		default:
			p.wait = s.ActivePoll
			if !full {
				goesOn = s.rest(ctx, p, min(s.Clock.Now().Sub(began), longestRest))
			}
		}
		if !goesOn {
			return
		}
	}
}

// rest waits after a claim that found less than it asked for: what comes meanwhile is one claim in
// place of many. A key's next job does not wait for it: only its bucket is claimed from.
func (s *session) rest(ctx context.Context, p *pace, d time.Duration) bool {
	if !slices.ContainsFunc(s.Queues, func(queue string) bool { return s.members.of(queue).ordered }) {
		return pause(ctx, s.Clock, d)
	}
	p.woken = s.sleep(ctx, d) && s.Clock.Now().Sub(p.whole) < wholeEvery
	return ctx.Err() == nil
}

// awaitRoom waits until a claimed job could start soon. Meanwhile a worker that has been busy
// for long asks not to be woken, and gives back what it cannot start soon after all.
func (s *session) awaitRoom(ctx context.Context, p *pace) bool {
	var saturated <-chan time.Time
	if p.armed {
		fired, stop := s.Clock.NewTimer(saturatedAfter - s.Clock.Now().Sub(p.busySince))
		defer stop()
		saturated = fired
	}
	for ctx.Err() == nil && s.stock.room(s.ahead()) == 0 {
		s.claimPulse.rest()
		stale, stop := s.staleTimer()
		select {
		case <-ctx.Done():
		case <-saturated:
			s.disarm(ctx, p)
			saturated = nil
		case <-stale:
			s.giveBackStale()
		case <-s.stock.roomy:
		}
		stop()
	}
	s.tick(&s.claimPulse)
	return ctx.Err() == nil
}

// claimTurn claims from each queue in turn, starting with another one each time, as long as
// there is room. full says that there may be more.
func (s *session) claimTurn(ctx context.Context, p *pace, turn int) (claimed int, full bool, err error) {
	for i := range s.Queues {
		for _, errand := range s.errands(s.Queues[(turn+i)%len(s.Queues)], p.woken) {
			room := s.stock.room(s.ahead())
			if room == 0 || ctx.Err() != nil || s.Gate.IsClosed() {
				return claimed, true, nil
			}
			jobs, more, err := errand.run(ctx, s, p, room)
			claimed += jobs
			full = full || more
			if err != nil {
				return claimed, full, err
			}
		}
	}
	return claimed, full, nil
}

// adaptBatch lets claims grow while there is a backlog and they are quick.
func (s *session) adaptBatch(p *pace, claimed int, took time.Duration) {
	switch {
	case took > slowClaim:
		p.batch = max(min(firstBatch, s.ClaimBatch), p.batch/2)
	case claimed == p.batch && took < slowClaim/2:
		p.batch = min(2*p.batch, s.ClaimBatch)
	}
}

// claim takes jobs into the stock. The statement is not broken off at once when the worker
// stops: its claims would have been made without anybody knowing of them until it leaves.
func (s *session) claim(ctx context.Context, request domain.ClaimRequest) claimed {
	lasting, release := outlast(ctx)
	defer release()
	call, cancel := s.call(lasting)
	defer cancel()
	request.WorkerID = s.id
	request.Quota = bucketQuota(request.Batch)
	request.Lease = s.Lease
	s.tick(&s.claimPulse)
	sent := s.Clock.Now()
	jobs, err := s.queue.Claim(call, request)
	took := s.Clock.Now().Sub(sent)
	s.claimTimes.add(took)
	tell(s, s.Observer.Claimed, Claimed{Queue: request.Queue, Jobs: len(jobs), Took: took, Err: err})
	if len(jobs) > 0 && s.isStopping() {
		s.log.Info("a claim came too late to start its jobs: they are given back", "jobs", len(jobs))
	} else {
		s.accept(jobs, request.Lanes, sent)
	}
	return claimed{jobs, took, err}
}

// rotated lists ascending buckets from the first one on that is not below start.
func rotated(buckets []int, start int) []int {
	at, _ := slices.BinarySearch(buckets, start)
	return slices.Concat(buckets[at:], buckets[:at])
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
