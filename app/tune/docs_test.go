package tune

import (
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-pg/holdfast/domain"
	"github.com/holdfast-pg/holdfast/worker"
)

// limit is what a worker demands of a setting, with a configuration that just bears it and one
// that just breaks it.
type limit struct {
	words         string
	holds, breaks worker.Config
}

const tick = time.Nanosecond

// limits are those of the fields of worker.Config.
func limits() map[string]limit {
	c := worker.Config{}.WithDefaults()
	return map[string]limit{
		"Concurrency":    {"positive", worker.Config{Concurrency: 1}, worker.Config{Concurrency: -1}},
		"ClaimBatch":     {"positive", worker.Config{ClaimBatch: 1}, worker.Config{ClaimBatch: -1}},
		"Affinity":       {fmt.Sprintf("%s or %s", worker.AffinityRing, worker.AffinityNone), worker.Config{Affinity: worker.AffinityNone}, worker.Config{Affinity: "sticky"}},
		"Buckets":        {fmt.Sprintf("that of the installation, 1 to %s", number(domain.MostBuckets)), worker.Config{Buckets: 1}, worker.Config{Buckets: -1}},
		"Lease":          {"positive", worker.Config{Lease: time.Second}, worker.Config{Lease: -tick}},
		"RenewEvery":     {fmt.Sprintf("at most Lease ÷ %d", worker.RenewalsPerLease), worker.Config{RenewEvery: c.Lease / worker.RenewalsPerLease}, worker.Config{RenewEvery: c.Lease/worker.RenewalsPerLease + tick}},
		"LeaseMargin":    {"less than Lease − RenewEvery", worker.Config{LeaseMargin: c.Lease - c.RenewEvery - tick}, worker.Config{LeaseMargin: c.Lease - c.RenewEvery}},
		"Heartbeat":      {fmt.Sprintf("at most WorkerTTL ÷ %d", worker.BeatsPerTTL), worker.Config{Heartbeat: c.WorkerTTL / worker.BeatsPerTTL, WorkerTTL: c.WorkerTTL}, worker.Config{Heartbeat: c.WorkerTTL/worker.BeatsPerTTL + tick, WorkerTTL: c.WorkerTTL}},
		"WorkerTTL":      {fmt.Sprintf("at least %d × Heartbeat", worker.BeatsPerTTL), worker.Config{WorkerTTL: worker.BeatsPerTTL * c.Heartbeat}, worker.Config{WorkerTTL: worker.BeatsPerTTL*c.Heartbeat - tick}},
		"RingCache":      {"at most WorkerTTL", worker.Config{RingCache: c.WorkerTTL}, worker.Config{RingCache: c.WorkerTTL + tick}},
		"Housekeeping":   {"positive", worker.Config{Housekeeping: tick}, worker.Config{Housekeeping: -tick}},
		"ActivePoll":     {"at most IdlePoll", worker.Config{ActivePoll: c.IdlePoll}, worker.Config{ActivePoll: c.IdlePoll + tick}},
		"IdlePoll":       {"at least ActivePoll", worker.Config{IdlePoll: c.ActivePoll}, worker.Config{IdlePoll: c.ActivePoll - tick}},
		"Connections":    {fmt.Sprintf("at least %d", domain.MinConnections), worker.Config{Connections: domain.MinConnections}, worker.Config{Connections: domain.MinConnections - 1}},
		"PayloadWarning": {"positive", worker.Config{PayloadWarning: 1}, worker.Config{PayloadWarning: -1}},
		"DrainDeadline":  {"positive", worker.Config{DrainDeadline: tick}, worker.Config{DrainDeadline: -tick}},
	}
}

func TestDocs_LimitsInTheTableAreThoseThatAWorkerChecks(t *testing.T) {
	t.Parallel()
	for setting, limit := range limits() {
		if err := limit.holds.Validate(); err != nil {
			t.Errorf("%s, %s: %v", setting, limit.words, err)
		}
		if err := limit.breaks.Validate(); err == nil || !strings.Contains(err.Error(), setting) {
			t.Errorf("%s, %s: beyond it the worker says %v", setting, limit.words, err)
		}
	}
}

