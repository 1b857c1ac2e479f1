package domain

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/holdfast-pg/holdfast/gen"
)

// QueueSettings are what all jobs of a queue share. No program keeps them: an enqueue, a
// claim and housekeeping each read what they need, so a change holds for running workers too.
type QueueSettings struct {
	// Name is what producers enqueue to and workers serve, 1 to 200 characters.
	Name string

	// Ordered says that the jobs of one key run one at a time, in the order of their
	// enqueues. It is stamped on each job, and fixed while the queue has jobs. Default: false.
	Ordered bool

	// Paused says that no job is claimed; what is claimed runs on. PauseQueue and
	// ResumeQueue set it. Default: false.
	Paused bool

	// MaxAttempts is how many attempts a job gets unless its enqueue says otherwise, 1 to
	// 1,000,000. Jobs that are enqueued already keep theirs. Default: 5.
	MaxAttempts int

	// RetentionMode says what a completion does with the job: move it to the archive, keep
	// it in the inbox for KeepFor, or drop it. Each claim reads it. Default: archive.
	RetentionMode RetentionMode

	// KeepFor is how long a completed job stays in the inbox in mode keep before housekeeping
	// archives it; at most Retention. Default: 24 hours.
	KeepFor time.Duration

	// Retention is how long a completed job can be found at least. Days of the archive are
	// dropped when the longest retention of any queue has passed. Default: 7 days.
	Retention time.Duration

	// DedupeWindow is how long an idempotency key stays taken, counted from the later of the
	// enqueue and the time that the job may first run. Keys that are taken already keep
	// theirs. Default: 7 days.
	DedupeWindow time.Duration

	// Ring says that an enqueue may wake a worker by NOTIFY. Its commit then takes a lock
	// that all notifying commits share, and cannot be prepared for two-phase commit; without
	// it workers find the job by polling. Default: true.
	Ring bool
}

// DefaultQueueSettings are those of a queue that came to be by its first enqueue.
func DefaultQueueSettings(name string) QueueSettings {
	return QueueSettings{
		Name:          name,
		MaxAttempts:   5,
		RetentionMode: RetentionArchive,
		KeepFor:       24 * time.Hour,
		Retention:     7 * 24 * time.Hour,
		DedupeWindow:  7 * 24 * time.Hour,
		Ring:          true,
	}
}

// QueueChange says which settings of a queue to change, and to what; nil leaves one as it
// is. The fields are those of QueueSettings. In a literal, new gives the values:
//
//	QueueChange{Ordered: new(true), KeepFor: new(time.Hour)}
//
// It is a struct of pointers and not a list of options, because it can be filled from a file
// as it is, and because MaxAttempts is an option of Enqueue already.
type QueueChange struct {
	Ordered       *bool
	MaxAttempts   *int
	RetentionMode *RetentionMode
	KeepFor       *time.Duration
	Retention     *time.Duration
	DedupeWindow  *time.Duration
	Ring          *bool
}

// Apply returns the settings with the change. InvalidError: they would be out of bounds.
// Whether a queue may still become ordered is not known here: SetQueue decides it.
func (c QueueChange) Apply(settings QueueSettings) (QueueSettings, error) {
	set(&settings.Ordered, c.Ordered)
	set(&settings.MaxAttempts, c.MaxAttempts)
	set(&settings.RetentionMode, c.RetentionMode)
	set(&settings.KeepFor, c.KeepFor)
	set(&settings.Retention, c.Retention)
	set(&settings.DedupeWindow, c.DedupeWindow)
	set(&settings.Ring, c.Ring)
	return settings, settings.check()
}

func set[T any](setting *T, change *T) {
	if change != nil {
		*setting = *change
	}
}

