package worker

import (
	"context"
	"time"

	"github.com/holdfast-pg/holdfast/domain"
)

// renewalTurns is into how many statements the renewals of one interval are spread. All
// leases in one statement are heap-only updates only to the free share of a page.
const renewalTurns = 10

// renewLoop renews, ten times in each renewal interval, the leases whose time has come.
func (s *session) renewLoop(ctx context.Context) {
	for pause(ctx, s.Clock, s.renewalTurn()) {
		s.tick(&s.renewPulse)
		s.renew(ctx)
	}
}

func (s *session) renewalTurn() time.Duration {
	return s.RenewEvery / renewalTurns
}

// firstRenewal is due in a turn of the job's own, which it keeps: jobs that were claimed one
// after the other, and so lie beside each other on their pages, take turns. Until the turn
// comes, an interval passes at most.
func (s *session) firstRenewal(now time.Time) time.Time {
	phase := s.phase
	s.phase = (phase + 1) % renewalTurns
	return now.Add(time.Duration(phase) * s.renewalTurn())
}

func (s *session) renew(ctx context.Context) {
	sent := s.Clock.Now()
	due := s.dueForRenewal(sent)
	if len(due) == 0 {
		return
	}
	call, cancel := s.call(ctx)
	defer cancel()
	held, err := s.queue.Renew(call, s.id, s.Lease, due)
	took := s.Clock.Now().Sub(sent)
	var lost []*run
	if err == nil {
		lost = s.noteRenewed(due, held, sent)
	} else if ctx.Err() == nil {
		s.log.Error("cannot renew leases, trying again", "leases", len(due), "error", err)
	}
	tell(s, s.Observer.Renewed, Renewed{Leases: len(due), Lost: len(lost), Took: took, Err: err})
	s.tellLost(lost, false)
}

func (s *session) tellLost(lost []*run, overdue bool) {
	for _, r := range lost {
		tell(s, s.Observer.Lost, Lost{Job: r.job, Overdue: overdue})
	}
}

func (s *session) dueForRenewal(now time.Time) []domain.Claim {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	var due []domain.Claim
	for _, r := range s.held {
		if r.renewAt.Before(now) && !r.settling && !r.lost {
			due = append(due, r.job.Claim)
		}
	}
	return due
}

// noteRenewed moves the deadlines of renewed claims and cancels the handlers of lost ones, which
// it returns.
func (s *session) noteRenewed(due, held []domain.Claim, sent time.Time) (lost []*run) {
	renewed := make(map[int64]bool, len(held))
	for _, claim := range held {
		renewed[claim.Generation] = true
	}
	s.mutex.Lock()
	defer s.mutex.Unlock()
	for _, claim := range due {
		r, exists := s.held[claim.Generation]
		switch {
		case !exists || r.settling || r.lost:
			// It was settled meanwhile, or is about to be, and the settlement's answer counts; or it
			// was given up.
		case renewed[claim.Generation]:
			r.deadline = sent.Add(s.Lease - s.LeaseMargin)
			for r.renewAt.Before(sent) {
				r.renewAt = r.renewAt.Add(s.RenewEvery)
			}
		default:
			r.lose("the database says so")
			lost = append(lost, r)
		}
	}
	return lost
}

// deadlineLoop gives up the jobs whose leases could not be renewed in time. It does not
// share a goroutine with the renewals, because one that gets no answer would hold it up, and
// it looks often enough to be done before the margin has passed.
func (s *session) deadlineLoop(ctx context.Context) {
	for pause(ctx, s.Clock, min(s.renewalTurn(), s.LeaseMargin/2)) {
		s.tellLost(s.giveUpOverdue(), true)
	}
}

// giveUpOverdue cancels the handlers of claims, which it returns, whose lease could not be
// renewed in time: soon the database may give the job to another worker.
func (s *session) giveUpOverdue() (lost []*run) {
	now := s.Clock.Now()
	s.mutex.Lock()
	defer s.mutex.Unlock()
	for _, r := range s.held {
		if !r.lost && now.After(r.deadline) {
			r.lose("no renewal got through in time")
			lost = append(lost, r)
		}
	}
	return lost
}

// lose tells the handler that its claim is over. The caller holds session.mutex.
func (r *run) lose(reason string) {
	r.lost = true
	if r.ended {
		return
	}
	r.log().Warn("lease lost, the handler's context is cancelled", "reason", reason)
	if r.cancel != nil {
		r.cancel(domain.ErrLeaseLost)
	}
}
