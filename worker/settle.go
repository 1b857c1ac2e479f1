package worker

import (
	"context"
	"errors"
	"fmt"

	"github.com/holdfast-pg/holdfast/domain"
)

// settleLoop records results in batches: while one flush is under way the next one gathers.
// What could not be recorded is sent again, until the context ends.
func (s *session) settleLoop(ctx context.Context) {
	var unsettled []result
	closed := s.results.closed
	for failures := 0; ; {
		unsettled = s.results.gather(unsettled)
		if len(unsettled) == 0 {
			return
		}
		began, recorded := s.Clock.Now(), len(unsettled)
		var err error
		unsettled, err = s.flush(ctx, unsettled)
		if err == nil {
			failures = 0
			if recorded < smallFlush {
				// Few results at a time: what comes meanwhile is one flush in place of many.
				s.results.rest(s.Clock, min(flushRest*s.Clock.Now().Sub(began), longestFlushRest))
			}
			continue
		}
		s.log.Error("cannot record results, trying again", "jobs", len(unsettled), "error", err)
		failures++
		again, stop := s.Clock.NewTimer(reconnectWait(failures, s.Random()))
		select {
		case <-again:
		case <-closed: // A stopping worker has no time for the long waits after many failures.
			closed, failures = nil, 0
		case <-ctx.Done():
		}
		stop()
		if ctx.Err() != nil {
			s.log.Error("results could not be recorded; their jobs run again when their leases end", "jobs", len(unsettled))
			return
		}
	}
}

// flush sends results. It returns those to send again: with an error those that got no answer,
// and those that count as a failed attempt because the database refuses what they say.
func (s *session) flush(ctx context.Context, batch []result) (unsettled []result, err error) {
	s.markSettling(batch, true)
	settlements := make([]domain.Settlement, len(batch))
	for i, result := range batch {
		settlements[i] = domain.Settlement{
			Claim:       result.run.job.Claim,
			Retention:   result.run.job.Retention,
			Outcome:     result.outcome,
			Unconfirmed: result.unconfirmed,
		}
	}
	call, cancel := s.call(ctx)
	defer cancel()
	settled := make([]answer, 0, len(batch))
	sent := s.Clock.Now()
	answers := s.queue.Settle(call, s.id, settlements)
	took := s.Clock.Now().Sub(sent)
	for i, each := range answers {
		result := batch[i]
		switch {
		case each.Err == nil || errors.Is(each.Err, domain.ErrLeaseLost):
			settled = append(settled, answer{result, each})
		case !errors.Is(each.Err, domain.ErrRefused):
			result.unconfirmed = true
			unsettled = append(unsettled, result)
			err = each.Err
		case result.refused:
			settled = append(settled, answer{result, each})
		default:
			unsettled = append(unsettled, s.refused(result, each.Err))
		}
	}
	s.noteSettled(settled)
	s.markSettling(unsettled, false)
	tell(s, s.Observer.Flushed, Flushed{Jobs: len(batch), Unanswered: len(unsettled), Took: took})
	return unsettled, err
}

// refused turns a result that the database does not take into a failed attempt that says so.
func (s *session) refused(result result, err error) result {
	result.run.log().Error("the database refuses to record a result: the attempt counts as failed", "verdict", result.outcome.Verdict, "error", err)
	result.outcome = s.outcomeOf(fmt.Errorf("record the result: %w", err), result.run.job)
	result.refused = true
	return result
}

// markSettling keeps renewals away from rows that a settlement is about to lock.
func (s *session) markSettling(batch []result, settling bool) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	for _, result := range batch {
		result.run.settling = settling
	}
}

// answer is what became of a result.
type answer struct {
	result

	settled domain.Settled
}

// noteSettled forgets claims that are over. Behind one of an ordered queue its key's next job
// may wait, of which nobody else rings.
func (s *session) noteSettled(answers []answer) {
	s.mutex.Lock()
	for _, each := range answers {
		delete(s.held, each.run.job.Generation)
	}
	s.mutex.Unlock()
	for _, each := range answers {
		if each.run.recorded != nil {
			close(each.run.recorded)
		}
		if job := each.run.job; each.run.ordered {
			s.hear(domain.Ring{Queue: job.Queue, Bucket: job.ID.Bucket()})
		}
		s.logSettled(each)
		tell(s, s.Observer.Settled, Settled{Job: each.run.job, Outcome: each.outcome, Status: each.settled.Status, Err: each.settled.Err})
	}
}

func (s *session) logSettled(answer answer) {
	switch {
	case errors.Is(answer.settled.Err, domain.ErrLeaseLost):
		answer.run.log().Warn("the result was refused", "error", answer.settled.Err)
	case answer.settled.Err != nil:
		answer.run.log().Error("the database refuses to end the claim: the job comes back when its lease ends", "error", answer.settled.Err)
	case answer.settled.Status == domain.StatusDeadLetter:
		answer.run.log().Warn("the job is dead-lettered: its attempts are spent", "error", answer.outcome.Error)
	case s.debug:
		answer.run.log().Debug("job settled", "status", answer.settled.Status)
	}
}
