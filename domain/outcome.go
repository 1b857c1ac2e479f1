package domain

import (
	"errors"
	"fmt"
	"time"
)

// Verdict is what a settlement does with a job.
type Verdict int

// The verdicts.
const (
	Complete Verdict = iota // Finished.
	Retry                   // Tried again after a delay; dead-lettered when no attempt is left.
	Fail                    // Never tried again.
	Release                 // Given back after a delay; the attempt is refunded.
)

// String returns the verdict as logs name it.
func (v Verdict) String() string {
	return [...]string{"complete", "retry", "fail", "release"}[v]
}

// Outcome is how a run of a handler ended.
type Outcome struct {
	Verdict Verdict
	Delay   time.Duration // Of a retry or a release.
	Error   string        // Of a retry or a failure: becomes last_error.

	// Event is what a release leaves in the incident log, EventReleased or EventFenced, with
	// Error as its detail. "" leaves nothing: a snooze is what the handler wants, and a job that
	// is given back before it started was not touched.
	Event EventKind
}

// ReleaseFor returns the outcome of a release that somebody may have to read about: its event
// says the reason.
func ReleaseFor(reason string, delay time.Duration) Outcome {
	return Outcome{Verdict: Release, Delay: delay, Event: EventReleased, Error: cleanErrorText(reason)}
}

// fencedDelay keeps a job that was fenced off a resource from coming back at once.
const fencedDelay = time.Second

type retryError struct {
	err   error
	delay time.Duration
}

func (e *retryError) Error() string { return e.err.Error() }
func (e *retryError) Unwrap() error { return e.err }

type failError struct{ err error }

func (e *failError) Error() string { return e.err.Error() }
func (e *failError) Unwrap() error { return e.err }

type snoozeError struct{ delay time.Duration }

func (e *snoozeError) Error() string { return fmt.Sprintf("snoozed for %s", e.delay) }

// RetryIn returns an error with which a handler asks for the next attempt after the delay,
// in place of the backoff. The attempt is spent.
func RetryIn(delay time.Duration, err error) error {
	return &retryError{err: orUnexplained(err), delay: max(delay, 0)}
}

// FailWith returns an error with which a handler says that no attempt can ever succeed: the
// job becomes failed.
func FailWith(err error) error {
	return &failError{err: orUnexplained(err)}
}

// Snooze returns an error with which a handler puts the job off for the delay without
// spending the attempt.
func Snooze(delay time.Duration) error {
	return &snoozeError{delay: max(delay, 0)}
}

func orUnexplained(err error) error {
	if err == nil {
		return errors.New("the handler gave no reason")
	}
	return err
}

// OutcomeOf reads the error that a handler returned from its attempts-th attempt. nil
// completes the job; an error that is none of this package's retries it after Backoff, for
// which random is drawn from [0, 1). ErrFenced gives the job back without spending the
// attempt, unless RetryIn or FailWith is around it.
func OutcomeOf(err error, attempts int, random float64) Outcome {
	var (
		retry  *retryError
		fail   *failError
		snooze *snoozeError
	)
	switch {
	case err == nil:
		return Outcome{Verdict: Complete}
	case errors.As(err, &snooze):
		return Outcome{Verdict: Release, Delay: snooze.delay}
	case errors.As(err, &fail):
		return Outcome{Verdict: Fail, Error: cleanErrorText(err.Error())}
	case errors.As(err, &retry):
		return Outcome{Verdict: Retry, Delay: retry.delay, Error: cleanErrorText(err.Error())}
	case errors.Is(err, ErrFenced):
		return Outcome{Verdict: Release, Delay: fencedDelay, Event: EventFenced, Error: cleanErrorText(err.Error())}
	default:
		return Outcome{Verdict: Retry, Delay: Backoff(attempts, random), Error: cleanErrorText(err.Error())}
	}
}
