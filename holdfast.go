// Package holdfast is durable work in the Postgres you already have: a job is enqueued in
// your own transaction, claimed under a lease, fenced by a token that only grows, and
// settled once by whoever holds it.
//
// A producer calls Enqueue. A consumer makes a Worker of its handlers and calls Run. The
// schema is made by the command "holdfast migrate up". What is promised, and what is not,
// stands in docs/guarantees.md.
package holdfast

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/holdfast-pg/holdfast/domain"
	"github.com/holdfast-pg/holdfast/worker"
)

// What producers use. Each is documented where it is defined.
type (
	// Args is a payload that names the kind of its job.
	Args = domain.Args
	// RawArgs is a payload that is JSON already.
	RawArgs = domain.RawArgs
	// DBTX is a *pgxpool.Pool, a *pgx.Conn or a pgx.Tx; FromSQL makes one of a *sql.Tx.
	DBTX = domain.DBTX
	// SQLTX is a *sql.Tx, or a transaction of a library on top of database/sql.
	SQLTX = domain.SQLTX
	// EnqueueOption says how a job is enqueued.
	EnqueueOption = domain.EnqueueOption
	// EnqueueResult tells what an enqueue did.
	EnqueueResult = domain.EnqueueResult
	// NewJob is one job of a set.
	NewJob = domain.NewJob
	// Shards are the partition keys into which a hot one was split.
	Shards = domain.Shards
	// JobID identifies a job.
	JobID = domain.JobID
	// Status is where a job is in its life.
	Status = domain.Status
)

// What handlers and workers use.
type (
	// Job is a claimed job with its payload decoded.
	Job[T any] = domain.Job[T]
	// Handler runs the jobs of one kind.
	Handler = worker.Handler
	// Config says how a worker works; its zero value is the documented default.
	Config = worker.Config
	// Affinity says which jobs are a worker's to claim.
	Affinity = worker.Affinity
	// Observer is told what a worker does.
	Observer = worker.Observer
	// Health is how a worker is doing.
	Health = worker.Health
	// Worker claims jobs and runs their handlers.
	Worker = worker.Worker
	// InvalidError says which argument was refused and why.
	InvalidError = domain.InvalidError
	// SchemaError says that the schema and this program do not go together.
	SchemaError = domain.SchemaError
)

// What queues are made of.
type (
	// QueueSettings are what all jobs of a queue share.
	QueueSettings = domain.QueueSettings
	// QueueChange says which settings of a queue to change, and to what.
	QueueChange = domain.QueueChange
	// RetentionMode is what a completion does with the job.
	RetentionMode = domain.RetentionMode
)

// The retention modes of a queue.
const (
	RetentionArchive = domain.RetentionArchive
	RetentionKeep    = domain.RetentionKeep
	RetentionDrop    = domain.RetentionDrop
)

// The errors that callers tell apart, with errors.Is.
var (
	ErrLeaseLost    = domain.ErrLeaseLost
	ErrFenced       = domain.ErrFenced
	ErrStopping     = domain.ErrStopping
	ErrUnknownQueue = domain.ErrUnknownQueue
	ErrNotMigrated  = domain.ErrNotMigrated
	ErrStandby      = domain.ErrStandby
	ErrReadOnly     = domain.ErrReadOnly
)

// Enqueue adds a job in the caller's transaction: it exists if and only if that commits.
func Enqueue(ctx context.Context, db DBTX, args Args, options ...EnqueueOption) (EnqueueResult, error) {
	return domain.Enqueue(ctx, db, args, options...)
}

// EnqueueMany adds a set of jobs in one statement, in the caller's transaction.
func EnqueueMany(ctx context.Context, db DBTX, jobs ...NewJob) ([]EnqueueResult, error) {
	return domain.EnqueueMany(ctx, db, jobs...)
}

// FromSQL lets Enqueue and the other functions that take a DBTX run in a transaction of database/sql, or of a library on top of
// it such as sqlx, GORM, ent or bun. Its driver must be pgx's, github.com/jackc/pgx/v5/stdlib.
func FromSQL(tx SQLTX) DBTX { return domain.FromSQL(tx) }

// OnQueue names the queue; default: "default".
func OnQueue(name string) EnqueueOption { return domain.OnQueue(name) }

// Key names what the job belongs to, such as order:9182.
func Key(partitionKey string) EnqueueOption { return domain.Key(partitionKey) }

// Shard splits a hot partition key into n keys; jobs of different shards have no order.
func Shard(key string, n int) *Shards { return domain.Shard(key, n) }

// Once makes every enqueue under the idempotency key the same job, for the dedupe window.
func Once(idempotencyKey string) EnqueueOption { return domain.Once(idempotencyKey) }

// At holds the job back until the time given.
func At(t time.Time) EnqueueOption { return domain.At(t) }

// In holds the job back for the duration given.
func In(d time.Duration) EnqueueOption { return domain.In(d) }

// NoRing enqueues without waking a worker, for two-phase commit.
func NoRing() EnqueueOption { return domain.NoRing() }

// MaxAttempts says how many attempts the job has; default: the queue's.
func MaxAttempts(n int) EnqueueOption { return domain.MaxAttempts(n) }

// Headers adds facts that travel beside the payload.
func Headers(headers map[string]string) EnqueueOption { return domain.Headers(headers) }

