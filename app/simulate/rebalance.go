package simulate

import (
	"fmt"
	"time"

	"github.com/holdfast-pg/holdfast/domain/model"
	"github.com/holdfast-pg/holdfast/worker"
)

const (
	rebalanceJobs  = 300
	rebalanceEvery = 200 * time.Millisecond
)

// rebalance shows workers that join and leave the ring while jobs arrive.
func rebalance() Preset {
	return Preset{
		Name:   "rebalance",
		About:  "three workers share the buckets while 5 jobs a second arrive; a fourth joins, and one leaves",
		scenes: []scene{{"ring", rebalanceSet, rebalanceSum}},
		lesson: func(scenes []Scene) string {
			counts := scenes[0].Counts
			return fmt.Sprintf("A worker that joins takes its share of the buckets and leaves the rest where they are: %s of %s moved, not the %s of hash %% N; and while rings differ jobs are late, 99 of 100 within %.3f s, but %s done twice.",
				thousands(counts.Moved), thousands(buckets), thousands(movedByModulo(3, 4)), counts.Waits.P99, wereOrNone(counts.Repeated))
		},
	}
}

func rebalanceSet(s *stage) {
	s.show(EventJoined, EventRing, EventDraining, EventLeft)
	s.tellBuckets = true
	s.handle("sync_tenant", func(r *run) error {
		r.work(r.between(50*time.Millisecond, 150*time.Millisecond))
		r.transact()
		if s.outside.send(r.job.ID.String()) > 1 {
			r.tell(EventRepeated, "does %s again", nameOf(r.job))
		}
		return nil
	})
	s.start("w1", ordinary(4, worker.AffinityRing))
	s.start("w2", ordinary(4, worker.AffinityRing))
	s.start("w3", ordinary(4, worker.AffinityRing))
	for i := range int64(rebalanceJobs) {
		s.after(10*time.Second+time.Duration(i)*rebalanceEvery+s.between("job", i, 0, rebalanceEvery), func() {
			s.enqueue(model.NewJob{Kind: "sync_tenant", Key: fmt.Sprintf("tenant:%d", i%200)})
		})
	}
	s.after(25*time.Second, func() { s.start("w4", ordinary(4, worker.AffinityRing)) })
	s.after(50*time.Second, func() { s.processes[1].drain() })
}

// rebalanceSum tells what the workers saw: four when w4 had joined, three when w2 had left.
func rebalanceSum(s *stage) []string {
	s.counts.Moved = s.given[4]
	return []string{
		fmt.Sprintf("w4 joins: it owns %d buckets, and the others gave up %d of %d; hash %% N would move %d", s.processes[3].lane.joinedWith, s.given[4], buckets, movedByModulo(3, 4)),
		fmt.Sprintf("w2 leaves: it gave up %d buckets, and the others took %d; hash %% N would move %d", s.given[0], s.taken[3], movedByModulo(4, 3)),
	}
}

// movedByModulo counts the buckets that would get another owner if it were hash % N.
func movedByModulo(before, after int) (count int) {
	for bucket := range buckets {
		if bucket%before != bucket%after {
			count++
		}
	}
	return count
}

// wereOrNone counts jobs together with their verb.
func wereOrNone(n int) string {
	switch n {
	case 0:
		return "none is"
	case 1:
		return "1 is"
	default:
		return thousands(n) + " are"
	}
}
