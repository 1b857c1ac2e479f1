package integration

import (
	"context"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/holdfast-pg/holdfast"
	"github.com/holdfast-pg/holdfast/app/doctor"
	"github.com/holdfast-pg/holdfast/integration/pgtest"
)

// ward is a database on a server of its own, as durable as one in production, that a test may
// harm. Nothing is vacuumed there unless the test does it.
type ward struct {
	*pgtest.Database

	admin *pgx.Conn // A session from before any harm.
}

func newWard(t *testing.T) *ward {
	t.Helper()
	database, _ := pgtest.AloneWith(t, map[string]string{
		"max_connections":           "60",
		"max_prepared_transactions": "5",
		"wal_level":                 "logical",
		"autovacuum_naptime":        "1d",
	})
	return &ward{Database: database, admin: database.Conn(t)}
}

// examine lets the doctor look, with sessions of the moment.
func (w *ward) examine(t *testing.T, options doctor.Options) doctor.Report {
	t.Helper()
	w.Pool.Reset()
	report, err := doctor.Examine(t.Context(), w.Pool, options)
	if err != nil {
		t.Fatal(err)
	}
	return report
}

var lineComment = regexp.MustCompile(`--[^\n]*`)

// run executes statements in the session from before, one at a time: some cannot be in a
// transaction. A function is one statement.
func (w *ward) run(t *testing.T, script string) {
	t.Helper()
	statements := []string{script}
	if !strings.Contains(script, "$function$") {
		statements = strings.Split(lineComment.ReplaceAllString(script, ""), ";")
	}
	for _, statement := range statements {
		if strings.TrimSpace(statement) == "" {
			continue
		}
		if _, err := w.admin.Exec(t.Context(), statement); err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
	}
}

// A worker runs, jobs come and go, and there is nothing to find. Then each fault is planted for
// real and found alone, and where the fix is SQL, that mends it.
func TestDoctor_FindsNothingOnACleanDatabaseAndEveryFaultAlone(t *testing.T) {
	t.Parallel()
	w := newWard(t)
	if !t.Run("nothing", w.findsNothing) {
		return
	}
	w.run(t, `INSERT INTO holdfast.workers (id, queues, metadata) VALUES ('w1', '{default}', '{"worker_ttl_seconds": 3600}')`)
	for _, fault := range faults {
		// They share the server, so one after the other.
		if !t.Run(fault.name, func(t *testing.T) { w.finds(t, fault) }) {
			return
		}
	}
}

func (w *ward) findsNothing(t *testing.T) {
	worker := startWorker(t, w.Database, w.Pool, "w", quick(), holdfast.Handle(func(context.Context, holdfast.Job[note]) error { return nil }))
	enqueueNotes(t, w.Database, 20)
	pgtest.Eventually(t, patience, "the jobs are completed", func() bool {
		return pgtest.Value[int](t, w.Database, "SELECT count(*) FROM holdfast.inbox_archive") == 20
	})
	report := w.examine(t, doctor.Options{})
	for _, finding := range report.Findings {
		t.Errorf("%+v", finding)
	}
	if len(report.Checks) != len(doctor.Checks()) {
		t.Errorf("%d checks ran", len(report.Checks))
	}
	for _, result := range report.Checks {
		if result.Skipped != "" {
			t.Errorf("%+v", result)
		}
	}
	worker.drain()
}

func (w *ward) finds(t *testing.T, fault fault) {
	t.Helper()
	if fault.by != nil {
		defer fault.by(t, w)()
	}
	w.run(t, fault.plant)
	if fault.until != "" {
		pgtest.Eventually(t, patience, fault.until, func() bool { return pgtest.Value[bool](t, w.Database, "SELECT "+fault.until) })
	}
	options := fault.options
	if fault.check != "plan_contract" {
		// It takes longer than all others together.
		options.Checks = slices.DeleteFunc(doctor.Checks(), func(id string) bool { return id == "plan_contract" })
	}
	report := w.examine(t, options)
	if len(report.Findings) != 1 || report.Findings[0].Check != fault.check {
		t.Fatalf("found %+v", report.Findings)
	}
	found := report.Findings[0]
	if !regexp.MustCompile(fault.what).MatchString(found.What) || found.Why == "" || !strings.Contains(found.Fix, fault.fix) {
		t.Errorf("found %+v", found)
	}
	if fault.mend != "" {
		w.run(t, fault.mend)
		return
	}
	w.run(t, found.Fix)
	options.Checks = []string{fault.check}
	if again := w.examine(t, options); len(again.Findings) != 0 {
		t.Errorf("after %s it finds %+v", found.Fix, again.Findings)
	}
}

