package domain

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/holdfast-pg/holdfast/gen"
)

// JobRecord is everything that is known of a job.
type JobRecord struct {
	ID             JobID           `json:"id"`
	Seq            int64           `json:"seq"`
	Queue          string          `json:"queue"`
	Kind           string          `json:"kind"`
	PartitionKey   string          `json:"partition_key"`
	Bucket         int             `json:"bucket"`
	Ordered        bool            `json:"ordered"`
	Status         Status          `json:"status"`
	Attempts       int             `json:"attempts"`
	MaxAttempts    int             `json:"max_attempts"`
	Generation     int64           `json:"generation"`
	ClaimedBy      *string         `json:"claimed_by"`
	ClaimedAt      *time.Time      `json:"claimed_at"`
	LeaseExpiresAt *time.Time      `json:"lease_expires_at"`
	AvailableAt    time.Time       `json:"available_at"`
	CreatedAt      time.Time       `json:"created_at"`
	CompletedAt    *time.Time      `json:"completed_at"`
	FinishedAt     *time.Time      `json:"finished_at"`
	FinishedBy     *string         `json:"finished_by"`
	IdempotencyKey *string         `json:"idempotency_key"`
	LastError      *string         `json:"last_error"`
	Headers        json.RawMessage `json:"headers"`
	Payload        json.RawMessage `json:"payload"`
	Archived       bool            `json:"archived"`
}

// FindJob returns what is known of a job, archived or not; ErrNotFound when there is none.
func FindJob(ctx context.Context, db DBTX, id JobID) (JobRecord, error) {
	row, err := gen.New().GetJob(ctx, db, id.uuid())
	if errors.Is(err, pgx.ErrNoRows) {
		return JobRecord{}, fmt.Errorf("find job %s: %w", id, ErrNotFound)
	}
	if err != nil {
		return JobRecord{}, fmt.Errorf("find job %s: %w", id, explain(err))
	}
	return JobRecord{
		ID: row.ID.Bytes, Seq: row.Seq, Queue: row.Queue, Kind: row.Kind, PartitionKey: row.PartitionKey,
		Bucket: int(row.PartitionBucket), Ordered: row.Ordered, Status: row.Status,
		Attempts: int(row.Attempts), MaxAttempts: int(row.MaxAttempts), Generation: row.LeaseGeneration,
		ClaimedBy: row.ClaimedBy, ClaimedAt: row.ClaimedAt, LeaseExpiresAt: row.LeaseExpiresAt,
		AvailableAt: row.AvailableAt, CreatedAt: row.CreatedAt, CompletedAt: row.CompletedAt,
		FinishedAt: row.FinishedAt, FinishedBy: row.FinishedBy, IdempotencyKey: row.IdempotencyKey,
		LastError: row.LastError, Headers: row.Headers, Payload: row.Payload, Archived: row.Archived,
	}, nil
}

// jobState is how a job stands.
type jobState struct {
	Status     Status
	Generation int64
}

func jobStates(ctx context.Context, db DBTX, ids []JobID) (map[JobID]jobState, error) {
	rows, err := gen.New().ListJobStates(ctx, db, uuids(ids))
	if err != nil {
		return nil, explain(err)
	}
	states := make(map[JobID]jobState, len(rows))
	for _, row := range rows {
		states[row.ID.Bytes] = jobState{Status: row.Status, Generation: row.LeaseGeneration}
	}
	return states, nil
}

// PendingJob is a job that is due and waits for a worker.
type PendingJob struct {
	ID           JobID
	Kind         string
	PartitionKey string
	AvailableAt  time.Time
	Age          time.Duration // How long it has been due.
}

// OldestPendingJob returns the job of a queue that has been due for longest: the lag that
// users feel. ErrNotFound: nothing is waiting.
func OldestPendingJob(ctx context.Context, db DBTX, queue string) (PendingJob, error) {
	row, err := gen.New().OldestPendingJob(ctx, db, queue)
	if errors.Is(err, pgx.ErrNoRows) {
		return PendingJob{}, fmt.Errorf("oldest pending job of queue %q: %w", queue, ErrNotFound)
	}
	if err != nil {
		return PendingJob{}, fmt.Errorf("oldest pending job of queue %q: %w", queue, explain(err))
	}
	return PendingJob{ID: row.ID.Bytes, Kind: row.Kind, PartitionKey: row.PartitionKey, AvailableAt: row.AvailableAt, Age: row.Age}, nil
}

// ExpiredLease is a claim past its lease that nobody has reclaimed yet.
type ExpiredLease = gen.ListExpiredLeasesRow

// ExpiredLeases lists claims that are past their lease, oldest first, at most limit.
func ExpiredLeases(ctx context.Context, db DBTX, limit int) ([]ExpiredLease, error) {
	rows, err := gen.New().ListExpiredLeases(ctx, db, int32(limit))
	if err != nil {
		return nil, fmt.Errorf("list expired leases: %w", explain(err))
	}
	return rows, nil
}

// KeyDeadLetters counts the dead jobs of one partition key.
type KeyDeadLetters = gen.CountDeadLettersPerKeyRow

// DeadLettersPerKey counts the failed and dead-lettered jobs of a queue by partition key,
// most first, at most limit keys.
func DeadLettersPerKey(ctx context.Context, db DBTX, queue string, limit int) ([]KeyDeadLetters, error) {
	rows, err := gen.New().CountDeadLettersPerKey(ctx, db, gen.CountDeadLettersPerKeyParams{Queue: queue, MaxRows: int32(limit)})
	if err != nil {
		return nil, fmt.Errorf("count dead letters of queue %q: %w", queue, explain(err))
	}
	return rows, nil
}
