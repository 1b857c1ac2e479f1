package domain

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/holdfast-pg/holdfast/gen"
)

// Evict marks a worker dead and takes its claims from it, in batches: they can be claimed again
// at once, their attempts refunded. It returns how many it took, and how many the worker still
// holds because their rows were locked, above all by a handler that runs in a transaction
// (HandleTx); calling it again tries those once more.
//
// No heartbeat brings the worker back to life. If it runs, its next one tells it: it gives up
// what it does and joins again under another id, with nothing; what it claims until then, it
// holds like any claim. To end it, drain it or stop its process. One that is dead already is
// evicted all the same, for it may hold claims. ErrWorkerUnknown: the registry does not know the worker,
// and it holds nothing. When ctx ends it stops between two batches, with ctx's error.
func (by By) Evict(ctx context.Context, db DBTX, workerID string) (released, left int, err error) {
	by, err = by.Check()
	if err != nil {
		return 0, 0, err
	}
	_, err = gen.New().EvictWorker(ctx, db, gen.EvictWorkerParams{ID: workerID, Actor: by.Actor, Reason: by.Reason})
	unknown := errors.Is(err, pgx.ErrNoRows)
	if err == nil || unknown {
		released, left, err = by.releaseHeld(ctx, db, workerID)
	}
	if err == nil && unknown && released+left == 0 {
		err = ErrWorkerUnknown
	}
	if err != nil {
		return released, left, fmt.Errorf("evict worker %s: %w", workerID, explain(err))
	}
	return released, left, nil
}

// releaseHeld goes once through the claims that a worker holds.
func (by By) releaseHeld(ctx context.Context, db DBTX, workerID string) (released, left int, err error) {
	var after int64
	for {
		if err := ctx.Err(); err != nil {
			return released, left, err
		}
		claims, err := heldClaims(ctx, planned(db), workerID, after)
		if err != nil || len(claims) == 0 {
			return released, left, err
		}
		after = claims[len(claims)-1].Generation
		done, err := by.releaseBatch(ctx, db, claims)
		if err != nil {
			return released, left, err
		}
		released += len(done)
		left += len(claims) - len(done)
	}
}

func (by By) releaseBatch(ctx context.Context, db DBTX, claims []Claim) ([]JobID, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), batchTimeout)
	defer cancel()
	return by.Release(ctx, db, claims...)
}
