package domain

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/holdfast-pg/holdfast/gen"
)

// JobRecord is everything that is known of a job.
type JobRecord struct {
	ID             JobID           `json:"id"`
	Seq            int64           `json:"seq"`
	Queue          string          `json:"queue"`
	Kind           string          `json:"kind"`
	PartitionKey   string          `json:"partition_key"`
	Bucket         int             `json:"bucket"`
	Ordered        bool            `json:"ordered"`
	Status         Status          `json:"status"`
	Attempts       int             `json:"attempts"`
	MaxAttempts    int             `json:"max_attempts"`
	Generation     int64           `json:"generation"`
	ClaimedBy      *string         `json:"claimed_by"`
	ClaimedAt      *time.Time      `json:"claimed_at"`
	LeaseExpiresAt *time.Time      `json:"lease_expires_at"`
	AvailableAt    time.Time       `json:"available_at"`
	CreatedAt      time.Time       `json:"created_at"`
	CompletedAt    *time.Time      `json:"completed_at"`
	FinishedAt     *time.Time      `json:"finished_at"`
	FinishedBy     *string         `json:"finished_by"`
	IdempotencyKey *string         `json:"idempotency_key"`
	LastError      *string         `json:"last_error"`
	Headers        json.RawMessage `json:"headers"`
	Payload        json.RawMessage `json:"payload"`
	Archived       bool            `json:"archived"`
}

// FindJob returns what is known of a job, archived or not; ErrNotFound when there is none.
func FindJob(ctx context.Context, db DBTX, id JobID) (JobRecord, error) {
	row, err := gen.New().GetJob(ctx, db, id.uuid())
	if errors.Is(err, pgx.ErrNoRows) {
		return JobRecord{}, fmt.Errorf("find job %s: %w", id, ErrNotFound)
	}
	if err != nil {
		return JobRecord{}, fmt.Errorf("find job %s: %w", id, explain(err))
	}
	return JobRecord{
		ID: row.ID.Bytes, Seq: row.Seq, Queue: row.Queue, Kind: row.Kind, PartitionKey: row.PartitionKey,
		Bucket: int(row.PartitionBucket), Ordered: row.Ordered, Status: row.Status,
		Attempts: int(row.Attempts), MaxAttempts: int(row.MaxAttempts), Generation: row.LeaseGeneration,
		ClaimedBy: row.ClaimedBy, ClaimedAt: row.ClaimedAt, LeaseExpiresAt: row.LeaseExpiresAt,
		AvailableAt: row.AvailableAt, CreatedAt: row.CreatedAt, CompletedAt: row.CompletedAt,
		FinishedAt: row.FinishedAt, FinishedBy: row.FinishedBy, IdempotencyKey: row.IdempotencyKey,
		LastError: row.LastError, Headers: row.Headers, Payload: row.Payload, Archived: row.Archived,
	}, nil
}

// jobState is how a job stands.
type jobState struct {
	Status     Status
	Generation int64
}

func jobStates(ctx context.Context, db DBTX, ids []JobID) (map[JobID]jobState, error) {
	rows, err := gen.New().ListJobStates(ctx, db, uuids(ids))
	if err != nil {
		return nil, explain(err)
	}
	states := make(map[JobID]jobState, len(rows))
	for _, row := range rows {
		states[row.ID.Bytes] = jobState{Status: row.Status, Generation: row.LeaseGeneration}
	}
	return states, nil
}

// PendingJob is a job that is due and waits for a worker.
type PendingJob struct {
	ID           JobID
	Kind         string
	PartitionKey string
	AvailableAt  time.Time
	Age          time.Duration // How long it has been due.
}

// OldestPendingJob returns the job of a queue that has been due for longest: the lag that
// users feel. ErrNotFound: nothing is waiting.
func OldestPendingJob(ctx context.Context, db DBTX, queue string) (PendingJob, error) {
	row, err := gen.New().OldestPendingJob(ctx, db, queue)
	if errors.Is(err, pgx.ErrNoRows) {
		return PendingJob{}, fmt.Errorf("oldest pending job of queue %q: %w", queue, ErrNotFound)
	}
	if err != nil {
		return PendingJob{}, fmt.Errorf("oldest pending job of queue %q: %w", queue, explain(err))
	}
	return PendingJob{ID: row.ID.Bytes, Kind: row.Kind, PartitionKey: row.PartitionKey, AvailableAt: row.AvailableAt, Age: row.Age}, nil
}

// WorkerRecord is what the registry knows of a worker.
type WorkerRecord struct {
	ID         string          `json:"id"`
	Status     WorkerStatus    `json:"status"`
	Queues     []string        `json:"queues"`
	StartedAt  time.Time       `json:"started_at"`
	LastSeenAt time.Time       `json:"last_seen_at"`
	Silence    time.Duration   `json:"-"`        // How long ago it was last seen, by the database's clock.
	Metadata   json.RawMessage `json:"metadata"` // What it says of itself, a JSON object.
}