// check states the limits of the schema in words.
func (s QueueSettings) check() error {
	if err := checkName("queue", s.Name); err != nil {
		return err
	}
	switch {
	case s.MaxAttempts < 1 || s.MaxAttempts > maxAttemptsLimit:
		return &InvalidError{Field: "max attempts", Reason: fmt.Sprintf("%d is not between 1 and %d", s.MaxAttempts, maxAttemptsLimit)}
	case !s.RetentionMode.Valid():
		return &InvalidError{Field: "retention mode", Reason: fmt.Sprintf("%q is none of %s, %s, %s", s.RetentionMode, RetentionArchive, RetentionKeep, RetentionDrop)}
	case s.Retention < 0:
		return &InvalidError{Field: "retention", Reason: fmt.Sprintf("%s is negative", s.Retention)}
	case s.KeepFor < 0:
		return &InvalidError{Field: "keep for", Reason: fmt.Sprintf("%s is negative", s.KeepFor)}
	case s.KeepFor > s.Retention:
		return &InvalidError{Field: "keep for", Reason: fmt.Sprintf("%s is longer than the retention of %s", s.KeepFor, s.Retention)}
	case s.DedupeWindow < time.Microsecond: // The shortest that Postgres knows.
		return &InvalidError{Field: "dedupe window", Reason: fmt.Sprintf("%s is not positive", s.DedupeWindow)}
	}
	return nil
}

// SetQueue changes the settings of a queue that are given, creates the queue with the others
// at their defaults if it does not exist, and returns all of them as they stand then. db is a
// pgx.Tx, a *pgx.Conn or a *pgxpool.Pool.
//
// Ordered is fixed while the queue has jobs that may run again: pending, claimed, failed or
// dead-lettered ones. A change of it is then refused with an InvalidError, and so are the
// others that came with it: drain the queue first, or use another one. A job whose enqueue is
// under way meanwhile keeps the stamp of the time it began, and is still worked off, beside
// the others.
//
// Of two callers at once the second waits for the first and changes what it left; each
// setting is that of the last caller who gave it.
//
// Errors: InvalidError for a setting out of bounds, ErrNotMigrated; ErrUnknownQueue when
// another transaction is creating the queue and this one cannot see it: retry the transaction.
//
// The order is this program's; a person's is By.SetQueue.
func SetQueue(ctx context.Context, db DBTX, name string, change QueueChange) (QueueSettings, error) {
	return ThisProgram().SetQueue(ctx, db, name, change)
}

// SetQueue is the function SetQueue, by a person. What it changes, from what to what, is an
// event; nothing is when every setting is as it was.
func (by By) SetQueue(ctx context.Context, db DBTX, name string, change QueueChange) (QueueSettings, error) {
	by, err := by.Check()
	if err != nil {
		return QueueSettings{}, err
	}
	settings, err := by.setQueue(ctx, db, name, change)
	if err != nil {
		return QueueSettings{}, fmt.Errorf("set queue %q: %w", name, explain(err))
	}
	return settings, nil
}

func (by By) setQueue(ctx context.Context, db DBTX, name string, change QueueChange) (QueueSettings, error) {
	if err := change.check(name); err != nil {
		return QueueSettings{}, err
	}
	settings, err := by.changeQueue(ctx, db, name, change)
	// A queue that exists is not inserted on trial: with one setting given, the others at their
	// defaults could be out of bounds where its own are not.
	if !errors.Is(err, ErrUnknownQueue) {
		return settings, err
	}
	settings, err = change.Apply(DefaultQueueSettings(name))
	if err != nil {
		return settings, err
	}
	created, err := gen.New().CreateQueue(ctx, db, gen.CreateQueueParams{
		Name: name, Ordered: settings.Ordered, MaxAttempts: int32(settings.MaxAttempts), RetentionMode: settings.RetentionMode,
		KeepFor: settings.KeepFor, Retention: settings.Retention, DedupeWindow: settings.DedupeWindow, Ring: settings.Ring,
		Actor: by.Actor, Reason: by.Reason,
	})
	if err != nil || created == 1 {
		return settings, err
	}
	// Somebody else has just created it, with other settings perhaps.
	settings, err = by.changeQueue(ctx, db, name, change)
	if errors.Is(err, ErrUnknownQueue) {
		err = errUnseenQueue
	}
	return settings, err
}

// check refuses what no queue could have. A relation with a setting that stays is left to
// the database.
func (c QueueChange) check(name string) error {
	likely := DefaultQueueSettings(name)
	if c.Retention == nil && c.KeepFor != nil {
		likely.Retention = max(likely.Retention, *c.KeepFor)
	}
	if c.KeepFor == nil && c.Retention != nil {
		likely.KeepFor = max(0, min(likely.KeepFor, *c.Retention))
	}
	_, err := c.Apply(likely)
	return err
}

