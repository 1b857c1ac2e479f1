package domain

import (
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestBackoff_DoublesUpToAnHour(t *testing.T) {
	t.Parallel()
	for attempts, want := range map[int]time.Duration{
		math.MinInt: time.Second, -1: time.Second, 0: time.Second, 1: 2 * time.Second, 2: 4 * time.Second, 5: 32 * time.Second,
		11: 2048 * time.Second, 12: time.Hour, 31: time.Hour, 50: time.Hour, 1000: time.Hour, math.MaxInt: time.Hour,
	} {
		if got := Backoff(attempts, 0.5); got != want {
			t.Errorf("Backoff(%d, 0.5) = %s, want %s", attempts, got, want)
		}
	}
}

func TestBackoff_StaysWithinTwentyPercent(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		attempts := rapid.IntRange(-10, 2000).Draw(t, "attempts")
		wait := Backoff(attempts, rapid.Float64Range(0, math.Nextafter(1, 0)).Draw(t, "random"))
		low, high := Backoff(attempts, 0), time.Duration(1.2*float64(Backoff(attempts, 0.5)))
		if wait < low || wait > high || low < 4*Backoff(attempts, 0.5)/5 || high > 72*time.Minute {
			t.Fatalf("Backoff(%d) = %s, want between %s and %s", attempts, wait, low, high)
		}
	})
}
