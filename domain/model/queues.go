package model

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/holdfast-pg/holdfast/domain"
)

// SetQueue changes the settings of a queue that are given, and creates the queue if it does
// not exist. Ordered is fixed while the queue has jobs that may run again.
func (q *Queue) SetQueue(ctx context.Context, name string, change domain.QueueChange) (domain.QueueSettings, error) {
	if err := ctx.Err(); err != nil {
		return domain.QueueSettings{}, fmt.Errorf("set queue %q: %w", name, err)
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	before, exists := q.queues[name]
	if !exists {
		before = domain.DefaultQueueSettings(name)
	}
	after, err := change.Apply(before)
	if err == nil && after.Ordered != before.Ordered && q.mayRun(name) {
		err = &domain.InvalidError{Field: "ordered", Reason: "the queue has jobs that may run again"}
	}
	if err != nil {
		return domain.QueueSettings{}, fmt.Errorf("set queue %q: %w", name, err)
	}
	q.queues[name] = after
	return after, nil
}

// mayRun tells whether a queue has jobs that may run again: all but the completed ones.
func (q *Queue) mayRun(queue string) bool {
	for _, job := range q.inbox {
		if job.Queue == queue && job.Status != domain.StatusCompleted {
			return true
		}
	}
	return false
}

// PauseQueue stops claims from a queue; what is claimed runs on.
func (q *Queue) PauseQueue(ctx context.Context, name string) error {
	return q.setPaused(ctx, "pause", name, true)
}

// ResumeQueue lets a queue's jobs be claimed again.
func (q *Queue) ResumeQueue(ctx context.Context, name string) error {
	return q.setPaused(ctx, "resume", name, false)
}

func (q *Queue) setPaused(ctx context.Context, action, name string, paused bool) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("%s queue %q: %w", action, name, err)
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	settings, exists := q.queues[name]
	if !exists {
		return fmt.Errorf("%s queue %q: %w", action, name, domain.ErrUnknownQueue)
	}
	settings.Paused = paused
	q.queues[name] = settings
	return nil
}

// FindQueue returns the settings of a queue.
func (q *Queue) FindQueue(ctx context.Context, name string) (domain.QueueSettings, error) {
	if err := ctx.Err(); err != nil {
		return domain.QueueSettings{}, fmt.Errorf("find queue %q: %w", name, err)
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	settings, exists := q.queues[name]
	if !exists {
		return settings, fmt.Errorf("find queue %q: %w", name, domain.ErrUnknownQueue)
	}
	return settings, nil
}

// ListQueues returns the settings of all queues in the order of their names, at most limit.
func (q *Queue) ListQueues(ctx context.Context, limit int) ([]domain.QueueSettings, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("list queues: %w", err)
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	queues := []domain.QueueSettings{}
	for _, name := range slices.Sorted(maps.Keys(q.queues)) {
		if len(queues) < limit {
			queues = append(queues, q.queues[name])
		}
	}
	return queues, nil
}

// ensureQueue returns the settings of a queue, which is created unless it exists.
func (q *Queue) ensureQueue(name string) domain.QueueSettings {
	if _, exists := q.queues[name]; !exists {
		q.queues[name] = domain.DefaultQueueSettings(name)
	}
	return q.queues[name]
}
