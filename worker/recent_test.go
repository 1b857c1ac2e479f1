package worker

import (
	"sync"
	"testing"
	"time"
)

func TestRecent_PercentilesAreNearestRanks(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name     string
		from, to int // Milliseconds, added downwards.
		p50, p99 int
	}{
		{"none", 1, 0, 0, 0},
		{"one", 7, 7, 7, 7},
		{"two", 1, 2, 1, 2},
		{"three", 1, 3, 2, 3},
		{"a hundred", 1, 100, 50, 99},
		{"a hundred and one", 1, 101, 51, 100},
		{"as many as it remembers", 1, recentCount, 256, 507},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			var r recent
			for d := test.to; d >= test.from; d-- {
				r.add(time.Duration(d) * time.Millisecond)
			}
			p50, p99 := r.percentiles()
			if p50 != time.Duration(test.p50)*time.Millisecond || p99 != time.Duration(test.p99)*time.Millisecond {
				t.Errorf("p50 %s, p99 %s, want %d and %d ms", p50, p99, test.p50, test.p99)
			}
		})
	}
}

func TestRecent_ForgetsTheOldest(t *testing.T) {
	t.Parallel()
	var r recent
	for range recentCount {
		r.add(time.Hour)
	}
	for range recentCount - 1 {
		r.add(time.Second)
	}
	r.add(time.Minute)
	if p50, p99 := r.percentiles(); p50 != time.Second || p99 != time.Second {
		t.Errorf("p50 %s, p99 %s, want 1 s: no hour is left", p50, p99)
	}
	if got := len(r.snapshot()); got != recentCount {
		t.Errorf("it remembers %d, want %d", got, recentCount)
	}
}

func TestRecent_AsksLeaveTheOrderAlone(t *testing.T) {
	t.Parallel()
	var r recent
	for d := recentCount; d >= 1; d-- {
		r.add(time.Duration(d))
	}
	r.percentiles()
	for range recentCount / 2 {
		r.add(0) // Takes the place of the oldest, which are the longest.
	}
	if _, p99 := r.percentiles(); p99 != 251 {
		t.Errorf("p99 %d, want 251", p99)
	}
}

func TestRecent_ManyMayAddAndAsk(t *testing.T) {
	t.Parallel()
	var r recent
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			for range recentCount {
				r.add(time.Second)
				if p50, p99 := r.percentiles(); p50 != time.Second || p99 != time.Second {
					t.Errorf("p50 %s, p99 %s, want 1 s", p50, p99)
				}
			}
		})
	}
	group.Wait()
	if r.added != 8*recentCount {
		t.Errorf("%d were added, want %d", r.added, 8*recentCount)
	}
}
