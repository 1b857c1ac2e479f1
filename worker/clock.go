package worker

import "time"

// Clock tells the worker when to do things. It never decides about a lease: only the
// database does. SystemClock is the real one; domain/model.Clock is moved by hand.
type Clock interface {
	// Now returns the time; differences between two calls are monotonic.
	Now() time.Time

	// NewTimer returns a channel that receives once after the duration, and a function that
	// frees the timer.
	NewTimer(d time.Duration) (fired <-chan time.Time, stop func())
}

// SystemClock is the clock of package time.
type SystemClock struct{}

// Now returns the current time.
func (SystemClock) Now() time.Time { return time.Now() }

// NewTimer returns a timer of package time.
func (SystemClock) NewTimer(d time.Duration) (fired <-chan time.Time, stop func()) {
	timer := time.NewTimer(d)
	return timer.C, func() { timer.Stop() }
}
