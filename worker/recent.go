package worker

import (
	"slices"
	"sync"
	"time"
)

// recentCount is how many durations are remembered: enough for the p99 to be more than the
// largest of them, and few enough to sort at each heartbeat.
const recentCount = 512

// recent remembers the latest durations, for what a worker tells of itself at each heartbeat.
// Its zero value is empty; it is safe for concurrent use.
type recent struct {
	mutex  sync.Mutex
	latest [recentCount]time.Duration // A ring: the oldest is overwritten first.
	added  uint64                     // Since the start, or since forget.
	sum    time.Duration              // Of those that are remembered.
}

// add remembers a duration.
func (r *recent) add(d time.Duration) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	oldest := &r.latest[r.added%recentCount]
	r.sum += d - *oldest
	*oldest = d
	r.added++
}

// mean returns the mean of what is remembered, and of how many durations it is.
func (r *recent) mean() (mean time.Duration, count int) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if r.added == 0 {
		return 0, 0
	}
	remembered := min(r.added, recentCount)
	return r.sum / time.Duration(remembered), int(remembered)
}

// forget empties it.
func (r *recent) forget() {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.latest, r.added, r.sum = [recentCount]time.Duration{}, 0, 0
}

// percentiles returns the 50th and the 99th percentile of what is remembered, by nearest rank:
// the smallest duration such that at least 50 % (99 %) of all are not above it, so always one
// that was added. Both are zero when there is none.
func (r *recent) percentiles() (p50, p99 time.Duration) {
	sorted := r.snapshot()
	if len(sorted) == 0 {
		return 0, 0
	}
	slices.Sort(sorted)
	return nearestRank(sorted, 50), nearestRank(sorted, 99)
}

// snapshot returns a copy, so that nobody waits for the sort.
func (r *recent) snapshot() []time.Duration {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	return slices.Clone(r.latest[:min(r.added, recentCount)])
}

// nearestRank returns the value at rank ⌈percent/100 × count⌉, counted from 1.
func nearestRank(sorted []time.Duration, percent int) time.Duration {
	rank := (percent*len(sorted) + 99) / 100
	return sorted[rank-1]
}
