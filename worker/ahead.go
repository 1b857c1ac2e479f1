package worker

import (
	"time"

	"github.com/holdfast-pg/holdfast/domain"
)

const (
	// aheadTime is for how long the jobs that are claimed ahead keep the slots busy, or for
	// three claims if that is longer: the next claim is back before they are used up.
	aheadTime = 40 * time.Millisecond

	// knownHandlers is how many handlers must have returned before jobs are claimed ahead.
	knownHandlers = 32

	// patience is how long a job waits for a slot at most. It was claimed because handlers were
	// quick; they are not any more, and another worker may have a slot.
	patience = time.Second
)

// ahead is how many jobs to claim beyond the free slots: those that handlers, as quick as they
// were of late, start within the time of a few claims. For slow handlers it is none.
func (s *session) ahead() int {
	handled, returned := s.handleTimes.mean()
	if returned < knownHandlers {
		return 0
	}
	claimed, _ := s.claimTimes.mean()
	covered := float64(max(aheadTime, 3*claimed))
	return int(min(StockPerBatch*float64(s.ClaimBatch), float64(s.Concurrency)*covered/max(float64(handled), 1)))
}

// staleTimer fires when the oldest job in stock has waited for too long.
func (s *session) staleTimer() (fired <-chan time.Time, stop func()) {
	claimed, some := s.stock.oldest()
	if !some {
		return nil, func() {}
	}
	return s.Clock.NewTimer(patience - s.Clock.Now().Sub(claimed))
}

// giveBackStale gives back the jobs that have waited for too long, and claims none ahead
// before it is known again how long handlers take.
func (s *session) giveBackStale() {
	stale := s.stock.removeOlder(s.Clock.Now().Add(-patience).Add(1))
	if len(stale) == 0 {
		return
	}
	s.handleTimes.forget()
	s.log.Info("handlers have become slow: jobs that were claimed ahead are given back", "jobs", len(stale))
	s.giveBack(stale)
}

// giveBack releases jobs that have not started.
func (s *session) giveBack(jobs []*run) {
	for _, r := range jobs {
		s.end(r, domain.Outcome{Verdict: domain.Release})
	}
}
