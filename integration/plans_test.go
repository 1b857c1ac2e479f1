package integration

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/holdfast-pg/holdfast/domain"
	"github.com/holdfast-pg/holdfast/domain/plans"
	"github.com/holdfast-pg/holdfast/integration/pgtest"
)

// plansSizes are how many jobs the inbox holds, and planSets how many a statement is for.
var (
	planSizes = []int{500, 5_000, 20_000, 100_000}
	planSets  = []int{1, 25, 500}
)

// Every hot statement keeps to its indexes, whatever the size of the inbox and whatever the
// planner believes of it.
func TestPlans_HotStatementsKeepToTheirIndexes(t *testing.T) {
	t.Parallel()
	backlog := newPlanBacklog(t)
	for _, size := range planSizes {
		began := time.Now()
		backlog.fill(t, size)
		filled := time.Since(began)
		for _, statistics := range planStatistics {
			t.Run(fmt.Sprintf("%d jobs, statistics %s", size, statistics.name), func(t *testing.T) {
				checkContract(t, statistics.pretend(t, backlog.conn))
			})
		}
		t.Logf("%d jobs: filled in %s, checked in %s", size, filled, time.Since(began)-filled)
	}
}

// checkContract checks all statements in a transaction that is rolled back.
func checkContract(t *testing.T, tx pgx.Tx) {
	t.Helper()
	for _, statement := range hotStatements() {
		sets := planSets
		if !statement.Set {
			sets = sets[:1]
		}
		for _, set := range sets {
			violations, err := plans.Check(t.Context(), tx, statement, set)
			if err != nil {
				t.Fatal(err)
			}
			for _, violation := range violations {
				t.Errorf("%s\n%s", violation, violation.Plan)
			}
		}
	}
}

// hotStatements are those of the contract, and claims by a worker that has others beside it.
func hotStatements() []plans.Statement {
	statements := plans.Contract()
	for _, owned := range []int{1, 64} {
		statements = append(statements, plans.ClaimJobs(domain.ClaimRequest{Buckets: everyBucket()[:owned]}))
	}
	return statements
}

// planBacklog is a database that grows, in which nothing keeps statistics but the test.
type planBacklog struct {
	database *pgtest.Database
	conn     *pgx.Conn
	jobs     int
}

func newPlanBacklog(t *testing.T) *planBacklog {
	t.Helper()
	database := pgtest.New(t)
	backlog := &planBacklog{database: database, conn: database.Conn(t)}
	queue := database.Queue(t)
	if err := queue.Join(t.Context(), domain.Registration{ID: "w1", Queues: []string{domain.DefaultQueue}}); err != nil {
		t.Fatal(err)
	}
	if _, err := queue.KeepHouse(t.Context(), domain.HouseRules{ArchiveAhead: 7}); err != nil {
		t.Fatal(err)
	}
	for _, table := range growingTables(t, database) {
		database.Exec(t, "ALTER TABLE "+table+" SET (autovacuum_enabled = false)")
	}
	return backlog
}

func growingTables(t *testing.T, database *pgtest.Database) []string {
	t.Helper()
	return pgtest.Values[string](t, database, `SELECT oid::regclass::text FROM pg_class
		WHERE relnamespace = 'holdfast'::regnamespace AND relkind = 'r' AND relname ~ '^(inbox|idempotency_keys|handled|fences)'
		ORDER BY 1`)
}

