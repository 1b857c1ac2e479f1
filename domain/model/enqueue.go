package model

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"time"

	"github.com/holdfast-pg/holdfast/domain"
)

// NewJob is a job to enqueue. Only Kind is needed; the other fields do what the options of
// domain.Enqueue do.
type NewJob struct {
	// ID is the id the job gets if one is added; default: one is drawn. A test that plays a
	// history on Postgres first gives the id from there. One that another job has is refused.
	ID domain.JobID

	Queue          string          // Default: domain.DefaultQueue. Created if it does not exist.
	Kind           string          // Names the handler.
	Key            string          // The partition key; default: the idempotency key, else a random key.
	IdempotencyKey string          // Makes every enqueue under it the same job.
	RunAt          time.Time       // Holds the job back until then.
	Delay          time.Duration   // Holds the job back for so long; below zero: its transaction commits so late.
	MaxAttempts    int             // Default: the queue's.
	NoRing         bool            // Wakes nobody.
	Headers        json.RawMessage // Default: none.
	Payload        json.RawMessage // Default: null.

	// Ordered is stamped on the job instead of what its queue says: an enqueue that is under
	// way while the queue changes stamps its job the old way.
	Ordered *bool
}

// onceKey is an idempotency key within its queue.
type onceKey struct {
	queue string
	key   string
}

// holder is the job that an idempotency key stands for, and until when.
type holder struct {
	id      domain.JobID
	expires time.Time
}

// Enqueue adds a job, or finds the one that holds its idempotency key. The result never has
// a warning.
func (q *Queue) Enqueue(ctx context.Context, job NewJob) (domain.EnqueueResult, error) {
	if err := ctx.Err(); err != nil {
		return domain.EnqueueResult{}, fmt.Errorf("enqueue %s: %w", job.Kind, err)
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.enqueue(job)
}

// EnqueueMany adds a set of jobs under the rules of Enqueue; the results are in the order of
// the set. A key that stands twice in the set makes one job.
func (q *Queue) EnqueueMany(ctx context.Context, jobs ...NewJob) ([]domain.EnqueueResult, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("enqueue %d jobs: %w", len(jobs), err)
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	var results []domain.EnqueueResult
	for i, job := range jobs {
		result, err := q.enqueue(job)
		if err != nil {
			return nil, fmt.Errorf("enqueue: job %d of %d: %w", i+1, len(jobs), err)
		}
		results = append(results, result)
	}
	return results, nil
}

func (q *Queue) enqueue(job NewJob) (domain.EnqueueResult, error) {
	if job.Queue == "" {
		job.Queue = domain.DefaultQueue
	}
	settings := q.ensureQueue(job.Queue)
	once := onceKey{job.Queue, job.IdempotencyKey}
	if held, taken := q.keys[once]; taken && held.expires.After(q.now()) {
		known, _ := q.find(held.id)
		return domain.EnqueueResult{ID: held.id, Duplicate: true, State: known.Status}, nil
	}
	record := q.newRecord(job, settings)
	if _, exists := q.find(record.ID); exists {
		return domain.EnqueueResult{}, fmt.Errorf("enqueue %s: another job has the id %s", job.Kind, record.ID)
	}
	if job.IdempotencyKey != "" {
		q.keys[once] = holder{id: record.ID, expires: record.AvailableAt.Add(settings.DedupeWindow)}
	}
	q.seq++
	record.Seq = q.seq
	q.inbox[record.ID] = record
	q.wait(record)
	if !job.NoRing {
		q.ring(record)
	}
	return domain.EnqueueResult{ID: record.ID, State: domain.StatusPending}, nil
}

// newRecord is the row of a new job, but for its number.
func (q *Queue) newRecord(job NewJob, settings domain.QueueSettings) *domain.JobRecord {
	now := q.now()
	record := &domain.JobRecord{
		ID:           job.ID,
		Queue:        job.Queue,
		Kind:         job.Kind,
		PartitionKey: job.Key,
		Ordered:      settings.Ordered,
		MaxAttempts:  job.MaxAttempts,
		AvailableAt:  toMicroseconds(now.Add(job.Delay)),
		CreatedAt:    now,
		Headers:      bytes.Clone(job.Headers),
		Payload:      bytes.Clone(job.Payload),
	}
	if job.IdempotencyKey != "" {
		record.IdempotencyKey = &job.IdempotencyKey
	}
	if record.PartitionKey == "" {
		record.PartitionKey = job.IdempotencyKey
	}
	if record.PartitionKey == "" {
		record.PartitionKey = fmt.Sprintf("%016x", q.settings.Random.Uint64())
	}
	record.Bucket = domain.BucketOf(record.PartitionKey, q.settings.BucketCount)
	if record.ID == (domain.JobID{}) {
		record.ID = q.newID(now, record.Bucket)
	}
	if job.Ordered != nil {
		record.Ordered = *job.Ordered
	}
	if record.MaxAttempts == 0 {
		record.MaxAttempts = settings.MaxAttempts
	}
	if runAt := toMicroseconds(job.RunAt); runAt.After(record.AvailableAt) {
		record.AvailableAt = runAt
	}
	if record.Payload == nil {
		record.Payload = json.RawMessage("null")
	}
	return record
}

// newID lays out an id as domain.NewJobID does, with its 58 random bits drawn from the
// model's randomness, so that a run can be repeated.
func (q *Queue) newID(now time.Time, bucket int) domain.JobID {
	id := domain.NewJobID(now, bucket)
	var random [8]byte
	binary.BigEndian.PutUint64(random[:], q.settings.Random.Uint64())
	id[6] = id[6]&0xf0 | random[0]&0x0f // Beside the version.
	id[7] = random[1]
	id[8] = id[8]&0xc0 | random[2]&0x3f // Beside the variant.
	copy(id[9:14], random[3:])
	return id
}
