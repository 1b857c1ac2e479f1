package worker

import (
	"time"

	"github.com/holdfast-pg/holdfast/domain"
)

const (
	// floorSlack is how far below the latest job of a bucket its floor stays. Jobs whose
	// transactions stay open for less are seen by the next claim; others by the sweep.
	floorSlack = 250 * time.Millisecond

	// sweepTurn is how long the sweep takes around all buckets: the most that a late commit
	// waits, beside a claim.
	sweepTurn = 1500 * time.Millisecond
)

// watch is what the claim loop remembers of a queue.
type watch struct {
	at      int         // The bucket at which the next claim begins.
	floors  []time.Time // By bucket; nil before any is known.
	reach   int         // How many of the worker's own buckets filled the last batch; 0: none was filled.
	idle    bool        // The last claim was of the worker's own, and found nothing.
	sweep   patrol      // Finds what lies below the floors.
	strays  patrol      // Finds what other workers have left lying.
	misfits patrol      // Finds what is claimed the other way than the queue's.
}

func newWatch(config Config, bucketCount int) *watch {
	now := config.Clock.Now()
	leftovers := patrol{turn: 2 * config.RingCache, cost: leftoverCost}
	leftovers.rest(now)
	return &watch{
		at:      int(config.Random() * float64(bucketCount)),
		sweep:   patrol{turn: sweepTurn, cost: sweepCost},
		strays:  leftovers,
		misfits: leftovers,
	}
}

// floorsOf returns the floors of the buckets, nil if none is known.
func (w *watch) floorsOf(buckets []int) []time.Time {
	if w.floors == nil {
		return nil
	}
	floors := make([]time.Time, len(buckets))
	for i, bucket := range buckets {
		floors[i] = w.floors[bucket]
	}
	return floors
}

// raise raises the floors to just below the jobs that were claimed. The times are the
// database's, and are compared with nobody else's.
func (w *watch) raise(jobs []domain.ClaimedJob, bucketCount int, now time.Time) {
	if w.floors == nil && len(jobs) > 0 {
		w.floors = make([]time.Time, bucketCount)
		w.sweep.rest(now)
	}
	for _, job := range jobs {
		if floor := job.AvailableAt.Add(-floorSlack); floor.After(w.floors[job.Bucket]) {
			w.floors[job.Bucket] = floor
		}
	}
}

// heed sends out whom an outlook calls for and spares the others their turn. True: there is
// something to claim.
func (w *watch) heed(outlook domain.Outlook, now time.Time) (something bool) {
	if outlook.NextDue == 0 {
		w.floors = nil // It may lie below them.
	}
	follow := func(patrol *patrol, called bool) {
		if called {
			patrol.hurry(now)
		} else {
			patrol.rest(now)
		}
	}
	follow(&w.strays, outlook.Strays)
	follow(&w.misfits, outlook.Misfits)
	return outlook.NextDue == 0 || outlook.Strays || outlook.Misfits
}

// turnTo remembers where the next claim begins: behind the last bucket that filled the batch, or
// behind the window that could not, else one bucket on, so that none is always first. It remembers
// also how many buckets it took to fill a batch.
func (w *watch) turnTo(requests []domain.ClaimRequest, answers []claimed, windowed bool) {
	w.reach = 0
	visited := requests[0].Buckets
	if !windowed {
		visited = visited[:1]
	}
	for i, answer := range answers {
		if !answer.fills(requests[i]) {
			continue
		}
		count := reached(requests[i].Buckets, answer.jobs)
		w.reach = max(w.reach, count)
		if i == 0 {
			visited = requests[0].Buckets[:count]
		}
	}
	w.at = visited[len(visited)-1] + 1
}

// reached counts the buckets up to the last one that gave a job.
func reached(buckets []int, jobs []domain.ClaimedJob) int {
	gave := make(map[int]bool, len(jobs))
	for _, job := range jobs {
		gave[job.Bucket] = true
	}
	for count := len(buckets); count > 0; count-- {
		if gave[buckets[count-1]] {
			return count
		}
	}
	return 0
}
