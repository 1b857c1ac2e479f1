package domain

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/holdfast-pg/holdfast/gen"
)

// Args is a payload that names the kind of its job, and thereby its handler. It is sent as
// JSON, by encoding/json.
type Args interface {
	Kind() string
}

// RawArgs is a payload that is JSON already, for programs that pass jobs on.
type RawArgs struct {
	JobKind string
	Payload json.RawMessage
}

// Kind returns the kind of the job.
func (a RawArgs) Kind() string { return a.JobKind }

// MarshalJSON returns the payload as it is.
func (a RawArgs) MarshalJSON() ([]byte, error) { return a.Payload.MarshalJSON() }

// EnqueueOption says how a job is enqueued.
type EnqueueOption func(*gen.EnqueueJobParams) error

// OnQueue names the queue, 1 to 200 characters; default: "default". A queue that does not
// exist is created with the default settings, in the caller's transaction.
func OnQueue(name string) EnqueueOption {
	return func(job *gen.EnqueueJobParams) error {
		job.Queue = name
		return checkName("queue", name)
	}
}

// Key names what the job belongs to, such as order:9182, 1 to 200 characters: the unit of
// order and affinity. Default: the idempotency key, else a random key.
func Key(partitionKey string) EnqueueOption {
	return func(job *gen.EnqueueJobParams) error {
		job.PartitionKey = partitionKey
		return checkName("key", partitionKey)
	}
}

// Once makes every enqueue under the idempotency key, 1 to 200 characters, the same job of
// its queue for the queue's dedupe window (7 days by default).
func Once(idempotencyKey string) EnqueueOption {
	return func(job *gen.EnqueueJobParams) error {
		job.IdempotencyKey = idempotencyKey
		return checkName("idempotency key", idempotencyKey)
	}
}

// At holds the job back until the time given. The database's clock decides.
func At(t time.Time) EnqueueOption {
	return func(job *gen.EnqueueJobParams) error {
		job.RunAt = t
		return nil
	}
}

// In holds the job back for the duration given, from the enqueue.
func In(d time.Duration) EnqueueOption {
	return func(job *gen.EnqueueJobParams) error {
		job.Delay = d
		if d < 0 {
			return &InvalidError{Field: "delay", Reason: fmt.Sprintf("%s is negative", d)}
		}
		return nil
	}
}

// MaxAttempts says how many attempts the job has; default: the queue's (5 by default).
func MaxAttempts(n int) EnqueueOption {
	return func(job *gen.EnqueueJobParams) error {
		job.MaxAttempts = int32(n)
		if n < 1 || n > maxAttemptsLimit {
			return &InvalidError{Field: "max attempts", Reason: fmt.Sprintf("%d is not between 1 and %d", n, maxAttemptsLimit)}
		}
		return nil
	}
}

// NoRing enqueues without waking anybody; workers find the job by polling, within IdlePoll
// (1.5 s by default, plus jitter). For transactions that are prepared for two-phase commit,
// which Postgres does not allow after a notification, and for producers so many that the lock
// at the commit of notifying transactions holds them up.
func NoRing() EnqueueOption {
	return func(job *gen.EnqueueJobParams) error {
		job.Ring = false
		return nil
	}
}

// Headers adds facts that travel beside the payload, such as a trace context; at most 8 KB in
// all. Of two of a name the later one counts.
func Headers(headers map[string]string) EnqueueOption {
	return func(job *gen.EnqueueJobParams) error {
		if len(headers) == 0 {
			return nil
		}
		var before map[string]string
		_ = json.Unmarshal(job.Headers, &before) // Of an earlier option; else it is null.
		all := maps.Clone(headers)
		for name, value := range before {
			if _, given := headers[name]; !given {
				all[name] = value
			}
		}
		encoded, err := json.Marshal(all)
		if err != nil {
			return &InvalidError{Field: "headers", Reason: err.Error()}
		}
		job.Headers = encoded
		return checkJSON("headers", encoded, headersLimit)
	}
}

// EnqueueTerms are what options say of a job. The zero value of a field stands for an option
// that was not given.
type EnqueueTerms struct {
	Queue          string
	Key            string
	IdempotencyKey string
	At             time.Time
	In             time.Duration
	MaxAttempts    int
	Headers        json.RawMessage
}

// TermsOf reads options, for holdfasttest, which looks for jobs in the words of the enqueue.
func TermsOf(options ...EnqueueOption) (EnqueueTerms, error) {
	var job gen.EnqueueJobParams
	for _, option := range options {
		if err := option(&job); err != nil {
			return EnqueueTerms{}, err
		}
	}
	return EnqueueTerms{
		Queue: job.Queue, Key: job.PartitionKey, IdempotencyKey: job.IdempotencyKey,
		At: job.RunAt, In: job.Delay, MaxAttempts: int(job.MaxAttempts), Headers: job.Headers,
	}, nil
}

