package domain

import (
	"math"
	"testing"
	"time"
)

func FuzzBackoff_IsNeitherInThePastNorOverItsLimit(f *testing.F) {
	for _, attempts := range []int64{math.MinInt64, -1, 0, 1, 11, 12, 31, 62, 63, 64, math.MaxInt32, math.MaxInt64} {
		f.Add(attempts, 0.0)
		f.Add(attempts, math.Nextafter(1, 0))
	}
	f.Fuzz(func(t *testing.T, attempts int64, random float64) {
		if !(random >= 0 && random < 1) {
			t.Skip("not what a source of randomness gives")
		}
		wait := Backoff(int(attempts), random)
		if wait < 800*time.Millisecond || wait > 72*time.Minute {
			t.Fatalf("Backoff(%d, %g) = %s", attempts, random, wait)
		}
		if attempts < math.MaxInt64 && Backoff(int(attempts+1), random) < wait {
			t.Fatalf("after one attempt more than %d the wait is shorter than %s", attempts, wait)
		}
	})
}
