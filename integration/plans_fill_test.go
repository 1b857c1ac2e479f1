package integration

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/holdfast-pg/holdfast/domain"
	"github.com/holdfast-pg/holdfast/integration/pgtest"
)

// growing selects the tables that grow with what the product does.
const growing = `SELECT oid FROM pg_class
	WHERE relnamespace = 'holdfast'::regnamespace AND relkind IN ('r', 'p') AND relname ~ '^(inbox|idempotency_keys|handled|fences|events)'`

// planBacklog is a database that grows, in which nobody takes statistics but the test.
type planBacklog struct {
	database *pgtest.Database
	conn     *pgx.Conn
	jobs     int
}

func newPlanBacklog(t *testing.T) *planBacklog {
	t.Helper()
	database := pgtest.New(t)
	queue := database.Queue(t)
	if err := queue.Join(t.Context(), domain.Registration{ID: "w1", Queues: []string{domain.DefaultQueue}}); err != nil {
		t.Fatal(err)
	}
	if _, err := queue.KeepHouse(t.Context(), domain.HouseRules{ArchiveAhead: 7}); err != nil {
		t.Fatal(err)
	}
	for _, table := range pgtest.Values[string](t, database, "SELECT each.oid::regclass::text FROM ("+growing+" AND relkind = 'r') AS each") {
		database.Exec(t, "ALTER TABLE "+table+" SET (autovacuum_enabled = false)")
	}
	return &planBacklog{database: database, conn: database.Conn(t)}
}

// fill adds jobs until there are so many, and a tenth as many rows to each of the other tables
// that grow. Of ten jobs one is due, and three each are delayed, in flight, or completed and
// kept. Every fourth is ordered.
func (b *planBacklog) fill(t *testing.T, size int) {
	t.Helper()
	b.database.Exec(t, `
		INSERT INTO holdfast.inbox (
			id, partition_bucket, queue, kind, partition_key, ordered, status, available_at, payload,
			claimed_by, claimed_at, lease_expires_at, completed_at, finished_at
		)
		SELECT
			holdfast.new_job_id(job.bucket), job.bucket, 'default', 'plan', job.key, job.i % 4 = 0, job.status,
			now() + CASE WHEN job.i % 10 IN (1, 2, 3) THEN interval '1 hour' ELSE interval '0' END, '{}',
			CASE WHEN job.status = 'processing' THEN 'w' || job.i % 7 END,
			CASE WHEN job.status = 'processing' THEN now() END,
			CASE WHEN job.status = 'processing' THEN now() + interval '90 seconds' END,
			CASE WHEN job.status = 'completed' THEN now() END,
			CASE WHEN job.status = 'completed' THEN now() END
		FROM (
			SELECT
				i,
				'key ' || i AS key,
				holdfast.bucket_of('key ' || i, 1024) AS bucket,
				(CASE WHEN i % 10 < 4 THEN 'pending' WHEN i % 10 < 7 THEN 'processing' ELSE 'completed' END)::holdfast.inbox_status AS status
			FROM generate_series($1::integer, $2::integer) AS i
		) AS job`, b.jobs+1, size)
	for _, statement := range []string{
		`INSERT INTO holdfast.idempotency_keys (queue, key, job_id, expires_at)
			SELECT 'default', 'once ' || i, gen_random_uuid(), now() + interval '7 days'
			FROM generate_series($1::integer, $2::integer) AS i`,
		`INSERT INTO holdfast.handled (scope, key, job_id)
			SELECT 'effect', 'key ' || i, gen_random_uuid()
			FROM generate_series($1::integer, $2::integer) AS i`,
		`INSERT INTO holdfast.fences (resource, token)
			SELECT 'resource ' || i, i
			FROM generate_series($1::integer, $2::integer) AS i`,
		`INSERT INTO holdfast.events (job_id, event)
			SELECT gen_random_uuid(), 'retried'
			FROM generate_series($1::integer, $2::integer)`,
		`INSERT INTO holdfast.inbox_archive (
				id, seq, lease_generation, available_at, created_at, completed_at, partition_bucket,
				attempts, max_attempts, ordered, queue, kind, partition_key, payload
			)
			SELECT holdfast.new_job_id(1), i, i, now(), now(), now(), 1, 1, 5, false, 'default', 'plan', 'key ' || i, '{}'
			FROM generate_series($1::integer, $2::integer) AS i`,
	} {
		b.database.Exec(t, statement, b.jobs/10+1, size/10)
	}
	b.jobs = size
}

// drained and nearlyDrained name statistics that were taken when the tables had their size,
// and no row or one: of a queue at night. The planner then expects no more, in a table of any
// size.
const (
	drained       = "of drained tables"
	nearlyDrained = "of tables drained to one row"
)

// planStatistics are what the planner may have been told of the tables that grow.
var planStatistics = []struct {
	name    string
	pretend func(t *testing.T, conn *pgx.Conn) pgx.Tx
}{
	{"never taken", without("reltuples = -1, relpages = 0")},
	{"of empty tables", without("reltuples = 0, relpages = 0")},
	{drained, without("reltuples = 0, relpages = pg_relation_size(oid) / current_setting('block_size')::integer")},
	{nearlyDrained, without("reltuples = 1, relpages = pg_relation_size(oid) / current_setting('block_size')::integer")},
	{"fresh", func(t *testing.T, conn *pgx.Conn) pgx.Tx {
		t.Helper()
		change(t, conn, "ANALYZE")
		return beginOn(t, conn)
	}},
}

// without opens a transaction in which the catalogue says what it would say if there were no
// statistics but the sizes given. That needs a superuser, and saves a database for each case.
func without(sizes string) func(t *testing.T, conn *pgx.Conn) pgx.Tx {
	return func(t *testing.T, conn *pgx.Conn) pgx.Tx {
		t.Helper()
		tx := beginOn(t, conn)
		change(t, tx, "UPDATE pg_class SET relallvisible = 0, "+sizes+" WHERE oid IN ("+growing+") OR oid IN (SELECT indexrelid FROM pg_index WHERE indrelid IN ("+growing+"))")
		change(t, tx, "DELETE FROM pg_statistic WHERE starelid IN ("+growing+")")
		return tx
	}
}

func beginOn(t *testing.T, conn *pgx.Conn) pgx.Tx {
	t.Helper()
	tx, err := conn.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = tx.Rollback(context.Background()) })
	return tx
}

func change(t *testing.T, db domain.DBTX, sql string) {
	t.Helper()
	if _, err := db.Exec(t.Context(), sql); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
}
