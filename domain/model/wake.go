package model

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/holdfast-pg/holdfast/domain"
)

// ringWindow is how soon a new job must be due to ring: later ones are found by idle workers.
const ringWindow = 2 * time.Second

// bell is a queue that a worker wants to be woken by.
type bell struct {
	queue, workerID string
}

// Arm says that the worker wants to be woken by enqueues to the queues.
func (q *Queue) Arm(ctx context.Context, workerID string, queues []string) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("ask to be woken: %w", err)
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, queue := range queues {
		q.armed[bell{queue, workerID}] = true
	}
	return nil
}

// Disarm says that the worker need not be woken.
func (q *Queue) Disarm(ctx context.Context, workerID string, queues []string) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("ask not to be woken: %w", err)
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, queue := range queues {
		delete(q.armed, bell{queue, workerID})
	}
	return nil
}

// Listen passes rings on until the context ends.
func (q *Queue) Listen(ctx context.Context, ready func(), hear func(domain.Ring)) error {
	rings := make(chan domain.Ring, 1000)
	q.mu.Lock()
	q.listeners = append(q.listeners, rings)
	q.mu.Unlock()
	defer func() {
		q.mu.Lock()
		defer q.mu.Unlock()
		q.listeners = slices.DeleteFunc(q.listeners, func(each chan domain.Ring) bool { return each == rings })
	}()
	ready()
	for {
		select {
		case ring := <-rings:
			hear(ring)
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// ring tells listeners of a new job, if anybody wants to be woken. A listener with a thousand
// rings to hear misses the next one.
func (q *Queue) ring(job *domain.JobRecord) {
	if !q.queues[job.Queue].Ring || job.AvailableAt.Sub(q.now()) >= ringWindow || !q.isArmed(job.Queue) {
		return
	}
	for _, listener := range q.listeners {
		select {
		case listener <- domain.Ring{Queue: job.Queue, Bucket: job.Bucket}:
		default:
		}
	}
}

func (q *Queue) isArmed(queue string) bool {
	for each := range q.armed {
		if each.queue == queue {
			return true
		}
	}
	return false
}

// disarmDead forgets that workers want to be woken that are not alive.
func (q *Queue) disarmDead() (disarmed int64) {
	for each := range q.armed {
		if worker := q.workers[each.workerID]; worker == nil || worker.status != domain.WorkerAlive {
			delete(q.armed, each)
			disarmed++
		}
	}
	return disarmed
}

// NextDue tells how long it takes until the next job of the buckets is due; the horizon when
// none is due within it. Jobs of ordered queues are not looked at.
func (q *Queue) NextDue(ctx context.Context, queue string, buckets []int, horizon time.Duration) (time.Duration, error) {
	if err := ctx.Err(); err != nil {
		return 0, fmt.Errorf("look for the next job of queue %q: %w", queue, err)
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	now := q.now()
	wait := horizon
	for _, bucket := range buckets {
		for _, job := range q.lines[place{queue, bucket}] {
			if until := job.AvailableAt.Sub(now); until > 0 {
				wait = min(wait, until)
				break
			}
		}
	}
	return wait, nil
}
