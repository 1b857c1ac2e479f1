package domain

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/holdfast-pg/holdfast/gen"
)

// HouseRules say what housekeeping considers old.
type HouseRules struct {
	WorkerTTL      time.Duration // A worker not seen for so long is dead.
	DeadWorkersFor time.Duration // Dead workers are forgotten after so long.
	MarksFor       time.Duration // Handled marks are forgotten after so long, once their job has left the inbox.
	FencesFor      time.Duration // Fenced resources are forgotten when unused for so long.
	EventsFor      time.Duration // Events are forgotten after so long.
	ArchiveAhead   int           // Archive days that exist ahead of today.
}

// HouseReport counts what housekeeping did.
type HouseReport struct {
	WorkersDied      []string // Ids of workers that were marked dead.
	WorkersForgotten int64
	BellsDisarmed    int64
	JobsArchived     int64
	KeysExpired      int64
	MarksExpired     int64
	FencesExpired    int64
	EventsExpired    int64
	DaysCreated      int64
	DaysDropped      int64
}

// KeepHouse does everything that must be done from time to time but reclaiming: marks stale
// workers dead, archives completed jobs that were kept, expires idempotency keys, marks,
// fences and events, makes coming archive days and drops old ones. Every statement is bounded, and it
// is harmless when two run at once. The first error ends it; the next cycle goes on.
func (q *Queue) KeepHouse(ctx context.Context, rules HouseRules) (HouseReport, error) {
	var report HouseReport
	err := q.keepWorkers(ctx, rules, &report)
	if err == nil {
		err = q.keepArchive(ctx, rules, &report)
	}
	if err == nil {
		err = q.expire(ctx, rules, &report)
	}
	if err != nil {
		return report, fmt.Errorf("keep house: %w", NameRole(q.pool, explain(err)))
	}
	return report, nil
}

func (q *Queue) keepWorkers(ctx context.Context, rules HouseRules, report *HouseReport) (err error) {
	report.WorkersDied, err = q.queries.MarkStaleWorkersDead(ctx, q.plannedWork, gen.MarkStaleWorkersDeadParams{
		TTL: rules.WorkerTTL, Batch: housekeepingBatch,
	})
	if err != nil {
		return err
	}
	report.WorkersForgotten, err = q.queries.DeleteDeadWorkers(ctx, q.plannedWork, gen.DeleteDeadWorkersParams{
		Age: rules.DeadWorkersFor, Batch: housekeepingBatch,
	})
	if err != nil {
		return err
	}
	report.BellsDisarmed, err = inBatches(func() (int64, error) {
		return q.queries.DisarmDeadWorkers(ctx, q.plannedWork, housekeepingBatch)
	})
	return err
}

func (q *Queue) keepArchive(ctx context.Context, rules HouseRules, report *HouseReport) error {
	created, err := q.queries.CreateArchiveDays(ctx, q.work, int32(rules.ArchiveAhead))
	report.DaysCreated = int64(created)
	if err != nil {
		return err
	}
	dropped, err := q.queries.DropArchiveDays(ctx, q.work)
	report.DaysDropped = int64(dropped)
	if err != nil {
		return err
	}
	report.JobsArchived, err = inBatches(func() (int64, error) {
		moved, err := q.queries.ArchiveCompletedJobs(ctx, q.plannedWork, housekeepingBatch)
		if dayWasMade(err) {
			moved, err = q.queries.ArchiveCompletedJobs(ctx, q.plannedWork, housekeepingBatch)
		}
		return int64(len(moved)), err
	})
	return err
}

// dayWasMade tells whether a statement failed because its rows were on their way to the
// default partition while their day got one of its own. Repeated, it finds that. It happens
// where no worker has kept house for a fortnight; a settlement is repeated by its worker.
func dayWasMade(err error) bool {
	var pgErr *pgconn.PgError
	return errors.As(err, &pgErr) && pgErr.Code == checkViolation && pgErr.TableName == "inbox_archive_default"
}

func (q *Queue) expire(ctx context.Context, rules HouseRules, report *HouseReport) (err error) {
	report.KeysExpired, err = inBatches(func() (int64, error) {
		return q.queries.DeleteExpiredKeys(ctx, q.plannedWork, housekeepingBatch)
	})
	if err != nil {
		return err
	}
	report.MarksExpired, err = inBatches(func() (int64, error) {
		return q.queries.DeleteOldMarks(ctx, q.plannedWork, gen.DeleteOldMarksParams{Age: rules.MarksFor, Batch: housekeepingBatch})
	})
	if err != nil {
		return err
	}
	report.FencesExpired, err = inBatches(func() (int64, error) {
		return q.queries.DeleteUnusedFences(ctx, q.plannedWork, gen.DeleteUnusedFencesParams{Age: rules.FencesFor, Batch: housekeepingBatch})
	})
	if err != nil {
		return err
	}
	report.EventsExpired, err = inBatches(func() (int64, error) {
		return q.queries.DeleteOldEvents(ctx, q.plannedWork, gen.DeleteOldEventsParams{Age: rules.EventsFor, Batch: housekeepingBatch})
	})
	return err
}

// inBatches repeats a bounded statement until a batch comes back short, and adds up.
func inBatches(statement func() (int64, error)) (total int64, err error) {
	for {
		touched, err := statement()
		total += touched
		if err != nil || touched < housekeepingBatch {
			return total, err
		}
	}
}
