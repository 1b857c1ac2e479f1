package telemetry

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"go.opentelemetry.io/otel/metric"

	"github.com/holdfast-pg/holdfast/domain"
)

const (
	// ageHolds is for how long an age that was read is told again, however often it is asked for.
	ageHolds = 15 * time.Second

	// agePatience bounds the statement: a scrape must not wait for a database in trouble.
	agePatience = 2 * time.Second
)

// WatchQueues measures how long the oldest job of each queue has been due, with two statements a
// queue that cost the same at any backlog: when metrics are collected, and every 15 s at most.
// A queue whose age cannot be read, and one that is ordered, has none. Call stop to end it.
func (t *Telemetry) WatchQueues(db domain.DBTX, queues ...string) (stop func() error, err error) {
	age, err := t.meter.Float64ObservableGauge(oldestReadyAge.Name, metric.WithUnit(oldestReadyAge.Unit), metric.WithDescription(oldestReadyAge.Meaning))
	if err != nil {
		return nil, fmt.Errorf("make the instrument %s: %w", oldestReadyAge.Name, err)
	}
	ages := &queueAges{db: db, queues: queues}
	watched, err := t.meter.RegisterCallback(func(ctx context.Context, observer metric.Observer) error {
		for queue, seconds := range ages.read(ctx, time.Now()) {
			observer.ObserveFloat64(age, seconds, metric.WithAttributeSet(label{queue: queue}.set()))
		}
		return nil
	}, age)
	if err != nil {
		return nil, fmt.Errorf("watch the queues: %w", err)
	}
	return watched.Unregister, nil
}

// queueAges remember what was read last.
type queueAges struct {
	db     domain.DBTX
	queues []string

	mutex sync.Mutex
	at    time.Time
	known map[string]float64 // Seconds, by queue.
}

// read returns the age of each queue.
func (a *queueAges) read(ctx context.Context, now time.Time) map[string]float64 {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	if a.known != nil && now.Sub(a.at) < ageHolds {
		return a.known
	}
	bounded, cancel := context.WithTimeout(ctx, agePatience)
	defer cancel()
	a.at, a.known = now, map[string]float64{}
	for _, queue := range a.queues {
		if age, known := readAge(bounded, a.db, queue); known {
			a.known[queue] = age.Seconds()
		}
	}
	return a.known
}

func readAge(ctx context.Context, db domain.DBTX, queue string) (age time.Duration, known bool) {
	settings, err := domain.FindQueue(ctx, db, queue)
	if errors.Is(err, domain.ErrUnknownQueue) {
		return 0, true // Nobody has enqueued to it.
	}
	if err != nil || settings.Ordered {
		return 0, false // The statement does not look into lanes.
	}
	oldest, err := domain.OldestPendingJob(ctx, db, queue)
	return oldest.Age, err == nil || errors.Is(err, domain.ErrNotFound)
}
