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

// Look tells what there is to claim, without claiming. Of a paused queue nothing is seen.
func (q *Queue) Look(ctx context.Context, request domain.LookRequest) (domain.Outlook, error) {
	if err := ctx.Err(); err != nil {
		return domain.Outlook{}, fmt.Errorf("look around in queue %q: %w", request.Queue, err)
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	outlook := domain.Outlook{NextDue: request.Horizon}
	if settings, known := q.queues[request.Queue]; !known || settings.Paused {
		return outlook, nil
	}
	long := q.now().Add(-request.DueFor)
	for _, bucket := range request.Own {
		if first, some := q.firstDue(place{request.Queue, bucket}, request.Lanes, long); some {
			outlook.NextDue = min(outlook.NextDue, max(0, first.Sub(q.now())))
		}
	}
	for _, bucket := range request.Others {
		first, some := q.firstDue(place{request.Queue, bucket}, request.Lanes, long)
		outlook.Strays = outlook.Strays || some && !first.After(long)
	}
	for _, bucket := range slices.Concat(request.Own, request.Others) {
		first, some := q.firstDue(place{request.Queue, bucket}, !request.Lanes, long)
		outlook.Misfits = outlook.Misfits || some && !first.After(long)
	}
	return outlook, nil
}

// firstDue returns when the first job of a bucket is due; one in a lane was due by then.
func (q *Queue) firstDue(where place, inLanes bool, then time.Time) (first time.Time, some bool) {
	if inLanes {
		return then, q.lanes[where].wait()
	}
	if line := q.lines[where]; len(line) > 0 {
		return line[0].AvailableAt, true
	}
	return time.Time{}, false
}
