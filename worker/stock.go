package worker

import (
	"sync"
	"time"
)

// stock is the jobs that are claimed and not started, and the slots that they wait for. A slot
// is free, or held by a handler.
type stock struct {
	roomy chan struct{} // Holds a token when there is room since somebody found none.

	mutex   sync.Mutex
	came    *sync.Cond // A job came, or the stock was closed.
	waiting []*run     // Oldest first.
	slots   int
	busy    int  // Slots held by handlers.
	ahead   int  // How many jobs may wait beyond the free slots.
	wanted  bool // Somebody found no room.
	closed  bool
}

func newStock(slots int) *stock {
	k := &stock{roomy: make(chan struct{}, 1), slots: slots}
	k.came = sync.NewCond(&k.mutex)
	return k
}

// put adds jobs.
func (k *stock) put(jobs []*run) {
	k.mutex.Lock()
	defer k.mutex.Unlock()
	k.waiting = append(k.waiting, jobs...)
	for range min(len(jobs), k.slots) {
		k.came.Signal()
	}
}

// take waits for a job and holds a slot for it, until done. nil: the stock is closed.
func (k *stock) take() *run {
	k.mutex.Lock()
	defer k.mutex.Unlock()
	for len(k.waiting) == 0 {
		if k.closed {
			return nil
		}
		k.came.Wait()
	}
	k.busy++
	return k.shift()
}

// done frees a slot.
func (k *stock) done() {
	k.mutex.Lock()
	defer k.mutex.Unlock()
	k.busy--
	if !k.wanted || k.space() == 0 {
		return
	}
	k.wanted = false
	signal(k.roomy)
}

// room tells how many jobs to claim when so many may wait beyond the free slots: none before
// half of those have started, so that claims are few and large. When there is none, a token
// comes through roomy as soon as there is.
func (k *stock) room(ahead int) int {
	k.mutex.Lock()
	defer k.mutex.Unlock()
	k.ahead = ahead
	space := k.space()
	k.wanted = space == 0
	return space
}

func (k *stock) space() int {
	excess := k.excess()
	if excess > k.ahead/2 {
		return 0
	}
	return max(0, k.ahead-excess)
}

// excess is how many more jobs wait than slots are free; below zero, how many fewer.
func (k *stock) excess() int {
	return len(k.waiting) + k.busy - k.slots
}

// oldest tells when the job was claimed that has waited for longest.
func (k *stock) oldest() (claimed time.Time, some bool) {
	k.mutex.Lock()
	defer k.mutex.Unlock()
	if len(k.waiting) == 0 {
		return time.Time{}, false
	}
	return k.waiting[0].claimed, true
}

// removeOlder takes out the jobs that were claimed before then.
func (k *stock) removeOlder(then time.Time) (old []*run) {
	k.mutex.Lock()
	defer k.mutex.Unlock()
	for len(k.waiting) > 0 && k.waiting[0].claimed.Before(then) {
		old = append(old, k.shift())
	}
	return old
}

// removeExcess takes out the jobs for which no slot is free.
func (k *stock) removeExcess() []*run {
	k.mutex.Lock()
	defer k.mutex.Unlock()
	keep := len(k.waiting) - max(0, k.excess())
	removed := k.waiting[keep:]
	k.waiting = k.waiting[:keep:keep]
	return removed
}

// close says that no job comes any more; those that wait are still taken.
func (k *stock) close() {
	k.mutex.Lock()
	defer k.mutex.Unlock()
	k.closed = true
	k.came.Broadcast()
}

func (k *stock) shift() *run {
	first := k.waiting[0]
	k.waiting[0] = nil
	k.waiting = k.waiting[1:]
	return first
}
