package domain

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/holdfast-pg/holdfast/gen"
)

// Server is what a server is, and who it takes the caller for.
type Server = gen.GetServerRow

// ReadServer asks the server for itself. It needs no schema.
func ReadServer(ctx context.Context, db DBTX) (Server, error) {
	server, err := gen.New().GetServer(ctx, db)
	if err != nil {
		return Server{}, fmt.Errorf("ask the server for itself: %w", err)
	}
	return server, nil
}

// Setting is a setting of the server, as it stands for the session that asks.
type Setting = gen.ListSettingsRow

// Settings reads settings of the server by name. One that this version does not know is left
// out. It needs no schema.
func Settings(ctx context.Context, db DBTX, names ...string) (map[string]Setting, error) {
	rows, err := gen.New().ListSettings(ctx, db, names)
	if err != nil {
		return nil, fmt.Errorf("read the server's settings: %w", err)
	}
	settings := make(map[string]Setting, len(rows))
	for _, row := range rows {
		settings[row.Name] = row
	}
	return settings, nil
}

// HorizonHolder keeps vacuum from removing dead rows: a session, a prepared transaction, a slot
// or a standby.
type HorizonHolder = gen.ListHorizonHoldersRow

// HorizonHolders lists what holds vacuum back, oldest first, at most limit: transactions that
// are older than the age, and slots and standbys that lie more than so many transactions back.
// It needs no schema.
func HorizonHolders(ctx context.Context, db DBTX, age time.Duration, transactions, limit int) ([]HorizonHolder, error) {
	rows, err := gen.New().ListHorizonHolders(ctx, db, gen.ListHorizonHoldersParams{Age: age, Transactions: int32(transactions), MaxRows: int32(limit)})
	if err != nil {
		return nil, fmt.Errorf("list what holds vacuum back: %w", err)
	}
	return rows, nil
}

// InboxCondition is what the server has counted of the inbox. All of it are estimates.
type InboxCondition struct {
	LiveRows, DeadRows int64
	Bytes              int64         // Size of the table, without its indexes.
	RowBytes           int64         // Mean width of a row; 0 without statistics.
	SinceVacuum        time.Duration // Negative: it was never vacuumed.
	AutovacuumDisabled bool          // By a setting of the table.
}

// ReadInboxCondition reads what the server has counted of the inbox.
func ReadInboxCondition(ctx context.Context, db DBTX) (InboxCondition, error) {
	row, err := gen.New().GetInboxCondition(ctx, db)
	if err != nil {
		return InboxCondition{}, fmt.Errorf("read the condition of the inbox: %w", explain(err))
	}
	return InboxCondition{
		LiveRows: row.LiveRows, DeadRows: row.DeadRows, Bytes: row.Bytes, RowBytes: row.RowBytes,
		SinceVacuum:        time.Duration(row.SecondsSinceVacuum * float64(time.Second)),
		AutovacuumDisabled: row.AutovacuumDisabled,
	}, nil
}

// WaitingQueue is a queue that no live worker serves, with a job that is due.
type WaitingQueue struct {
	Queue string
	Job   JobID
	Age   time.Duration // How long the job has been due. It need not be the oldest.
}

// UnservedQueues lists the queues that are not paused, have due jobs, and have no live worker.
// It looks at no more than limit queues without a worker.
func UnservedQueues(ctx context.Context, db DBTX, limit int) ([]WaitingQueue, error) {
	names, err := gen.New().ListUnservedQueues(ctx, db, int32(limit))
	if err != nil {
		return nil, fmt.Errorf("list the queues without a worker: %w", explain(err))
	}
	var waiting []WaitingQueue
	for _, name := range names {
		job, err := gen.New().FindDueJob(ctx, db, name)
		if errors.Is(err, pgx.ErrNoRows) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("find a due job of queue %q: %w", name, explain(err))
		}
		waiting = append(waiting, WaitingQueue{Queue: name, Job: job.ID.Bytes, Age: job.Age})
	}
	return waiting, nil
}