// A standby can be looked at too. That it is one is a finding, because no work can be done
// there; the rest is as well as on a primary.
func TestDoctor_LooksAtAStandbyToo(t *testing.T) {
	t.Parallel()
	database, server := pgtest.Alone(t)
	if err := server.RestartAsStandby(t.Context()); err != nil {
		t.Fatal(err)
	}
	database = database.Direct(t)
	report, err := doctor.Examine(t.Context(), database.Pool, doctor.Options{
		// Not durability: the servers of tests are not durable.
		Checks: slices.DeleteFunc(doctor.Checks(), func(id string) bool { return id == "durability" }),
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(report.Findings) != 1 || report.Findings[0].Check != "writable" || !strings.Contains(report.Findings[0].Fix, "target_session_attrs=read-write") {
		t.Errorf("found %+v", report.Findings)
	}
	for _, result := range report.Checks {
		if (result.Skipped != "") != (result.Check == "notifications") {
			t.Errorf("%+v", result)
		}
	}
}

// fault is something that is wrong with a database, and what the doctor must say of it.
type fault struct {
	name    string
	check   string
	plant   string                                   // SQL.
	by      func(t *testing.T, w *ward) (end func()) // What else plants it.
	until   string                                   // A condition that the server is a little late to fulfil.
	options doctor.Options
	what    string // A pattern.
	fix     string // Part of what is printed.
	mend    string // SQL, where what is printed is none or would go too far; "": it is what is printed.
}

const nothing = "SELECT" // Mends what is over by itself.

var faults = []fault{
	{name: "an older schema", check: "schema_version", plant: "UPDATE holdfast.meta SET schema_version = schema_version - 1", what: `stands at version \d+, and this program`, fix: "holdfast migrate up", mend: "UPDATE holdfast.meta SET schema_version = schema_version + 1"},
	{name: "a newer schema", check: "schema_version", plant: "UPDATE holdfast.meta SET schema_version = 99, oldest_binary = 99", what: "stands at version 99", fix: "install a program built for version 99", mend: resetMeta},
	{name: "a newer schema that can be worked on", check: "schema_version", plant: "UPDATE holdfast.meta SET schema_version = 99", what: "which may still run on it", fix: "install a program", mend: resetMeta},

	{name: "a missing index", check: "schema_drift", plant: "DROP INDEX holdfast.inbox_dead_idx", what: "^index inbox_dead_idx of table inbox is missing$", fix: "CREATE INDEX CONCURRENTLY inbox_dead_idx"},
	{name: "an index that is not valid", check: "schema_drift", plant: "UPDATE pg_index SET indisvalid = false WHERE indexrelid = 'holdfast.inbox_claim_idx'::regclass", what: "inbox_claim_idx of table inbox is not valid", fix: "DROP INDEX CONCURRENTLY"},
	{name: "an index too many", check: "schema_drift", plant: "CREATE INDEX mine ON holdfast.inbox (lease_expires_at)", what: "index mine of table inbox is not of the migrations", fix: "DROP INDEX CONCURRENTLY holdfast.mine"},
	{name: "a missing constraint", check: "schema_drift", plant: "ALTER TABLE holdfast.inbox DROP CONSTRAINT inbox_payload_size", what: "constraint inbox_payload_size of table inbox is missing", fix: "ADD CONSTRAINT inbox_payload_size"},
	{name: "another default", check: "schema_drift", plant: "ALTER TABLE holdfast.inbox ALTER COLUMN max_attempts SET DEFAULT 6", what: "column max_attempts of table inbox is max_attempts integer NOT NULL DEFAULT 6; the migrations make it", fix: "SET DEFAULT 5"},
	{name: "a column too many", check: "schema_drift", plant: "ALTER TABLE holdfast.inbox ADD COLUMN priority integer", what: "column priority of table inbox is not of the migrations", fix: "bear with this finding", mend: "ALTER TABLE holdfast.inbox DROP COLUMN priority"},
	{name: "another function", check: "schema_drift", plant: "ALTER FUNCTION holdfast.backoff(integer) IMMUTABLE", what: `function backoff\(attempts integer\) is`, fix: "CREATE OR REPLACE FUNCTION holdfast.backoff"},

	{name: "a role that lacks what it needs", check: "role_grants", plant: "CREATE ROLE app; SELECT holdfast.grant_role('worker', 'app'); REVOKE DELETE ON holdfast.inbox FROM app", what: `^role "app", a worker, lacks DELETE on table holdfast.inbox$`, fix: "SELECT holdfast.grant_role('worker', 'app');"},
	{name: "a role that is gone", check: "role_grants", plant: "DROP OWNED BY app; DROP ROLE app", what: `^role "app", a worker, is not on this server$`, fix: "SELECT holdfast.revoke_role('app');"},

	{name: "a planner without indexes", check: "plan_contract", plant: "ALTER ROLE holdfast IN DATABASE postgres SET enable_indexscan = off; ALTER ROLE holdfast IN DATABASE postgres SET enable_indexonlyscan = off; ALTER ROLE holdfast IN DATABASE postgres SET enable_bitmapscan = off", what: "ClaimJobs|ClaimLanes|RenewLeases|LookAround", fix: `ALTER ROLE "holdfast" IN DATABASE "postgres" SET enable_indexscan = 'on';`},

	{name: "workers that do not fit twice", check: "connections", plant: `UPDATE holdfast.workers SET metadata = metadata || '{"connections": 55}'`, what: "1 live workers open up to 56: as many again do not fit", fix: "max_connections = 120", mend: `UPDATE holdfast.workers SET metadata = metadata - 'connections'`},
	{name: "hardly a connection left", check: "connections", by: manySessions, what: `5\d of 57 connections are used$`, fix: "max_connections = 120", mend: nothing},
	{name: "a clock that is late", check: "clock_skew", options: doctor.Options{Now: func() time.Time { return time.Now().Add(-5 * time.Second) }}, what: "server's clock is [45].* ahead of this machine's", fix: "set-ntp", mend: nothing},

	{name: "no fsync", check: "durability", plant: "ALTER SYSTEM SET fsync = off; SELECT pg_reload_conf()", until: "current_setting('fsync') = 'off'", what: "fsync is off", fix: "SET fsync = on"},
	{name: "no full pages", check: "durability", plant: "ALTER SYSTEM SET full_page_writes = off; SELECT pg_reload_conf()", until: "current_setting('full_page_writes') = 'off'", what: "full_page_writes is off", fix: "SET full_page_writes = on"},
	{name: "commits that do not wait", check: "durability", plant: "ALTER ROLE holdfast SET synchronous_commit = off", what: `synchronous_commit is off \(set by user\)`, fix: `SET synchronous_commit = 'on';`},
	{name: "a short statement_timeout", check: "timeouts", plant: "ALTER DATABASE postgres SET statement_timeout = '9s'", what: `statement_timeout is 9s \(set by database\)`, fix: "SET statement_timeout = '10s'"},
	{name: "a short lock_timeout", check: "timeouts", plant: "ALTER ROLE holdfast SET lock_timeout = 100", what: "lock_timeout is 100ms", fix: "SET lock_timeout = '1s'"},
	{name: "short transactions", check: "timeouts", plant: "ALTER ROLE holdfast SET idle_in_transaction_session_timeout = '5s'", what: "idle_in_transaction_session_timeout is 5s", fix: "= '90s'"},
	{name: "strict transactions", check: "isolation", plant: "ALTER ROLE holdfast SET default_transaction_isolation = 'repeatable read'", what: `is "repeatable read"`, fix: "= 'read committed'"},
	{name: "transactions that only read", check: "writable", plant: "ALTER ROLE holdfast SET default_transaction_read_only = on", what: "default_transaction_read_only is on", fix: "= 'off'"},

	{name: "a transaction that was left open", check: "vacuum_horizon", by: idleTransaction, options: doctor.Options{HeldFor: time.Millisecond}, what: `session \d+ of role holdfast is idle in transaction, in a transaction that is`, fix: "SELECT pg_terminate_backend("},
	{name: "a prepared transaction", check: "vacuum_horizon", by: preparedTransaction, options: doctor.Options{HeldFor: time.Millisecond}, what: "prepared transaction 'left' of role holdfast", fix: "ROLLBACK PREPARED 'left';"},
	{name: "a slot that nobody reads", check: "vacuum_horizon", plant: "SELECT pg_create_logical_replication_slot('left', 'pgoutput')", what: "replication slot 'left' is not active", fix: "SELECT pg_drop_replication_slot('left');"},

	{name: "no autovacuum of the inbox", check: "autovacuum", plant: "ALTER TABLE holdfast.inbox SET (autovacuum_enabled = false)", what: "autovacuum is off for table inbox", fix: "RESET (autovacuum_enabled)"},
	{name: "no autovacuum at all", check: "autovacuum", plant: "ALTER SYSTEM SET autovacuum = off; SELECT pg_reload_conf()", until: "current_setting('autovacuum') = 'off'", what: `autovacuum is off \(set by configuration file\)`, fix: "SET autovacuum = on"},
	{name: "an inbox of empty pages", check: "bloat", plant: manyRows + "; DELETE FROM holdfast.inbox; VACUUM (TRUNCATE false) holdfast.inbox", options: doctor.Options{Bloat: 1 << 20}, what: `table inbox has \d+ MB, of which its 0 rows need some 0 MB`, fix: "VACUUM (FULL, ANALYZE) holdfast.inbox"},
	{
		name: "rows that nobody vacuums", check: "dead_rows", by: deadRows,
		until: "n_dead_tup >= 2000 FROM pg_stat_user_tables WHERE relid = 'holdfast.inbox'::regclass", options: doctor.Options{DeadRows: 1000},
		what: `rows of table inbox are dead \(\d+ %\), and it was never vacuumed`, fix: "VACUUM (ANALYZE) holdfast.inbox",
	},

	{name: "a queue without a worker", check: "unserved_queues", plant: "INSERT INTO holdfast.queues (name) VALUES ('mail'), ('idle'); " + aJob("'mail', 7", "pending"), what: `queue "mail" has no live worker, and job [0-9a-f-]+ has been due for`, fix: "holdfast work --queue mail", mend: emptyInbox},
	{name: "an ordered queue without a worker", check: "unserved_queues", plant: "INSERT INTO holdfast.queues (name, ordered) VALUES ('mail', true); " + aJob("'mail', 7", "pending") + "; UPDATE holdfast.inbox SET ordered = true", what: `queue "mail" has no live worker`, fix: "holdfast work --queue mail", mend: emptyInbox},
	{name: "a lower bucket count", check: "orphan_buckets", plant: aJob("'default', 700", "pending") + "; UPDATE holdfast.meta SET bucket_count = 512", what: `queue "default" has pending jobs in bucket 700, and the bucket count is 512`, fix: "bucket_count = 1024"},
	{name: "a lower bucket count under an ordered queue", check: "orphan_buckets", plant: "UPDATE holdfast.inbox SET ordered = true; UPDATE holdfast.meta SET bucket_count = 512", what: `in bucket 700`, fix: "bucket_count = 1024", mend: emptyInbox},
	{name: "a lease that is short for its handlers", check: "lease_length", plant: `UPDATE holdfast.workers SET metadata = metadata || '{"lease_seconds": 90, "handle_p99_ms": 41000.5}'`, what: "worker w1 has a lease of 90s, and one handler in a hundred takes 41.0s", fix: "--lease 2m10s", mend: `UPDATE holdfast.workers SET metadata = metadata - 'handle_p99_ms'`},
	{name: "leases that nobody reclaims", check: "expired_leases", plant: aJob("'default', 7", "processing"), what: "1 claims are past their lease, the first one for 1h0m", fix: `look for "housekeeping"`, mend: emptyInbox},
	{name: "completed jobs that nobody archives", check: "completed_rows", plant: aJob("'default', 7", "completed"), what: "1 of the 1,000 oldest completed jobs", fix: "--keep-for", mend: emptyInbox},
	{name: "a dead job that holds its key", check: "dead_keys", plant: aJob("'default', 7", "dead_letter") + "; INSERT INTO holdfast.idempotency_keys (queue, key, job_id, expires_at) SELECT queue, idempotency_key, id, now() + interval '1 day' FROM holdfast.inbox", what: `^1 dead jobs of queue "default" hold their idempotency key`, fix: "DELETE FROM holdfast.idempotency_keys"},
}

const (
	resetMeta  = "UPDATE holdfast.meta SET schema_version = (SELECT max(version_id) FROM holdfast.goose_version), oldest_binary = 1"
	emptyInbox = "DELETE FROM holdfast.inbox; DELETE FROM holdfast.idempotency_keys; DELETE FROM holdfast.queues WHERE name <> 'default'; UPDATE holdfast.meta SET bucket_count = 1024"
	manyRows   = `INSERT INTO holdfast.inbox (id, queue, kind, partition_key, partition_bucket, payload)
		SELECT holdfast.new_job_id(7), 'default', 'plan', 'key', 7, to_jsonb(repeat('x', 800)) FROM generate_series(1, 2000)`
)

// aJob inserts a job that is an hour, and if completed two days, old.
func aJob(queueAndBucket, status string) string {
	return `INSERT INTO holdfast.inbox (id, queue, partition_bucket, kind, partition_key, payload, idempotency_key, available_at, status, claimed_by, claimed_at, lease_expires_at, completed_at, finished_at)
		SELECT holdfast.new_job_id(7), ` + queueAndBucket + `, 'plan', 'key', '{}', 'once', now() - interval '1 hour', status,
			CASE WHEN status = 'processing' THEN 'gone' END, CASE WHEN status = 'processing' THEN now() - interval '2 hours' END, CASE WHEN status = 'processing' THEN now() - interval '1 hour' END,
			CASE WHEN status = 'completed' THEN now() - interval '2 days' END, CASE WHEN status IN ('completed', 'dead_letter') THEN now() - interval '2 days' END
		FROM (SELECT '` + status + `'::holdfast.inbox_status AS status) AS given`
}

// manySessions opens sessions until few are left.
func manySessions(t *testing.T, w *ward) (end func()) {
	t.Helper()
	var sessions []*pgx.Conn
	for range 52 {
		conn, err := pgx.ConnectConfig(t.Context(), w.Config())
		if err != nil {
			t.Fatal(err)
		}
		sessions = append(sessions, conn)
	}
	return func() {
		for _, conn := range sessions {
			_ = conn.Close(context.Background())
		}
		pgtest.Eventually(t, patience, "the sessions have ended", func() bool {
			return pgtest.Value[int](t, w.Database, "SELECT sum(numbackends) FROM pg_stat_database") < 30
		})
	}
}

func idleTransaction(t *testing.T, w *ward) (end func()) {
	t.Helper()
	conn := w.Conn(t)
	beginOn(t, conn)
	return func() {}
}

// deadRows leaves rows that no vacuum has seen, in a session that ends: the server then counts
// them at once.
func deadRows(t *testing.T, w *ward) (end func()) {
	t.Helper()
	conn, err := pgx.ConnectConfig(t.Context(), w.Config())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	for _, statement := range []string{"SELECT pg_stat_reset_single_table_counters('holdfast.inbox'::regclass)", manyRows, "DELETE FROM holdfast.inbox"} {
		if _, err := conn.Exec(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	return func() {}
}

func preparedTransaction(t *testing.T, w *ward) (end func()) {
	t.Helper()
	w.run(t, "BEGIN; UPDATE holdfast.queues SET paused = false; PREPARE TRANSACTION 'left'")
	return func() {}
}