// Which jobs are a worker's to claim.
const (
	AffinityRing = worker.AffinityRing
	AffinityNone = worker.AffinityNone
)

// SetQueue changes settings of a queue, which is created if it does not exist.
func SetQueue(ctx context.Context, db DBTX, name string, change QueueChange) (QueueSettings, error) {
	return domain.SetQueue(ctx, db, name, change)
}

// PauseQueue stops claims from a queue; what is claimed runs on.
func PauseQueue(ctx context.Context, db DBTX, name string) error {
	return domain.PauseQueue(ctx, db, name)
}

// ResumeQueue lets a queue's jobs be claimed again.
func ResumeQueue(ctx context.Context, db DBTX, name string) error {
	return domain.ResumeQueue(ctx, db, name)
}

// Handle returns the handler of the kind that T names.
func Handle[T Args](run func(ctx context.Context, job Job[T]) error) Handler {
	return worker.Handle(run)
}

// HandleTx returns the handler of the kind that T names, which runs in a transaction of the
// pool that also completes the job: what the function writes and the completion are
// committed together or not at all. The claim is locked first, so a lost one is told as
// ErrLeaseLost before the function runs, and none is lost while it does. The transaction has
// the pool's isolation level. nil commits; any error rolls back and settles the job as with
// Handle. The function must not end the transaction. Keep it short, database work only: the
// lease is not renewed while it runs, and when its context ends (a tenth of the lease before
// the lease does, unless Config.LeaseMargin says otherwise) its transaction is taken away.
func HandleTx[T Args](pool *pgxpool.Pool, run func(ctx context.Context, tx pgx.Tx, job Job[T]) error) Handler {
	var zero T
	return worker.HandleSettling(zero.Kind(), domain.HandleTx(pool, func(ctx context.Context, tx pgx.Tx, claimed domain.ClaimedJob) error {
		job, err := domain.DecodeJob[T](claimed)
		if err != nil {
			return err
		}
		return run(ctx, tx, job)
	}))
}

// HandleProjection returns the handler of the kind that T names, which applies each job to a
// projection once: what the function writes, the mark of the job's number and the completion are
// committed together or not at all, as with HandleTx. A job that the projection has applied
// before is completed without it. On an ordered queue the jobs of a key are applied in order.
func HandleProjection[T Args](pool *pgxpool.Pool, projection string, apply func(ctx context.Context, tx pgx.Tx, job Job[T]) error) Handler {
	return HandleTx(pool, func(ctx context.Context, tx pgx.Tx, job Job[T]) error {
		first, err := domain.MarkApplied(ctx, tx, projection, job.Seq, job.ID)
		if err != nil || !first {
			return err
		}
		return apply(ctx, tx, job)
	})
}

// ProjectionPosition returns the highest job number that a projection has applied; 0 for none.
func ProjectionPosition(ctx context.Context, db DBTX, projection string) (seq int64, err error) {
	return domain.ProjectionPosition(ctx, db, projection)
}

// RetryIn returns an error with which a handler asks for the next attempt after the delay.
func RetryIn(delay time.Duration, err error) error { return domain.RetryIn(delay, err) }

// Fail returns an error with which a handler says that no attempt can ever succeed.
func Fail(err error) error { return domain.FailWith(err) }

// Snooze returns an error with which a handler puts the job off without spending the attempt.
func Snooze(delay time.Duration) error { return domain.Snooze(delay) }

// MarkHandled records, in the handler's own transaction, that the named effect of a job is
// done, and tells whether this is the first time.
func MarkHandled[T any](ctx context.Context, tx DBTX, job Job[T], name string) (first bool, err error) {
	return domain.MarkHandled(ctx, tx, job.ID, name)
}

// Guard admits the job's fence token to a resource, or returns ErrFenced.
func Guard[T any](ctx context.Context, tx DBTX, resource string, job Job[T]) error {
	return domain.Guard(ctx, tx, resource, job.Claim)
}

// minPool is how many connections the handlers' pool has at least. A handler that holds a
// transaction on the only one, and asks for another, would wait for itself.
const minPool = 2

// NewWorker returns a worker of the handlers. It opens connections of its own, made after the
// pool's settings, as many as Config.Connections says (6) and one to listen on, so that busy
// handlers cannot starve its renewals; the pool itself stays the handlers'. Call Run.
// Errors: a Config that does not validate, a pool of one connection, a DirectURL that cannot
// be read, no handler, two handlers of one kind.
func NewWorker(pool *pgxpool.Pool, config Config, handlers ...Handler) (*Worker, error) {
	if err := config.Validate(); err != nil {
		return nil, err
	}
	if most := pool.Config().MaxConns; most < minPool {
		return nil, &InvalidError{Field: "pool_max_conns", Reason: fmt.Sprintf(
			"is %d, %d at least: a handler that holds a transaction and asks the pool for another connection would wait for itself", most, minPool)}
	}
	queue, err := domain.NewQueue(pool, domain.Connections(config.Connections), domain.ListenOn(config.DirectURL))
	if err != nil {
		return nil, err
	}
	created, err := worker.New(queue, config, handlers...)
	if err != nil {
		queue.Close()
		return nil, err
	}
	return created, nil
}
