package model

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/holdfast-pg/holdfast/domain"
)

// member is an entry of the registry.
type member struct {
	domain.Worker

	status domain.WorkerStatus
}

// Join enters a worker into the registry and creates the queues that it serves, as far as
// they do not exist. domain.ErrWorkerExists: the registry has the id, also of a dead worker.
func (q *Queue) Join(ctx context.Context, worker domain.Registration) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("join as worker %s: %w", worker.ID, err)
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, queue := range worker.Queues {
		q.ensureQueue(queue)
	}
	if q.workers[worker.ID] != nil {
		return fmt.Errorf("join as worker %s: %w", worker.ID, domain.ErrWorkerExists)
	}
	now := q.now()
	q.workers[worker.ID] = &member{
		Worker: domain.Worker{Registration: worker, StartedAt: now, LastSeenAt: now},
		status: domain.WorkerAlive,
	}
	return nil
}

// Beat records that the worker lives and returns the status it was found in, which a beat
// never changes: the dead stay dead. domain.ErrWorkerUnknown: the registry has forgotten it.
func (q *Queue) Beat(ctx context.Context, worker domain.Registration) (domain.WorkerStatus, error) {
	if err := ctx.Err(); err != nil {
		return "", fmt.Errorf("heartbeat of worker %s: %w", worker.ID, err)
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	found := q.workers[worker.ID]
	if found == nil {
		return "", fmt.Errorf("heartbeat of worker %s: %w", worker.ID, domain.ErrWorkerUnknown)
	}
	found.Metadata = worker.Metadata
	if found.status != domain.WorkerDead {
		found.LastSeenAt = q.now()
	}
	return found.status, nil
}

// LiveWorkers lists the workers of a queue that are alive and were seen within the time to
// live, in the order of their ids, at most limit.
func (q *Queue) LiveWorkers(ctx context.Context, queue string, ttl time.Duration, limit int) ([]domain.Worker, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("list live workers: %w", err)
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	since := q.now().Add(-ttl)
	live := []domain.Worker{}
	for _, id := range q.workerIDs() {
		worker := q.workers[id]
		if len(live) < limit && worker.status == domain.WorkerAlive && worker.LastSeenAt.After(since) && slices.Contains(worker.Queues, queue) {
			live = append(live, worker.Worker)
		}
	}
	return live, nil
}

// Members tells how each of the queues stands and which workers serve it: those that are
// alive and were seen within the time to live.
func (q *Queue) Members(ctx context.Context, queues []string, ttl time.Duration) ([]domain.Membership, error) {
	members := []domain.Membership{}
	for _, queue := range slices.Sorted(slices.Values(queues)) {
		live, err := q.LiveWorkers(ctx, queue, ttl, math.MaxInt)
		if err != nil {
			return nil, fmt.Errorf("list the workers of %d queues: %w", len(queues), err)
		}
		settings, err := q.FindQueue(ctx, queue)
		if errors.Is(err, domain.ErrUnknownQueue) {
			continue
		}
		if err != nil {
			return nil, err
		}
		membership := domain.Membership{Queue: queue, Ordered: settings.Ordered}
		for _, worker := range live {
			membership.Workers = append(membership.Workers, worker.ID)
		}
		members = append(members, membership)
	}
	return members, nil
}

func (q *Queue) workerIDs() []string {
	return slices.Sorted(maps.Keys(q.workers))
}

// buryWorkers marks workers dead that were not seen for the time to live, and tells which. It
// takes no job from them: a lease ends by its own deadline only.
func (q *Queue) buryWorkers(ttl time.Duration) []string {
	since := q.now().Add(-ttl)
	died := []string{}
	for _, id := range q.workerIDs() {
		if worker := q.workers[id]; worker.status != domain.WorkerDead && worker.LastSeenAt.Before(since) && len(died) < housekeepingBatch {
			worker.status = domain.WorkerDead
			died = append(died, id)
		}
	}
	return died
}

// forgetWorkers deletes workers that have been dead for long, and tells how many.
func (q *Queue) forgetWorkers(age time.Duration) (forgotten int64) {
	since := q.now().Add(-age)
	for _, id := range q.workerIDs() {
		if worker := q.workers[id]; worker.status == domain.WorkerDead && worker.LastSeenAt.Before(since) && forgotten < housekeepingBatch {
			delete(q.workers, id)
			forgotten++
		}
	}
	return forgotten
}