// ListWorkers lists the workers that are alive or draining, and with dead those too that
// died within the last day, in this order and by the time they joined, at most limit.
func ListWorkers(ctx context.Context, db DBTX, dead bool, limit int) ([]WorkerRecord, error) {
	rows, err := gen.New().ListWorkers(ctx, db, gen.ListWorkersParams{WithDead: dead, MaxRows: int32(limit)})
	if err != nil {
		return nil, fmt.Errorf("list workers: %w", explain(err))
	}
	workers := make([]WorkerRecord, len(rows))
	for i, row := range rows {
		workers[i] = WorkerRecord(row)
	}
	return workers, nil
}

// lanesSampled is how many lanes of an ordered queue HotKeys looks at.
const lanesSampled = 2000

// KeySample tells to which partition keys the jobs at the head of a queue belong.
type KeySample struct {
	Queue string     `json:"queue"`
	Jobs  int64      `json:"jobs"`  // How many jobs were counted.
	Keys  []KeyShare `json:"items"` // Those with most jobs first.
}

// KeyShare is the part of a sample that belongs to one partition key.
type KeyShare struct {
	Key   string  `json:"key"`
	Jobs  int64   `json:"jobs"`
	Share float64 `json:"share"` // Of the jobs counted, 0 to 1.
}

// HotKeys counts jobs at the head of a queue by partition key, and returns at most limit
// keys. It is a sample, whose cost does not grow with the backlog. Of jobs that are not
// ordered it takes the first 20 due ones of every bucket, of ordered jobs the first 100 in
// each of 2,000 lanes, from a random bucket on; where few buckets or lanes have so many, it
// counts on in these, up to 20,000 jobs.
func HotKeys(ctx context.Context, db DBTX, queue string, limit int) (KeySample, error) {
	sample, err := sampleKeys(ctx, db, queue, limit)
	if err != nil {
		return KeySample{}, fmt.Errorf("sample the keys of queue %q: %w", queue, explain(err))
	}
	return sample, nil
}

func sampleKeys(ctx context.Context, db DBTX, queue string, limit int) (KeySample, error) {
	lanes, err := sampleLanes(ctx, db, queue)
	if err != nil {
		return KeySample{}, err
	}
	jobs := map[string]int64{}
	var all int64
	for _, lane := range lanes {
		jobs[lane.PartitionKey] += lane.Jobs
		all += lane.Jobs
	}
	// A queue that became ordered, or was, may have jobs of both kinds.
	keys, err := gen.New().SampleKeys(ctx, db, gen.SampleKeysParams{Queue: queue, MaxRows: int32(limit)})
	if err != nil {
		return KeySample{}, err
	}
	for _, key := range keys {
		jobs[key.PartitionKey] += key.Jobs
	}
	if len(keys) > 0 {
		all += keys[0].AllJobs
	}
	return newKeySample(queue, jobs, all, limit), nil
}

// sampleLanes goes once around the buckets. From the first one on it would see the same
// lanes each time, where there are more than it looks at.
func sampleLanes(ctx context.Context, db DBTX, queue string) ([]gen.SampleLanesRow, error) {
	meta, err := ReadMeta(ctx, db)
	if err != nil {
		return nil, err
	}
	start := rand.Int32N(int32(meta.BucketCount))
	lanes, err := gen.New().SampleLanes(ctx, db, gen.SampleLanesParams{
		Queue: queue, FromBucket: start, BeforeBucket: int32(meta.BucketCount), MaxLanes: lanesSampled,
	})
	left := int32(lanesSampled - len(lanes))
	if err != nil || left == 0 || start == 0 {
		return lanes, err
	}
	rest, err := gen.New().SampleLanes(ctx, db, gen.SampleLanesParams{Queue: queue, FromBucket: 0, BeforeBucket: start, MaxLanes: left})
	return append(lanes, rest...), err
}

func newKeySample(queue string, jobs map[string]int64, all int64, limit int) KeySample {
	sample := KeySample{Queue: queue, Jobs: all, Keys: make([]KeyShare, 0, len(jobs))}
	for key, count := range jobs {
		sample.Keys = append(sample.Keys, KeyShare{Key: key, Jobs: count, Share: float64(count) / float64(all)})
	}
	slices.SortFunc(sample.Keys, func(a, b KeyShare) int {
		return cmp.Or(cmp.Compare(b.Jobs, a.Jobs), cmp.Compare(a.Key, b.Key))
	})
	sample.Keys = sample.Keys[:min(limit, len(sample.Keys))]
	return sample
}
