package domain

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/jackc/pgx/v5"

	"github.com/holdfast-pg/holdfast/gen"
)

// projectionScope stands before the name of a projection among the marks.
const projectionScope = "projection:"

// MarkApplied records, in the transaction that writes a projection, that it has applied the job
// of this number, and tells whether this is the first time. false: it has before, and must not
// again. The projection's name has 1 to 189 bytes. There is a mark for each job, not one
// number for all: of two jobs whose enqueues overlapped, the later one may be committed first,
// and the earlier one is applied all the same. While another transaction is making the same mark
// the call waits for it to end. A mark lives as those of MarkHandled do.
func MarkApplied(ctx context.Context, tx DBTX, projection string, seq int64, id JobID) (first bool, err error) {
	if err := checkProjection(projection); err != nil {
		return false, err
	}
	marked, err := gen.New().MarkHandled(ctx, tx, gen.MarkHandledParams{
		Scope: projectionScope + projection, Key: fmt.Sprintf("%019d", seq), JobID: id.uuid(),
	})
	if err != nil {
		return false, fmt.Errorf("mark job %s applied to projection %q: %w", id, projection, explain(err))
	}
	return marked == 1, nil
}

// ProjectionPosition returns the highest number that a projection has applied; 0: none within
// the time that marks are kept. A lower number may still be on its way.
func ProjectionPosition(ctx context.Context, db DBTX, projection string) (seq int64, err error) {
	if err := checkProjection(projection); err != nil {
		return 0, err
	}
	key, err := gen.New().LatestMark(ctx, db, projectionScope+projection)
	if errors.Is(err, pgx.ErrNoRows) {
		return 0, nil
	}
	if err == nil {
		seq, err = strconv.ParseInt(key, 10, 64)
	}
	if err != nil {
		return 0, fmt.Errorf("read the position of projection %q: %w", projection, explain(err))
	}
	return seq, nil
}

func checkProjection(name string) error {
	if len(projectionScope+name) > nameLimit {
		return &InvalidError{Field: "projection", Reason: fmt.Sprintf("has %d bytes, %d at most", len(name), nameLimit-len(projectionScope))}
	}
	return checkName("projection", name)
}
