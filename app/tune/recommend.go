package tune

import (
	"math"
	"time"

	"github.com/holdfast-pg/holdfast/domain"
	"github.com/holdfast-pg/holdfast/worker"
)

// Values are settings: those that stand, or those that are recommended.
type Values struct {
	Worker worker.Config // A field that tuning has no word on is zero.
	Queue  domain.QueueSettings
	Shards int // Of the hot key; 1 for none.
	Pool   int // pool_max_conns of the pool that handlers use.
	Server Server
}

// Server are settings of the database server.
type Server struct {
	MaxConnections    int
	MaxWAL            int64 // Bytes; max_wal_size.
	SynchronousCommit string
	Autovacuum        string
}

// Recommendation is what suits a workload, and what no setting makes up for.
type Recommendation struct {
	Values

	Lacks []Lack
}

// Defaults are the settings of whoever has set nothing, with so many cores.
func Defaults(cores int) Values {
	return Values{
		Worker: worker.Config{Buckets: domain.DefaultBuckets}.WithDefaults(),
		Queue:  domain.DefaultQueueSettings(domain.DefaultQueue),
		Shards: 1,
		Pool:   max(driverPool, cores),
		Server: Server{MaxConnections: serverConnections, MaxWAL: gigabyte, SynchronousCommit: "on", Autovacuum: "on"},
	}
}

// The rules' own numbers. Those that a worker checks too are in package worker.
const (
	// load is the share of its slots that a worker should need on average: at seven tenths the
	// rest is there for what comes unevenly.
	load = 0.7

	// leastSlots and usualSlots bound what costs nothing to have: 8, and up to 16 where the
	// cores of a process allow twice as many.
	leastSlots = 8
	usualSlots = 16

	// computeSlots is the least for handlers that compute.
	computeSlots = 4

	// stockBytes is how much the payloads of the jobs may take that wait in a worker.
	stockBytes = 64 << 20

	// bucketsEach is how many buckets a worker should have, for an even share.
	bucketsEach = 10

	// longestDrain is how long a deployment may wait for handlers.
	longestDrain = 10 * time.Minute
	drainStep    = 5 * time.Second

	// laneRate is how many jobs that take no time one key passes in a second, in order.
	laneRate = 300

	// measuredRate is how many jobs a second were enqueued and archived by a server that shared two
	// cores with the worker and the producers: docs/performance.md, holdfast bench steady.
	measuredRate = 20_000

	driverPool        = 4   // pool_max_conns of the driver, or as many as there are cores,
	serverConnections = 100 // max_connections of a server with its defaults,
	reserved          = 3   // and superuser_reserved_connections.

	// The log that a job of 128 bytes writes from its enqueue to the archive; its payload is
	// written three times: at the enqueue, at the claim and into the archive.
	logOfJob     = 1411
	logPayload   = 128
	payloadTimes = 3

	// A checkpoint comes every checkpoint_timeout, 5 minutes, or when the log since the last one
	// has max_wal_size / (1 + checkpoint_completion_target), 0.9: CalculateCheckpointSegments in
	// the server's xlog.c.
	checkpointSeconds = 300
	checkpointTarget  = 1.9
	gigabyte          = 1 << 30
)

// Recommend works out what suits a workload that Check accepts.
func Recommend(w Workload) Recommendation {
	values := Defaults(w.Cores)
	c := &values.Worker
	lease := max(c.Lease, worker.EnoughLease(time.Duration(w.P99)))
	slots, connections := w.slots()
	*c = worker.Config{
		Concurrency:    slots,
		ClaimBatch:     w.claimBatch(c.ClaimBatch),
		Affinity:       w.affinity(slots),
		RingCache:      c.RingCache,
		Buckets:        w.buckets(),
		Lease:          lease,
		RenewEvery:     lease / worker.RenewalsPerLease,
		LeaseMargin:    lease / worker.MarginsPerLease,
		Heartbeat:      c.Heartbeat,
		WorkerTTL:      worker.BeatsPerTTL * c.Heartbeat,
		Housekeeping:   c.Housekeeping,
		ActivePoll:     c.ActivePoll,
		IdlePoll:       c.IdlePoll,
		Connections:    connections,
		PayloadWarning: c.PayloadWarning,
		DrainDeadline:  w.drainDeadline(c.DrainDeadline),
	}
	values.Queue.Ordered = w.Ordered
	values.Shards = w.shards()
	values.Pool = max(values.Pool, w.Held*slots)
	values.Server.MaxConnections = max(serverConnections, 2*w.connections(*c)+reserved)
	values.Server.MaxWAL = max(gigabyte, w.maxWAL())
	return Recommendation{values, w.lacks(*c)}
}

