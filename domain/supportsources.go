package domain

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/holdfast-pg/holdfast/gen"
)

// source is one order in which jobs can be read from an index, a page after another.
type source struct {
	name  string // In a cursor.
	size  int    // Jobs that one statement reads at most.
	start place
	next  func(ctx context.Context, db DBTX, queue string, after place, n int) ([]ListedJob, error)
	keep  func(job ListedJob) bool // nil keeps all.
}

const (
	pageSize    = 500 // An error of a job may be stored apart from it, on four pages more.
	pendingSize = 100 // Of these each may begin in a bucket of its own.
	deadSize    = 100 // The fingerprint of an error takes longer than all else.
)

// Before the first and behind the last that there can be.
var (
	atStart = place{at: time.Date(1, 1, 1, 0, 0, 0, 0, time.UTC), bucket: -1, generation: -1, seq: -1}
	atEnd   = place{at: time.Date(9999, 12, 31, 0, 0, 0, 0, time.UTC), id: JobID{
		0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
	}}
)

// sourcesOf returns where the jobs of a state are found, one after the other.
func sourcesOf(state State) ([]source, error) {
	switch state {
	case "":
		return []source{newestJobs}, nil
	case StateReady:
		return []source{pendingJobs("due", false), laneJobs}, nil
	case StateScheduled:
		return []source{pendingJobs("future", true), laneJobs}, nil
	case StateRetrying:
		return []source{retryingJobs}, nil
	case StateProcessing:
		return []source{claimedJobs}, nil
	case StateFailed, StateDeadLetter:
		return []source{deadJobs(string(state), state)}, nil
	case StateCompleted:
		return []source{keptJobs, archivedJobs}, nil
	}
	return nil, &InvalidError{Field: "state", Reason: fmt.Sprintf("%q is none of %v", state, States())}
}

func pendingJobs(name string, future bool) source {
	return source{name: name, size: pendingSize, start: atStart, next: func(ctx context.Context, db DBTX, queue string, after place, n int) ([]ListedJob, error) {
		rows, err := gen.New().ListPendingJobs(ctx, db, gen.ListPendingJobsParams{
			Queue: queue, Future: future, AfterTime: after.at, AfterSeq: after.seq, MaxRows: int32(n),
		})
		return listed(rows, err, func(row gen.ListPendingJobsRow) ListedJob { return newListedJob(listedRow(row)) })
	}}
}

var laneJobs = source{name: "lanes", size: pageSize, start: atStart, next: func(ctx context.Context, db DBTX, queue string, after place, n int) ([]ListedJob, error) {
	rows, err := gen.New().ListLaneJobs(ctx, db, gen.ListLaneJobsParams{
		Queue: queue, AfterBucket: int32(after.bucket), AfterKey: after.key, AfterSeq: after.seq, MaxRows: int32(n),
	})
	return listed(rows, err, func(row gen.ListLaneJobsRow) ListedJob { return newListedJob(listedRow(row)) })
}}

var retryingJobs = source{name: "retrying", size: pageSize, start: atStart, next: func(ctx context.Context, db DBTX, queue string, after place, n int) ([]ListedJob, error) {
	rows, err := gen.New().ListRetryingJobs(ctx, db, gen.ListRetryingJobsParams{
		Queue: queue, AfterTime: after.at, AfterID: after.uuid(), MaxRows: int32(n),
	})
	return listed(rows, err, func(row gen.ListRetryingJobsRow) ListedJob { return newListedJob(listedRow(row)) })
}}

var claimedJobs = source{name: "claims", size: pageSize, start: atStart, next: func(ctx context.Context, db DBTX, _ string, after place, n int) ([]ListedJob, error) {
	rows, err := gen.New().ListClaims(ctx, db, gen.ListClaimsParams{AfterGeneration: after.generation, MaxRows: int32(n)})
	return listed(rows, err, func(row gen.ListClaimsRow) ListedJob { return newListedJob(listedRow(row)) })
}}

var keptJobs = source{name: "kept", size: pageSize, start: atEnd, next: func(ctx context.Context, db DBTX, _ string, after place, n int) ([]ListedJob, error) {
	rows, err := gen.New().ListKeptJobs(ctx, db, gen.ListKeptJobsParams{BeforeTime: after.at, BeforeID: after.uuid(), MaxRows: int32(n)})
	return listed(rows, err, func(row gen.ListKeptJobsRow) ListedJob { return newListedJob(listedRow(row)) })
}}

var archivedJobs = source{name: "archived", size: pageSize, start: atEnd, next: func(ctx context.Context, db DBTX, _ string, after place, n int) ([]ListedJob, error) {
	rows, err := gen.New().ListArchivedJobs(ctx, db, gen.ListArchivedJobsParams{BeforeID: after.uuid(), MaxRows: int32(n)})
	return listed(rows, err, func(row gen.ListArchivedJobsRow) ListedJob {
		return newListedJob(listedRow{
			ID: row.ID, Seq: row.Seq, Queue: row.Queue, Kind: row.Kind, PartitionKey: row.PartitionKey, PartitionBucket: row.PartitionBucket,
			Ordered: row.Ordered, Status: StatusCompleted, Attempts: row.Attempts, MaxAttempts: row.MaxAttempts,
			LeaseGeneration: row.LeaseGeneration, AvailableAt: row.AvailableAt, CreatedAt: row.CreatedAt, FinishedAt: &row.CompletedAt,
			IdempotencyKey: row.IdempotencyKey, LastError: row.LastError, ReadAt: row.ReadAt,
		})
	})
}}

var newestJobs = source{name: "newest", size: pageSize, start: atEnd, next: func(ctx context.Context, db DBTX, _ string, after place, n int) ([]ListedJob, error) {
	rows, err := gen.New().ListNewestJobs(ctx, db, gen.ListNewestJobsParams{BeforeID: after.uuid(), MaxRows: int32(n)})
	return listed(rows, err, newListedJob)
}}

func deadJobs(name string, states ...State) source {
	return source{name: name, size: deadSize, start: atEnd, next: func(ctx context.Context, db DBTX, queue string, after place, n int) ([]ListedJob, error) {
		rows, err := gen.New().ListDeadJobs(ctx, db, gen.ListDeadJobsParams{
			Failed: slices.Contains(states, StateFailed), DeadLettered: slices.Contains(states, StateDeadLetter), Queue: queue, BeforeTime: after.at, BeforeID: after.uuid(), MaxRows: int32(n),
		})
		return listed(rows, err, newDeadJob)
	}}
}

func newDeadJob(row gen.ListDeadJobsRow) ListedJob {
	job := newListedJob(listedRow{
		ID: row.ID, Seq: row.Seq, Queue: row.Queue, Kind: row.Kind, PartitionKey: row.PartitionKey, PartitionBucket: row.PartitionBucket,
		Ordered: row.Ordered, Status: row.Status, Attempts: row.Attempts, MaxAttempts: row.MaxAttempts,
		LeaseGeneration: row.LeaseGeneration, AvailableAt: row.AvailableAt, CreatedAt: row.CreatedAt, FinishedAt: row.FinishedAt,
		IdempotencyKey: row.IdempotencyKey, LastError: row.LastError, ReadAt: row.ReadAt,
	})
	job.Fingerprint = row.Fingerprint
	return job
}

func listed[Row any](rows []Row, err error, convert func(Row) ListedJob) ([]ListedJob, error) {
	if err != nil {
		return nil, err
	}
	jobs := make([]ListedJob, len(rows))
	for i, row := range rows {
		jobs[i] = convert(row)
	}
	return jobs, nil
}
