package domain

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/holdfast-pg/holdfast/gen"
)

// FindWorker returns what the registry knows of a worker, also of one that died within the
// last day; ErrWorkerUnknown when it does not know it.
func FindWorker(ctx context.Context, db DBTX, id string) (WorkerRecord, error) {
	row, err := gen.New().GetWorker(ctx, db, id)
	if errors.Is(err, pgx.ErrNoRows) {
		err = ErrWorkerUnknown
	}
	if err != nil {
		return WorkerRecord{}, fmt.Errorf("find worker %q: %w", id, explain(err))
	}
	return WorkerRecord(row), nil
}

// HeldClaim is one claim of a worker, with times by the database's clock.
type HeldClaim struct {
	ID           JobID
	Queue        string
	Kind         string
	PartitionKey string
	Attempt      int
	MaxAttempts  int
	Generation   int64
	ClaimedFor   time.Duration
	LeaseLeft    time.Duration // Below zero: the lease has ended, so long ago.
}

// WorkerClaims lists the claims of a worker, oldest first, at most limit: those among the 4,000
// oldest in flight. No index leads from a worker to its claims: it would cost each a write.
func WorkerClaims(ctx context.Context, db DBTX, id string, limit int) ([]HeldClaim, error) {
	rows, err := gen.New().ListWorkerClaims(ctx, inOrder(db), gen.ListWorkerClaimsParams{WorkerID: id, Look: mostClaims, MaxRows: int32(limit)})
	if err != nil {
		return nil, fmt.Errorf("list the claims of worker %q: %w", id, explain(err))
	}
	claims := make([]HeldClaim, len(rows))
	for i, row := range rows {
		claims[i] = HeldClaim{
			ID: row.ID.Bytes, Queue: row.Queue, Kind: row.Kind, PartitionKey: row.PartitionKey,
			Attempt: int(row.Attempts), MaxAttempts: int(row.MaxAttempts), Generation: row.LeaseGeneration,
			ClaimedFor: row.ClaimedFor, LeaseLeft: row.LeaseLeft,
		}
	}
	return claims, nil
}