// slots are how many handlers run at once in a process, and how many connections of its own
// the process then has. Connections that are short are taken from the slots that the work does
// not need, then from the worker down to its least.
func (w Workload) slots() (slots, connections int) {
	most, least := worker.Config{}.WithDefaults().Connections, domain.MinConnections
	usual := max(leastSlots, min(2*w.Cores, usualSlots))
	need := w.neededSlots()
	if w.Compute {
		usual = max(w.Cores, computeSlots)
		need = min(need, usual) // More would share the same processors.
	}
	slots = min(max(need, usual), w.MostSlots)
	each := w.Connections / w.Workers
	if w.Held > 0 {
		affordable := (each - 1 - most) / w.Held
		slots = max(min(need, w.MostSlots), min(slots, affordable), 1)
	}
	return slots, min(max(each-1-w.Held*slots, least), most)
}

// neededSlots are those of a process that the work keeps busy to seven tenths.
func (w Workload) neededSlots() int {
	return ceil(w.busy() / load / float64(w.Workers))
}

// connections are those of all workers: each one's own, the one that listens, and what its
// handlers hold.
func (w Workload) connections(c worker.Config) int {
	return w.Workers * (c.Connections + 1 + w.Held*c.Concurrency)
}

// claimBatch keeps the jobs that wait in a worker from filling its memory.
func (w Workload) claimBatch(most int) int {
	fit := stockBytes / (worker.StockPerBatch * max(w.Payload, 1))
	return min(max(fit, worker.FirstBatch), most)
}

// affinity lets any worker take a job where waiting for its owner would cost more than meeting
// related jobs in one process is worth.
func (w Workload) affinity(slots int) worker.Affinity {
	if w.Workers > 1 && (w.isLong() || w.overloadsOwner(slots)) {
		return worker.AffinityNone
	}
	return worker.AffinityRing
}

// isLong tells whether a handler takes as long as a job waits for its owner.
func (w Workload) isLong() bool { return time.Duration(w.P50) >= worker.StrayAfter }

// overloadsOwner tells whether the worker that owns the hot key's bucket would have more of it
// than its slots bear. A lane runs one job at a time wherever it is.
func (w Workload) overloadsOwner(slots int) bool {
	return !w.Ordered && w.HotShare*w.busy() > load*float64(slots)
}

// buckets are as many as an installation has, or more where its workers are many.
func (w Workload) buckets() int {
	count := domain.DefaultBuckets
	for count < bucketsEach*w.Workers && count < domain.MostBuckets {
		count *= 2
	}
	return count
}

// drainDeadline lets 99 in 100 handlers finish, within reason.
func (w Workload) drainDeadline(least time.Duration) time.Duration {
	enough := (time.Duration(w.P99) + drainStep - 1) / drainStep * drainStep
	return min(max(enough, least), longestDrain)
}

// keyRate is how many jobs of one key an ordered queue passes in a second: one after the other,
// each with its handler and what a claim and a completion take.
func (w Workload) keyRate() float64 { return 1 / (w.mean().Seconds() + 1.0/laneRate) }

// shards are how many lanes the hot key needs, to be busy for seven tenths of the time.
func (w Workload) shards() int {
	if !w.Ordered {
		return 1
	}
	return max(1, ceil(w.HotShare*w.Rate/(load*w.keyRate())))
}

// logRate is how many bytes of log the jobs of a second write.
func (w Workload) logRate() float64 {
	return w.Rate * float64(logOfJob+payloadTimes*max(w.Payload-logPayload, 0))
}

// maxWAL lets checkpoints come by the clock, and not by the log.
func (w Workload) maxWAL() int64 {
	return gigabyte * int64(max(1, ceil(checkpointTarget*checkpointSeconds*w.logRate()/gigabyte)))
}

// ceil rounds up, but for what floating point has added.
func ceil(value float64) int { return int(math.Ceil(value - 1e-9)) }
