package relay

import (
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-pg/holdfast/domain"
)

// What a publisher answers for a message: nil when it was taken; Refused when it never will be;
// NotNow when the destination takes nothing at the moment. Any other error is an attempt that
// failed, retried after the backoff until the attempts are spent.

// RefusedError says that the destination refuses a message for good.
type RefusedError struct{ err error }

func (e *RefusedError) Error() string { return "refused: " + e.err.Error() }
func (e *RefusedError) Unwrap() error { return e.err }

// Refused returns the result of a message that the destination refuses for good, in its words.
// The job ends as failed, among the dead, and its key goes on.
func Refused(err error) error { return &RefusedError{err: err} }

// TooLarge returns the result of a message that is over the limit of the destination, both in
// bytes. What is counted is the destination's choice: most count headers too.
func TooLarge(size, limit int) error {
	return Refused(fmt.Errorf("the message has %d bytes and the destination takes %d", size, limit))
}

// NotNowError says that the destination takes nothing at the moment.
type NotNowError struct {
	// After is how long the destination asks to be left alone; 0 if it did not say.
	After time.Duration

	err error
}

func (e *NotNowError) Error() string { return e.err.Error() }
func (e *NotNowError) Unwrap() error { return e.err }

// NotNow returns the result of a message that could not be handed over because the destination
// is away or asks for a rest: the job is given back without spending an attempt, and nothing is
// claimed until the destination is back.
func NotNow(after time.Duration, err error) error {
	return &NotNowError{After: max(after, 0), err: err}
}

// All returns the same result for every message of a batch.
func All(batch []Message, err error) []error {
	results := make([]error, len(batch))
	for i := range results {
		results[i] = err
	}
	return results
}

// outcome is what a handler returns of a result.
func outcome(result error) error {
	var refused *RefusedError
	var notNow *NotNowError
	switch {
	case errors.As(result, &refused):
		return domain.FailWith(result)
	case errors.As(result, &notNow):
		return domain.Snooze(0)
	default:
		return result
	}
}
