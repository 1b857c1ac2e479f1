package domain

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/holdfast-pg/holdfast/gen"
)

// NewJob is one job of a set: its payload and how it is enqueued.
type NewJob struct {
	Args    Args
	Options []EnqueueOption
}

// EnqueueMany adds a set of jobs in one statement, in the caller's transaction, under the
// rules of Enqueue; the results are in the order of the set. A key that stands twice in the
// set makes one job. An error that comes without results: none was added. With results: they
// were, and just the states of duplicates could not be looked up.
func EnqueueMany(ctx context.Context, db DBTX, jobs ...NewJob) ([]EnqueueResult, error) {
	if len(jobs) == 0 {
		return nil, nil
	}
	set := newJobSet(len(jobs))
	for i, job := range jobs {
		one, err := newJobParams(job.Args, job.Options)
		if err != nil {
			return nil, fmt.Errorf("enqueue: job %d of %d: %w", i+1, len(jobs), err)
		}
		set.add(one)
	}
	set.leaveOut()
	results, err := set.enqueue(ctx, db)
	if err == nil && len(results) == 0 {
		if err = ensureQueues(ctx, db, set.Queues); err == nil {
			results, err = set.enqueue(ctx, db)
		}
	}
	if err == nil && len(results) == 0 {
		err = errUnseenQueue
	}
	if err != nil {
		return nil, fmt.Errorf("enqueue %d jobs: %w", len(jobs), NameRole(db, explain(err)))
	}
	return results, addDuplicateStates(ctx, db, results)
}

// jobSet is a set of jobs as the columns in which it travels.
type jobSet struct {
	gen.EnqueueJobsParams
	keyed bool // Some job has an idempotency key.
}

func newJobSet(size int) *jobSet {
	return &jobSet{EnqueueJobsParams: gen.EnqueueJobsParams{
		Queues:          make([]string, 0, size),
		Kinds:           make([]string, 0, size),
		PartitionKeys:   make([]string, 0, size),
		Hashes:          make([]int32, 0, size),
		Draws:           drawIDs(size),
		IdempotencyKeys: make([]string, 0, size),
		MaxAttempts:     make([]int32, 0, size),
		Delays:          make([]time.Duration, 0, size),
		RunAt:           make([]time.Time, 0, size),
		Rings:           make([]bool, 0, size),
		Headers:         make([]json.RawMessage, 0, size),
		Payloads:        make([]json.RawMessage, 0, size),
	}}
}

// drawIDs draws what is random in so many job ids: their bytes 6 to 13, between the
// database's time and the bucket, with the version and the variant in their places.
func drawIDs(n int) []int64 {
	random := make([]byte, 8*n)
	_, _ = rand.Read(random)
	draws := make([]int64, n)
	for i := range draws {
		draw := random[8*i:]
		draw[0] = draw[0]&0x0f | 0x70
		draw[2] = draw[2]&0x3f | 0x80
		draws[i] = int64(binary.BigEndian.Uint64(draw))
	}
	return draws
}

func (s *jobSet) add(job gen.EnqueueJobParams) {
	s.Queues = append(s.Queues, job.Queue)
	s.Kinds = append(s.Kinds, job.Kind)
	s.PartitionKeys = append(s.PartitionKeys, job.PartitionKey)
	s.Hashes = append(s.Hashes, job.Hash)
	s.IdempotencyKeys = append(s.IdempotencyKeys, job.IdempotencyKey)
	s.MaxAttempts = append(s.MaxAttempts, job.MaxAttempts)
	s.Delays = append(s.Delays, job.Delay)
	s.RunAt = append(s.RunAt, job.RunAt)
	s.Rings = append(s.Rings, job.Ring)
	s.Headers = append(s.Headers, job.Headers)
	s.Payloads = append(s.Payloads, job.Payload)
	s.keyed = s.keyed || job.IdempotencyKey != ""
}

// leaveOut empties the columns in which every job has the default. Postgres fills them up
// with nulls, for which the statements put the defaults.
func (s *jobSet) leaveOut() {
	s.MaxAttempts = orNone(s.MaxAttempts, func(n int32) bool { return n == 0 })
	s.Delays = orNone(s.Delays, func(d time.Duration) bool { return d == 0 })
	s.RunAt = orNone(s.RunAt, time.Time.IsZero)
	s.Rings = orNone(s.Rings, func(ring bool) bool { return ring })
	s.Headers = orNone(s.Headers, func(headers json.RawMessage) bool { return string(headers) == "null" })
}

// orNone returns the column, or nothing if every value in it is the default.
func orNone[T any](column []T, isDefault func(T) bool) []T {
	if slices.ContainsFunc(column, func(value T) bool { return !isDefault(value) }) {
		return column
	}
	return nil
}

// enqueue adds the set, in its order, by the statement that it needs. No result: some queue
// does not exist.
func (s *jobSet) enqueue(ctx context.Context, db DBTX) ([]EnqueueResult, error) {
	if !s.keyed {
		return s.enqueuePlain(ctx, db)
	}
	rows, err := gen.New().EnqueueJobs(ctx, db, s.EnqueueJobsParams)
	results := make([]EnqueueResult, len(rows))
	for i, row := range rows {
		results[i] = newEnqueueResult(row.JobID.Bytes, row.Duplicate, s.Payloads[i])
	}
	return results, err
}

func (s *jobSet) enqueuePlain(ctx context.Context, db DBTX) ([]EnqueueResult, error) {
	rows, err := gen.New().EnqueuePlainJobs(ctx, db, gen.EnqueuePlainJobsParams{
		Queues:        s.Queues,
		Kinds:         s.Kinds,
		PartitionKeys: s.PartitionKeys,
		Hashes:        s.Hashes,
		Draws:         s.Draws,
		MaxAttempts:   s.MaxAttempts,
		Delays:        s.Delays,
		RunAt:         s.RunAt,
		Rings:         s.Rings,
		Headers:       s.Headers,
		Payloads:      s.Payloads,
	})
	results := make([]EnqueueResult, len(rows))
	for i, row := range rows {
		results[i] = newEnqueueResult(row.JobID.Bytes, false, s.Payloads[i])
	}
	return results, err
}

// ensureQueues creates the named queues that do not exist, but for the one that always does.
func ensureQueues(ctx context.Context, db DBTX, names []string) error {
	seen := map[string]bool{DefaultQueue: true}
	for _, name := range names {
		if seen[name] {
			continue
		}
		seen[name] = true
		if _, err := gen.New().EnsureQueue(ctx, db, name); err != nil {
			return fmt.Errorf("create queue %q: %w", name, explain(err))
		}
	}
	return nil
}
