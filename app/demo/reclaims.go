package demo

import (
	"cmp"
	"maps"
	"slices"
	"sync"
)

// reclaims gathers what the workers log of reclaims, one line a job, to tell it by the set.
type reclaims struct {
	mutex  sync.Mutex
	from   map[string]int // Jobs reclaimed from each worker id.
	untold map[handover]int
	grew   bool // Since the last look: the worker may be about to log more of the same.
}

// handover is what one worker reclaims from another, by their names.
type handover struct{ by, from string }

func newReclaims() *reclaims {
	return &reclaims{from: map[string]int{}, untold: map[handover]int{}}
}

func (r *reclaims) add(workerID string, h handover) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.from[workerID]++
	r.untold[h]++
	r.grew = true
}

// countFrom counts the jobs reclaimed from one worker.
func (r *reclaims) countFrom(workerID string) int {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	return r.from[workerID]
}

// take passes on what is to be told, in the order of names; nothing while it still grows,
// unless all of it is wanted.
func (r *reclaims) take(all bool, tell func(h handover, jobs int)) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if r.grew && !all {
		r.grew = false
		return
	}
	byName := func(a, b handover) int { return cmp.Or(cmp.Compare(a.from, b.from), cmp.Compare(a.by, b.by)) }
	for _, h := range slices.SortedFunc(maps.Keys(r.untold), byName) {
		tell(h, r.untold[h])
	}
	clear(r.untold)
}

// tellReclaims tells what has been reclaimed since it was last told.
func (s *show) tellReclaims(all bool) {
	s.reclaims.take(all, func(h handover, jobs int) {
		if jobs == 1 {
			s.story.tell("%s reclaims 1 job of %s: its lease has ended", h.by, h.from)
			return
		}
		s.story.tell("%s reclaims %d jobs of %s: their leases have ended", h.by, jobs, h.from)
	})
}
