package integration

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgtype"

	"github.com/holdfast-pg/holdfast/domain"
	"github.com/holdfast-pg/holdfast/domain/plans"
)

// heldSet is the set of a settlement, as the statements in queries/ write it.
const heldSet = `(SELECT unnest($1::integer[]) AS partition_bucket, unnest($2::uuid[]) AS id, unnest($3::bigint[]) AS lease_generation, $4::text AS worker_id) AS held
	WHERE job.id = held.id AND job.partition_bucket = held.partition_bucket AND job.lease_generation = held.lease_generation`

const byEquality = "UPDATE holdfast.inbox AS job SET lease_expires_at = now() FROM " + heldSet + " AND job.claimed_by = held.worker_id RETURNING job.id"

// planted are statements with a mistake that was once made, and what the check says of each.
var planted = []struct {
	mistake   string
	statement plans.Statement
	says      string
}{
	{
		"a completion that names what is in flight",
		bySet("DELETE FROM holdfast.inbox AS job USING " + heldSet + " AND job.claimed_by = held.worker_id AND job.claimed_at IS NOT NULL RETURNING job.id"),
		"by inbox_processing_idx, which is not for it",
	},
	{
		"a renewal whose worker is a condition on the table",
		bySet("UPDATE holdfast.inbox AS job SET lease_expires_at = now() FROM " + heldSet + " AND job.claimed_by = $4::text AND job.claimed_at IS NOT NULL RETURNING job.id"),
		"by inbox_processing_idx, which is not for it",
	},
	{
		"a claim that sorts what it has locked",
		claimOf(`SELECT due.id FROM unnest($1::integer[]) AS bucket (number)
			CROSS JOIN LATERAL (
				SELECT job.id, job.available_at FROM holdfast.inbox AS job
				WHERE job.status = 'pending' AND NOT job.ordered AND job.queue = 'default' AND job.partition_bucket = bucket.number AND job.available_at <= now()
				ORDER BY job.available_at, job.seq LIMIT 7 FOR UPDATE SKIP LOCKED
			) AS due
			ORDER BY due.available_at LIMIT 25`),
		"sorts rows that it has locked",
	},
	{
		"a claim that sorts the backlog",
		claimOf(`SELECT job.id FROM holdfast.inbox AS job
			WHERE job.status = 'pending' AND NOT job.ordered AND job.queue = 'default' AND job.partition_bucket = ANY($1::integer[]) AND job.available_at <= now()
			ORDER BY job.available_at LIMIT 25 FOR UPDATE SKIP LOCKED`),
		"sorts inbox without a limit",
	},
	{"a settlement that could be merged by key", bySet(byEquality), "walks all of inbox_pkey"},
	{"the same without its settings", sentAs(plans.Cached, bySet(byEquality)), "reads inbox for a hash join"},
	{
		"an optional condition, in a prepared statement",
		plans.Statement{
			Name: "Planted", Sent: plans.Cached, Indexes: []string{"inbox_pkey"},
			Call: func(ctx context.Context, db domain.DBTX, _ int) error {
				_, err := db.Query(ctx, "SELECT job.id FROM holdfast.inbox AS job WHERE $1::uuid IS NULL OR job.id = $1::uuid", pgtype.UUID{Valid: true})
				return err
			},
		},
		"Planted, prepared, reads all of inbox",
	},
}

