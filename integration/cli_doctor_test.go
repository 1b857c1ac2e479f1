package integration

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/holdfast-pg/holdfast/app/doctor"
	"github.com/holdfast-pg/holdfast/domain"
	"github.com/holdfast-pg/holdfast/integration/pgtest"
)

// quietChecks are those whose answer does not depend on the server that all tests share.
var quietChecks = []string{"--check", "server_version", "--check", "schema_drift", "--check", "orphan_buckets"}

func TestCLI_DoctorPrintsNoFindingsAndTheChecksThatRan(t *testing.T) {
	t.Parallel()
	database := pgtest.New(t)
	healthy := runCLI(t, database, 0, append([]string{"doctor"}, quietChecks...)...)
	const want = `no findings

CHECK           RESULT  EXAMINES
server_version  well    that the server is PostgreSQL 14 to 18
schema_drift    well    that tables, columns, constraints, indexes, triggers, functions and types are those of the migrations
orphan_buckets  well    that no pending job lies in a bucket at or above the bucket count
`
	if got := healthy.stdout.String(); got != want || healthy.stderr.String() != "" {
		t.Errorf("printed:\n%s%s", got, healthy.stderr.String())
	}
	report := decoded[doctor.Report](t, database, append([]string{"doctor"}, quietChecks...)...)
	if len(report.Findings) != 0 || len(report.Checks) != 3 || report.Checks[1].Check != "schema_drift" || report.Checks[1].Examines == "" {
		t.Errorf("%+v", report)
	}
}

func TestCLI_DoctorPrintsFindingsWithWhatMendsThem(t *testing.T) {
	t.Parallel()
	database := pgtest.New(t)
	database.Exec(t, "DROP INDEX holdfast.inbox_dead_idx")
	sick := runCLI(t, database, 3, append([]string{"doctor"}, quietChecks...)...)
	const want = `error: schema_drift: index inbox_dead_idx of table inbox is missing
  why  Each is there for a statement or a promise: without an index a claim reads the whole table, without a constraint a wrong row gets in, and one more index makes every claim dearer.
  fix  CREATE INDEX CONCURRENTLY inbox_dead_idx
           ON holdfast.inbox USING btree (queue, kind, finished_at, id)
           WHERE status = ANY (ARRAY['failed'::holdfast.inbox_status, 'dead_letter'::holdfast.inbox_status]);

CHECK           RESULT   EXAMINES
server_version  well     that the server is PostgreSQL 14 to 18
schema_drift    1 found  that tables, columns, constraints, indexes, triggers, functions and types are those of the migrations
orphan_buckets  well     that no pending job lies in a bucket at or above the bucket count
`
	if got := sick.stdout.String(); got != want || sick.stderr.String() != "holdfast: 1 finding\n" {
		t.Errorf("printed:\n%s%s", got, sick.stderr.String())
	}
	lines := runCLI(t, database, 3, append([]string{"doctor", "-o", "jsonl"}, quietChecks...)...).stdout.String()
	if !strings.HasPrefix(lines, `{"check":"schema_drift","severity":"error","what":"index inbox_dead_idx of table inbox is missing","why":"Each is there`) || strings.Count(lines, "\n") != 1 {
		t.Errorf("printed:\n%s", lines)
	}
	document := runCLI(t, database, 3, append([]string{"doctor", "-o", "json"}, quietChecks...)...).stdout.String()
	for _, words := range []string{`"findings": [`, `"checks": [`, `"check": "schema_drift",`, `"findings": 1`, `"fix": "CREATE INDEX CONCURRENTLY inbox_dead_idx\n    ON holdfast.inbox`} {
		if !strings.Contains(document, words) {
			t.Errorf("there is no %s in\n%s", words, document)
		}
	}
}

func TestCLI_DoctorOfADatabaseWithoutTheSchemaNamesMigrateUp(t *testing.T) {
	t.Parallel()
	database := pgtest.Empty(t)
	sick := runCLI(t, database, 3, "doctor", "--check", "schema_version", "--check", "schema_drift", "--check", "dead_keys")
	wantOutput(t, &sick.stdout, "error: schema_version: the database has no holdfast schema\n", "  fix  holdfast migrate up\n",
		"schema_drift    skipped: the schema does not fit this program ")
}