// OrphanBucket is a bucket that no ring has, with pending jobs of a queue.
type OrphanBucket = gen.ListOrphanBucketsRow

// OrphanBuckets lists, for each queue that has some, the lowest bucket with pending jobs that
// is not below the bucket count; at most limit queues.
func OrphanBuckets(ctx context.Context, db DBTX, limit int) ([]OrphanBucket, error) {
	rows, err := gen.New().ListOrphanBuckets(ctx, db, int32(limit))
	if err != nil {
		return nil, fmt.Errorf("list the buckets without an owner: %w", explain(err))
	}
	return rows, nil
}

// OverdueLeases counts claims whose lease ended long ago, and tells how long ago the first did.
type OverdueLeases = gen.CountOverdueLeasesRow

// CountOverdueLeases counts, among the 4,000 oldest claims, those whose lease ended longer ago
// than overdue.
func CountOverdueLeases(ctx context.Context, db DBTX, overdue time.Duration) (OverdueLeases, error) {
	row, err := gen.New().CountOverdueLeases(ctx, db, overdue)
	if err != nil {
		return OverdueLeases{}, fmt.Errorf("count the leases that nobody reclaims: %w", explain(err))
	}
	return row, nil
}

// OverdueCompletions counts completed jobs that should have left the inbox, and tells how late
// the oldest one is.
type OverdueCompletions = gen.CountOverdueCompletionsRow

// CountOverdueCompletions counts, among the 1,000 oldest completed jobs of the inbox, those
// that should have left it longer ago than overdue.
func CountOverdueCompletions(ctx context.Context, db DBTX, overdue time.Duration) (OverdueCompletions, error) {
	row, err := gen.New().CountOverdueCompletions(ctx, db, overdue)
	if err != nil {
		return OverdueCompletions{}, fmt.Errorf("count the completed jobs that nobody archives: %w", explain(err))
	}
	return row, nil
}

// DeadKeysBound is how many jobs with a key CountDeadKeys looks at.
const DeadKeysBound = 500

// DeadKeys counts the dead jobs of a queue that hold their idempotency key.
type DeadKeys = gen.CountDeadKeysRow

// CountDeadKeys counts by queue the dead jobs that hold their idempotency key, among the first
// DeadKeysBound that have one; at most limit queues.
func CountDeadKeys(ctx context.Context, db DBTX, limit int) ([]DeadKeys, error) {
	rows, err := gen.New().CountDeadKeys(ctx, db, int32(limit))
	if err != nil {
		return nil, fmt.Errorf("count the keys of dead jobs: %w", explain(err))
	}
	return rows, nil
}

// LiveWorker is a worker that is alive, and how long ago it was last seen.
type LiveWorker = gen.FindLiveWorkerRow

// FindLiveWorker returns a worker that is alive, has the id and runs on the host; "" stands for
// any. ErrWorkerUnknown: there is none.
func FindLiveWorker(ctx context.Context, db DBTX, id, host string) (LiveWorker, error) {
	worker, err := gen.New().FindLiveWorker(ctx, db, gen.FindLiveWorkerParams{ID: id, Host: host})
	if errors.Is(err, pgx.ErrNoRows) {
		return LiveWorker{}, fmt.Errorf("find a live worker: %w", ErrWorkerUnknown)
	}
	if err != nil {
		return LiveWorker{}, fmt.Errorf("find a live worker: %w", explain(err))
	}
	return worker, nil
}

// Hears tells whether notifications reach a listener that connects as a worker of the pool
// does: on the direct URL, or as the pool does if that is empty.
func Hears(ctx context.Context, queue *Queue) (bool, error) {
	listening, heard := context.WithCancel(ctx)
	defer heard()
	arrived := false
	err := queue.Listen(listening, func() { arrived = true; heard() }, func(Ring) {})
	switch {
	case arrived:
		return true, nil
	case errors.Is(err, ErrNoNotifications):
		return false, nil
	default:
		return false, err
	}
}