// rulesInWords are the rules without a workload, with the numbers that the code goes by.
func rulesInWords() map[string]string {
	c := worker.Config{}.WithDefaults()
	return map[string]string{
		"Concurrency":           fmt.Sprintf("handlers at once on average ÷ %g ÷ processes; %d, or up to %d with twice the cores, cost nothing; where handlers compute the cores, at least %d", load, leastSlots, usualSlots, computeSlots),
		"ClaimBatch":            fmt.Sprintf("claims begin with %d and grow by themselves; %d × ClaimBatch × payload ≤ %s", worker.FirstBatch, worker.StockPerBatch, size(stockBytes)),
		"Affinity":              fmt.Sprintf("none where the p50 is %s or more, or where a key without order keeps more than %g of its owner's slots busy", short(worker.StrayAfter), load),
		"Buckets":               fmt.Sprintf("%d × processes at least", bucketsEach),
		"Lease":                 fmt.Sprintf("%d × p99 in steps of 10s, at least %s, at most %s: renewals carry handlers that take longer", worker.LeaseTimes, short(c.Lease), short(worker.LongestLease)),
		"RenewEvery":            fmt.Sprintf("Lease ÷ %d, while the handler runs", worker.RenewalsPerLease),
		"LeaseMargin":           fmt.Sprintf("Lease ÷ %d", worker.MarginsPerLease),
		"Heartbeat":             fmt.Sprintf("WorkerTTL ÷ %d", worker.BeatsPerTTL),
		"WorkerTTL":             fmt.Sprintf("%d × Heartbeat", worker.BeatsPerTTL),
		"RingCache":             "as it is",
		"Housekeeping":          "a dead worker's jobs are back within Lease + Housekeeping",
		"ActivePoll":            "the wait after a claim that found nothing, doubled up to IdlePoll",
		"IdlePoll":              "as it is, with a jitter: the doorbell ends it, and so does the next job that is due",
		"Connections":           "as many as fit: processes × (Connections + 1 to listen + held × Concurrency)",
		"PayloadWarning":        "from here on the body belongs elsewhere",
		"DrainDeadline":         fmt.Sprintf("p99 in steps of %s, at least %s, at most %s", short(drainStep), short(c.DrainDeadline), short(longestDrain)),
		"ordered":               fmt.Sprintf("true where the jobs of a key must run in order: 1 ÷ (mean + 1/%d s) a second and key", laneRate),
		"shards of the hot key": fmt.Sprintf("the rate of the key ÷ what a lane passes ÷ %g", load),
		"retention-mode":        "completed jobs leave the inbox in the statement that completes them",
		"retention":             "retention × rate is what the archive holds",
		"ring":                  "true: an enqueue wakes an idle worker at its commit; a busy queue is not rung for",
		"pool_max_conns":        "held × Concurrency, at least the driver's default: 4, or the cores",
		"max_connections":       fmt.Sprintf("2 × all connections, for a deployment, + %d reserved, at least %d", reserved, serverConnections),
		"max_wal_size":          fmt.Sprintf("log a second × %d × %g, at least 1GB; a job of %d bytes writes %s bytes of log, each further byte of payload %d", checkpointSeconds, checkpointTarget, logPayload, number(logOfJob), payloadTimes),
		"synchronous_commit":    "on: what was committed survives a crash, and no fence token is given out twice",
		"autovacuum":            "on; the inbox has its own settings: due at 1,000 rows + 1 %, without a delay",
	}
}

// Each row of the table is made of what the code goes by: a number that changes there changes
// here, or this test fails and prints the row.
func TestDocs_SettingsTableIsThatOfTheCode(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../docs/tuning.md")
	if err != nil {
		t.Fatal(err)
	}
	demands, words, rows := limits(), rulesInWords(), 0
	for _, knob := range knobs {
		name := "`" + knob.name + "`"
		if strings.Contains(knob.name, " ") {
			name = knob.name
		}
		cells := []string{name, knob.value(Defaults(1))}
		if knob.of == ofWorker {
			cells = append(cells, demands[knob.name].words)
		}
		row := "| " + strings.Join(append(cells, words[knob.name], knob.watch), " | ") + " |\n"
		if words[knob.name] == "" || knob.of == ofWorker && demands[knob.name].words == "" || !strings.Contains(string(text), row) {
			t.Errorf("docs/tuning.md lacks the row\n%s", row)
		}
	}
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, "| `") && strings.Count(line, "|") >= 5 || strings.HasPrefix(line, "| shards") {
			rows++
		}
	}
	if rows != len(knobs) {
		t.Errorf("docs/tuning.md has %d rows of settings, and there are %d settings", rows, len(knobs))
	}
}

// What the inbox has of its own is written by a migration, not by tuning.
func TestDocs_AutovacuumAndBucketsAreThoseOfTheSchema(t *testing.T) {
	t.Parallel()
	schema, err := os.ReadFile("../../db/schema.sql")
	if err != nil {
		t.Fatal(err)
	}
	_, inbox, _ := strings.Cut(string(schema), "CREATE TABLE holdfast.inbox (")
	inbox, _, _ = strings.Cut(inbox, "CREATE TABLE")
	for _, setting := range []string{"autovacuum_vacuum_threshold = 1000", "autovacuum_vacuum_scale_factor = 0.01", "autovacuum_vacuum_cost_delay = 0"} {
		if !strings.Contains(inbox, setting) {
			t.Errorf("the inbox does not have %s", setting)
		}
	}
	for _, words := range []string{
		fmt.Sprintf("bucket_count <= %d)", domain.MostBuckets), fmt.Sprintf("bucket_count integer NOT NULL DEFAULT %d,", domain.DefaultBuckets),
	} {
		if !strings.Contains(string(schema), words) {
			t.Errorf("the schema does not say %q", words)
		}
	}
}

// The numbers that come from measurements are about those of docs/performance.md.
func TestDocs_MeasuredNumbersAreAboutThoseOfThePerformancePage(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../docs/performance.md")
	if err != nil {
		t.Fatal(err)
	}
	for pattern, used := range map[string]float64{
		`WAL of a job of 128 bytes, enqueue included \|[^|]*\| ([\d,]+) B`: logOfJob,
		`[Oo]ne key (?:alone )?passes (\d+) jobs`:                          laneRate,
	} {
		match := regexp.MustCompile(pattern).FindStringSubmatch(string(text))
		if match == nil {
			t.Errorf("docs/performance.md has no %s", pattern)
			continue
		}
		measured, _ := strconv.ParseFloat(strings.ReplaceAll(match[1], ",", ""), 64)
		if used < 0.9*measured || used > 1.1*measured {
			t.Errorf("tuning goes by %v, and docs/performance.md has measured %v: %s", used, measured, pattern)
		}
	}
}
