package integration

import (
	"fmt"
	"strings"
	"testing"

	"github.com/holdfast-pg/holdfast/app/tune"
	"github.com/holdfast-pg/holdfast/domain"
	"github.com/holdfast-pg/holdfast/integration/pgtest"
)

// busyQueue has jobs that came within the last minute, half of them of one key, and two workers
// that say how they work.
func busyQueue(t *testing.T) *pgtest.Database {
	t.Helper()
	database := pgtest.New(t)
	for i := range 120 {
		key := "hot"
		if i%2 == 0 {
			key = fmt.Sprint("key ", i)
		}
		enqueue(t, database, domain.Key(key))
	}
	for _, worker := range []struct{ id, says string }{
		{"w1", `{"concurrency": 12, "affinity": "none", "lease_seconds": 40, "worker_ttl_seconds": 3600, "housekeeping_seconds": 15, "connections": 5, "handle_p50_ms": 100, "handle_p99_ms": 900}`},
		{"w2", `{"concurrency": 10, "affinity": "none", "lease_seconds": 50, "worker_ttl_seconds": 3600, "housekeeping_seconds": 15, "connections": 5, "handle_p50_ms": 300, "handle_p99_ms": 20000}`},
	} {
		database.Exec(t, "INSERT INTO holdfast.workers (id, queues, metadata) VALUES ($1, '{default}', $2::text::jsonb)", worker.id, worker.says)
	}
	database.Exec(t, "INSERT INTO holdfast.workers (id, queues, metadata, status) VALUES ('dead', '{default}', '{\"handle_p99_ms\": 60000}', 'dead')")
	return database
}

func TestCLI_TuneMeasuresWhatTheDatabaseTells(t *testing.T) {
	t.Parallel()
	database := busyQueue(t)
	report := decoded[tune.Report](t, database, "tune", "--measure", "10ms", "--cores", "2", "--payload", "700")
	w := report.Workload
	if w.Rate <= 0 || w.Rate > 2 || w.P50.String() != "200ms" || w.P99.String() != "20s" || w.Workers != 2 || w.HotShare != 0.5 || w.Ordered || w.Payload != 700 || w.Connections < 10 {
		t.Errorf("measured %+v", w)
	}
	want := map[string][3]string{
		"Concurrency": {"10", "workers", "8"}, "Lease": {"40s", "workers", "1m30s"}, "Affinity": {"none", "workers", "ring"}, "Connections": {"5", "workers", "7"},
		"Housekeeping": {"15s", "workers", "30s"}, "WorkerTTL": {"1h", "workers", "30s"}, "Buckets": {"1024", "server", "1024"},
		"retention": {"7d", "queue", "7d"}, "ring": {"true", "queue", "true"}, "synchronous_commit": {"", "server", "on"}, "pool_max_conns": {"4", "default", "4"},
	}
	for _, setting := range report.Settings {
		expected, checked := want[setting.Setting]
		if got := [3]string{setting.Current, setting.From, setting.Recommended}; checked && got != expected && expected[0] != "" {
			t.Errorf("%s is %v, want %v", setting.Setting, got, expected)
		}
		delete(want, setting.Setting)
	}
	if len(want) > 0 {
		t.Errorf("not listed: %v", want)
	}
	lease := "Lease (40s) is less than 3 × p99 (20s): a pause of 26.7s loses the job, and it runs twice; 1m is enough"
	if len(report.Conflicts) == 0 || report.Conflicts[0].What != lease {
		t.Errorf("%+v, want %q", report.Conflicts, lease)
	}
}

func TestCLI_TuneTakesAFlagForWhatItMeasured(t *testing.T) {
	t.Parallel()
	report := decoded[tune.Report](t, busyQueue(t), "tune", "--measure", "10ms", "--rate", "7", "--p99", "2s", "--workers", "3", "--lease", "45s")
	if w := report.Workload; w.Rate != 7 || w.P50.String() != "200ms" || w.P99.String() != "2s" || w.Workers != 3 {
		t.Errorf("%+v", w)
	}
	for _, setting := range report.Settings {
		if setting.Setting == "Lease" && (setting.Current != "45s" || setting.From != "flag") {
			t.Errorf("%+v", setting)
		}
	}
}

func TestCLI_TuneSaysWhatItCannotMeasure(t *testing.T) {
	t.Parallel()
	database := pgtest.New(t)
	measure := []string{"tune", "--measure", "10ms"}
	refused := func(words string, flags ...string) {
		t.Helper()
		p := runCLI(t, database, 1, append(measure, flags...)...)
		if got := p.stderr.String(); !strings.HasPrefix(got, "looking at queue ") || !strings.HasSuffix(got, words+"\n") || p.stdout.String() != "" {
			t.Errorf("%v: %s%s", flags, p.stdout.String(), got)
		}
	}
	refused("holdfast: no job came meanwhile: measure for longer, or give --rate")
	refused("holdfast: no live worker of the queue says how long its handlers take: start one, or give --p50 and --p99", "--rate", "5")
	refused(`holdfast: find queue "nosuch": no such queue`, "--queue", "nosuch")
	runCLI(t, database, 0, "queues", "set", "default", "--retention-mode", "drop")
	refused("holdfast: the queue drops completed jobs, so that those that came cannot be counted: give --rate")
	runCLI(t, database, 0, append(measure, "--rate", "5", "--p50", "1s", "--p99", "2s")...)
}
