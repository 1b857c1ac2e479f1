package worker

import (
	"cmp"
	"context"
	"time"

	"github.com/holdfast-pg/holdfast/domain"
)

// What housekeeping keeps, and for how long.
const (
	keepDeadWorkers = 24 * time.Hour
	keepMarks       = 30 * 24 * time.Hour
	keepFences      = 30 * 24 * time.Hour
	keepEvents      = 30 * 24 * time.Hour
	archiveAhead    = 14 // days
)

// electionsLost is after how many elections lost in a row a worker keeps house all the same:
// any session can hold an advisory lock for ever.
const electionsLost = 3

// housekeepingLoop reclaims ended leases and tidies up, never behind a handler, unless
// another worker is doing so.
func (s *session) housekeepingLoop(ctx context.Context) {
	lost := 0
	chores := s.chores()
	s.every(ctx, s.Housekeeping, func(ctx context.Context) {
		s.tick(&s.housePulse)
		// A round is not broken off at once: nobody would learn of the jobs it reclaimed.
		lasting, release := outlast(ctx)
		defer release()
		bounded, cancel := context.WithTimeout(lasting, s.Lease)
		defer cancel()
		elected, err := s.queue.Elect(bounded, chores)
		lost++
		if elected {
			lost = 0
		}
		if err != nil {
			s.log.Error("the election of a housekeeper failed", "error", err)
		}
		if lost >= electionsLost && ctx.Err() == nil {
			s.log.Warn("keeping house without being elected: somebody has held the lock for long", "elections_lost", lost)
			chores(bounded)
		}
	})
}

// chores returns the work of one round: ended leases are reclaimed in each, and what can wait
// is done in one of so many as there are workers, from a random one on, so that all of them
// together do it about once an interval.
func (s *session) chores() func(context.Context) {
	round, turn := 0, s.Random()
	return func(ctx context.Context) {
		began := s.Clock.Now()
		reclaimed, err := s.reclaim(ctx)
		kept := KeptHouse{Reclaimed: reclaimed, Err: err}
		workers := max(1, s.members.workers())
		if round%workers == int(turn*float64(workers)) {
			kept.Report, err = s.keepHouse(ctx)
			kept.Err = cmp.Or(kept.Err, err)
		}
		round++
		kept.Took = s.Clock.Now().Sub(began)
		tell(s, s.Observer.KeptHouse, kept)
	}
}

func (s *session) keepHouse(ctx context.Context) (domain.HouseReport, error) {
	call, cancel := s.call(ctx)
	defer cancel()
	report, err := s.queue.KeepHouse(call, domain.HouseRules{
		WorkerTTL:      s.WorkerTTL,
		DeadWorkersFor: keepDeadWorkers,
		MarksFor:       keepMarks,
		FencesFor:      keepFences,
		EventsFor:      keepEvents,
		ArchiveAhead:   archiveAhead,
	})
	for _, id := range report.WorkersDied {
		s.log.Warn("worker declared dead: no heartbeat", "dead_worker_id", id)
	}
	if err != nil && ctx.Err() == nil {
		s.log.Error("cannot keep house, trying again", "error", err)
	}
	return report, err
}
