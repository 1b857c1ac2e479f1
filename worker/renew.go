package worker

import (
	"context"
	"time"

	"github.com/holdfast-pg/holdfast/domain"
)

// renewalTurns is into how many statements the renewals of one interval are spread. All
// leases in one statement are heap-only updates only to the free share of a page.
const renewalTurns = 10

// renewLoop renews, ten times in each renewal interval, the leases whose turn it is.
func (s *session) renewLoop(ctx context.Context) {
	for turn := 0; pause(ctx, s.Clock, s.RenewEvery/renewalTurns); turn = (turn + 1) % renewalTurns {
		s.giveUpOverdue()
		s.renew(ctx, turn)
	}
}

func (s *session) renew(ctx context.Context, turn int) {
	due := s.dueForRenewal(turn)
	if len(due) == 0 {
		return
	}
	call, cancel := s.call(ctx)
	defer cancel()
	sent := s.Clock.Now()
	held, err := s.queue.Renew(call, s.id, s.Lease, due)
	if err != nil && ctx.Err() == nil {
		s.log.Error("cannot renew leases, trying again", "leases", len(due), "error", err)
	}
	s.noteRenewed(due, held, err, sent, (turn+1)%renewalTurns)
}

func (s *session) dueForRenewal(turn int) []domain.Claim {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	var due []domain.Claim
	for claim, r := range s.held {
		if r.turn == turn && !r.settling && !r.lost {
			due = append(due, claim)
		}
	}
	return due
}

// noteRenewed moves the deadlines of renewed claims and cancels the handlers of lost ones.
// After an error it gives the claims the next turn.
func (s *session) noteRenewed(due []domain.Claim, held []domain.JobID, err error, sent time.Time, next int) {
	renewed := make(map[domain.JobID]bool, len(held))
	for _, id := range held {
		renewed[id] = true
	}
	s.mutex.Lock()
	defer s.mutex.Unlock()
	for _, claim := range due {
		r, exists := s.held[claim]
		switch {
		case !exists || r.settling:
			// It was settled meanwhile, or is about to be; the settlement's answer counts.
		case err != nil:
			r.turn = next
		case renewed[claim.ID]:
			r.deadline = sent.Add(s.Lease - s.LeaseMargin)
		default:
			r.lose("the database says so")
		}
	}
}

// giveUpOverdue cancels handlers whose lease could not be renewed in time: by now the
// database may have given the job to another worker.
func (s *session) giveUpOverdue() {
	now := s.Clock.Now()
	s.mutex.Lock()
	defer s.mutex.Unlock()
	for _, r := range s.held {
		if !r.lost && now.After(r.deadline) {
			r.lose("no renewal got through in time")
		}
	}
}

// lose tells the handler that its claim is over. The caller holds session.mutex.
func (r *run) lose(reason string) {
	r.lost = true
	if r.ended {
		return
	}
	r.log.Warn("lease lost, the handler's context is cancelled", "reason", reason)
	r.cancel(domain.ErrLeaseLost)
}
