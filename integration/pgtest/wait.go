package pgtest

import (
	"testing"
	"time"

	"github.com/holdfast-pg/holdfast/internal/testdb"
)

// Eventually waits until the condition holds and fails the test when it does not within the
// deadline. What completes the sentence "gave up after … waiting until …".
func Eventually(tb testing.TB, deadline time.Duration, what string, condition func() bool) {
	tb.Helper()
	if !testdb.Poll(deadline, condition) {
		tb.Fatalf("gave up after %s waiting until %s", deadline, what)
	}
}
