package worker

import (
	"slices"
	"time"
)

// A statement of a patrol visits fewer buckets when it took longer than slowPatrol, and more
// when it took less than quickPatrol.
const (
	quickPatrol = 2 * time.Millisecond
	slowPatrol  = 5 * time.Millisecond
)

// What a patrol costs at most: it rests for so many times as long as it walks. That is one
// percent of the time for the sweep and another one for the two that look for leftovers.
const (
	sweepCost    = 100
	leftoverCost = 200
)

// patrol walks around the buckets of a queue, a few at a time, beside the claims that make
// the throughput. What it looks for is rare and may be costly to look for, because it has to
// step over all that has been there.
type patrol struct {
	turn time.Duration // A whole turn takes so long, or longer if it costs too much.
	cost time.Duration // How many times as long as it walks it rests at least.
	next time.Time     // When the next statement is due.
	at   int           // Where it goes on.
	size int           // How many buckets the next statement visits; 0 stands for all.

	found bool // The last statement filled its batch.
}

// isDue tells whether to visit the next buckets. The rest is for the worker's own work: one that
// has none goes on at once as long as there is something to find.
func (p *patrol) isDue(now time.Time, idle bool) bool {
	return idle && p.found || !now.Before(p.next)
}

// pick returns the buckets to visit.
func (p *patrol) pick(buckets []int) []int {
	if p.size == 0 || p.size >= len(buckets) {
		p.size = len(buckets)
		return buckets
	}
	p.at %= len(buckets)
	end := p.at + p.size
	if end <= len(buckets) {
		return buckets[p.at:end]
	}
	return slices.Concat(buckets[p.at:], buckets[:end-len(buckets)])
}

// walked notes what a visit of so many of all buckets took, and whether it filled its batch.
func (p *patrol) walked(now time.Time, took time.Duration, visited, all int, full bool) {
	p.found = full
	p.at += visited
	share := time.Duration(float64(p.turn) * float64(visited) / float64(all))
	p.next = now.Add(max(share, p.cost*took))
	switch {
	case took > slowPatrol:
		p.size = max(1, visited/2)
	case took < quickPatrol:
		p.size = 2 * visited
	}
}

// hurry sends the patrol around all buckets at once.
func (p *patrol) hurry(now time.Time) {
	p.next, p.size = now, 0
}

// rest spares the patrol a turn, because somebody has looked at all buckets.
func (p *patrol) rest(now time.Time) {
	p.next = now.Add(p.turn)
}
