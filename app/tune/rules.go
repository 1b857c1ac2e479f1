package tune

import (
	"fmt"
	"time"

	"github.com/holdfast-pg/holdfast/domain"
	"github.com/holdfast-pg/holdfast/worker"
)

// The rules whose numbers depend on the workload, each with its numbers put in.

func concurrencyRule(w Workload, r Recommendation) string {
	if w.Compute {
		return fmt.Sprintf("handlers compute: as many as a process has cores (%d), at least %d", w.Cores, computeSlots)
	}
	rule := fmt.Sprintf("%s, ÷ %g ÷ %s = %d", w.handlerTime(), load, counted(w.Workers, "process"), w.neededSlots())
	switch slots := r.Worker.Concurrency; {
	case slots > w.neededSlots() && slots == w.MostSlots, slots < w.neededSlots():
		rule += fmt.Sprintf("; at most %d", w.MostSlots)
	case slots > w.neededSlots():
		rule += fmt.Sprintf("; up to %d cost nothing", slots)
	}
	return rule
}

func claimBatchRule(w Workload, r Recommendation) string {
	fits := worker.StockPerBatch * r.Worker.ClaimBatch * w.Payload
	return fmt.Sprintf("%d × %d × %s = %s may wait in a worker, of %s; claims begin with %d and grow",
		worker.StockPerBatch, r.Worker.ClaimBatch, size(w.Payload), roughly(fits), size(stockBytes), worker.FirstBatch)
}

func affinityRule(w Workload, r Recommendation) string {
	switch {
	case w.Workers == 1:
		return "one process owns all buckets"
	case w.isLong():
		return fmt.Sprintf("handlers take %s, and a job waits %s for its owner: a free slot anywhere takes the next one", w.P50, short(worker.StrayAfter))
	case w.overloadsOwner(r.Worker.Concurrency):
		return fmt.Sprintf("the hot key keeps %s slots busy, and its owner has %d", number(w.HotShare*w.busy()), r.Worker.Concurrency)
	default:
		return "related jobs meet in one process, and workers do not compete for rows"
	}
}

func bucketsRule(w Workload, _ Recommendation) string {
	return fmt.Sprintf("%d × %s = %d at least; %d suit most", bucketsEach, counted(w.Workers, "process"), bucketsEach*w.Workers, domain.DefaultBuckets)
}

func leaseRule(w Workload, _ Recommendation) string {
	least := worker.Config{}.WithDefaults().Lease
	return fmt.Sprintf("%d × p99 (%s), at least %s, at most %s: renewals carry handlers that take longer", worker.LeaseTimes, w.P99, short(least), short(worker.LongestLease))
}

func connectionsRule(w Workload, r Recommendation) string {
	return fmt.Sprintf("%s × %s = %d of %d", counted(w.Workers, "process"), w.connectionsEach(r.Worker), w.connections(r.Worker), w.Connections)
}

func drainRule(w Workload, _ Recommendation) string {
	least := worker.Config{}.WithDefaults().DrainDeadline
	return fmt.Sprintf("p99 (%s), at least %s, at most %s; jobs that run on are given back without spending the attempt", w.P99, short(least), short(longestDrain))
}

func orderedRule(w Workload, _ Recommendation) string {
	if !w.Ordered {
		return "no order is asked for"
	}
	return fmt.Sprintf("jobs of one key run one at a time: %s/s a key at most", number(w.keyRate()))
}

func shardsRule(w Workload, _ Recommendation) string {
	switch {
	case !w.Ordered:
		return "without order the jobs of one key run side by side"
	case w.HotShare == 0:
		return "no key is hot"
	default:
		return fmt.Sprintf("the hot key gets %s %% × %s/s = %s/s, and a lane passes %s/s, ÷ %g", number(100*w.HotShare), number(w.Rate), number(w.HotShare*w.Rate), number(w.keyRate()), load)
	}
}

func poolRule(w Workload, r Recommendation) string {
	if w.Held == 0 {
		return "handlers hold none: the driver's default will do"
	}
	return fmt.Sprintf("%d held × %d slots, at least the driver's default", w.Held, r.Worker.Concurrency)
}

func maxConnectionsRule(w Workload, r Recommendation) string {
	return fmt.Sprintf("2 × %d, for a deployment, + %d reserved; at least %d", w.connections(r.Worker), reserved, serverConnections)
}

func maxWALRule(w Workload, _ Recommendation) string {
	return fmt.Sprintf("%s of log a second × %d × %g, so that checkpoints come by the clock; at least 1GB", roughly(int(w.logRate())), checkpointSeconds, checkpointTarget)
}

// roughly is a number of bytes with three digits.
func roughly(bytes int) string {
	for _, unit := range []struct {
		name string
		size float64
	}{{"GB", 1 << 30}, {"MB", 1 << 20}, {"KB", 1 << 10}} {
		if float64(bytes) >= unit.size {
			return number(float64(bytes)/unit.size) + " " + unit.name
		}
	}
	return fmt.Sprintf("%d bytes", bytes)
}

func (w Workload) slotShare(slots int) float64 { return w.busy() / float64(w.Workers*slots) }

func (w Workload) p99() time.Duration { return time.Duration(w.P99) }
