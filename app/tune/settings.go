package tune

import (
	"fmt"
	"strconv"
	"time"

	"github.com/holdfast-pg/holdfast/worker"
)

// Setting is one line of the advice. Its values are written as whoever sets them writes them.
type Setting struct {
	Of          string `json:"of"` // Who has it: worker, queue, pool or server.
	Setting     string `json:"setting"`
	Current     string `json:"current"`
	From        string `json:"from"` // Where the current value comes from.
	Recommended string `json:"recommended"`
	Rule        string `json:"rule"`
	Watch       string `json:"watch_for"`
}

// Change tells whether another value is recommended.
func (s Setting) Change() bool { return s.Current != s.Recommended }

// The owners of settings.
const (
	ofWorker = "worker"
	ofQueue  = "queue"
	ofPool   = "pool"
	ofServer = "server"
)

// knob is a setting that tuning has a word on.
type knob struct {
	of, name string
	value    func(v Values) string
	rule     func(w Workload, r Recommendation) string
	watch    string
}

// knobs are all of them, in the order in which they are printed. Those of the worker are fields
// of worker.Config.
var knobs = []knob{
	{
		ofWorker, "Concurrency", func(v Values) string { return strconv.Itoa(v.Worker.Concurrency) }, concurrencyRule,
		"jobs wait while all slots are taken (holdfast status); whether memory, and those whom handlers call, bear so many at once",
	},
	{
		ofWorker, "ClaimBatch", func(v Values) string { return strconv.Itoa(v.Worker.ClaimBatch) }, claimBatchRule,
		fmt.Sprintf("a claim takes more than %s (holdfast workers show): the worker halves its batches by itself", short(worker.SlowClaim)),
	},
	{
		ofWorker, "Affinity", func(v Values) string { return string(v.Worker.Affinity) }, affinityRule,
		fmt.Sprintf("ring: a busy worker's jobs wait up to %s before an idle one takes them; none: related jobs run anywhere", short(worker.StrayAfter)),
	},
	{
		ofWorker, "Buckets", func(v Values) string { return strconv.Itoa(v.Worker.Buckets) }, bucketsRule,
		"too few: shares are uneven; it is the installation's, and fixed while the inbox holds jobs",
	},
	{
		ofWorker, "Lease", func(v Values) string { return short(v.Worker.Lease) }, leaseRule,
		"shorter: a pause of the worker or the database loses jobs, and they run twice; longer: a dead worker's jobs come back later",
	},
	{
		ofWorker, "RenewEvery", func(v Values) string { return short(v.Worker.RenewEvery) }, func(_ Workload, r Recommendation) string {
			return fmt.Sprintf("Lease (%s) ÷ %d, while the handler runs", short(r.Worker.Lease), worker.RenewalsPerLease)
		},
		"longer than a third of Lease is refused: one lost renewal would lose the job",
	},
	{
		ofWorker, "LeaseMargin", func(v Values) string { return short(v.Worker.LeaseMargin) }, func(_ Workload, r Recommendation) string {
			return fmt.Sprintf("Lease (%s) ÷ %d", short(r.Worker.Lease), worker.MarginsPerLease)
		},
		"shorter: a handler that was cut off has less time to notice before its job runs elsewhere",
	},
	{
		ofWorker, "Heartbeat", func(v Values) string { return short(v.Worker.Heartbeat) }, func(_ Workload, r Recommendation) string {
			return fmt.Sprintf("WorkerTTL (%s) ÷ %d", short(r.Worker.WorkerTTL), worker.BeatsPerTTL)
		},
		"longer: a living worker is taken for dead; shorter: more writes",
	},
	{
		ofWorker, "WorkerTTL", func(v Values) string { return short(v.Worker.WorkerTTL) }, func(_ Workload, r Recommendation) string {
			return fmt.Sprintf("%d × Heartbeat (%s)", worker.BeatsPerTTL, short(r.Worker.Heartbeat))
		},
		"longer: a dead worker keeps its buckets for longer; shorter: the ring changes at every hiccup",
	},
	{
		ofWorker, "RingCache", func(v Values) string { return short(v.Worker.RingCache) }, func(_ Workload, r Recommendation) string {
			return fmt.Sprintf("%s, at most WorkerTTL (%s)", short(r.Worker.RingCache), short(r.Worker.WorkerTTL))
		},
		"longer: a worker that joined waits longer for its share; shorter: the registry is read more often",
	},
	{
		ofWorker, "Housekeeping", func(v Values) string { return short(v.Worker.Housekeeping) }, func(_ Workload, r Recommendation) string {
			return fmt.Sprintf("a dead worker's jobs are back within Lease (%s) + Housekeeping (%s) = %s", short(r.Worker.Lease), short(r.Worker.Housekeeping), short(r.Worker.Lease+r.Worker.Housekeeping))
		},
		"more often rarely helps: one worker in turn does it for all",
	},
	{
		ofWorker, "ActivePoll", func(v Values) string { return short(v.Worker.ActivePoll) }, func(_ Workload, r Recommendation) string {
			return fmt.Sprintf("%s after a claim that found nothing, doubled up to IdlePoll (%s)", short(r.Worker.ActivePoll), short(r.Worker.IdlePoll))
		},
		"shorter: an idle database is asked more often",
	},
	{
		ofWorker, "IdlePoll", func(v Values) string { return short(v.Worker.IdlePoll) }, func(w Workload, r Recommendation) string {
			return fmt.Sprintf("%s and a jitter: the doorbell ends it, and so does the next job that is due", short(r.Worker.IdlePoll))
		},
		"notifications do not arrive (holdfast doctor): a job then waits for the next poll",
	},
	{
		ofWorker, "Connections", func(v Values) string { return strconv.Itoa(v.Worker.Connections) }, connectionsRule,
		"a deployment starts new workers before the old ones end, and needs up to twice as many",
	},
	{
		ofWorker, "PayloadWarning", func(v Values) string { return strconv.Itoa(v.Worker.PayloadWarning) }, func(w Workload, r Recommendation) string {
			return fmt.Sprintf("payloads of %s; from %s on the body belongs elsewhere", size(w.Payload), size(r.Worker.PayloadWarning))
		},
		"larger payloads slow claims and vacuum down, and are written three times to the log",
	},
	{
		ofWorker, "DrainDeadline", func(v Values) string { return short(v.Worker.DrainDeadline) }, drainRule,
		"the platform kills earlier: give it 10s more (terminationGracePeriodSeconds, TimeoutStopSec)",
	},
	{
		ofQueue, "ordered", func(v Values) string { return strconv.FormatBool(v.Queue.Ordered) }, orderedRule,
		"it is fixed while the queue has jobs; a lane waits for its retries",
	},
	{
		ofQueue, "shards of the hot key", func(v Values) string { return strconv.Itoa(v.Shards) }, shardsRule,
		"order holds within each shard (holdfast.Shard), and not between them",
	},
	{
		ofQueue, "retention-mode", func(v Values) string { return string(v.Queue.RetentionMode) }, func(Workload, Recommendation) string {
			return "completed jobs leave the inbox in the statement that completes them"
		},
		"keep: completed rows are in the way of everything that reads the inbox; drop: a third less log, and nobody can look a job up",
	},
	{
		ofQueue, "retention", func(v Values) string { return days(v.Queue.Retention) }, func(w Workload, r Recommendation) string {
			return fmt.Sprintf("%s × %s/s = %s jobs in the archive", days(r.Queue.Retention), number(w.Rate), number(w.Rate*r.Queue.Retention.Seconds()))
		},
		"the disk fills: retention drops whole days of the archive",
	},
	{
		ofQueue, "ring", func(v Values) string { return strconv.FormatBool(v.Queue.Ring) }, func(Workload, Recommendation) string {
			return "an enqueue wakes an idle worker at its commit; a busy queue is not rung for"
		},
		"a transaction that rings cannot be prepared for two-phase commit",
	},
	{
		ofPool, "pool_max_conns", func(v Values) string { return strconv.Itoa(v.Pool) }, poolRule,
		"a handler that waits for a connection keeps its slot",
	},
	{
		ofServer, "max_connections", func(v Values) string { return strconv.Itoa(v.Server.MaxConnections) }, maxConnectionsRule,
		"behind a pooler in transaction mode these are the pooler's, and one connection a process listens past it (--direct-url)",
	},
	{
		ofServer, "max_wal_size", func(v Values) string { return fmt.Sprintf("%dGB", v.Server.MaxWAL/gigabyte) }, maxWALRule,
		"checkpoints that were requested outnumber those by the clock (pg_stat_checkpointer, pg_stat_bgwriter before 17)",
	},
	{
		ofServer, "synchronous_commit", func(v Values) string { return v.Server.SynchronousCommit }, func(Workload, Recommendation) string {
			return "a job whose enqueue was committed survives a crash, and no fence token is given out twice"
		},
		"off for a role or a database (holdfast doctor)",
	},
	{
		ofServer, "autovacuum", func(v Values) string { return v.Server.Autovacuum }, func(w Workload, _ Recommendation) string {
			return fmt.Sprintf("2 dead rows a job × %s/s = %s/s; the inbox has its own settings: due at 1,000 rows + 1 %%, without a delay", number(w.Rate), number(2*w.Rate))
		},
		"an old transaction, a slot or a standby holds vacuum back (holdfast doctor)",
	},
}

// settings are the lines of the advice.
func settings(w Workload, r Recommendation, current Current) []Setting {
	lines := make([]Setting, len(knobs))
	for i, knob := range knobs {
		lines[i] = Setting{
			Of: knob.of, Setting: knob.name, Current: knob.value(current.Values), From: current.from(knob.name),
			Recommended: knob.value(r.Values), Rule: knob.rule(w, r), Watch: knob.watch,
		}
	}
	return lines
}

// days is a duration as `holdfast queues set` takes it.
func days(d time.Duration) string {
	const day = 24 * time.Hour
	if d >= day && d%day == 0 {
		return fmt.Sprintf("%dd", d/day)
	}
	return short(d)
}
