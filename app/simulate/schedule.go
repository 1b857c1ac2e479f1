package simulate

import (
	"cmp"
	"container/heap"
	"sync"
	"time"
)

// schedule is the virtual time, and what is to happen in it. Any goroutine may plan; one takes.
type schedule struct {
	mutex  sync.Mutex
	now    time.Time
	coming moments
}

// moment is something that is to happen at a time.
type moment struct {
	at  time.Time
	due time.Time // When it was first planned for: earlier, if its process was stopped then.

	// Of moments of the same time, these say which comes first.
	of    *process // nil stands for the story itself, which is before every process.
	what  string
	which int64

	happen func()
	place  int  // Among those to come; below zero: not there.
	over   bool // It has happened, or is not to happen.
}

// Now returns the time.
func (s *schedule) Now() time.Time {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return s.now
}

// plan lets something happen after a time. What happens must not wait.
func (s *schedule) plan(of *process, what string, which int64, after time.Duration, happen func()) *moment {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	at := s.now.Add(max(0, after))
	m := &moment{at: at, due: at, of: of, what: what, which: which, happen: happen}
	heap.Push(&s.coming, m)
	return m
}

// cancel keeps a moment from happening.
func (s *schedule) cancel(m *moment) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if m.over {
		return
	}
	m.over = true
	if m.place >= 0 {
		heap.Remove(&s.coming, m.place)
	}
}

// take moves the time on to the next moment and returns it; nil when nothing is to come. What is
// to happen to a stopped process waits until it goes on.
func (s *schedule) take() *moment {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	for len(s.coming) > 0 {
		next := heap.Pop(&s.coming).(*moment)
		s.now = next.at
		if next.of != nil && next.of.stopped {
			next.of.missed = append(next.of.missed, next)
			continue
		}
		next.over = true
		return next
	}
	return nil
}

// stop keeps everything from happening to a process.
func (s *schedule) stop(p *process) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	p.stopped = true
}

// resume lets a stopped process go on: what it has missed happens, in the order in which it was
// to happen.
func (s *schedule) resume(p *process) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	p.stopped = false
	for _, m := range p.missed {
		if !m.over {
			m.at = s.now
			heap.Push(&s.coming, m)
		}
	}
	p.missed = nil
}

// moments are a heap, the next one first.
type moments []*moment

func (m moments) Len() int { return len(m) }

func (m moments) Less(i, j int) bool {
	a, b := m[i], m[j]
	return cmp.Or(a.at.Compare(b.at), a.due.Compare(b.due), cmp.Compare(a.of.rank(), b.of.rank()),
		cmp.Compare(a.what, b.what), cmp.Compare(a.which, b.which)) < 0
}

func (m moments) Swap(i, j int) {
	m[i], m[j] = m[j], m[i]
	m[i].place, m[j].place = i, j
}

// Push implements heap.Interface.
func (m *moments) Push(added any) {
	next := added.(*moment)
	next.place = len(*m)
	*m = append(*m, next)
}

// Pop implements heap.Interface.
func (m *moments) Pop() any {
	last := (*m)[len(*m)-1]
	*m = (*m)[:len(*m)-1]
	last.place = -1
	return last
}
