package worker

import (
	"time"

	"github.com/holdfast-pg/holdfast/domain"
)

const (
	// narrowSlack is how far a claim looks back behind what was seen of a bucket: jobs whose
	// transactions stay open for less are seen all the same. slacks go further.
	narrowSlack = 50 * time.Millisecond

	// wideSlack is for buckets that rang, too: each rings just once.
	wideSlack = 500 * time.Millisecond

	// sweepTurn is how long the sweep takes around all buckets: the most that a late commit
	// waits, beside a claim.
	sweepTurn = 1500 * time.Millisecond
)

// slack is how far back a claim looks in each bucket every so often. A job whose transaction was open
// for the difference waits for no more than that.
type slack struct{ back, every time.Duration }

// slacks go further back the more seldom, the furthest first. What lies within a slack costs: the
// entries of jobs long gone, if an open transaction keeps them. Their quotients are alike, and so is
// what they cost in a second, however many claims it has. The sweep finds the rest.
var slacks = []slack{
	{back: 50 * time.Second, every: 20 * time.Second},
	{back: 5 * time.Second, every: 2 * time.Second},
	{back: wideSlack, every: 200 * time.Millisecond},
}

// isDue tells whether the bucket's turn has come since it was probed. The turns of the buckets are
// spread over the time.
func (s slack) isDue(bucket, bucketCount int, probed, now time.Time) bool {
	every := int64(s.every)
	ahead := every * int64(bucket) / int64(bucketCount)
	return (probed.UnixNano()+ahead)/every != (now.UnixNano()+ahead)/every
}

// watch is what the claim loop remembers of a queue.
type watch struct {
	at      int         // The bucket at which the next claim begins.
	seen    []time.Time // By bucket: what became available before was seen by a claim. Nil before the first.
	probed  []time.Time // By bucket: when that was.
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
func (w *watch) floorsOf(buckets []int, rung bool, now time.Time) []time.Time {
	if w.seen == nil {
		return nil
	}
	floors := make([]time.Time, len(buckets))
	for i, bucket := range buckets {
		floors[i] = w.seen[bucket].Add(-w.slackOf(bucket, rung, now))
	}
	return floors
}

func (w *watch) slackOf(bucket int, rung bool, now time.Time) time.Duration {
	for _, each := range slacks {
		if each.isDue(bucket, len(w.probed), w.probed[bucket], now) {
			return each.back
		}
	}
	if rung {
		return wideSlack
	}
	return narrowSlack
}

// saw notes what a claim has seen: the buckets that it emptied, up to its time, and the others up
// to the last job that they gave. Nothing that was claimed shows nothing: the queue may be paused.
// The times seen are the database's, and are compared with nobody else's; asked is when the floors were
// taken.
func (w *watch) saw(request domain.ClaimRequest, jobs []domain.ClaimedJob, bucketCount int, asked time.Time) {
	if len(jobs) == 0 {
		return
	}
	if w.seen == nil {
		w.seen, w.probed = make([]time.Time, bucketCount), make([]time.Time, bucketCount)
		w.sweep.rest(asked)
	}
	gave := make(map[int]int, len(jobs))
	for _, job := range jobs {
		gave[job.Bucket]++
		w.raise(job.Bucket, job.AvailableAt)
	}
	full := len(jobs) == request.Batch
	probed := request.Buckets
	if full {
		probed = probed[:reached(probed, jobs)]
	}
	claimedAt := jobs[0].AvailableAt.Add(jobs[0].Waited)
	for _, bucket := range probed {
		w.probed[bucket] = asked
		if !full && gave[bucket] < bucketQuota(request.Batch) {
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
