package integration

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgtype"

	"github.com/holdfast-pg/holdfast/domain"
	"github.com/holdfast-pg/holdfast/domain/plans"
	"github.com/holdfast-pg/holdfast/gen"
)

// What a person calls is not hot. But it meets the tables when they are at their worst, and
// works in batches that must not hold up anybody.
func TestPlans_OrdersAndTheirPreviewsKeepToTheirIndexes(t *testing.T) {
	t.Parallel()
	backlog := newPlanBacklog(t)
	backlog.fill(t, 20_000)
	fillDead(t, backlog.database, "default", "note", 20_000, 100, true)
	for _, statistics := range planStatistics {
		t.Run("statistics "+statistics.name, func(t *testing.T) {
			tx := statistics.pretend(t, backlog.conn)
			for _, statement := range orderStatements() {
				checkPlans(t, tx, statement)
			}
		})
	}
}

func orderStatements() []plans.Statement {
	inbox := []string{"inbox_pkey"}
	return []plans.Statement{
		{Name: "CancelJobs", Set: true, Indexes: inbox, Call: func(ctx context.Context, db domain.DBTX, size int) error {
			_, err := gen.New().CancelJobs(ctx, db, gen.CancelJobsParams{PartitionBuckets: make([]int32, size), IDs: planIDs(size), Actor: "anna"})
			return err
		}},
		{Name: "ReleaseClaims", Set: true, Indexes: inbox, Call: func(ctx context.Context, db domain.DBTX, size int) error {
			_, err := gen.New().ReleaseClaims(ctx, db, gen.ReleaseClaimsParams{
				PartitionBuckets: make([]int32, size), IDs: planIDs(size), LeaseGenerations: make([]int64, size), WorkerIds: make([]string, size), Actor: "anna",
			})
			return err
		}},
		{Name: "RedriveJobs", Set: true, Indexes: inbox, Call: func(ctx context.Context, db domain.DBTX, size int) error {
			_, err := gen.New().RedriveJobs(ctx, db, gen.RedriveJobsParams{PartitionBuckets: make([]int32, size), IDs: planIDs(size), Actor: "anna"})
			return err
		}},
		{Name: "PurgeJobs", Set: true, Indexes: []string{"inbox_pkey", "idempotency_keys_pkey"}, Call: func(ctx context.Context, db domain.DBTX, size int) error {
			_, err := gen.New().PurgeJobs(ctx, db, gen.PurgeJobsParams{PartitionBuckets: make([]int32, size), IDs: planIDs(size), Actor: "anna"})
			return err
		}},
		{Name: "ExamineJobs", Set: true, Indexes: inbox, Sorts: "the jobs of the set", Call: func(ctx context.Context, db domain.DBTX, size int) error {
			_, err := gen.New().ExamineJobs(ctx, db, planIDs(size))
			return err
		}},
		{Name: "NextDeadKind", Indexes: []string{"inbox_dead_idx"}, Call: func(ctx context.Context, db domain.DBTX, _ int) error {
			_, err := gen.New().NextDeadKind(ctx, db, gen.NextDeadKindParams{AfterQueue: "default"})
			return err
		}},
		{Name: "CollectDeadJobs", Indexes: []string{"inbox_dead_idx"}, Call: func(ctx context.Context, db domain.DBTX, _ int) error {
			_, err := gen.New().CollectDeadJobs(ctx, db, gen.CollectDeadJobsParams{Queue: "default", Kind: "note", Batch: 2000, Until: time.Now(), AfterID: planIDs(1)[0]})
			return err
		}},
		{Name: "CountLaterJobs", Set: true, Indexes: []string{"inbox_lane_idx", "inbox_lane_processing_idx"}, Call: func(ctx context.Context, db domain.DBTX, size int) error {
			_, err := gen.New().CountLaterJobs(ctx, db, gen.CountLaterJobsParams{
				Queues: make([]string, size), PartitionBuckets: make([]int32, size), PartitionKeys: make([]string, size), Seqs: make([]int64, size), Most: 1001,
			})
			return err
		}},
	}
}

func planIDs(size int) []pgtype.UUID {
	ids := make([]pgtype.UUID, size)
	for i := range ids {
		ids[i] = pgtype.UUID{Bytes: domain.NewJobID(time.Now(), 0), Valid: true}
	}
	return ids
}
