package domain

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/holdfast-pg/holdfast/gen"
)

// WorkerStatus is where a worker is in its life: alive, then perhaps draining, then dead.
type WorkerStatus = gen.WorkerStatus

// The states of a worker.
const (
	WorkerAlive    WorkerStatus = gen.HoldfastWorkerStatusAlive
	WorkerDraining WorkerStatus = gen.HoldfastWorkerStatusDraining
	WorkerDead     WorkerStatus = gen.HoldfastWorkerStatusDead
)

// Registration is what a worker says of itself when it joins.
type Registration struct {
	ID       string
	Queues   []string
	Metadata json.RawMessage // A JSON object: version, host, concurrency. nil: an empty one.
}

func (r Registration) metadata() json.RawMessage {
	if r.Metadata == nil {
		return json.RawMessage("{}")
	}
	return r.Metadata
}

// Worker is an entry of the registry.
type Worker struct {
	Registration

	StartedAt  time.Time
	LastSeenAt time.Time
}

// Join enters a worker into the registry and creates the queues that it serves, as far as
// they do not exist. ErrWorkerExists: another worker has the id, and this one must not run.
func (q *Queue) Join(ctx context.Context, worker Registration) error {
	if len(worker.Queues) == 0 {
		return &InvalidError{Field: "queues", Reason: "a worker serves one at least"}
	}
	for _, queue := range worker.Queues {
		if err := checkName("queue", queue); err != nil {
			return err
		}
	}
	if err := ensureQueues(ctx, q.pool, worker.Queues); err != nil {
		return err
	}
	joined, err := q.queries.JoinWorker(ctx, q.pool, gen.JoinWorkerParams{ID: worker.ID, Queues: worker.Queues, Metadata: worker.metadata()})
	if err != nil {
		return fmt.Errorf("join as worker %s: %w", worker.ID, NameRole(q.pool, explain(err)))
	}
	if joined == 0 {
		return fmt.Errorf("join as worker %s: %w", worker.ID, ErrWorkerExists)
	}
	return nil
}

// Beat records that the worker lives and returns the status it was found in, which a beat
// never changes. ErrWorkerUnknown: housekeeping has forgotten the worker.
func (q *Queue) Beat(ctx context.Context, worker Registration) (WorkerStatus, error) {
	status, err := q.queries.BeatWorker(ctx, q.pool, gen.BeatWorkerParams{ID: worker.ID, Metadata: worker.metadata()})
	if errors.Is(err, pgx.ErrNoRows) {
		return "", fmt.Errorf("heartbeat of worker %s: %w", worker.ID, ErrWorkerUnknown)
	}
	if err != nil {
		return "", fmt.Errorf("heartbeat of worker %s: %w", worker.ID, explain(err))
	}
	return status, nil
}

// LiveWorkers lists the workers of a queue that are alive and were seen within the time to
// live, in the order of their ids, at most limit.
func LiveWorkers(ctx context.Context, db DBTX, queue string, ttl time.Duration, limit int) ([]Worker, error) {
	rows, err := gen.New().ListLiveWorkers(ctx, db, gen.ListLiveWorkersParams{Queue: queue, TTL: ttl, MaxRows: int32(limit)})
	if err != nil {
		return nil, fmt.Errorf("list live workers: %w", explain(err))
	}
	workers := make([]Worker, len(rows))
	for i, row := range rows {
		workers[i] = Worker{
			Registration: Registration{ID: row.ID, Queues: row.Queues, Metadata: row.Metadata},
			StartedAt:    row.StartedAt,
			LastSeenAt:   row.LastSeenAt,
		}
	}
	return workers, nil
}

// Membership is how a queue stands and who serves it.
type Membership struct {
	Queue   string
	Ordered bool
	Workers []string // Ids of the live workers, ascending.
}

// Members tells how each of the queues stands and which workers serve it: those that are
// alive and were seen within the time to live. A queue that does not exist is left out.
func (q *Queue) Members(ctx context.Context, queues []string, ttl time.Duration) ([]Membership, error) {
	rows, err := q.queries.ListMembers(ctx, q.work, gen.ListMembersParams{Queues: queues, TTL: ttl})
	if err != nil {
		return nil, fmt.Errorf("list the workers of %d queues: %w", len(queues), explain(err))
	}
	members := make([]Membership, len(rows))
	for i, row := range rows {
		members[i] = Membership{Queue: row.Name, Ordered: row.Ordered, Workers: row.WorkerIds}
	}
	return members, nil
}
