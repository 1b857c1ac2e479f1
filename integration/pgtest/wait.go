package pgtest

import (
	"testing"
	"time"
)

// Eventually waits until the condition holds and fails the test when it does not within the
// deadline. What completes the sentence "gave up after … waiting until …".
func Eventually(tb testing.TB, deadline time.Duration, what string, condition func() bool) {
	tb.Helper()
	if !poll(deadline, condition) {
		tb.Fatalf("gave up after %s waiting until %s", deadline, what)
	}
}

// poll asks at once, then every five milliseconds, and a last time at the deadline.
func poll(deadline time.Duration, condition func() bool) bool {
	if condition() {
		return true
	}
	end := time.NewTimer(deadline)
	defer end.Stop()
	again := time.NewTicker(5 * time.Millisecond)
	defer again.Stop()
	for {
		select {
		case <-again.C:
			if condition() {
				return true
			}
		case <-end.C:
			return condition()
		}
	}
}