// fill adds jobs until there are so many, and a tenth as many, 100,000 at most, to each of the other tables that
// grow. Of ten jobs one is due, and of the others three each are delayed, in flight, or
// completed and kept. Every fourth is ordered.
func (b *planBacklog) fill(t *testing.T, size int) {
	t.Helper()
	b.database.Exec(t, `
		INSERT INTO holdfast.inbox (
			id, partition_bucket, queue, kind, partition_key, ordered, status, available_at, payload,
			claimed_by, claimed_at, lease_expires_at, completed_at, finished_at
		)
		SELECT
			holdfast.new_job_id(job.bucket), job.bucket, 'default', 'plan', 'key ' || job.i, job.i % 4 = 0, job.status,
			now() + CASE WHEN job.i % 10 BETWEEN 1 AND 3 THEN interval '1 hour' ELSE interval '0' END, '{}',
			CASE WHEN job.status = 'processing' THEN 'w' || job.i % 7 END,
			CASE WHEN job.status = 'processing' THEN now() END,
			CASE WHEN job.status = 'processing' THEN now() + interval '90 seconds' END,
			CASE WHEN job.status = 'completed' THEN now() END,
			CASE WHEN job.status = 'completed' THEN now() END
		FROM (
			SELECT
				i,
				holdfast.bucket_of('key ' || i, 1024) AS bucket,
				(ARRAY['processing', 'completed', 'pending'])[CASE WHEN i % 10 < 4 THEN 3 WHEN i % 10 < 7 THEN 1 ELSE 2 END]::holdfast.inbox_status AS status
			FROM generate_series($1::integer, $2::integer) AS i
		) AS job`, b.jobs+1, size)
	from, to := min(b.jobs/10, 100_000)+1, min(size/10, 100_000)
	for _, statement := range []string{
		`INSERT INTO holdfast.idempotency_keys (queue, key, job_id, expires_at)
			SELECT 'default', 'once ' || i, gen_random_uuid(), now() + interval '7 days' FROM generate_series($1::integer, $2::integer) AS i`,
		`INSERT INTO holdfast.handled (scope, key, job_id)
			SELECT 'effect', 'key ' || i, gen_random_uuid() FROM generate_series($1::integer, $2::integer) AS i`,
		`INSERT INTO holdfast.fences (resource, token) SELECT 'resource ' || i, i FROM generate_series($1::integer, $2::integer) AS i`,
		`INSERT INTO holdfast.inbox_archive (
				id, seq, lease_generation, available_at, created_at, completed_at, partition_bucket, attempts, max_attempts, ordered, queue, kind, partition_key, payload
			)
			SELECT holdfast.new_job_id(1), i, i, now(), now(), now(), 1, 1, 5, false, 'default', 'plan', 'key ' || i, '{}'
			FROM generate_series($1::integer, $2::integer) AS i`,
	} {
		b.database.Exec(t, statement, from, to)
	}
	b.jobs = size
}

// planStatistics are what the planner may have been told of the tables that grow.
var planStatistics = []struct {
	name    string
	pretend func(t *testing.T, conn *pgx.Conn) pgx.Tx
}{
	{"never taken", func(t *testing.T, conn *pgx.Conn) pgx.Tx {
		t.Helper()
		return pretend(t, conn, "reltuples = -1, relpages = 0, relallvisible = 0")
	}},
	{"of empty tables", func(t *testing.T, conn *pgx.Conn) pgx.Tx {
		t.Helper()
		return pretend(t, conn, "reltuples = 0, relpages = 0, relallvisible = 0")
	}},
	{"of tables that were drained", func(t *testing.T, conn *pgx.Conn) pgx.Tx {
		t.Helper()
		return pretend(t, conn, "reltuples = 0, relpages = greatest(pg_relation_size(oid) / 8192, 1), relallvisible = 0")
	}},
	{"fresh", func(t *testing.T, conn *pgx.Conn) pgx.Tx {
		t.Helper()
		execute(t, conn, "ANALYZE")
		return beginOn(t, conn)
	}},
}

// pretend opens a transaction in which the catalogue says of the tables what it would say
// if they had no statistics but those given.
func pretend(t *testing.T, conn *pgx.Conn, sizes string) pgx.Tx {
	t.Helper()
	tx := beginOn(t, conn)
	const growing = `SELECT oid FROM pg_class WHERE relnamespace = 'holdfast'::regnamespace AND relkind IN ('r', 'p') AND relname ~ '^(inbox|idempotency_keys|handled|fences)'`
	execute(t, tx, "UPDATE pg_class SET "+sizes+" WHERE oid IN ("+growing+") OR oid IN (SELECT indexrelid FROM pg_index WHERE indrelid IN ("+growing+"))")
	execute(t, tx, "DELETE FROM pg_statistic WHERE starelid IN ("+growing+")")
	return tx
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

func execute(t *testing.T, db domain.DBTX, sql string) {
	t.Helper()
	if _, err := db.Exec(t.Context(), sql); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
}
