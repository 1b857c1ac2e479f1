package support

import (
	"context"
	"slices"
	"time"

	"github.com/holdfast-pg/holdfast/domain"
	"github.com/holdfast-pg/holdfast/worker"
)

// Ring is who owns the buckets of a queue, as its workers compute it from the registry.
type Ring struct {
	Queue     string       `json:"queue"`
	Buckets   int          `json:"buckets"` // Of the installation, and so of each queue.
	Unowned   int          `json:"unowned"` // Those without an owner: all, where no worker is live.
	Least     int          `json:"least"`   // Of the workers that go by the ring, what they own in it.
	Mean      float64      `json:"mean"`
	Most      int          `json:"most"`
	Imbalance float64      `json:"imbalance"` // The most over the mean; 1.25 at most but for rounding, 0 without workers.
	Disagree  int          `json:"disagree"`  // How many workers count their buckets otherwise.
	Workers   []RingWorker `json:"workers"`   // In the order of their ids.
}

// RingWorker is a live worker of the queue.
type RingWorker struct {
	ID             string          `json:"id"`
	Affinity       worker.Affinity `json:"affinity"`
	Owned          int             `json:"owned"`           // Buckets of this queue; all of them without affinity.
	OwnedInAll     int             `json:"owned_in_all"`    // Buckets of all queues that it serves.
	Says           *int            `json:"says"`            // How many it counted itself at its last heartbeat; null before the first.
	Agrees         bool            `json:"agrees"`          // It counts as many, or says nothing yet.
	SilenceSeconds float64         `json:"silence_seconds"` // Since its last heartbeat.
}

// FindRing returns the ring of a queue; domain.ErrUnknownQueue: there is no such queue.
func FindRing(ctx context.Context, db domain.Snapshotter, queue string) (ring Ring, err error) {
	err = onFleet(ctx, db, queue, func(workers *fleet) error {
		ring = workers.report(queue)
		return nil
	})
	return ring, err
}

// onFleet calls do with the workers at one moment, if the queue exists.
func onFleet(ctx context.Context, db domain.Snapshotter, queue string, do func(*fleet) error) error {
	return domain.Snapshot(ctx, db, func(db domain.DBTX) error {
		if _, err := domain.FindQueue(ctx, db, queue); err != nil {
			return err
		}
		workers, err := readFleet(ctx, db)
		if err != nil {
			return err
		}
		return do(workers)
	})
}

func (f *fleet) report(queue string) Ring {
	ring := Ring{Queue: queue, Buckets: f.bucketCount, Workers: []RingWorker{}}
	var shares []int
	for _, each := range f.serving(queue) {
		line := f.ringWorker(each, queue)
		ring.Workers = append(ring.Workers, line)
		shares = append(shares, len(f.ring(queue).Owned(each.ID)))
		if !line.Agrees {
			ring.Disagree++
		}
	}
	if len(shares) == 0 {
		ring.Unowned = f.bucketCount
		return ring
	}
	ring.Least, ring.Most = slices.Min(shares), slices.Max(shares)
	ring.Mean = float64(f.bucketCount) / float64(len(shares))
	ring.Imbalance = float64(ring.Most) / ring.Mean
	return ring
}

func (f *fleet) ringWorker(each fleetWorker, queue string) RingWorker {
	line := RingWorker{
		ID: each.ID, Affinity: each.says.Affinity, Owned: len(f.owned(each, queue)), SilenceSeconds: each.Silence.Seconds(), Agrees: true,
	}
	for _, served := range each.Queues {
		line.OwnedInAll += len(f.owned(each, served))
	}
	if each.hasBeaten() {
		line.Says = &each.says.Buckets
		line.Agrees = each.says.Buckets == line.OwnedInAll
	}
	return line
}

// hasBeaten tells whether it has said more than at its joining, when it knew of no ring. Both
// times are the database's.
func (w fleetWorker) hasBeaten() bool {
	return w.says.Affinity != "" && w.LastSeenAt.Sub(w.StartedAt) > time.Millisecond
}

// Place is where the jobs of a key go.
type Place struct {
	Queue   string   `json:"queue"`
	Key     string   `json:"key"`
	Bucket  int      `json:"bucket"`
	Buckets int      `json:"buckets"`
	Owner   *string  `json:"owner"`  // Who claims from the bucket first; null where no worker is live or the owner goes by no ring.
	Anyone  []string `json:"anyone"` // The workers that claim from every bucket.
	Workers int      `json:"workers"`
}

// Lookup returns where the jobs of a key go; domain.ErrUnknownQueue: there is no such queue.
func Lookup(ctx context.Context, db domain.Snapshotter, queue, key string) (place Place, err error) {
	err = onFleet(ctx, db, queue, func(workers *fleet) error {
		serving := workers.serving(queue)
		place = Place{
			Queue: queue, Key: key, Bucket: domain.BucketOf(key, workers.bucketCount), Buckets: workers.bucketCount,
			Anyone: idsOf(slices.DeleteFunc(slices.Clone(serving), func(w fleetWorker) bool { return !w.isFree() })), Workers: len(serving),
		}
		owner, found := workers.find(workers.ring(queue).Owner(place.Bucket))
		if found && !owner.isFree() {
			place.Owner = &owner.ID
		}
		return nil
	})
	return place, err
}
