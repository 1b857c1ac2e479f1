package integration

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/holdfast-pg/holdfast/domain/plans"
	"github.com/holdfast-pg/holdfast/integration/pgtest"
)

// supportSizes are how many jobs the inbox and the archive hold. `make plans` fills a million
// and nine.
func supportSizes() (inbox, archive int) {
	if os.Getenv("HOLDFAST_TEST_PLANS") == "full" {
		return 1_000_000, 9_000_000
	}
	return 100_000, 20_000
}

// Whatever a person asks reads a bounded number of rows, by an index, whatever the planner was
// told of the tables.
func TestPlans_SupportStatementsReadLittle(t *testing.T) {
	t.Parallel()
	backlog := newPlanBacklog(t)
	inbox, archive := supportSizes()
	began := time.Now()
	fillForSupport(t, backlog.database, inbox, archive)
	t.Logf("%d jobs in the inbox and %d in the archive: filled in %s", inbox, archive, time.Since(began))
	for _, statistics := range planStatistics {
		t.Run("statistics "+statistics.name, func(t *testing.T) {
			tx := statistics.pretend(t, backlog.conn)
			checkSupport(t, tx)
		})
	}
}

// checkSupport checks the plan of each statement, and then what it read.
func checkSupport(t *testing.T, tx pgx.Tx) {
	t.Helper()
	for _, statement := range plans.Support() {
		checkPlans(t, tx, statement)
		took, err := measureAside(t.Context(), tx, statement)
		if err != nil {
			t.Fatal(err)
		}
		if took.Buffers > plans.SupportBuffers {
			t.Errorf("%s touched %d shared buffers for %d rows, more than %d", statement.Name, took.Buffers, took.Rows, plans.SupportBuffers)
		}
		if os.Getenv("HOLDFAST_TEST_PLANS") == "full" {
			t.Logf("%-24s %5d buffers, %4d rows, planned in %s, run in %s", statement.Name, took.Buffers, took.Rows, took.Planning, took.Execution)
		}
	}
}

// measureAside runs the statement and leaves no setting behind for the next one.
func measureAside(ctx context.Context, tx pgx.Tx, statement plans.Statement) (took plans.Measurement, err error) {
	aside, err := tx.Begin(ctx)
	if err != nil {
		return took, err
	}
	took, err = plans.Measure(ctx, aside, statement, 1)
	if rollback := aside.Rollback(ctx); err == nil {
		err = rollback
	}
	return took, err
}

// fillForSupport fills the inbox with jobs in every state, and vacuums it as autovacuum would. Of
// a thousand jobs 900 wait: a third of them later, one in a hundred of those for another attempt,
// a fifth in lanes; 4 are in flight, 48 each failed or spent their attempts.
func fillForSupport(t *testing.T, database *pgtest.Database, inbox, archive int) {
	t.Helper()
	database.Exec(t, `
		INSERT INTO holdfast.inbox (
			id, partition_bucket, queue, kind, partition_key, ordered, status, attempts, available_at, payload, lease_generation,
			claimed_by, claimed_at, lease_expires_at, finished_at, last_error, idempotency_key
		)
		SELECT
			holdfast.new_job_id(job.bucket), job.bucket, 'default', 'kind ' || job.i % 5, job.key, job.ordered, job.status,
			CASE WHEN job.status <> 'pending' OR job.i % 100 = 1 THEN 1 ELSE 0 END,
			clock_timestamp() + CASE WHEN job.i % 3 = 1 THEN interval '1 hour' ELSE interval '-1 minute' END,
			'{"order_id": 9182}', job.i,
			CASE WHEN job.status = 'processing' THEN 'w' || job.i % 7 END,
			CASE WHEN job.status = 'processing' THEN now() END,
			CASE WHEN job.status = 'processing' THEN now() + CASE WHEN job.i % 2000 < 1000 THEN interval '1 hour' ELSE interval '-1 hour' END END,
			CASE WHEN job.dead THEN now() - job.i * interval '1 millisecond' END,
			CASE WHEN job.dead THEN format('send receipt %s to "customer %s": dial tcp 10.0.0.%s:25: connection refused', job.i, job.i, job.i % 255) END,
			CASE WHEN job.dead THEN 'once ' || job.i END
		FROM (
			SELECT
				i,
				'key ' || i % 30000 AS key,
				holdfast.bucket_of('key ' || i % 30000, 1024) AS bucket,
				i % 5 = 0 AND i % 1000 < 900 AS ordered,
				i % 1000 >= 904 AS dead,
				(CASE
					WHEN i % 1000 < 900 THEN 'pending'
					WHEN i % 1000 < 904 THEN 'processing'
					WHEN i % 2 = 0 THEN 'failed'
					ELSE 'dead_letter'
				END)::holdfast.inbox_status AS status
			FROM generate_series(1, $1::integer) AS i
		) AS job`, inbox)
	database.Exec(t, `
		INSERT INTO holdfast.idempotency_keys (queue, key, job_id, expires_at)
		SELECT 'default', job.idempotency_key, job.id, now() + interval '7 days'
		FROM holdfast.inbox AS job
		WHERE job.idempotency_key IS NOT NULL`)
	database.Exec(t, `
		INSERT INTO holdfast.inbox (id, partition_bucket, queue, kind, partition_key, status, attempts, payload, completed_at, finished_at)
		SELECT holdfast.new_job_id(1), 1, 'kept', 'plan', 'key ' || i, 'completed', 1, '{}', now(), now()
		FROM generate_series(1, $1::integer) AS i`, inbox/10)
	database.Exec(t, `
		INSERT INTO holdfast.inbox_archive (
			id, seq, lease_generation, available_at, created_at, completed_at, partition_bucket,
			attempts, max_attempts, ordered, queue, kind, partition_key, payload
		)
		SELECT holdfast.new_job_id(1), i, i, now(), clock_timestamp(), now(), 1, 1, 5, false, 'default', 'plan', 'key ' || i, '{}'
		FROM generate_series(1, $1::integer) AS i`, archive)
	database.Exec(t, "VACUUM holdfast.inbox, holdfast.inbox_archive")
	if waiting := pgtest.Value[int](t, database, "SELECT count(*) FROM holdfast.inbox WHERE status = 'pending'"); waiting < inbox*9/10-1 {
		t.Fatal(fmt.Sprint(waiting, " jobs wait"))
	}
}