func (by By) changeQueue(ctx context.Context, db DBTX, name string, change QueueChange) (QueueSettings, error) {
	params := gen.SetQueueParams{
		Name: name, Ordered: change.Ordered, RetentionMode: change.RetentionMode, KeepFor: change.KeepFor,
		Retention: change.Retention, DedupeWindow: change.DedupeWindow, Ring: change.Ring,
		Actor: by.Actor, Reason: by.Reason,
	}
	if change.MaxAttempts != nil {
		params.MaxAttempts = new(int32(*change.MaxAttempts))
	}
	row, err := gen.New().SetQueue(ctx, db, params)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return QueueSettings{}, ErrUnknownQueue
	case err != nil:
		return QueueSettings{}, err
	case row.Refused:
		return QueueSettings{}, &InvalidError{Field: "ordered", Reason: orderedIsFixed}
	}
	return QueueSettings{
		Name: row.Name, Ordered: row.Ordered, Paused: row.Paused, MaxAttempts: int(row.MaxAttempts), RetentionMode: row.RetentionMode,
		KeepFor: row.KeepFor, Retention: row.Retention, DedupeWindow: row.DedupeWindow, Ring: row.Ring,
	}, nil
}

const orderedIsFixed = "the queue has jobs, pending, claimed, failed or dead, and each carries what it was at its enqueue: drain the queue first, or use another one"

// PauseQueue stops claims from a queue, from the commit on; what is claimed runs on. Pausing
// twice is fine. ErrUnknownQueue: there is no such queue. The order is this program's; a
// person's is By.PauseQueue.
func PauseQueue(ctx context.Context, db DBTX, name string) error {
	return ThisProgram().PauseQueue(ctx, db, name)
}

// ResumeQueue lets a queue's jobs be claimed again. Workers find them at their next poll.
// Resuming twice is fine. ErrUnknownQueue: there is no such queue. The order is this program's;
// a person's is By.ResumeQueue.
func ResumeQueue(ctx context.Context, db DBTX, name string) error {
	return ThisProgram().ResumeQueue(ctx, db, name)
}

// PauseQueue is the function PauseQueue, by a person.
func (by By) PauseQueue(ctx context.Context, db DBTX, name string) error {
	return by.setPaused(ctx, db, "pause", name, true)
}

// ResumeQueue is the function ResumeQueue, by a person.
func (by By) ResumeQueue(ctx context.Context, db DBTX, name string) error {
	return by.setPaused(ctx, db, "resume", name, false)
}

func (by By) setPaused(ctx context.Context, db DBTX, action, name string, paused bool) error {
	by, err := by.Check()
	if err != nil {
		return err
	}
	found, err := gen.New().PauseQueue(ctx, db, gen.PauseQueueParams{Name: name, Paused: paused, Actor: by.Actor, Reason: by.Reason})
	if err == nil && found == 0 {
		err = ErrUnknownQueue
	}
	if err != nil {
		return fmt.Errorf("%s queue %q: %w", action, name, explain(err))
	}
	return nil
}

// FindQueue returns the settings of a queue; ErrUnknownQueue when there is none.
func FindQueue(ctx context.Context, db DBTX, name string) (QueueSettings, error) {
	row, err := gen.New().GetQueue(ctx, db, name)
	if errors.Is(err, pgx.ErrNoRows) {
		err = ErrUnknownQueue
	}
	if err != nil {
		return QueueSettings{}, fmt.Errorf("find queue %q: %w", name, explain(err))
	}
	return newQueueSettings(row), nil
}

// ListQueues returns the settings of all queues in the order of their names, at most limit.
func ListQueues(ctx context.Context, db DBTX, limit int) ([]QueueSettings, error) {
	rows, err := gen.New().ListQueues(ctx, db, int32(limit))
	if err != nil {
		return nil, fmt.Errorf("list queues: %w", explain(err))
	}
	queues := make([]QueueSettings, len(rows))
	for i, row := range rows {
		queues[i] = newQueueSettings(gen.GetQueueRow(row))
	}
	return queues, nil
}

func newQueueSettings(row gen.GetQueueRow) QueueSettings {
	return QueueSettings{
		Name: row.Name, Ordered: row.Ordered, Paused: row.Paused, MaxAttempts: int(row.MaxAttempts), RetentionMode: row.RetentionMode,
		KeepFor: row.KeepFor, Retention: row.Retention, DedupeWindow: row.DedupeWindow, Ring: row.Ring,
	}
}
