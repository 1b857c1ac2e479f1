package support

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-pg/holdfast/domain"
	"github.com/holdfast-pg/holdfast/worker"
)

// mostWorkers is how many workers a report looks at.
const mostWorkers = 10_000

// fleet is the registry's workers that have not died.
type fleet struct {
	workers     []fleetWorker // In the order of their ids.
	bucketCount int

	rings map[string]worker.Ring // By queue, those that were asked for.
}

type fleetWorker struct {
	domain.WorkerRecord

	says worker.Facts
}

func readFleet(ctx context.Context, db domain.DBTX) (*fleet, error) {
	meta, err := domain.ReadMeta(ctx, db)
	if err != nil {
		return nil, err
	}
	records, err := domain.ListWorkers(ctx, db, false, mostWorkers)
	if err != nil {
		return nil, err
	}
	if len(records) == mostWorkers {
		return nil, fmt.Errorf("there are %d workers and more, and no ring is computed for so many", mostWorkers)
	}
	workers := &fleet{bucketCount: meta.BucketCount, rings: map[string]worker.Ring{}}
	for _, record := range records {
		workers.workers = append(workers.workers, newFleetWorker(record))
	}
	slices.SortFunc(workers.workers, func(a, b fleetWorker) int { return strings.Compare(a.ID, b.ID) })
	return workers, nil
}

func newFleetWorker(record domain.WorkerRecord) fleetWorker {
	return fleetWorker{WorkerRecord: record, says: worker.ReadFacts(record.Metadata)}
}

// find returns the worker of an id.
func (f *fleet) find(id string) (fleetWorker, bool) {
	at := slices.IndexFunc(f.workers, func(w fleetWorker) bool { return w.ID == id })
	if at < 0 {
		return fleetWorker{}, false
	}
	return f.workers[at], true
}

// serving lists the live workers of a queue, of which the ring is made.
func (f *fleet) serving(queue string) []fleetWorker {
	return f.those(queue, fleetWorker.isLive)
}

func (f *fleet) those(queue string, are func(fleetWorker) bool) (found []fleetWorker) {
	for _, each := range f.workers {
		if slices.Contains(each.Queues, queue) && are(each) {
			found = append(found, each)
		}
	}
	return found
}

// ring is the ring of a queue, as its workers build it.
func (f *fleet) ring(queue string) worker.Ring {
	ring, known := f.rings[queue]
	if !known {
		ring = worker.NewRing(idsOf(f.serving(queue)), f.bucketCount)
		f.rings[queue] = ring
	}
	return ring
}

// owned lists the buckets of a queue from which a worker claims first; all of them when it
// goes by no ring.
func (f *fleet) owned(each fleetWorker, queue string) []int {
	if each.isLive() && each.isFree() {
		return bucketsUpTo(f.bucketCount)
	}
	return f.ring(queue).Owned(each.ID)
}

func bucketsUpTo(count int) []int {
	buckets := make([]int, count)
	for bucket := range buckets {
		buckets[bucket] = bucket
	}
	return buckets
}

// isLive tells whether other workers count it in.
func (w fleetWorker) isLive() bool {
	return w.Status == domain.WorkerAlive && w.Silence < w.ttl()
}

// isSilent tells whether it is registered as alive, and too long ago.
func (w fleetWorker) isSilent() bool {
	return w.Status == domain.WorkerAlive && !w.isLive()
}

func (w fleetWorker) isDraining() bool { return w.Status == domain.WorkerDraining }

// isLate tells whether it has missed a heartbeat: the time to live is three of them at least.
func (w fleetWorker) isLate() bool { return w.Silence > w.ttl()/2 }

// isFree tells whether it claims from any bucket.
func (w fleetWorker) isFree() bool { return w.says.Affinity == worker.AffinityNone }

// isBusy tells whether it had no slot to spare when it last spoke.
func (w fleetWorker) isBusy() bool {
	return w.says.Concurrency > 0 && w.says.InFlight >= w.says.Concurrency
}

// ttl is how long the worker may be silent: what it says, else the default.
func (w fleetWorker) ttl() time.Duration {
	return secondsOr(w.says.WorkerTTL, defaults.WorkerTTL)
}

// housekeeping is how often the worker reclaims: what it says, else the default.
func (w fleetWorker) housekeeping() time.Duration {
	return secondsOr(w.says.Housekeeping, defaults.Housekeeping)
}

var defaults = worker.Config{}.WithDefaults()

func secondsOr(said float64, otherwise time.Duration) time.Duration {
	if said <= 0 {
		return otherwise
	}
	return time.Duration(said * float64(time.Second))
}

func idsOf(workers []fleetWorker) []string {
	ids := make([]string, len(workers))
	for i, each := range workers {
		ids[i] = each.ID
	}
	return ids
}
