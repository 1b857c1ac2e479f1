package worker

import (
	"context"
	"errors"

	"github.com/holdfast-pg/holdfast/domain"
)

// settleBatch bounds how many results one flush records.
const settleBatch = 500

// results are outcomes on their way to the database. Handlers wait, slot in hand, while too
// many are unanswered: that keeps the loop from claiming more than it can record.
type results struct {
	arrived chan result
	closed  chan struct{}
}

type result struct {
	run         *run
	outcome     domain.Outcome
	unconfirmed bool
}

func newResults(concurrency int) *results {
	return &results{arrived: make(chan result, concurrency), closed: make(chan struct{})}
}

// add hands a result over. After close it is dropped.
func (r *results) add(finished *run, outcome domain.Outcome) {
	select {
	case r.arrived <- result{run: finished, outcome: outcome}:
	case <-r.closed:
	}
}

// close says that no result comes any more.
func (r *results) close() {
	close(r.closed)
}

// gather waits for a result and takes what else is there, behind what is left of earlier
// flushes. It returns nothing when no result comes any more.
func (r *results) gather(unsettled []result) []result {
	if len(unsettled) == 0 {
		select {
		case first := <-r.arrived:
			unsettled = append(unsettled, first)
		case <-r.closed:
		}
	}
	for len(unsettled) < settleBatch {
		select {
		case next := <-r.arrived:
			unsettled = append(unsettled, next)
		default:
			return unsettled
		}
	}
	return unsettled
}

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
		unsettled = s.flush(ctx, unsettled)
		if len(unsettled) == 0 {
			failures = 0
			continue
		}
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

// flush sends results and returns those that got no answer.
func (s *session) flush(ctx context.Context, batch []result) (unsettled []result) {
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
	var lastErr error
	for i, answer := range s.queue.Settle(call, s.id, settlements) {
		if answer.Err != nil && !errors.Is(answer.Err, domain.ErrLeaseLost) {
			batch[i].unconfirmed = true
			unsettled = append(unsettled, batch[i])
			lastErr = answer.Err
			continue
		}
		s.noteSettled(batch[i], answer)
	}
	if lastErr != nil {
		s.log.Error("cannot record results, trying again", "jobs", len(unsettled), "error", lastErr)
		s.markSettling(unsettled, false)
	}
	return unsettled
}

// markSettling keeps renewals away from rows that a settlement is about to lock.
func (s *session) markSettling(batch []result, settling bool) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	for _, result := range batch {
		result.run.settling = settling
	}
}

// noteSettled forgets a claim that is over.
func (s *session) noteSettled(settled result, answer domain.Settled) {
	s.mutex.Lock()
	delete(s.held, settled.run.job.Claim)
	s.mutex.Unlock()
	switch {
	case answer.Err != nil:
		settled.run.log.Warn("the result was refused", "error", answer.Err)
	case answer.Status == domain.StatusDeadLetter:
		settled.run.log.Warn("the job is dead-lettered: its attempts are spent", "error", settled.outcome.Error)
	default:
		settled.run.log.Debug("job settled", "status", answer.Status)
	}
}
