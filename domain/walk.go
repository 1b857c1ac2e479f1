package domain

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/holdfast-pg/holdfast/gen"
)

// DeadFilter says which failed and dead-lettered jobs are meant; its zero value means all.
type DeadFilter struct {
	Queue string // Of this queue. Default: of any.
	Kind  string // Of this kind. Default: of any.
	Key   string // Of this partition key. Default: of any.
	Error string // With these words in the last error. Default: with any.

	// OlderThan says that they were finished so long ago, or longer. Default: 0.
	OlderThan time.Duration
}

// The sizes of a walk.
const (
	// scanBatch is how many dead jobs one statement looks at: each is a row of a page of its own.
	scanBatch = 2000

	// MaxWalkBatch is how many jobs one statement of a walk changes at most.
	MaxWalkBatch = 1000
)

// Walk says how to go through what a filter finds.
type Walk struct {
	// Until leaves out jobs that were finished after this time, such as those that fail again
	// while the walk goes on. Default: when it begins, by the database's clock.
	Until time.Time

	// Batch is how many jobs are changed at once, 1,000 at most. Default: 1,000.
	Batch int

	// Progress is called before the first batch and after each. An error of it ends the walk, and
	// is returned.
	Progress func(Progress) error
}

// Progress is how far a walk has come.
type Progress struct {
	Done int `json:"done"` // Jobs that were changed.
	Seen int `json:"seen"` // Jobs that it came to: somebody else may have changed some before.
	Of   int `json:"of"`   // Jobs that it found at its beginning.
}

// RedriveDead redrives what a filter finds, in batches and by seq, so that the jobs of a key
// become due in the order of their enqueues. They get maxAttempts; 0 leaves each job its own.
// The jobs are found before the first is redriven: the walk ends although they may fail again
// meanwhile. When ctx ends it stops between two batches, with ctx's error and the exact number
// done; what is done is done, and calling it again does the rest.
func (by By) RedriveDead(ctx context.Context, db DBTX, filter DeadFilter, maxAttempts int, walk Walk) (Progress, error) {
	return by.walkDead(ctx, db, filter, walk, func(ctx context.Context, batch []JobID) ([]JobID, error) {
		return by.Redrive(ctx, db, maxAttempts, batch...)
	})
}

// PurgeDead purges what a filter finds, in the same way.
func (by By) PurgeDead(ctx context.Context, db DBTX, filter DeadFilter, walk Walk) (Progress, error) {
	return by.walkDead(ctx, db, filter, walk, func(ctx context.Context, batch []JobID) ([]JobID, error) {
		return by.Purge(ctx, db, batch...)
	})
}

func (by By) walkDead(ctx context.Context, db DBTX, filter DeadFilter, walk Walk, change func(context.Context, []JobID) ([]JobID, error)) (done Progress, err error) {
	if _, err := by.Check(); err != nil {
		return done, err
	}
	if walk.Batch == 0 {
		walk.Batch = MaxWalkBatch
	}
	if walk.Batch < 1 || walk.Batch > MaxWalkBatch {
		return done, &InvalidError{Field: "batch", Reason: fmt.Sprintf("%d is not between 1 and %d", walk.Batch, MaxWalkBatch)}
	}
	found, err := findDead(ctx, db, filter, walk.Until)
	if err != nil {
		return done, err
	}
	done.Of = len(found)
	if err := walk.tell(ctx, done); err != nil {
		return done, err
	}
	for batch := range slices.Chunk(found, walk.Batch) {
		changed, err := changeBatch(ctx, batch, change)
		if err != nil {
			return done, err
		}
		done.Done += len(changed)
		done.Seen += len(batch)
		if err := walk.tell(ctx, done); err != nil {
			return done, err
		}
	}
	return done, nil
}

// tell tells how far the walk has come, and whether to end it.
func (w Walk) tell(ctx context.Context, done Progress) error {
	if w.Progress != nil {
		if err := w.Progress(done); err != nil {
			return err
		}
	}
	if done.Seen == done.Of {
		return nil // It has ended by itself.
	}
	return ctx.Err()
}

// batchTimeout is how long a batch may take.
const batchTimeout = 30 * time.Second

// changeBatch runs a batch to its end, although the walk may be over: otherwise nobody could
// tell whether it was done.
func changeBatch(ctx context.Context, batch []JobID, change func(context.Context, []JobID) ([]JobID, error)) ([]JobID, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), batchTimeout)
	defer cancel()
	return change(ctx, batch)
}

// findDead returns what a filter finds, by seq. It keeps 24 bytes a job.
func findDead(ctx context.Context, db DBTX, filter DeadFilter, until time.Time) ([]JobID, error) {
	type place struct {
		seq int64
		id  JobID
	}
	var places []place
	_, err := collectDead(ctx, db, filter, until, func(job Operand) bool {
		places = append(places, place{job.Seq, job.ID})
		return true
	})
	if err != nil {
		return nil, err
	}
	slices.SortFunc(places, func(a, b place) int { return cmp.Compare(a.seq, b.seq) })
	ids := make([]JobID, len(places))
	for i, place := range places {
		ids[i] = place.id
	}
	return ids, nil
}

// collectDead visits what a filter finds, by queue, kind and time, until visit says that it is
// enough. It returns the time after which it looked at nothing: zero when there was nothing.
func collectDead(ctx context.Context, db DBTX, filter DeadFilter, until time.Time, visit func(Operand) bool) (time.Time, error) {
	after := gen.NextDeadKindParams{AfterQueue: filter.Queue, OlderThan: filter.OlderThan}
	for {
		next, err := gen.New().NextDeadKind(ctx, planned(db), after)
		if errors.Is(err, pgx.ErrNoRows) || err == nil && filter.Queue != "" && next.Queue != filter.Queue {
			return until, nil
		}
		if err != nil {
			return until, fmt.Errorf("look for dead jobs: %w", explain(err))
		}
		after.AfterQueue, after.AfterKind = next.Queue, next.Kind
		if until.IsZero() {
			until = next.Until
		}
		if filter.Kind != "" && next.Kind != filter.Kind {
			continue
		}
		if more, err := collectKind(ctx, db, filter, next.Queue, next.Kind, until, visit); err != nil || !more {
			return until, err
		}
	}
}

// collectKind visits the dead jobs of one queue and kind, and tells whether to go on.
func collectKind(ctx context.Context, db DBTX, filter DeadFilter, queue, kind string, until time.Time, visit func(Operand) bool) (more bool, err error) {
	params := gen.CollectDeadJobsParams{
		Queue: queue, Kind: kind, PartitionKey: filter.Key, Error: filter.Error, Until: until, Batch: scanBatch, AfterID: JobID{}.uuid(),
	}
	for {
		rows, err := gen.New().CollectDeadJobs(ctx, planned(db), params)
		if err != nil {
			return false, fmt.Errorf("look for dead jobs: %w", explain(err))
		}
		if len(rows) == 0 {
			return true, nil
		}
		for _, row := range rows {
			if !row.Fits {
				continue
			}
			enough := !visit(Operand{
				ID: row.ID.Bytes, Seq: row.Seq, Queue: queue, Kind: kind, PartitionKey: row.PartitionKey, Ordered: row.Ordered, Status: row.Status,
			})
			if enough {
				return false, nil
			}
		}
		last := rows[len(rows)-1]
		params.AfterFinishedAt, params.AfterID = last.FinishedAt, last.ID
	}
}
