package model

import (
	"context"
	"fmt"

	"github.com/holdfast-pg/holdfast/domain"
)

// Redrive puts failed and dead-lettered jobs back to pending, with all their attempts or, unless
// it is 0, with so many, and returns those it changed; the others were in no such state. The error
// of the last attempt stays.
func (q *Queue) Redrive(ctx context.Context, by domain.By, maxAttempts int, ids ...domain.JobID) ([]domain.JobID, error) {
	return q.operate(ctx, "redrive", ids, func(job *domain.JobRecord) bool {
		if !isDead(job) {
			return false
		}
		q.noteOrder(domain.EventRedriven, job, by)
		if maxAttempts > 0 {
			job.MaxAttempts = maxAttempts
		}
		job.Attempts = 0
		job.FinishedAt, job.FinishedBy = nil, nil
		q.putOff(job, 0)
		return true
	})
}

// Purge deletes failed and dead-lettered jobs, frees the idempotency keys that stand for them,
// and returns those it deleted. Marks stay.
func (q *Queue) Purge(ctx context.Context, by domain.By, ids ...domain.JobID) ([]domain.JobID, error) {
	return q.operate(ctx, "purge", ids, func(job *domain.JobRecord) bool {
		if !isDead(job) {
			return false
		}
		q.noteOrder(domain.EventPurged, job, by)
		delete(q.inbox, job.ID)
		if job.IdempotencyKey != nil {
			once := onceKey{job.Queue, *job.IdempotencyKey}
			if q.keys[once].id == job.ID {
				delete(q.keys, once)
			}
		}
		return true
	})
}

// Cancel ends jobs that are not finished, also running ones, and returns those it ended: they
// are failed, with who and why in their last error.
func (q *Queue) Cancel(ctx context.Context, by domain.By, ids ...domain.JobID) ([]domain.JobID, error) {
	return q.operate(ctx, "cancel", ids, func(job *domain.JobRecord) bool {
		if job.FinishedAt != nil {
			return false
		}
		q.noteOrder(domain.EventCancelled, job, by)
		if job.Status == domain.StatusPending {
			q.leaveLine(job)
		}
		job.LastError = new(cancellation(by, job.LastError))
		q.finish(job, domain.StatusFailed)
		job.FinishedBy = &by.Actor
		return true
	})
}

// cancellation is what a cancelled job says: 2,000 characters at most.
func cancellation(by domain.By, before *string) string {
	text := "cancelled by " + by.Actor
	if by.Reason != "" {
		text += ": " + by.Reason
	}
	if before != nil {
		text += "; the error before: " + *before
	}
	characters := []rune(text)
	return string(characters[:min(2000, len(characters))])
}

// Release takes claims from their workers, with the attempts refunded, and returns the jobs
// whose claims it ended. A claim that is over is left alone.
func (q *Queue) Release(ctx context.Context, by domain.By, claims ...domain.Claim) ([]domain.JobID, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("release %d jobs: %w", len(claims), err)
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	released := []domain.JobID{}
	for _, claim := range claims {
		if job := q.held(claim.WorkerID, claim); job != nil {
			q.takeBack(job, by)
			released = append(released, claim.ID)
		}
	}
	return released, nil
}

// Evict marks a worker dead, takes its claims with their attempts refunded, and returns how
// many. domain.ErrWorkerUnknown: nobody knows the worker, and it holds nothing.
func (q *Queue) Evict(ctx context.Context, by domain.By, workerID string) (released int, err error) {
	if err := ctx.Err(); err != nil {
		return 0, fmt.Errorf("evict worker %s: %w", workerID, err)
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	held, worker := q.heldBy(workerID), q.workers[workerID]
	if worker == nil && len(held) == 0 {
		return 0, fmt.Errorf("evict worker %s: %w", workerID, domain.ErrWorkerUnknown)
	}
	if worker != nil {
		worker.status = domain.WorkerDead
	}
	for _, job := range held {
		q.takeBack(job, by)
	}
	return len(held), nil
}

// takeBack ends a claim for a person, with its attempt refunded.
func (q *Queue) takeBack(job *domain.JobRecord, by domain.By) {
	q.noteOrder(domain.EventReleased, job, by)
	job.Attempts--
	q.putOff(job, 0)
}

// noteOrder leaves the event of what a person is about to do to a job.
func (q *Queue) noteOrder(kind domain.EventKind, job *domain.JobRecord, by domain.By) {
	event := aboutJob(*job)
	event.Kind, event.JobID, event.Actor = kind, new(job.ID), new(by.Actor)
	if by.Reason != "" {
		event.Detail = new(by.Reason)
	}
	if job.ClaimedBy != nil {
		event.Generation, event.Attempt, event.WorkerID = new(job.Generation), new(job.Attempts), new(*job.ClaimedBy)
	}
	q.addEvent(event)
}

func isDead(job *domain.JobRecord) bool {
	return job.Status == domain.StatusFailed || job.Status == domain.StatusDeadLetter
}

// operate changes those of the jobs that are in the inbox, each once, and returns those for
// which change says that it did.
func (q *Queue) operate(ctx context.Context, action string, ids []domain.JobID, change func(*domain.JobRecord) bool) ([]domain.JobID, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("%s %d jobs: %w", action, len(ids), err)
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	changed := []domain.JobID{}
	for _, id := range ids {
		if job := q.inbox[id]; job != nil && change(job) {
			changed = append(changed, id)
		}
	}
	return changed, nil
}
