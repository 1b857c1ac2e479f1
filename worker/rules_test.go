package worker_test

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/holdfast-pg/holdfast/worker"
)

func TestLease_IsThreeTimesTheSlowHandlersOrFiveMinutes(t *testing.T) {
	t.Parallel()
	for p99, want := range map[time.Duration]time.Duration{
		0: 0, time.Millisecond: 10 * time.Second, 30 * time.Second: 90 * time.Second, 41 * time.Second: 130 * time.Second,
		100 * time.Second: 5 * time.Minute, time.Hour: 5 * time.Minute,
	} {
		if got := worker.EnoughLease(p99); got != want {
			t.Errorf("handlers of %s ask for %s, want %s", p99, got, want)
		}
	}
}

func TestLease_WhatIsRecommendedIsEnoughAndAStepLessIsNot(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		p99 := time.Duration(rapid.Int64Range(1, int64(time.Hour)).Draw(t, "p99"))
		lease := worker.EnoughLease(p99)
		if !worker.IsEnoughLease(lease, p99) {
			t.Fatalf("a lease of %s is not enough for %s", lease, p99)
		}
		if less := lease - 10*time.Second; worker.IsEnoughLease(less, p99) {
			t.Fatalf("a lease of %s is enough for %s, and %s is recommended", less, p99, lease)
		}
	})
}
