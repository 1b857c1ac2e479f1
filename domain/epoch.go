package domain

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5/pgconn"
)

// errForeignEpoch says that a claim had no epoch to make tokens with, twice.
var errForeignEpoch = errors.New("the epoch is that of another incarnation of the database, though it was raised: nothing was claimed, try again")

// claimInEpoch claims, and where the epoch is not this server's, as after a failover that may
// have lost commits, raises it and claims again. Any number of workers may: one raises it.
func (q *Queue) claimInEpoch(ctx context.Context, claim func() ([]ClaimedJob, error)) ([]ClaimedJob, error) {
	jobs, err := claim()
	if len(jobs) > 0 || !lacksEpoch(err) {
		return jobs, err
	}
	if _, err := q.queries.AdvanceEpoch(ctx, q.work); err != nil {
		return nil, fmt.Errorf("raise the epoch: %w", err)
	}
	if jobs, err = claim(); lacksEpoch(err) {
		err = fmt.Errorf("%w (%w)", errForeignEpoch, err)
	}
	return jobs, err
}

// lacksEpoch tells whether a claim failed because it found no epoch: without one its tokens
// are null, and the column does not take that.
func lacksEpoch(err error) bool {
	var pgErr *pgconn.PgError
	return errors.As(err, &pgErr) && pgErr.Code == notNullViolation && pgErr.ColumnName == "lease_generation"
}
