package worker

import (
	"time"

	"github.com/holdfast-pg/holdfast/domain"
)

const (
	// A claim does not look at what became available before a bucket was last seen, but for some
	// slack: jobs whose transactions stay open for less are seen all the same. What lies within it
	// costs: the entries of jobs long gone, if an open transaction keeps them. So most buckets have the
	// narrow slack, each one in its turn the wide one, seldom the deep one, and the deepest in one of
	// hundreds of claims; the sweep finds the rest.
	narrowSlack  = 50 * time.Millisecond
	wideSlack    = 500 * time.Millisecond
	deepSlack    = 5 * time.Second
	deepestSlack = 50 * time.Second

	// The shares are after how many claims a bucket has the slack again. Their quotients with the
	// slack are alike, and so is what they cost.
	wideShare    = 8
	deepShare    = 64
	deepestShare = 512

	// sweepTurn is how long the sweep takes around all buckets: the most that a late commit
	// waits, beside a claim.
	sweepTurn = 1500 * time.Millisecond
)

// watch is what the claim loop remembers of a queue.
type watch struct {
	at      int         // The bucket at which the next claim begins.
	seen    []time.Time // By bucket: what became available before was seen by a claim. Nil before the first.
	turn    int         // How many claims there were, but for those of rung buckets.
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

// floorsOf returns the floors of the buckets, nil if none is known. Those that rang have the wide
// slack at least: each rings just once.
func (w *watch) floorsOf(buckets []int, rung bool) []time.Time {
	if w.seen == nil {
		return nil
	}
	floors := make([]time.Time, len(buckets))
	for i, bucket := range buckets {
		floors[i] = w.seen[bucket].Add(-w.slackOf(bucket, rung))
	}
	return floors
}

func (w *watch) slackOf(bucket int, rung bool) time.Duration {
	switch {
	case bucket%deepestShare == w.turn%deepestShare:
		return deepestSlack
	case bucket%deepShare == w.turn%deepShare:
		return deepSlack
	case rung || bucket%wideShare == w.turn%wideShare:
		return wideSlack
	default:
		return narrowSlack
	}
}

// saw notes what a claim has seen: the buckets that it emptied, up to its time, and the others up
// to the last job that they gave. Nothing that was claimed shows nothing: the queue may be paused.
// The times are the database's, and are compared with nobody else's.
func (w *watch) saw(request domain.ClaimRequest, jobs []domain.ClaimedJob, bucketCount int, now time.Time) {
	if len(jobs) == 0 {
		return
	}
	if w.seen == nil {
		w.seen = make([]time.Time, bucketCount)
		w.sweep.rest(now)
	}
	gave := make(map[int]int, len(jobs))
	for _, job := range jobs {
		gave[job.Bucket]++
		w.raise(job.Bucket, job.AvailableAt)
	}
	if len(jobs) == request.Batch {
		return
	}
	claimedAt := jobs[0].AvailableAt.Add(jobs[0].Waited)
	for _, bucket := range request.Buckets {
		if gave[bucket] < bucketQuota(request.Batch) {
			w.raise(bucket, claimedAt)
		}
	}
}

func (w *watch) raise(bucket int, seen time.Time) {
	if seen.After(w.seen[bucket]) {
		w.seen[bucket] = seen
	}
}

// heed sends out whom an outlook calls for and spares the others their turn. True: there is
// something to claim.
func (w *watch) heed(outlook domain.Outlook, now time.Time) (something bool) {
	if outlook.NextDue == 0 {
		w.seen = nil // It may lie below the floors.
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
	w.turn++
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
