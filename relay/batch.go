package relay

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// parcel is a message in a slot of the worker.
type parcel struct {
	ctx     context.Context // The handler's: over when the lease is lost.
	message Message
	result  chan error // Takes one.
}

// batches are parcels on their way to the publisher. While one batch is published the next one
// gathers, so that batches are as large as the destination is slow, without a timer.
type batches struct {
	most    int
	arrived chan struct{} // Holds a token when parcels wait.

	mutex   sync.Mutex
	waiting []*parcel
}

func newBatches(most int) *batches {
	return &batches{most: most, arrived: make(chan struct{}, 1)}
}

func (b *batches) add(parcel *parcel) {
	b.mutex.Lock()
	b.waiting = append(b.waiting, parcel)
	b.mutex.Unlock()
	b.ring()
}

func (b *batches) ring() {
	select {
	case b.arrived <- struct{}{}:
	default:
	}
}

// take returns the parcels of the next batch, without those whose handler has gone.
func (b *batches) take() []*parcel {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	var taken []*parcel
	seen := 0
	for _, parcel := range b.waiting {
		if len(taken) == b.most {
			break
		}
		seen++
		if parcel.ctx.Err() == nil {
			taken = append(taken, parcel)
		}
	}
	b.waiting = append([]*parcel(nil), b.waiting[seen:]...)
	if len(b.waiting) > 0 {
		b.ring()
	}
	return taken
}

// publishLoop publishes one batch after the other until the context ends.
func (r *Relay) publishLoop(ctx context.Context) {
	for {
		select {
		case <-r.batches.arrived:
			if taken := r.batches.take(); len(taken) > 0 {
				r.publish(ctx, taken)
			}
		case <-ctx.Done():
			return
		}
	}
}

// publish hands a batch over and gives each parcel its result. If the destination is away, that
// is known before a handler returns, so that what it gives back is not claimed again.
func (r *Relay) publish(ctx context.Context, taken []*parcel) {
	messages := make([]Message, len(taken))
	for i, parcel := range taken {
		messages[i] = parcel.message
	}
	var results []error
	if r.gate.IsClosed() { // They were in hand when it closed.
		results = All(messages, NotNow(0, errAway))
	} else {
		results = r.send(ctx, messages)
		r.note(results)
	}
	for i, parcel := range taken {
		parcel.result <- results[i]
	}
}

var errAway = errors.New("the destination is away")

// send calls the publisher within the time of a batch. Whatever it does, each message gets an
// answer.
func (r *Relay) send(ctx context.Context, messages []Message) (results []error) {
	call, cancel := context.WithTimeout(ctx, r.config.Timeout)
	defer cancel()
	defer func() {
		if value := recover(); value != nil {
			results = All(messages, fmt.Errorf("the publisher panicked: %v", value))
		}
	}()
	began := time.Now()
	results = r.publisher.Publish(call, messages)
	if len(results) != len(messages) {
		return All(messages, fmt.Errorf("the publisher gave %d results for %d messages", len(results), len(messages)))
	}
	r.log.Debug("batch published", "messages", len(messages), "took", time.Since(began))
	return results
}
