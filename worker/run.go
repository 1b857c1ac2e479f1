package worker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"time"

	"github.com/holdfast-pg/holdfast/domain"
)

// unknownKindDelay is how long a job of a kind without a handler stays away: long enough to
// spare the database, short enough that a rolling deploy does not notice.
const unknownKindDelay = 30 * time.Second

// longSettling is how long a handler that settles its job itself may run without a warning.
const longSettling = time.Second

// run is one claim from its start to the answer to its settlement.
type run struct {
	job    domain.ClaimedJob
	cancel context.CancelCauseFunc
	log    *slog.Logger

	// Guarded by session.mutex.
	renewAt  time.Time // The first turn after it renews it.
	deadline time.Time // The worker gives the job up then, unless a renewal gets through.
	ended    bool      // The handler returned, or was given up.
	settling bool      // A settlement is under way; a renewal would wait for it.
	settled  bool      // The handler has settled the job itself.
	lost     bool      // The claim is over.
}

// start runs a job's handler in a goroutine that holds one slot.
func (s *session) start(ctx context.Context, job domain.ClaimedJob, sent time.Time) {
	handling, cancel := context.WithCancelCause(ctx)
	handler := s.handlerOf(job.Kind)
	r := &run{
		job:      job,
		cancel:   cancel,
		log:      s.log.With("job_id", job.ID, "queue", job.Queue, "kind", job.Kind, "bucket", job.Bucket, "generation", job.Generation, "attempt", job.Attempt),
		renewAt:  s.firstRenewal(),
		deadline: sent.Add(s.Lease - s.LeaseMargin),
		settling: handler.settles,
	}
	s.mutex.Lock()
	s.held[job.Claim] = r
	s.mutex.Unlock()
	s.warnOfPayload(r)
	s.running.Go(func() {
		defer func() { s.slots <- struct{}{} }()
		defer cancel(nil)
		// What stands when the handler ends this goroutine, as a failing test helper does.
		outcome := s.outcomeOf(errors.New("the handler called runtime.Goexit"), job)
		defer func() { s.end(r, outcome) }()
		r.log.Debug("job started")
		outcome = s.handle(handling, r, handler)
	})
}

// warnOfPayload tells once a kind that its payloads are large. The claim loop calls it.
func (s *session) warnOfPayload(r *run) {
	if size := len(r.job.Payload); size > s.PayloadWarning && !s.heavies[r.job.Kind] {
		s.heavies[r.job.Kind] = true
		r.log.Warn("large payloads slow claims down: store the body elsewhere and send a pointer", "bytes", size, "advised", s.PayloadWarning)
	}
}

func (s *session) outcomeOf(err error, job domain.ClaimedJob) domain.Outcome {
	return domain.OutcomeOf(err, job.Attempt, s.Random())
}

// end passes the outcome on to be settled, unless the handler has settled the job itself, or
// the run was given up before.
func (s *session) end(r *run, outcome domain.Outcome) {
	s.mutex.Lock()
	settled, givenUp := r.settled, r.ended
	r.ended = true
	r.settling = settled // The lease is renewed again while the result waits for its flush.
	s.mutex.Unlock()
	switch {
	case settled:
		s.noteSettled(result{run: r, outcome: outcome}, domain.Settled{Status: domain.StatusCompleted})
	case givenUp:
		r.log.Warn("a handler that was given up has returned; its result is dropped")
	default:
		s.results.add(r, outcome)
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
func (s *session) handle(ctx context.Context, r *run, handler Handler) domain.Outcome {
	if handler.run == nil {
		r.log.Warn("no handler for this kind: the job is given back", "delay", unknownKindDelay)
		return domain.Outcome{Verdict: domain.Release, Delay: unknownKindDelay}
	}
	begun := s.Clock.Now()
	err := protect(ctx, handler, r.job)
	took := s.Clock.Now().Sub(begun)
	s.handleTimes.add(took)
	if handler.settles {
		s.noteSettling(r, err, took)
	}
	if err != nil && errors.Is(context.Cause(ctx), domain.ErrStopping) {
		r.log.Info("the drain deadline passed: the job is given back", "error", err)
		return domain.Outcome{Verdict: domain.Release}
	}
	outcome := s.outcomeOf(err, r.job)
	if err != nil {
		r.log.Info("attempt ended", "verdict", outcome.Verdict, "delay", outcome.Delay, "error", outcome.Error)
	}
	return outcome
}

// noteSettling records how a handler that settles its job itself ended.
func (s *session) noteSettling(r *run, err error, took time.Duration) {
	if took > longSettling {
		r.log.Warn("the transaction of a handler was open for long, and the lease was not renewed meanwhile: keep it short, database work only", "took", took)
	}
	s.mutex.Lock()
	defer s.mutex.Unlock()
	r.settled = err == nil
}

// protect turns a panic into an error.
func protect(ctx context.Context, handler Handler, job domain.ClaimedJob) (err error) {
	defer func() {
		if value := recover(); value != nil {
			err = fmt.Errorf("panic: %v\n%s", value, debug.Stack())
		}
	}()
	return handler.run(ctx, job)
}
