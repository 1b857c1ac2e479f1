package model

import (
	"context"
	"fmt"
	"time"

	"github.com/holdfast-pg/holdfast/domain"
)

// QueueSettings hold for every job of a queue.
type QueueSettings struct {
	Ordered      bool                 // Stamped on each job when it is enqueued.
	Paused       bool                 // No job is claimed.
	MaxAttempts  int                  // Of jobs whose enqueue says nothing else.
	Retention    domain.RetentionMode // What a completion does with a job; stamped on each claim.
	KeepFor      time.Duration        // In mode keep: how long a completed job stays in the inbox.
	RetainFor    time.Duration        // How long a completed job can be found at least.
	DedupeWindow time.Duration        // How long an idempotency key stays taken once its job may run.
	Ring         bool                 // An enqueue may wake a worker.
}

// DefaultQueueSettings are those of a queue that came to be by its first enqueue.
func DefaultQueueSettings() QueueSettings {
	return QueueSettings{
		MaxAttempts:  5,
		Retention:    domain.RetentionArchive,
		KeepFor:      24 * time.Hour,
		RetainFor:    7 * 24 * time.Hour,
		DedupeWindow: 7 * 24 * time.Hour,
		Ring:         true,
	}
}

// SetQueue creates a queue with the settings, or gives them to it if it exists.
func (q *Queue) SetQueue(name string, settings QueueSettings) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.queues[name] = settings
}

// QueueSettings returns the settings of a queue; false when there is none.
func (q *Queue) QueueSettings(name string) (settings QueueSettings, exists bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	settings, exists = q.queues[name]
	return settings, exists
}

// ensureQueue returns the settings of a queue, which is created unless it exists.
func (q *Queue) ensureQueue(name string) QueueSettings {
	if _, exists := q.queues[name]; !exists {
		q.queues[name] = DefaultQueueSettings()
	}
	return q.queues[name]
}

// Redrive puts failed and dead-lettered jobs back to pending with all their attempts and
// returns those it changed; the others were in no such state. The error of the last attempt
// stays.
func (q *Queue) Redrive(ctx context.Context, ids ...domain.JobID) ([]domain.JobID, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("redrive %d jobs: %w", len(ids), err)
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	redriven := []domain.JobID{}
	for _, id := range ids {
		job := q.inbox[id]
		if job == nil || job.Status != domain.StatusFailed && job.Status != domain.StatusDeadLetter {
			continue
		}
		job.Attempts = 0
		job.FinishedAt, job.FinishedBy = nil, nil
		q.putOff(job, 0)
		redriven = append(redriven, id)
	}
	return redriven, nil
}
