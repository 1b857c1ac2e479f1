package integration

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgtype"

	"github.com/holdfast-pg/holdfast/domain"
	"github.com/holdfast-pg/holdfast/domain/plans"
	"github.com/holdfast-pg/holdfast/gen"
)

// supportBuffers is how many shared buffers a statement for a person may touch.
const supportBuffers = 5000

// explainStatements are those behind `jobs explain` and `workers show`, for a job of the key.
func explainStatements(id pgtype.UUID, key string) []plans.Statement {
	bucket := int32(domain.BucketOf(key, 1024))
	queries := gen.New()
	inOrder := func(name string, call func(ctx context.Context, db domain.DBTX) error, indexes ...string) plans.Statement {
		return plans.Statement{Name: name, Sent: plans.InOrder, Indexes: indexes, Call: func(ctx context.Context, db domain.DBTX, _ int) error {
			return call(ctx, db)
		}}
	}
	inFlight := func(name string, call func(ctx context.Context, db domain.DBTX) error) plans.Statement {
		statement := inOrder(name, call, "inbox_processing_idx")
		statement.Walks = statement.Indexes // As far as the limit.
		return statement
	}
	return []plans.Statement{
		inOrder("GetStanding", func(ctx context.Context, db domain.DBTX) error {
			_, err := queries.GetStanding(ctx, db, id)
			return err
		}, "inbox_pkey", "inbox_archive_id_idx"),
		inOrder("GetLane", func(ctx context.Context, db domain.DBTX) error {
			_, err := queries.GetLane(ctx, db, gen.GetLaneParams{
				Queue: domain.DefaultQueue, PartitionBucket: bucket, PartitionKey: key, Seq: 1 << 40, Most: domain.JobsCounted,
			})
			return err
		}, "inbox_lane_idx", "inbox_lane_processing_idx"),
		inOrder("CountJobsBefore", func(ctx context.Context, db domain.DBTX) error {
			_, err := queries.CountJobsBefore(ctx, db, gen.CountJobsBeforeParams{
				Queue: domain.DefaultQueue, PartitionBucket: bucket, AvailableAt: time.Now().Add(time.Hour), Seq: 1 << 40, Most: domain.JobsCounted,
			})
			return err
		}, "inbox_claim_idx"),
		inOrder("GetWorker", func(ctx context.Context, db domain.DBTX) error {
			_, err := queries.GetWorker(ctx, db, "w1")
			return err
		}),
		inFlight("ListWorkerClaims", func(ctx context.Context, db domain.DBTX) error {
			_, err := queries.ListWorkerClaims(ctx, db, gen.ListWorkerClaimsParams{WorkerID: "w1", Look: 4000, MaxRows: 1000})
			return err
		}),
	}
}

// They keep to their indexes whatever the planner was told, and touch few buffers, also where
// one key has most of the jobs.
func TestPlans_ExplainingKeepsToItsIndexes(t *testing.T) {
	t.Parallel()
	backlog := newPlanBacklog(t)
	sizes := []int{500, 60_000}
	if os.Getenv("HOLDFAST_TEST_PLANS") == "full" {
		sizes = append(sizes, 1_000_000)
	}
	for _, size := range sizes {
		backlog.fill(t, size)
		for _, ordered := range []bool{false, true} {
			fill(t, backlog.database, domain.DefaultQueue, ordered, "tenant:7", size/10, 0)
		}
		var id pgtype.UUID
		if err := backlog.conn.QueryRow(t.Context(), "SELECT id FROM holdfast.inbox WHERE partition_key = 'tenant:7' ORDER BY seq DESC LIMIT 1").Scan(&id); err != nil {
			t.Fatal(err)
		}
		for _, statistics := range planStatistics {
			t.Run(fmt.Sprintf("%d jobs, statistics %s", size, statistics.name), func(t *testing.T) {
				tx := statistics.pretend(t, backlog.conn)
				for _, statement := range explainStatements(id, "tenant:7") {
					checkPlans(t, tx, statement)
					took, err := plans.Measure(t.Context(), tx, statement, 1)
					if err != nil {
						t.Fatal(err)
					}
					if took.Buffers > supportBuffers {
						t.Errorf("%s touches %d buffers", statement.Name, took.Buffers)
					}
				}
			})
		}
	}
}
