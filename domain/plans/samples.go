package plans

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5/pgtype"

	"github.com/holdfast-pg/holdfast/domain"
	"github.com/holdfast-pg/holdfast/gen"
)

// Sample arguments. The planner looks at how many there are, and at the statistics of a
// queue's name; the ids belong to no job.
const (
	sampleQueue  = domain.DefaultQueue
	sampleWorker = "plans-1-0000000000000000"
	sampleLease  = 90 * time.Second
	sampleAge    = 30 * 24 * time.Hour
	sampleQuota  = 7
)

var queries = gen.New()

// buckets returns the first so many buckets: 1,024 are those of a worker that is alone.
func buckets(n int) []int32 {
	numbers := make([]int32, n)
	for i := range numbers {
		numbers[i] = int32(i)
	}
	return numbers
}

const everyBucket = 1024

func sampleID(i int) pgtype.UUID {
	return pgtype.UUID{Bytes: [16]byte{0: 1, 6: 0x70, 8: 0x80, 12: byte(i >> 8), 13: byte(i)}, Valid: true}
}

func sampleIDs(n int) []pgtype.UUID {
	ids := make([]pgtype.UUID, n)
	for i := range ids {
		ids[i] = sampleID(i)
	}
	return ids
}

// repeat returns a set of so many equal members.
func repeat[T any](n int, value T) []T {
	set := make([]T, n)
	for i := range set {
		set[i] = value
	}
	return set
}

func names(prefix string, n int) []string {
	set := make([]string, n)
	for i := range set {
		set[i] = fmt.Sprint(prefix, i)
	}
	return set
}

func enqueueJob(ctx context.Context, db domain.DBTX, _ int) error {
	_, err := queries.EnqueueJob(ctx, db, gen.EnqueueJobParams{
		Queue: sampleQueue, Kind: "plan", PartitionKey: "key", IdempotencyKey: "once", Ring: true,
		Headers: json.RawMessage("null"), Payload: json.RawMessage("{}"),
	})
	return err
}

func enqueuePlainJob(ctx context.Context, db domain.DBTX, _ int) error {
	_, err := queries.EnqueuePlainJob(ctx, db, gen.EnqueuePlainJobParams{
		Queue: sampleQueue, Kind: "plan", PartitionKey: "key", Ring: true,
		Headers: json.RawMessage("null"), Payload: json.RawMessage("{}"),
	})
	return err
}

func enqueueJobs(ctx context.Context, db domain.DBTX, size int) error {
	_, err := queries.EnqueueJobs(ctx, db, gen.EnqueueJobsParams{
		Kinds:           repeat(size, "plan"),
		Queues:          repeat(size, sampleQueue),
		PartitionKeys:   names("key ", size),
		Hashes:          make([]int32, size),
		Draws:           make([]int64, size),
		IdempotencyKeys: names("once ", size),
		MaxAttempts:     make([]int32, size),
		Delays:          make([]time.Duration, size),
		RunAt:           make([]time.Time, size),
		Rings:           repeat(size, true),
		Headers:         repeat(size, json.RawMessage("null")),
		Payloads:        repeat(size, json.RawMessage("{}")),
	})
	return err
}

func enqueuePlainJobs(ctx context.Context, db domain.DBTX, size int) error {
	_, err := queries.EnqueuePlainJobs(ctx, db, gen.EnqueuePlainJobsParams{
		Kinds:         repeat(size, "plan"),
		Queues:        repeat(size, sampleQueue),
		PartitionKeys: names("key ", size),
		Hashes:        make([]int32, size),
		Draws:         make([]int64, size),
		Payloads:      repeat(size, json.RawMessage("{}")),
	})
	return err
}

func beatWorker(ctx context.Context, db domain.DBTX, _ int) error {
	_, err := queries.BeatWorker(ctx, db, gen.BeatWorkerParams{ID: sampleWorker, Metadata: json.RawMessage("{}")})
	return err
}

func listMembers(ctx context.Context, db domain.DBTX, _ int) error {
	_, err := queries.ListMembers(ctx, db, gen.ListMembersParams{Queues: []string{sampleQueue}, TTL: sampleLease})
	return err
}

func armWake(ctx context.Context, db domain.DBTX, _ int) error {
	_, err := queries.ArmWake(ctx, db, gen.ArmWakeParams{WorkerID: sampleWorker, Queues: []string{sampleQueue}})
	return err
}

func disarmWake(ctx context.Context, db domain.DBTX, _ int) error {
	_, err := queries.DisarmWake(ctx, db, gen.DisarmWakeParams{WorkerID: sampleWorker, Queues: []string{sampleQueue}})
	return err
}

func lookAround(ctx context.Context, db domain.DBTX, size int) error {
	all, own := buckets(everyBucket), min(size, everyBucket)
	_, err := queries.LookAround(ctx, db, gen.LookAroundParams{
		Queue: sampleQueue, OwnBuckets: all[:own], OtherBuckets: all[own:], DueFor: 2 * time.Second, Horizon: 2 * time.Second,
	})
	return err
}

func markHandled(ctx context.Context, db domain.DBTX, _ int) error {
	_, err := queries.MarkHandled(ctx, db, gen.MarkHandledParams{Scope: "effect", Key: "key", JobID: sampleID(0)})
	return err
}

func guardResource(ctx context.Context, db domain.DBTX, _ int) error {
	_, err := queries.GuardResource(ctx, db, gen.GuardResourceParams{Resource: "resource", Token: 1})
	return err
}

func oldestPendingJob(ctx context.Context, db domain.DBTX, _ int) error {
	_, err := queries.OldestPendingJob(ctx, db, sampleQueue)
	return err
}
