package worker

import (
	"slices"
	"sync"
	"time"

	"github.com/holdfast-pg/holdfast/domain"
)

const (
	// settleBatch bounds how many results one flush records, and how many wait for the next one
	// meanwhile.
	settleBatch = 1000

	// smallFlush is how many results a flush records at least if another one follows at once.
	smallFlush = 300

	// A small flush is followed by a rest flushRest times as long as itself, and longestFlushRest
	// at most.
	flushRest        = 5
	longestFlushRest = 10 * time.Millisecond
)

// results are outcomes on their way to the database. Handlers wait, slot in hand, while too
// many are unanswered: that keeps the loop from claiming more than it can record.
type results struct {
	arrived chan struct{} // Holds a token when results wait.
	hurried chan struct{} // Holds a token when a flush should not wait.
	closed  chan struct{}

	mutex    sync.Mutex
	room     *sync.Cond // Results were taken, or no more are.
	waiting  []result
	isClosed bool
}

type result struct {
	run         *run
	outcome     domain.Outcome
	unconfirmed bool // It was sent before and got no reply.
	refused     bool // The database has refused to record what the handler said.
}

func newResults() *results {
	r := &results{arrived: make(chan struct{}, 1), hurried: make(chan struct{}, 1), closed: make(chan struct{})}
	r.room = sync.NewCond(&r.mutex)
	return r
}

// add hands a result over, and in synchronous mode waits until it is recorded. After close it
// is dropped.
func (r *results) add(finished result) {
	if !r.enter(finished) || finished.run.recorded == nil {
		return
	}
	select {
	case <-finished.run.recorded:
	case <-r.closed:
	}
}

func (r *results) enter(finished result) bool {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	for len(r.waiting) >= settleBatch && !r.isClosed {
		r.room.Wait()
	}
	if r.isClosed {
		return false
	}
	r.waiting = append(r.waiting, finished)
	if len(r.waiting) == 1 {
		signal(r.arrived)
	}
	if finished.run.recorded != nil || finished.run.ordered || len(r.waiting) >= settleBatch {
		signal(r.hurried)
	}
	return true
}

// signal puts a token into a channel that holds one.
func signal(channel chan struct{}) {
	select {
	case channel <- struct{}{}:
	default:
	}
}

// rest waits for the time, but not while a handler or the next job of a key waits for the answer or
// a batch is full, nor once no result comes any more.
func (r *results) rest(clock Clock, d time.Duration) {
	fired, stop := clock.NewTimer(d)
	defer stop()
	select {
	case <-fired:
	case <-r.hurried:
	case <-r.closed:
	}
}

// close says that no result comes any more.
func (r *results) close() {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.isClosed = true
	close(r.closed)
	r.room.Broadcast()
}

// gather waits for a result and takes what else is there, up to a batch, behind what is left
// of earlier flushes. It returns nothing when no result comes any more.
func (r *results) gather(unsettled []result) []result {
	for {
		if gathered := r.take(unsettled); len(gathered) > 0 {
			return gathered
		}
		select {
		case <-r.arrived:
		case <-r.closed:
			return r.take(nil) // What came in between.
		}
	}
}

func (r *results) take(unsettled []result) []result {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	taken := min(len(r.waiting), max(0, settleBatch-len(unsettled)))
	unsettled = append(unsettled, r.waiting[:taken]...)
	r.waiting = slices.Delete(r.waiting, 0, taken)
	r.room.Broadcast()
	return unsettled
}
