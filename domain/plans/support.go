package plans

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5/pgtype"

	"github.com/holdfast-pg/holdfast/domain"
	"github.com/holdfast-pg/holdfast/gen"
)

// SupportBuffers is how many shared buffers a statement of Support may touch, with a million
// jobs waiting and ten million in all. Vacuum must have passed over what is counted: a count of
// 10,001 jobs reads the table for each that was changed since.
const SupportBuffers = 5_000

// As the product asks.
const (
	countMost  = 10_001
	lookMost   = 4_001
	pageMost   = 500
	headMost   = 100
	newestMost = 2_000
	errorsMost = 400
	groupMost  = 500
	keysMost   = 1_000
	listMost   = 1_000
	tailPages  = 300
)

// Where lists begin.
var (
	listStart = time.Date(1, 1, 1, 0, 0, 0, 0, time.UTC)
	listEnd   = time.Date(9999, 12, 31, 0, 0, 0, 0, time.UTC)
	highestID = pgtype.UUID{Bytes: [16]byte(repeat(16, byte(0xff))), Valid: true}
)

// Support returns the statements that a person asks when something is wrong. Each reads a
// bounded number of rows. SampleKeys and SampleLanes are not among them: a sample of 20,000
// jobs of all buckets reads so many.
func Support() []Statement {
	counts, groups := "the jobs that it looked at", "the groups"
	dead := []string{"inbox_dead_newest_idx"}
	claims := []string{"inbox_processing_idx"}
	return []Statement{
		{Name: "GetJob", Sent: Cached, Indexes: []string{"inbox_pkey", "inbox_archive_id_idx"}, Call: getJob},
		{Name: "OldestPendingJob", Sent: Cached, Indexes: []string{"inbox_claim_idx"}, Call: oldestPendingJob},
		{Name: "CountReadyJobs", Sent: InOrder, Indexes: []string{"inbox_claim_idx"}, Call: countReadyJobs},
		{Name: "CountFutureJobs", Sent: InOrder, Indexes: []string{"inbox_claim_idx"}, Call: countFutureJobs},
		{Name: "CountLaneJobs", Sent: InOrder, Indexes: []string{"inbox_lane_idx"}, Call: countLaneJobs},
		{Name: "CountRetryingJobs", Sent: InOrder, Indexes: []string{"inbox_retrying_idx"}, Call: countRetryingJobs},
		{Name: "CountDeadJobs", Sent: InOrder, Indexes: dead, Call: countDeadJobs},
		{Name: "CountClaims", Sent: InOrder, Indexes: claims, Walks: claims, Sorts: counts, Call: countClaims},
		{Name: "CountKeptJobs", Sent: InOrder, Indexes: []string{"inbox_completed_idx"}, Walks: []string{"inbox_completed_idx"}, Sorts: counts, Call: countKeptJobs},
		{Name: "CountArrivals", Sent: InOrder, Indexes: []string{"inbox_pkey", "inbox_archive_id_idx"}, Sorts: counts, Call: countArrivals},
		{Name: "CountCompletions", Sent: InOrder, Indexes: []string{"inbox_completed_idx"}, Pages: []string{"inbox_archive"}, Sorts: counts, Call: countCompletions},
		{Name: "GroupDeadByError", Sent: InOrder, Indexes: dead, Sorts: groups, Call: groupDeadByError},
		{Name: "CountDeadLettersPerKey", Sent: InOrder, Indexes: dead, Sorts: groups, Call: countDeadLettersPerKey},
		{Name: "ListDeadJobs", Sent: InOrder, Indexes: dead, Call: listDeadJobs},
		{Name: "ListDeadKeyHolders", Sent: InOrder, Indexes: []string{"inbox_dead_newest_idx", "idempotency_keys_pkey"}, Sorts: counts, Call: listDeadKeyHolders},
		{Name: "ListPendingJobs", Sent: InOrder, Indexes: []string{"inbox_claim_idx"}, Call: listReadyJobs},
		{Name: "ListLaneJobs", Sent: InOrder, Indexes: []string{"inbox_lane_idx"}, Call: listLaneJobs},
		{Name: "ListRetryingJobs", Sent: InOrder, Indexes: []string{"inbox_retrying_idx"}, Call: listRetryingJobs},
		{Name: "ListClaims", Sent: InOrder, Indexes: claims, Call: listClaims},
		{Name: "ListKeptJobs", Sent: InOrder, Indexes: []string{"inbox_completed_idx"}, Call: listKeptJobs},
		{Name: "ListArchivedJobs", Sent: InOrder, Indexes: []string{"inbox_archive_id_idx"}, Call: listArchivedJobs},
		{Name: "ListPublishedJobs", Sent: InOrder, Indexes: []string{"inbox_pkey", "inbox_archive_id_idx"}, Call: listPublishedJobs},
		{Name: "ListNewestJobs", Sent: InOrder, Indexes: []string{"inbox_pkey"}, Call: listNewestJobs},
		{
			Name: "ListKeyJobs", Sent: InOrder, Walks: claims, Sorts: "the jobs of the key", Call: listKeyJobs,
			Indexes: []string{"inbox_lane_idx", "inbox_lane_processing_idx", "inbox_claim_idx", "inbox_processing_idx", "inbox_dead_newest_idx"},
		},
	}
}

func getJob(ctx context.Context, db domain.DBTX, _ int) error {
	_, err := queries.GetJob(ctx, db, sampleID(1))
	return err
}

func countReadyJobs(ctx context.Context, db domain.DBTX, _ int) error {
	_, err := queries.CountReadyJobs(ctx, db, gen.CountReadyJobsParams{Queue: sampleQueue, Most: countMost})
	return err
}

