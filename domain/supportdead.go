package domain

import (
	"context"
	"fmt"
	"time"

	"github.com/holdfast-pg/holdfast/gen"
)

// How many of the newest dead jobs of a queue are grouped.
const (
	newestByError = 400 // To find out what errors have in common takes most of the time.
	newestByKey   = 1_000
)

// DeadKeysLooked is at how many of the newest failed jobs, and of the newest dead-lettered ones,
// DeadKeyHolders looks.
const DeadKeysLooked = 500

// DeadGroups are the newest failed and dead-lettered jobs of a queue in groups.
type DeadGroups[Group any] struct {
	Queue  string  `json:"queue"`
	Looked int64   `json:"looked"` // How many jobs were grouped.
	More   bool    `json:"more"`   // There may be more, which died earlier.
	Items  []Group `json:"items"`  // Those with most jobs first.
}

// ErrorGroup is dead jobs of one kind whose errors differ in ids, numbers and quoted texts only.
type ErrorGroup struct {
	Kind        string    `json:"kind"`
	Fingerprint string    `json:"error_fingerprint"` // Names the group: JobFilter takes it.
	Pattern     string    `json:"error_pattern"`     // The first line of the error with ? in place of what differs.
	Jobs        int64     `json:"jobs"`
	FirstAt     time.Time `json:"first_at"` // When the first of them died, and the last one.
	LastAt      time.Time `json:"last_at"`
	LastID      JobID     `json:"last_id"`
	LastError   string    `json:"last_error"`
}

// DeadByError groups the newest 400 dead jobs of a queue by kind and error, at most limit groups.
func DeadByError(ctx context.Context, db DBTX, queue string, limit int) (DeadGroups[ErrorGroup], error) {
	rows, err := gen.New().GroupDeadByError(ctx, inOrder(db), gen.GroupDeadByErrorParams{Queue: queue, Newest: newestByError, MaxRows: int32(limit)})
	if err != nil {
		return DeadGroups[ErrorGroup]{}, fmt.Errorf("group dead jobs of queue %q by error: %w", queue, explain(err))
	}
	groups := DeadGroups[ErrorGroup]{Queue: queue, Items: make([]ErrorGroup, len(rows))}
	for i, row := range rows {
		groups.Looked, groups.More = row.Looked, row.Looked == newestByError
		groups.Items[i] = ErrorGroup{
			Kind: row.Kind, Fingerprint: row.Fingerprint, Pattern: row.Pattern, Jobs: row.Jobs,
			FirstAt: row.FirstAt, LastAt: row.LastAt, LastID: row.LastID.Bytes, LastError: row.LastError,
		}
	}
	return groups, nil
}

// KeyDeadLetters counts the dead jobs of one partition key.
type KeyDeadLetters struct {
	PartitionKey string    `json:"partition_key"`
	Jobs         int64     `json:"jobs"`
	FirstAt      time.Time `json:"first_at"` // When the first of them died, and the last one.
	LastAt       time.Time `json:"last_at"`
	SampleError  string    `json:"last_error"` // Of the last one.
}

// DeadLettersPerKey counts the newest 1,000 failed and dead-lettered jobs of a queue by partition
// key, most first, at most limit keys.
func DeadLettersPerKey(ctx context.Context, db DBTX, queue string, limit int) (DeadGroups[KeyDeadLetters], error) {
	rows, err := gen.New().CountDeadLettersPerKey(ctx, inOrder(db), gen.CountDeadLettersPerKeyParams{Queue: queue, Newest: newestByKey, MaxRows: int32(limit)})
	if err != nil {
		return DeadGroups[KeyDeadLetters]{}, fmt.Errorf("count dead letters of queue %q: %w", queue, explain(err))
	}
	groups := DeadGroups[KeyDeadLetters]{Queue: queue, Items: make([]KeyDeadLetters, len(rows))}
	for i, row := range rows {
		groups.Looked, groups.More = row.Looked, row.Looked == newestByKey
		groups.Items[i] = KeyDeadLetters{
			PartitionKey: row.PartitionKey, Jobs: row.Jobs, FirstAt: row.FirstAt, LastAt: row.LastAt, SampleError: row.SampleError,
		}
	}
	return groups, nil
}

// DeadKeyHolder is a dead job that keeps an idempotency key: until ExpiresAt every enqueue under
// the key is told that it is this job.
type DeadKeyHolder struct {
	ID             JobID      `json:"id"`
	Kind           string     `json:"kind"`
	PartitionKey   string     `json:"partition_key"`
	Status         Status     `json:"status"`
	FinishedAt     *time.Time `json:"finished_at"`
	IdempotencyKey string     `json:"idempotency_key"`
	ExpiresAt      time.Time  `json:"expires_at"`
}

// DeadKeyHolders lists those of the newest 500 failed and dead-lettered jobs each of a queue that
// keep an idempotency key, newest first, at most limit.
func DeadKeyHolders(ctx context.Context, db DBTX, queue string, limit int) ([]DeadKeyHolder, error) {
	rows, err := gen.New().ListDeadKeyHolders(ctx, inOrder(db), gen.ListDeadKeyHoldersParams{Queue: queue, Newest: DeadKeysLooked, MaxRows: int32(limit)})
	if err != nil {
		return nil, fmt.Errorf("list dead jobs of queue %q that hold a key: %w", queue, explain(err))
	}
	holders := make([]DeadKeyHolder, len(rows))
	for i, row := range rows {
		holders[i] = DeadKeyHolder{
			ID: row.ID.Bytes, Kind: row.Kind, PartitionKey: row.PartitionKey, Status: row.Status,
			FinishedAt: row.FinishedAt, IdempotencyKey: row.IdempotencyKey, ExpiresAt: row.ExpiresAt,
		}
	}
	return holders, nil
}
