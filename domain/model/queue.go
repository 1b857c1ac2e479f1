package model

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/holdfast-pg/holdfast/domain"
)

// Settings describe the installation that a model stands for.
type Settings struct {
	// BucketCount is how many buckets partition keys hash into; default: 1024.
	BucketCount int

	// Epoch is the high part of every lease generation until a failover; default: 1.
	Epoch int64

	// Now tells the time to which the skew of the database is added; default: time.Now. Give
	// it the Now of a Clock, or leave it to a testing/synctest bubble.
	Now func() time.Time

	// Random draws ids, keys and backoffs; default: the same sequence each time. It is used
	// under a lock of the model's own, so nobody else may draw from it.
	Random *rand.Rand

	// Backoff is how long a job waits that was reclaimed from its attempts-th claim;
	// default: domain.Backoff, at random.
	Backoff func(attempts int) time.Duration
}

// Queue keeps jobs in memory under the rules of domain.Queue. Any number of workers share
// one, as they would a database. It is safe for concurrent use.
type Queue struct {
	settings Settings

	mu         sync.Mutex
	skew       time.Duration
	seq        int64 // The latest job's.
	generation int64 // The latest claim's, without its epoch.
	epoch      int64
	promotions int64 // Since the epoch was raised.
	queues     map[string]domain.QueueSettings
	inbox      map[domain.JobID]*domain.JobRecord
	lines      map[place][]*domain.JobRecord
	lanes      map[place]*lanes
	archive    map[domain.JobID]domain.JobRecord
	days       map[time.Time]bool // The archive's partitions, by the midnight they begin at.
	keys       map[onceKey]holder
	workers    map[string]*member
	marks      map[markKey]mark
	fences     map[string]fence
	armed      map[bell]bool
	events     []domain.Event // In their order.
	lastEvent  int64
	listeners  []chan domain.Ring

	election sync.Mutex // Held by whoever keeps house.
}

// New returns an empty installation. It has the default queue and a fortnight of archive
// days, as one that was just migrated.
func New(settings Settings) *Queue {
	q := &Queue{
		settings: settings.withDefaults(),
		queues:   map[string]domain.QueueSettings{domain.DefaultQueue: domain.DefaultQueueSettings(domain.DefaultQueue)},
		inbox:    map[domain.JobID]*domain.JobRecord{},
		lines:    map[place][]*domain.JobRecord{},
		lanes:    map[place]*lanes{},
		archive:  map[domain.JobID]domain.JobRecord{},
		days:     map[time.Time]bool{},
		keys:     map[onceKey]holder{},
		workers:  map[string]*member{},
		marks:    map[markKey]mark{},
		fences:   map[string]fence{},
		armed:    map[bell]bool{},
	}
	q.epoch = q.settings.Epoch
	q.createArchiveDays(14)
	return q
}

func (s Settings) withDefaults() Settings {
	if s.BucketCount == 0 {
		s.BucketCount = 1024
	}
	if s.Epoch == 0 {
		s.Epoch = 1
	}
	if s.Now == nil {
		s.Now = time.Now
	}
	if s.Random == nil {
		s.Random = rand.New(rand.NewPCG(1, 1))
	}
	if s.Backoff == nil {
		random := s.Random
		s.Backoff = func(attempts int) time.Duration { return domain.Backoff(attempts, random.Float64()) }
	}
	return s
}

// Open reads the facts about the installation.
func (q *Queue) Open(ctx context.Context) (domain.Meta, error) {
	if err := ctx.Err(); err != nil {
		return domain.Meta{}, fmt.Errorf("read the schema's version: %w", err)
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	return domain.Meta{
		BucketCount:   q.settings.BucketCount,
		Epoch:         q.epoch,
		SchemaVersion: domain.SchemaVersion,
		OldestBinary:  domain.SchemaVersion,
	}, nil
}

// Close does nothing: jobs outlive the connections of a worker.
func (q *Queue) Close() {}

// SetSkew puts the database's clock ahead of the workers' by the duration, or behind them if
// it is negative.
func (q *Queue) SetSkew(skew time.Duration) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.skew = skew
}

// Now returns the time by the database's clock.
func (q *Queue) Now() time.Time {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.now()
}

// now is what the statement under way takes for the time, to the microsecond, as Postgres does.
func (q *Queue) now() time.Time {
	return toMicroseconds(q.settings.Now().Add(q.skew))
}

func toMicroseconds(t time.Time) time.Time {
	return t.UTC().Truncate(time.Microsecond)
}
