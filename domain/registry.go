package domain

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/holdfast-pg/holdfast/gen"
)

// ClaimsExamined is how many claims in flight WorkerClaims looks at. No index leads from a
// worker to its claims: it would cost a write for each of them.
const ClaimsExamined = 4000

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

// HeldClaims are the claims of a worker.
type HeldClaims struct {
	Count    int         // How many it holds of those that were examined.
	Complete bool        // All claims in flight were examined, not just the oldest ClaimsExamined.
	Oldest   []HeldClaim // In the order of their claims.
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

// WorkerClaims counts the claims of a worker, and lists the oldest of them, at most limit.
func WorkerClaims(ctx context.Context, db DBTX, id string, limit int) (HeldClaims, error) {
	count, err := gen.New().CountWorkerClaims(ctx, db, gen.CountWorkerClaimsParams{WorkerID: id, Examined: ClaimsExamined})
	if err != nil {
		return HeldClaims{}, fmt.Errorf("count the claims of worker %q: %w", id, explain(err))
	}
	rows, err := gen.New().ListWorkerClaims(ctx, db, gen.ListWorkerClaimsParams{WorkerID: id, Examined: ClaimsExamined, MaxRows: int32(limit)})
	if err != nil {
		return HeldClaims{}, fmt.Errorf("list the claims of worker %q: %w", id, explain(err))
	}
	held := HeldClaims{Count: int(count.Held), Complete: count.Examined < ClaimsExamined, Oldest: make([]HeldClaim, len(rows))}
	for i, row := range rows {
		held.Oldest[i] = HeldClaim{
			ID: row.ID.Bytes, Queue: row.Queue, Kind: row.Kind, PartitionKey: row.PartitionKey,
			Attempt: int(row.Attempts), MaxAttempts: int(row.MaxAttempts), Generation: row.LeaseGeneration,
			ClaimedFor: row.ClaimedFor, LeaseLeft: row.LeaseLeft,
		}
	}
	return held, nil
}