func countFutureJobs(ctx context.Context, db domain.DBTX, _ int) error {
	_, err := queries.CountFutureJobs(ctx, db, gen.CountFutureJobsParams{Queue: sampleQueue, Most: countMost})
	return err
}

func countLaneJobs(ctx context.Context, db domain.DBTX, _ int) error {
	_, err := queries.CountLaneJobs(ctx, db, gen.CountLaneJobsParams{Queue: sampleQueue, FromBucket: everyBucket / 2, Most: lookMost})
	return err
}

func countRetryingJobs(ctx context.Context, db domain.DBTX, _ int) error {
	_, err := queries.CountRetryingJobs(ctx, db, gen.CountRetryingJobsParams{Queue: sampleQueue, Most: countMost})
	return err
}

func countDeadJobs(ctx context.Context, db domain.DBTX, _ int) error {
	_, err := queries.CountDeadJobs(ctx, db, gen.CountDeadJobsParams{Queue: sampleQueue, Most: countMost})
	return err
}

func countClaims(ctx context.Context, db domain.DBTX, _ int) error {
	_, err := queries.CountClaims(ctx, db, lookMost)
	return err
}

func countKeptJobs(ctx context.Context, db domain.DBTX, _ int) error {
	_, err := queries.CountKeptJobs(ctx, db, lookMost)
	return err
}

func countArrivals(ctx context.Context, db domain.DBTX, _ int) error {
	_, err := queries.CountArrivals(ctx, db, newestMost)
	return err
}

func countCompletions(ctx context.Context, db domain.DBTX, _ int) error {
	_, err := queries.CountCompletions(ctx, db, gen.CountCompletionsParams{Pages: tailPages, Most: newestMost})
	return err
}

func groupDeadByError(ctx context.Context, db domain.DBTX, _ int) error {
	_, err := queries.GroupDeadByError(ctx, db, gen.GroupDeadByErrorParams{Queue: sampleQueue, Newest: errorsMost, MaxRows: listMost})
	return err
}

func countDeadLettersPerKey(ctx context.Context, db domain.DBTX, _ int) error {
	_, err := queries.CountDeadLettersPerKey(ctx, db, gen.CountDeadLettersPerKeyParams{Queue: sampleQueue, Newest: keysMost, MaxRows: listMost})
	return err
}

func listDeadJobs(ctx context.Context, db domain.DBTX, _ int) error {
	_, err := queries.ListDeadJobs(ctx, db, gen.ListDeadJobsParams{
		Failed: true, DeadLettered: true, Queue: sampleQueue, BeforeTime: listEnd, BeforeID: highestID, MaxRows: headMost,
	})
	return err
}

func listDeadKeyHolders(ctx context.Context, db domain.DBTX, _ int) error {
	_, err := queries.ListDeadKeyHolders(ctx, db, gen.ListDeadKeyHoldersParams{Queue: sampleQueue, Newest: groupMost, MaxRows: listMost})
	return err
}

func listReadyJobs(ctx context.Context, db domain.DBTX, _ int) error {
	_, err := queries.ListPendingJobs(ctx, db, gen.ListPendingJobsParams{Queue: sampleQueue, AfterTime: listStart, MaxRows: headMost})
	return err
}

func listLaneJobs(ctx context.Context, db domain.DBTX, _ int) error {
	_, err := queries.ListLaneJobs(ctx, db, gen.ListLaneJobsParams{Queue: sampleQueue, AfterBucket: -1, MaxRows: pageMost})
	return err
}

func listRetryingJobs(ctx context.Context, db domain.DBTX, _ int) error {
	_, err := queries.ListRetryingJobs(ctx, db, gen.ListRetryingJobsParams{Queue: sampleQueue, AfterTime: listStart, AfterID: sampleID(0), MaxRows: pageMost})
	return err
}

func listClaims(ctx context.Context, db domain.DBTX, _ int) error {
	_, err := queries.ListClaims(ctx, db, gen.ListClaimsParams{AfterGeneration: -1, MaxRows: pageMost})
	return err
}

func listKeptJobs(ctx context.Context, db domain.DBTX, _ int) error {
	_, err := queries.ListKeptJobs(ctx, db, gen.ListKeptJobsParams{BeforeTime: listEnd, BeforeID: highestID, MaxRows: pageMost})
	return err
}

func listArchivedJobs(ctx context.Context, db domain.DBTX, _ int) error {
	_, err := queries.ListArchivedJobs(ctx, db, gen.ListArchivedJobsParams{BeforeID: highestID, MaxRows: pageMost})
	return err
}

func listPublishedJobs(ctx context.Context, db domain.DBTX, _ int) error {
	_, err := queries.ListPublishedJobs(ctx, db, gen.ListPublishedJobsParams{
		Queue: sampleQueue, Since: 365 * 24 * time.Hour, AfterID: pgtype.UUID{Valid: true}, MaxRows: listMost,
	})
	return err
}

func listNewestJobs(ctx context.Context, db domain.DBTX, _ int) error {
	_, err := queries.ListNewestJobs(ctx, db, gen.ListNewestJobsParams{BeforeID: highestID, MaxRows: pageMost})
	return err
}

func listKeyJobs(ctx context.Context, db domain.DBTX, _ int) error {
	_, err := queries.ListKeyJobs(ctx, db, gen.ListKeyJobsParams{
		Queue: sampleQueue, PartitionBucket: 0, PartitionKey: "key", MaxRows: listMost, Look: keysMost,
	})
	return err
}
