package domain

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/holdfast-pg/holdfast/gen"
)

// JobsCounted is how far the jobs before one are counted: so many may be more.
const JobsCounted = 1001

// Standing is how a job stands: what decides whether and when it runs.
type Standing struct {
	ID             JobID
	Seq            int64
	Queue          string
	Kind           string
	PartitionKey   string
	Bucket         int
	Ordered        bool
	Status         Status
	Attempts       int
	MaxAttempts    int
	Generation     int64
	ClaimedBy      *string
	LeaseExpiresAt *time.Time
	AvailableAt    time.Time
	FinishedAt     *time.Time
	FinishedBy     *string
	LastError      *string
	Archived       bool

	// By the database's clock; zero for what does not apply.
	DueIn      time.Duration // Not above zero: it is due, for so long.
	ClaimedFor time.Duration
	LeaseLeft  time.Duration // Below zero: the lease has ended, so long ago.

	QueuePaused bool
}

// FindStanding returns how a job stands, archived or not; ErrNotFound when there is none.
func FindStanding(ctx context.Context, db DBTX, id JobID) (Standing, error) {
	row, err := gen.New().GetStanding(ctx, db, id.uuid())
	if errors.Is(err, pgx.ErrNoRows) {
		return Standing{}, fmt.Errorf("find job %s in the inbox and in the archive: %w", id, ErrNotFound)
	}
	if err != nil {
		return Standing{}, fmt.Errorf("find job %s: %w", id, explain(err))
	}
	return Standing{
		ID: row.ID.Bytes, Seq: row.Seq, Queue: row.Queue, Kind: row.Kind, PartitionKey: row.PartitionKey,
		Bucket: int(row.PartitionBucket), Ordered: row.Ordered, Status: row.Status,
		Attempts: int(row.Attempts), MaxAttempts: int(row.MaxAttempts), Generation: row.LeaseGeneration,
		ClaimedBy: row.ClaimedBy, LeaseExpiresAt: row.LeaseExpiresAt, AvailableAt: row.AvailableAt,
		FinishedAt: row.FinishedAt, FinishedBy: row.FinishedBy, LastError: row.LastError, Archived: row.Archived,
		DueIn: row.DueIn, ClaimedFor: row.ClaimedFor, LeaseLeft: row.LeaseLeft, QueuePaused: row.Paused,
	}, nil
}

// Lane is what is in the way of a job of an ordered queue: the other jobs of its key.
type Lane struct {
	Head    *JobID // The first that is pending; nil for none.
	Claimed *JobID // The one that is being processed; nil for none.
	Before  int    // How many pending ones come before the job, at most JobsCounted.
}

// FindLane returns the lane of an ordered job.
func FindLane(ctx context.Context, db DBTX, job Standing) (Lane, error) {
	row, err := gen.New().GetLane(ctx, db, gen.GetLaneParams{
		Queue: job.Queue, PartitionBucket: int32(job.Bucket), PartitionKey: job.PartitionKey, Seq: job.Seq, Most: JobsCounted,
	})
	if err != nil {
		return Lane{}, fmt.Errorf("find the lane of job %s: %w", job.ID, explain(err))
	}
	lane := Lane{Before: int(row.Before)}
	if row.HeadID.Valid {
		lane.Head = new(JobID(row.HeadID.Bytes))
	}
	if row.ClaimedID.Valid {
		lane.Claimed = new(JobID(row.ClaimedID.Bytes))
	}
	return lane, nil
}

// JobsBefore counts the due jobs that are claimed before one that is not ordered, because they
// are in its bucket and were due earlier, at most JobsCounted.
func JobsBefore(ctx context.Context, db DBTX, job Standing) (int, error) {
	count, err := gen.New().CountJobsBefore(ctx, db, gen.CountJobsBeforeParams{
		Queue: job.Queue, PartitionBucket: int32(job.Bucket), AvailableAt: job.AvailableAt, Seq: job.Seq, Most: JobsCounted,
	})
	if err != nil {
		return 0, fmt.Errorf("count the jobs before job %s: %w", job.ID, explain(err))
	}
	return int(count), nil
}
