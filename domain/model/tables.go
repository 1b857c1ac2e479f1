package model

import (
	"cmp"
	"slices"
	"time"

	"github.com/holdfast-pg/holdfast/domain"
)

// Tables is what an installation keeps beside its jobs and its queues' settings, for an oracle
// to hold against the tables of a database. Each is in the order of its key.
type Tables struct {
	Keys    []Key
	Marks   []Mark
	Fences  []Fence
	Workers []domain.WorkerRecord
	Bells   []Bell
	Events  []domain.Event
}

// Key is an idempotency key that is taken; its window may have passed.
type Key struct {
	Queue     string
	Key       string
	JobID     domain.JobID
	ExpiresAt time.Time
}

// Mark is an effect that is done.
type Mark struct {
	Scope     string
	Key       string
	JobID     domain.JobID
	HandledAt time.Time
}

// Fence is the highest token that a resource has seen.
type Fence struct {
	Resource  string
	Token     int64
	TouchedAt time.Time
}

// Bell is a queue that a worker wants to be woken by.
type Bell struct {
	Queue    string
	WorkerID string
}

// Tables returns all that is kept at this moment.
func (q *Queue) Tables() Tables {
	q.mu.Lock()
	defer q.mu.Unlock()
	tables := Tables{Keys: []Key{}, Marks: []Mark{}, Fences: []Fence{}, Workers: []domain.WorkerRecord{}, Bells: []Bell{}, Events: append([]domain.Event{}, q.events...)}
	for once, held := range q.keys {
		tables.Keys = append(tables.Keys, Key{Queue: once.queue, Key: once.key, JobID: held.id, ExpiresAt: held.expires})
	}
	for key, found := range q.marks {
		tables.Marks = append(tables.Marks, Mark{Scope: key.scope, Key: key.key, JobID: found.job, HandledAt: found.made})
	}
	for resource, seen := range q.fences {
		tables.Fences = append(tables.Fences, Fence{Resource: resource, Token: seen.token, TouchedAt: seen.touched})
	}
	for id := range q.workers {
		tables.Workers = append(tables.Workers, q.workerRecord(id))
	}
	for each := range q.armed {
		tables.Bells = append(tables.Bells, Bell{Queue: each.queue, WorkerID: each.workerID})
	}
	tables.sort()
	return tables
}

func (q *Queue) workerRecord(id string) domain.WorkerRecord {
	worker := q.workers[id]
	return domain.WorkerRecord{
		ID: id, Status: worker.status, Queues: worker.Queues, StartedAt: worker.StartedAt, LastSeenAt: worker.LastSeenAt,
		Silence: q.now().Sub(worker.LastSeenAt), Metadata: worker.Metadata,
	}
}

func (t Tables) sort() {
	slices.SortFunc(t.Keys, func(a, b Key) int { return cmp.Or(cmp.Compare(a.Queue, b.Queue), cmp.Compare(a.Key, b.Key)) })
	slices.SortFunc(t.Marks, func(a, b Mark) int { return cmp.Or(cmp.Compare(a.Scope, b.Scope), cmp.Compare(a.Key, b.Key)) })
	slices.SortFunc(t.Fences, func(a, b Fence) int { return cmp.Compare(a.Resource, b.Resource) })
	slices.SortFunc(t.Workers, func(a, b domain.WorkerRecord) int { return cmp.Compare(a.ID, b.ID) })
	slices.SortFunc(t.Bells, func(a, b Bell) int { return cmp.Or(cmp.Compare(a.Queue, b.Queue), cmp.Compare(a.WorkerID, b.WorkerID)) })
}
