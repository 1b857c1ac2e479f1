package worker

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/holdfast-pg/holdfast/domain"
)

// claimWindow is how many buckets one claim probes at least while there is a backlog: enough to
// fill it if each has work, and few enough to be said in a short statement.
const claimWindow = 64

// errand is what is to be claimed from some buckets of a queue.
type errand struct {
	watch    *watch
	patrol   *patrol   // nil for what is the worker's own.
	among    int       // How many buckets the patrol walks around.
	rung     bool      // Just the buckets that have rung.
	windowed bool      // Just windows of the worker's own buckets.
	asked    time.Time // When the floors of the requests were taken.
	requests []domain.ClaimRequest
}

// errands lists what to claim from a queue at this turn: now and then what has been left
// lying, a few buckets at a time, and always what is the worker's own, or of that, when a ring
// has woken it, what has rung.
func (s *session) errands(queue string, woken bool) (errands []errand) {
	share, watch, now := s.members.of(queue), s.watches[queue], s.Clock.Now()
	send := func(patrol *patrol, buckets []int, lanes bool, dueFor time.Duration) {
		if len(buckets) == 0 || !patrol.isDue(now, watch.idle || len(share.buckets) == 0) {
			return
		}
		errands = append(errands, errand{watch: watch, patrol: patrol, among: len(buckets), requests: []domain.ClaimRequest{{
			Queue: queue, Lanes: lanes, Buckets: patrol.pick(buckets), DueFor: dueFor,
		}}})
	}
	if watch.seen != nil && !share.ordered {
		send(&watch.sweep, share.buckets, false, 0)
	}
	send(&watch.strays, share.others, share.ordered, strayAfter)
	send(&watch.misfits, s.allBuckets, !share.ordered, strayAfter)
	switch rung := s.bell.take(queue); {
	case woken && len(rung) > 0:
		// A claim of all of its buckets takes three times as long; the next turn makes it.
		errands = append(errands, errand{watch: watch, rung: true, asked: now, requests: []domain.ClaimRequest{ownRequest(queue, share, watch, rung, true, now)}})
	case len(share.buckets) > 0:
		requests := ownRequests(queue, share, watch, now)
		windowed := len(requests[0].Buckets) < len(share.buckets)
		errands = append(errands, errand{watch: watch, windowed: windowed, asked: now, requests: requests})
	}
	return errands
}

// ownRequests claims from all of the worker's own buckets. With a backlog that fills a batch from
// a quarter of them, it claims from two windows at once, half a turn apart, so that two sessions
// of the server share the work. A window is twice what the last full batch came from.
func ownRequests(queue string, share share, watch *watch, now time.Time) []domain.ClaimRequest {
	buckets := rotated(share.buckets, watch.at)
	half, window := len(buckets)/2, max(claimWindow, 2*watch.reach)
	if share.ordered || watch.reach == 0 || half < window {
		return []domain.ClaimRequest{ownRequest(queue, share, watch, buckets, false, now)}
	}
	return []domain.ClaimRequest{
		ownRequest(queue, share, watch, buckets[:window], false, now),
		ownRequest(queue, share, watch, buckets[half:half+window], false, now),
	}
}

func ownRequest(queue string, share share, watch *watch, buckets []int, rung bool, now time.Time) domain.ClaimRequest {
	if share.ordered {
		return domain.ClaimRequest{Queue: queue, Lanes: true, Buckets: buckets}
	}
	return domain.ClaimRequest{Queue: queue, Buckets: buckets, Floors: watch.floorsOf(buckets, rung, now)}
}

// claimed is what came of one claim.
type claimed struct {
	jobs []domain.ClaimedJob
	took time.Duration
	err  error
}

// fills tells that there may be more than was claimed.
func (c claimed) fills(request domain.ClaimRequest) bool {
	return len(c.jobs) == request.Batch
}

// run sends the claims of an errand, at once if there are several and room for them, and shares
// the room among them. more says that there may be more to claim.
func (e errand) run(ctx context.Context, s *session, p *pace, room int) (jobs int, more bool, err error) {
	if room < 2*firstBatch {
		e.requests = e.requests[:1]
	}
	answers := make([]claimed, len(e.requests))
	var others sync.WaitGroup
	for i := range e.requests {
		e.requests[i].Batch = min(room/len(e.requests), p.batch)
		if i > 0 {
			others.Go(func() { answers[i] = s.claim(ctx, e.requests[i]) })
		}
	}
	answers[0] = s.claim(ctx, e.requests[0])
	others.Wait()
	for i, answer := range answers {
		jobs += len(answer.jobs)
		more = more || answer.fills(e.requests[i])
		if answer.err != nil {
			err = answer.err
		}
		s.adaptBatch(p, len(answer.jobs), answer.took)
	}
	return jobs, e.note(s, answers, more), err
}

// note remembers what came of the errand, and tells whether there may be more.
func (e errand) note(s *session, answers []claimed, full bool) (more bool) {
	if e.patrol != nil {
		e.watch.idle = false // What may be its own comes first now.
		e.patrol.walked(s.Clock.Now(), answers[0].took, len(e.requests[0].Buckets), e.among, full)
		return full
	}
	e.watch.idle = !slices.ContainsFunc(answers, func(c claimed) bool { return len(c.jobs) > 0 })
	if !e.requests[0].Lanes {
		for i, answer := range answers {
			if answer.err == nil {
				e.watch.saw(e.requests[i], answer.jobs, s.bucketCount, e.asked)
			}
		}
	}
	if e.rung {
		return full
	}
	e.watch.turnTo(e.requests, answers, e.windowed)
	return full || e.windowed
}