func TestPlans_MistakesAreFound(t *testing.T) {
	t.Parallel()
	backlog := newPlanBacklog(t)
	backlog.fill(t, 20_000)
	says := make([][]string, len(planted))
	for _, statistics := range planStatistics {
		tx := statistics.pretend(t, backlog.conn)
		for i, bad := range planted {
			violations, err := plans.Check(t.Context(), tx, bad.statement, 25)
			if err != nil {
				t.Fatalf("%s: %v", bad.mistake, err)
			}
			for _, violation := range violations {
				says[i] = append(says[i], violation.String())
			}
		}
		if err := tx.Rollback(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	for i, bad := range planted {
		if !slices.ContainsFunc(says[i], func(text string) bool { return strings.Contains(text, bad.says) }) {
			t.Errorf("%s: the check says %q, want one with %q", bad.mistake, says[i], bad.says)
		}
	}
}

// What planStatistics calls drained is what autovacuum leaves of a queue at night: the next
// burst of jobs is planned with it, for up to a minute.
func TestPlans_QueueThatFillsAfterADrainKeepsToItsIndexes(t *testing.T) {
	t.Parallel()
	backlog := newPlanBacklog(t)
	backlog.fill(t, 20_000)
	backlog.database.Exec(t, "DELETE FROM holdfast.inbox WHERE partition_key <> 'key 19999'")
	backlog.database.Exec(t, "VACUUM (ANALYZE) holdfast.inbox")
	backlog.fill(t, 40_000)
	for want, statement := range map[string]plans.Statement{
		"":                        renewal(),
		"walks all of inbox_pkey": bySet(byEquality),
	} {
		violations, err := plans.Check(t.Context(), backlog.conn, statement, 25)
		if err != nil {
			t.Fatal(err)
		}
		var says []string
		for _, violation := range violations {
			says = append(says, violation.Says)
		}
		if strings.Join(says, "; ") != want {
			t.Errorf("the check says %q, want %q", says, want)
		}
	}
}

// A claim that is measured took its jobs, and what it took goes with the transaction.
func TestPlans_MeasureRunsTheStatement(t *testing.T) {
	t.Parallel()
	backlog := newPlanBacklog(t)
	backlog.fill(t, 500)
	request := domain.ClaimRequest{WorkerID: "w1", Queue: domain.DefaultQueue, Buckets: everyBucket(), Quota: 3, Batch: 10, Lease: time.Minute}
	tx := beginOn(t, backlog.conn)
	took, err := plans.Measure(t.Context(), tx, plans.ClaimJobs(request), request.Batch)
	if err != nil {
		t.Fatal(err)
	}
	if took.Rows != 10 || took.Buffers < 10 || took.Planning <= 0 || took.Execution <= 0 || took.Total() > time.Minute {
		t.Errorf("a claim of 10 took %+v", took)
	}
	claimed := func() (jobs int) {
		t.Helper()
		if err := backlog.conn.QueryRow(t.Context(), "SELECT count(*) FROM holdfast.inbox WHERE claimed_by = 'w1' AND claimed_at = now()").Scan(&jobs); err != nil {
			t.Fatal(err)
		}
		return jobs
	}
	if claimed() != 10 {
		t.Errorf("%d jobs are claimed, want 10", claimed())
	}
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	if claimed() != 0 {
		t.Errorf("%d jobs are claimed after the rollback", claimed())
	}
}

func bySet(sql string) plans.Statement {
	return plans.Statement{
		Name: "Planted", Sent: plans.ByIndex, Set: true, Indexes: []string{"inbox_pkey"},
		Call: func(ctx context.Context, db domain.DBTX, size int) error {
			ids := make([]pgtype.UUID, size)
			for i := range ids {
				ids[i].Valid = true
			}
			_, err := db.Query(ctx, sql, make([]int32, size), ids, make([]int64, size), "w1")
			return err
		},
	}
}

func claimOf(sql string) plans.Statement {
	return plans.Statement{
		Name: "Planted", Sent: plans.ByIndex, Set: true, Indexes: []string{"inbox_claim_idx"},
		Call: func(ctx context.Context, db domain.DBTX, _ int) error {
			_, err := db.Query(ctx, sql, everyBucket())
			return err
		},
	}
}

// sentAs returns the statement, sent in another way.
func sentAs(way plans.Way, statement plans.Statement) plans.Statement {
	statement.Sent = way
	return statement
}

// renewal is that of the contract.
func renewal() plans.Statement {
	statements := plans.Contract()
	return statements[slices.IndexFunc(statements, func(each plans.Statement) bool { return each.Name == "RenewLeases" })]
}
