package worker

import (
	"context"
	"time"

	"github.com/holdfast-pg/holdfast/domain"
)

// wholeWalkCost is how many times as long as it took a walk over all claims in flight is not
// repeated.
const wholeWalkCost = 100

// recall says where a walk over the claims in flight begins. While a transaction keeps vacuum
// from what settled claims left, a walk has to step over all of that: at 5,000 jobs/s it would
// take seconds after ten minutes, and after hours it would not come to its end. So it begins
// behind the claims that were over a round ago. Not a moment ago: a claim that was being
// committed meanwhile may be older than one that was in flight. One that took longer than a
// round to commit is found by a whole walk, which is made each time as long as it costs little.
type recall struct {
	after   int64     // The claims up to here were over in the round before the last one.
	over    int64     // The claims up to here were over in the last round.
	wholeAt time.Time // When the next whole walk is due.
}

// reclaim takes back the claims whose lease has ended.
func (s *session) reclaim(ctx context.Context) ([]domain.Reclaimed, error) {
	r := &s.recall
	began := s.Clock.Now()
	if began.Before(r.wholeAt) {
		return s.reclaimAfter(ctx, r.after)
	}
	reclaimed, err := s.reclaimAfter(ctx, 0)
	ended := s.Clock.Now()
	r.wholeAt = ended.Add(wholeWalkCost * ended.Sub(began))
	if err == nil || r.after == 0 {
		return reclaimed, err
	}
	more, err := s.reclaimAfter(ctx, r.after)
	return append(reclaimed, more...), err
}

// reclaimAfter does so with those after a generation.
func (s *session) reclaimAfter(ctx context.Context, after int64) ([]domain.Reclaimed, error) {
	call, cancel := s.call(ctx)
	defer cancel()
	reclaimed, over, err := s.queue.Reclaim(call, after)
	for _, job := range reclaimed {
		s.log.Warn("lease ended, job reclaimed", "job_id", job.Claim.ID, "queue", job.Queue, "kind", job.Kind, "bucket", job.Claim.Bucket,
			"generation", job.Claim.Generation, "attempt", job.Attempts, "from", job.Claim.WorkerID, "status", job.Status)
	}
	if err == nil {
		s.recall.after, s.recall.over = s.recall.over, max(s.recall.over, over)
	} else if ctx.Err() == nil {
		s.log.Error("cannot reclaim, trying again", "error", err)
	}
	return reclaimed, err
}
