package model

import (
	"context"
	"fmt"

	"github.com/holdfast-pg/holdfast/domain"
)

// Drain tells a worker to stop claiming and finish what it holds; the worker learns of it at
// its next heartbeat. An operator calls it as well as the worker itself.
// domain.ErrWorkerUnknown: no such worker is alive.
func (q *Queue) Drain(ctx context.Context, workerID string) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("drain worker %s: %w", workerID, err)
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	worker := q.workers[workerID]
	if worker == nil || worker.status != domain.WorkerAlive {
		return fmt.Errorf("drain worker %s: %w", workerID, domain.ErrWorkerUnknown)
	}
	worker.status = domain.WorkerDraining
	return nil
}

// Leave ends a worker's registration and gives back the claims that it still holds, with
// their attempts refunded. That nobody knows the worker, or that it is dead, is no error.
func (q *Queue) Leave(ctx context.Context, workerID string) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("leave as worker %s: %w", workerID, err)
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, job := range q.heldBy(workerID) {
		q.release(job, domain.ReleaseFor("the worker left while it held the job", 0))
	}
	if worker := q.workers[workerID]; worker != nil && worker.status != domain.WorkerDead {
		worker.status = domain.WorkerDead
		worker.LastSeenAt = q.now()
	}
	return nil
}

// HeldJobs counts the claims that a worker holds.
func (q *Queue) HeldJobs(ctx context.Context, workerID string) (int64, error) {
	if err := ctx.Err(); err != nil {
		return 0, fmt.Errorf("count the jobs that worker %s holds: %w", workerID, err)
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	return int64(len(q.heldBy(workerID))), nil
}

func (q *Queue) heldBy(workerID string) []*domain.JobRecord {
	var held []*domain.JobRecord
	for _, job := range q.inbox {
		if job.ClaimedBy != nil && *job.ClaimedBy == workerID {
			held = append(held, job)
		}
	}
	return held
}
