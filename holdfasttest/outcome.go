package holdfasttest

import (
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-pg/holdfast/domain"
	"github.com/holdfast-pg/holdfast/worker"
)

// Ending says how a run of a handler ended, and so what became of its job.
type Ending string

// The endings.
const (
	Completed    Ending = "completed"     // nil.
	Retried      Ending = "retried"       // An error: the next attempt is after the delay.
	DeadLettered Ending = "dead-lettered" // An error of the last attempt.
	Failed       Ending = "failed"        // holdfast.Fail, or a payload that does not decode: never again.
	Snoozed      Ending = "snoozed"       // holdfast.Snooze: after the delay, and the attempt is not spent.
	Fenced       Ending = "fenced"        // holdfast.ErrFenced, as Guard returns it: the same.
	Panicked     Ending = "panicked"      // A panic, which a worker takes for an error.

	// LeaseLost: another claim had overtaken this one, and nothing of how it ended was recorded.
	LeaseLost Ending = "lease lost"
)

// Outcome is what one run of a handler came to.
type Outcome struct {
	Ending Ending
	Job    domain.ClaimedJob // As the handler got it.
	Delay  time.Duration     // Until the next attempt, if there is one; a backoff is without jitter.
	Err    error             // What the handler returned; a *worker.PanicError if it panicked.
}

// String is the outcome in a line, for the text of a failure.
func (o Outcome) String() string {
	text := fmt.Sprintf("%s, attempt %d of %d: %s", o.Job.Kind, o.Job.Attempt, o.Job.MaxAttempts, o.Ending)
	switch {
	case o.Ending == Snoozed:
		return text + " for " + o.Delay.String()
	case o.Delay > 0:
		text += ", again in " + o.Delay.String()
	}
	if o.Err != nil {
		text += ": " + o.Err.Error()
	}
	return text
}

// noJitter puts a backoff in the middle of its range.
const noJitter = 0.5

// read returns what a worker makes of a handler's error.
func read(job domain.ClaimedJob, err error) (Outcome, domain.Outcome) {
	settling := domain.OutcomeOf(err, job.Attempt, noJitter)
	outcome := Outcome{Ending: endingOf(job, err, settling.Verdict), Job: job, Err: err, Delay: settling.Delay}
	if settling.Verdict == domain.Retry && job.Attempt >= job.MaxAttempts {
		outcome.Delay = 0
	}
	return outcome, settling
}

func endingOf(job domain.ClaimedJob, err error, verdict domain.Verdict) Ending {
	var panicked *worker.PanicError
	switch {
	case errors.As(err, &panicked):
		return Panicked
	case verdict == domain.Complete:
		return Completed
	case verdict == domain.Fail:
		return Failed
	case verdict == domain.Release && errors.Is(err, domain.ErrFenced):
		return Fenced
	case verdict == domain.Release:
		return Snoozed
	case job.Attempt >= job.MaxAttempts:
		return DeadLettered
	default:
		return Retried
	}
}