func TestCLI_HealthReadyLooksForTheSchemaAndOnRequestForAWorker(t *testing.T) {
	t.Parallel()
	database := pgtest.New(t)
	if got := runCLI(t, database, 0, "health", "ready").stdout.String(); !regexp.MustCompile(`^schema  \d+\n$`).MatchString(got) {
		t.Errorf("printed:\n%s", got)
	}
	wantOutput(t, &runCLI(t, database, 1, "health", "ready", "--worker", "w1").stderr, `no worker with the id "w1" is alive: `)
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	database.Exec(t, "INSERT INTO holdfast.workers (id, queues, metadata) VALUES ('w1', '{default}', jsonb_build_object('host', $1::text))", host)
	if got := runCLI(t, database, 0, "health", "ready", "--host", "--worker", "w1").stdout.String(); !regexp.MustCompile(`^schema     \d+\nworker     w1\nlast seen  \d+s ago\n$`).MatchString(got) {
		t.Errorf("printed:\n%s", got)
	}
	ready := decoded[map[string]any](t, database, "health", "ready", "--host")
	if seconds, isNumber := ready["silence_seconds"].(float64); ready["worker"] != "w1" || !isNumber || seconds < 0 {
		t.Errorf("%v", ready)
	}
	wantOutput(t, &runCLI(t, pgtest.Empty(t), 1, "health", "ready").stderr, "holdfast migrate up")
}

func TestSupport_LiveWorkerIsAliveAndWasSeenWithinTheTimeThatItPromises(t *testing.T) {
	t.Parallel()
	database := pgtest.New(t)
	database.Exec(t, `INSERT INTO holdfast.workers (id, queues, metadata) VALUES ('w1', '{default}', '{"host": "vm"}')`)
	lives := func(id, host string) bool {
		t.Helper()
		worker, err := domain.FindLiveWorker(t.Context(), database.Pool, id, host)
		if err != nil {
			wantError(t, err, domain.ErrWorkerUnknown)
		}
		return worker.ID == "w1"
	}
	for _, who := range [][2]string{{"", ""}, {"w1", ""}, {"", "vm"}, {"w1", "vm"}} {
		if !lives(who[0], who[1]) {
			t.Errorf("%q is not found", who)
		}
	}
	if lives("w2", "") || lives("w1", "another") {
		t.Error("another is found")
	}
	database.Exec(t, "UPDATE holdfast.workers SET status = 'draining'")
	if lives("w1", "") {
		t.Error("one that drains is found")
	}
	database.Exec(t, "UPDATE holdfast.workers SET status = 'alive', last_seen_at = now() - interval '31 seconds'")
	if lives("w1", "") {
		t.Error("one that says nothing counts as alive for longer than 30 s")
	}
	database.Exec(t, `UPDATE holdfast.workers SET metadata = metadata || '{"worker_ttl_seconds": 60}'`)
	if !lives("w1", "") {
		t.Error("one that promises to be seen every 60 s is not found after 31")
	}
}

// What answers through PgBouncer in transaction mode is seen; without one, nothing is.
func TestWorker_DoctorSeesAPoolerInTransactionMode(t *testing.T) {
	t.Parallel()
	database := pgtest.New(t)
	examine := func(options doctor.Options) doctor.Report {
		options.Checks = []string{"notifications"}
		report, err := doctor.Examine(t.Context(), database.Pool, options)
		if err != nil {
			t.Fatal(err)
		}
		return report
	}
	if database.URL == database.DirectURL {
		if report := examine(doctor.Options{}); len(report.Findings) != 0 {
			t.Errorf("found %+v", report.Findings)
		}
		return
	}
	if report := examine(doctor.Options{}); len(report.Findings) != 1 || !strings.Contains(report.Findings[0].What, "a pooler stands before the server") || !strings.Contains(report.Findings[0].Fix, "--direct-url") {
		t.Errorf("found %+v", report.Findings)
	}
	if report := examine(doctor.Options{DirectURL: database.DirectURL}); len(report.Findings) != 0 {
		t.Errorf("with a direct address it finds %+v", report.Findings)
	}
}
