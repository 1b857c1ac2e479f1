package tune

import (
	"fmt"
	"strings"

	"github.com/holdfast-pg/holdfast/worker"
)

// Conflict is a setting that the work, or another setting, does not go with.
type Conflict struct {
	Between []string `json:"between"`
	What    string   `json:"what"` // Both values, and by how much.
}

// Conflicts tells what is wrong with settings for this work.
func (w Workload) Conflicts(v Values) (found []Conflict) {
	v.Worker = v.Worker.WithDefaults()
	add := func(wrong bool, what string, between ...string) {
		if wrong {
			found = append(found, Conflict{between, what})
		}
	}
	for _, broken := range brokenRelations(v.Worker) {
		add(true, broken, ofWorker)
	}
	w.conflictsOfSlots(v, add)
	w.conflictsOfTime(v, add)
	w.conflictsOfConnections(v, add)
	w.conflictsOfKeys(v, add)
	w.conflictsOfSize(v, add)
	return found
}

// brokenRelations are those that the worker would refuse to start with.
func brokenRelations(c worker.Config) []string {
	err := c.Validate()
	if err == nil {
		return nil
	}
	return strings.Split(strings.TrimPrefix(err.Error(), "worker configuration: "), "\n")
}

func (w Workload) conflictsOfSlots(v Values, add func(wrong bool, what string, between ...string)) {
	there := w.Workers * v.Worker.Concurrency
	share := w.slotShare(v.Worker.Concurrency)
	add(share > 1, fmt.Sprintf("%s, and %s × Concurrency (%d) = %d slots: %d are missing, and the backlog grows",
		w.handlerTime(), counted(w.Workers, "process"), v.Worker.Concurrency, there, ceil(w.busy())-there), "Concurrency", "rate")
	add(share > load && share <= 1, fmt.Sprintf("%s, and %s × Concurrency (%d) = %d slots, busy for %.0f %% of the time: jobs wait whenever more come than usual",
		w.handlerTime(), counted(w.Workers, "process"), v.Worker.Concurrency, there, 100*share), "Concurrency", "rate")
	add(w.Rate > measuredRate, fmt.Sprintf("%s/s are more than a server of two cores kept up (%s/s): measure yours with holdfast bench steady --database-url URL",
		number(w.Rate), number(measuredRate)), "rate")
	cores := w.Workers * w.Cores
	add(w.Compute && w.busy() > float64(cores), fmt.Sprintf("%s that compute, and %s × %d cores = %d: %d are missing",
		w.handlerTime(), counted(w.Workers, "process"), w.Cores, cores, ceil(w.busy())-cores), "cores", "rate")
}

func (w Workload) conflictsOfTime(v Values, add func(wrong bool, what string, between ...string)) {
	c := v.Worker
	add(!worker.IsEnoughLease(c.Lease, w.p99()), fmt.Sprintf("Lease (%s) is less than %d × p99 (%s): a pause of %s loses the job, and it runs twice; %s is enough",
		short(c.Lease), worker.LeaseTimes, w.P99, short(c.Lease-c.RenewEvery), short(worker.EnoughLease(w.p99()))), "Lease", "p99")
	add(c.DrainDeadline < min(w.p99(), longestDrain), fmt.Sprintf("DrainDeadline (%s) is less than the p99 (%s): a deployment cancels handlers that would have finished",
		short(c.DrainDeadline), w.P99), "DrainDeadline", "p99")
}

func (w Workload) conflictsOfConnections(v Values, add func(wrong bool, what string, between ...string)) {
	need := w.connections(v.Worker)
	add(need > w.Connections, fmt.Sprintf("%s × %s = %d connections, and there are %d: %d are missing",
		counted(w.Workers, "process"), w.connectionsEach(v.Worker), need, w.Connections, need-w.Connections), "Connections", "max-connections")
	held := w.Held * v.Worker.Concurrency
	add(held > v.Pool, fmt.Sprintf("%d held × Concurrency (%d) = %d connections, and pool_max_conns is %d: handlers wait for %d",
		w.Held, v.Worker.Concurrency, held, v.Pool, held-v.Pool), "pool_max_conns", "Concurrency")
}

func (w Workload) conflictsOfKeys(v Values, add func(wrong bool, what string, between ...string)) {
	add(v.Queue.Ordered != w.Ordered, fmt.Sprintf("the queue is ordered=%t, and the work wants ordered=%t", v.Queue.Ordered, w.Ordered), "ordered")
	add(w.shards() > v.Shards, fmt.Sprintf("the hot key gets %s/s, and a lane passes %s/s at most: it needs %d shards, or less order",
		number(w.HotShare*w.Rate), number(w.keyRate()), w.shards()), "ordered", "hot-key")
	add(v.Worker.Affinity == worker.AffinityRing && w.Workers > 1 && w.overloadsOwner(v.Worker.Concurrency),
		fmt.Sprintf("the hot key keeps %s slots busy, and with Affinity ring the owner of its bucket has %d: its jobs wait %s for others",
			number(w.HotShare*w.busy()), v.Worker.Concurrency, short(worker.StrayAfter)), "Affinity", "hot-key")
	buckets := bucketsEach * w.Workers
	add(v.Worker.Buckets > 0 && v.Worker.Buckets < buckets, fmt.Sprintf("%d buckets are less than %d × %s: their shares are uneven",
		v.Worker.Buckets, bucketsEach, counted(w.Workers, "process")), "Buckets", "workers")
}

func (w Workload) conflictsOfSize(v Values, add func(wrong bool, what string, between ...string)) {
	add(w.Payload > v.Worker.PayloadWarning, fmt.Sprintf("payloads of %s are over PayloadWarning (%s): keep the body elsewhere and send a pointer",
		size(w.Payload), size(v.Worker.PayloadWarning)), "payload", "PayloadWarning")
	stock := worker.StockPerBatch * v.Worker.ClaimBatch * w.Payload
	add(stock > stockBytes && v.Worker.ClaimBatch > worker.FirstBatch, fmt.Sprintf("%d × ClaimBatch (%d) × %s = %s may wait in a worker, more than %s",
		worker.StockPerBatch, v.Worker.ClaimBatch, size(w.Payload), roughly(stock), size(stockBytes)), "ClaimBatch", "payload")
	add(v.Server.MaxWAL < w.maxWAL(), fmt.Sprintf("%s of log a second, and max_wal_size is %dGB: checkpoints come before their time",
		roughly(int(w.logRate())), v.Server.MaxWAL/gigabyte), "max_wal_size", "rate")
}
