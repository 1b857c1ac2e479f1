package worker

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/holdfast-pg/holdfast/domain"
)

// unknownKindDelay is how long a job of a kind without a handler stays away: long enough to
// spare the database, short enough that a rolling deploy does not notice.
const unknownKindDelay = 30 * time.Second

// errGoexit stands for what a handler returns that ends its goroutine.
var errGoexit = errors.New("the handler called runtime.Goexit")

// longSettling is how long a handler that settles its job itself may run without a warning.
const longSettling = time.Second

// run is one claim from its start to the answer to its settlement.
type run struct {
	session *session
	job     domain.ClaimedJob
	handler Handler
	claimed time.Time // When the answer to the claim came.
	ordered bool      // Its key's next job waits for the end of the claim.

	recorded chan struct{} // Closed with the answer to the settlement, if the handler waits for it.

	// Its slot's alone.
	begun    time.Time       // When the handler started.
	handling context.Context // The handler's; nil before it started.
	err      error           // What the handler returned.

	// Guarded by session.mutex.
	cancel   context.CancelCauseFunc // Ends the handler's context; nil before it started.
	renewAt  time.Time               // The first turn after it renews it.
	deadline time.Time               // The worker gives the job up then, unless a renewal gets through.
	ended    bool                    // The handler returned, or was given up.
	settling bool                    // A settlement is under way; a renewal would wait for it.
	settled  bool                    // The handler has settled the job itself.
	lost     bool                    // The claim is over.
}

// log returns the worker's logger with what identifies the run.
func (r *run) log() *slog.Logger {
	return r.session.log.With("job_id", r.job.ID, "queue", r.job.Queue, "kind", r.job.Kind, "bucket", r.job.Bucket, "generation", r.job.Generation, "attempt", r.job.Attempt)
}

// accept puts claimed jobs into stock, those of lanes or others: the claim was sent then.
func (s *session) accept(jobs []domain.ClaimedJob, lanes bool, sent time.Time) {
	s.accepting.Lock()
	defer s.accepting.Unlock()
	now := s.Clock.Now()
	accepted := make([]*run, len(jobs))
	for i, job := range jobs {
		s.waitTimes.add(job.Waited)
		handler := s.handlerOf(job.Kind)
		r := &run{
			session:  s,
			job:      job,
			handler:  handler,
			claimed:  now,
			ordered:  lanes,
			renewAt:  s.firstRenewal(now),
			deadline: sent.Add(s.Lease - s.LeaseMargin),
			// From now on: a renewal that is under way when the handler locks its row waits for it.
			settling: handler.settles,
		}
		if r.handler.synchronous {
			r.recorded = make(chan struct{})
		}
		s.warnOfPayload(r)
		accepted[i] = r
	}
	s.mutex.Lock()
	for _, r := range accepted {
		s.held[r.job.Generation] = r
	}
	s.mutex.Unlock()
	s.stock.put(accepted)
}

// handleLoop is one slot: it runs the handlers of one job after the other.
func (s *session) handleLoop() {
	for s.handleNext() {
	}
}

// handleNext waits for a job and runs its handler. False: no job comes any more.
func (s *session) handleNext() (more bool) {
	r := s.stock.take()
	if r == nil {
		return false
	}
	outcome, returned := domain.Outcome{}, false
	defer func() {
		if !returned {
			// The handler has ended this goroutine, as a failing test helper does.
			r.err = errGoexit
			outcome = s.outcomeOf(r.err, r.job)
			s.running.Go(s.handleLoop)
		}
		s.tellHandled(r, outcome)
		s.end(r, outcome)
		s.stock.done()
	}()
	outcome = s.handle(r)
	returned = true
	return true
}

// begin returns the context of a job's handler. It has ended already when the claim was lost
// while the job was in stock, or the worker stops.
func (s *session) begin(r *run) context.Context {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	handling, cancel := context.WithCancelCause(s.handling)
	r.cancel = cancel
	switch {
	case r.lost:
		cancel(domain.ErrLeaseLost)
	case s.stopping:
		cancel(domain.ErrStopping)
	}
	return handling
}

// warnOfPayload tells once a kind that its payloads are large.
func (s *session) warnOfPayload(r *run) {
	if size := len(r.job.Payload); size > s.PayloadWarning && !s.heavies[r.job.Kind] {
		s.heavies[r.job.Kind] = true
		r.log().Warn("large payloads slow claims down: store the body elsewhere and send a pointer", "bytes", size, "advised", s.PayloadWarning)
	}
}

func (s *session) outcomeOf(err error, job domain.ClaimedJob) domain.Outcome {
	return domain.OutcomeOf(err, job.Attempt, s.Random())
}

// end passes the outcome on to be settled, unless the handler has settled the job itself, or
// the run was given up before. In synchronous mode it waits for the answer.
func (s *session) end(r *run, outcome domain.Outcome) {
	s.mutex.Lock()
	if r.cancel != nil {
		r.cancel(nil)
	}
	settled, givenUp := r.settled, r.ended
	r.ended = true
	r.settling = settled // The lease is renewed again while the result waits for its flush.
	s.mutex.Unlock()
	switch {
	case settled:
		s.noteSettled([]answer{{result{run: r, outcome: outcome}, domain.Settled{Status: domain.StatusCompleted}}})
	case givenUp:
		r.log().Warn("a handler that was given up has returned; its result is dropped")
	default:
		s.results.add(result{run: r, outcome: outcome})
	}
}

// handlerOf returns the handler of a kind; one without a function when there is none.
func (s *session) handlerOf(kind string) Handler {
	if handler, known := s.handlers[kind]; known {
		return handler
	}
	return s.handlers[""]
}

// handle runs the handler and reads its error.
func (s *session) handle(r *run) domain.Outcome {
	if r.handler.run == nil {
		r.log().Warn("no handler for this kind: the job is given back", "delay", unknownKindDelay)
		return domain.ReleaseFor("the worker has no handler for this kind", unknownKindDelay)
	}
	ctx := s.begin(r)
	if err := ctx.Err(); err != nil {
		r.log().Info("the job is given back before it started", "reason", context.Cause(ctx))
		return domain.Outcome{Verdict: domain.Release}
	}
	if s.debug {
		r.log().Debug("job started")
	}
	ctx = s.tellStarted(ctx, r)
	err := r.handler.Try(ctx, r.job)
	took := s.Clock.Now().Sub(r.begun)
	r.err = err
	s.handleTimes.add(took)
	if r.handler.settles {
		s.noteSettling(r, err, took)
	}
	if err != nil && errors.Is(context.Cause(ctx), domain.ErrStopping) {
		r.log().Info("the drain deadline passed: the job is given back", "error", err)
		return domain.ReleaseFor("the drain deadline of the worker passed while the handler ran: "+err.Error(), 0)
	}
	if err == nil {
		return domain.Outcome{Verdict: domain.Complete}
	}
	outcome := s.outcomeOf(err, r.job)
	r.log().Info("attempt ended", "verdict", outcome.Verdict, "delay", outcome.Delay, "error", outcome.Error)
	return outcome
}

// noteSettling records how a handler that settles its job itself ended.
func (s *session) noteSettling(r *run, err error, took time.Duration) {
	if took > longSettling {
		r.log().Warn("the transaction of a handler was open for long, and the lease was not renewed meanwhile: keep it short, database work only", "took", took)
	}
	s.mutex.Lock()
	defer s.mutex.Unlock()
	r.settled = err == nil
}