// EnqueueResult tells what an enqueue did.
type EnqueueResult struct {
	// ID is the job's: of the one added, or of the one that holds the idempotency key.
	ID JobID

	// Duplicate says that the idempotency key was taken, and no job was added.
	Duplicate bool

	// State is that of the job the key stands for, if Duplicate; else pending. It is "" when
	// the job cannot be seen: it was dropped or purged, its archive day has gone, or it was
	// enqueued while this enqueue waited.
	State Status

	// Warning is a sentence for the developer; "" without one. Payloads over 2 KB get one.
	Warning string
}

// Enqueue adds a job in the caller's transaction: the job exists if and only if that
// transaction commits. db is a pgx.Tx, a *pgx.Conn or a *pgxpool.Pool; the latter two commit
// at once. An idempotency key that another open transaction is taking makes the call wait
// for it. Errors: InvalidError for an argument out of bounds, ErrNotMigrated, ErrUnknownQueue;
// an error that comes with an ID: the state of the duplicate could not be looked up.
func Enqueue(ctx context.Context, db DBTX, args Args, options ...EnqueueOption) (EnqueueResult, error) {
	job, err := newJobParams(args, options)
	if err != nil {
		return EnqueueResult{}, fmt.Errorf("enqueue: %w", err)
	}
	id, duplicate, err := enqueueOne(ctx, db, job)
	if errors.Is(err, pgx.ErrNoRows) {
		if _, err = gen.New().EnsureQueue(ctx, db, job.Queue); err == nil {
			id, duplicate, err = enqueueOne(ctx, db, job)
		}
	}
	if errors.Is(err, pgx.ErrNoRows) {
		err = fmt.Errorf("queue %q: %w", job.Queue, errUnseenQueue)
	}
	if err != nil {
		return EnqueueResult{}, fmt.Errorf("enqueue %s: %w", job.Kind, NameRole(db, explain(err)))
	}
	results := []EnqueueResult{newEnqueueResult(id, duplicate, job.Payload)}
	err = addDuplicateStates(ctx, db, results)
	return results[0], err
}

// enqueueOne adds a job by the statement that it needs: one without an idempotency key is
// spared the search for it. pgx.ErrNoRows: its queue does not exist.
func enqueueOne(ctx context.Context, db DBTX, job gen.EnqueueJobParams) (id JobID, duplicate bool, err error) {
	job.Draw = drawIDs(1)[0]
	if job.IdempotencyKey != "" {
		row, err := gen.New().EnqueueJob(ctx, db, job)
		return row.JobID.Bytes, row.Duplicate, err
	}
	row, err := gen.New().EnqueuePlainJob(ctx, db, gen.EnqueuePlainJobParams{
		Queue:        job.Queue,
		Kind:         job.Kind,
		PartitionKey: job.PartitionKey,
		Hash:         job.Hash,
		Draw:         job.Draw,
		MaxAttempts:  job.MaxAttempts,
		Delay:        job.Delay,
		RunAt:        job.RunAt,
		Ring:         job.Ring,
		Headers:      job.Headers,
		Payload:      job.Payload,
	})
	return row.JobID.Bytes, false, err
}

func newJobParams(args Args, options []EnqueueOption) (gen.EnqueueJobParams, error) {
	job := gen.EnqueueJobParams{Kind: args.Kind(), Queue: DefaultQueue, Ring: true, Headers: json.RawMessage("null")}
	if err := checkName("kind", job.Kind); err != nil {
		return job, err
	}
	payload, err := json.Marshal(args)
	if err != nil {
		return job, &InvalidError{Field: "payload", Reason: "is not valid JSON: " + err.Error()}
	}
	job.Payload = payload
	if err := checkJSON("payload", payload, payloadLimit); err != nil {
		return job, err
	}
	for _, option := range options {
		if err := option(&job); err != nil {
			return job, err
		}
	}
	if job.PartitionKey == "" {
		job.PartitionKey = job.IdempotencyKey
	}
	if job.PartitionKey == "" {
		// Jobs that belong to nothing spread over all buckets, each a lane of its own. The key is
		// in three rows of a job's life, so it is no longer than it must be: 65 random bits.
		job.PartitionKey = rand.Text()[:13]
	}
	job.Hash = hashOf(job.PartitionKey)
	return job, nil
}

func newEnqueueResult(id JobID, duplicate bool, payload json.RawMessage) EnqueueResult {
	result := EnqueueResult{ID: id, Duplicate: duplicate, State: StatusPending}
	if duplicate {
		result.State = ""
	}
	if len(payload) > payloadAdvice {
		result.Warning = fmt.Sprintf("the payload has %d bytes; over %d it slows claims down: store the body elsewhere and send a pointer", len(payload), payloadAdvice)
	}
	return result
}

// addDuplicateStates looks the state of duplicates up, in one statement, if there are any.
func addDuplicateStates(ctx context.Context, db DBTX, results []EnqueueResult) error {
	var ids []JobID
	for _, result := range results {
		if result.Duplicate {
			ids = append(ids, result.ID)
		}
	}
	if len(ids) == 0 {
		return nil
	}
	states, err := jobStates(ctx, db, ids)
	if err != nil {
		return fmt.Errorf("look up duplicates: %w", err)
	}
	for i, result := range results {
		if result.Duplicate {
			results[i].State = states[result.ID].Status
		}
	}
	return nil
}
