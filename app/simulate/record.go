package simulate

import (
	"cmp"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/holdfast-pg/holdfast/domain"
	"github.com/holdfast-pg/holdfast/worker"
)

// record is what happened in a scene. Any goroutine tells; the one of the schedule writes down,
// while all others rest.
type record struct {
	telling sync.Mutex
	heard   []Event // Since the last flush, in no order.

	shows   map[EventKind]bool // What stands in the rows.
	ended   bool               // What comes is no part of the scene.
	events  []Event
	counts  Counts
	waits   map[string][]time.Duration // By partition key.
	running map[string]int             // Runs, by partition key.
	given   map[int]int                // Buckets that workers gave up when they saw so many workers,
	taken   map[int]int                // and that those took that had some.
	lanes   []*lane
	open    int // Jobs that are not done. Guarded by nobody: it changes while all others rest.
}

// lane is where a process stands.
type lane struct {
	Lane

	number    int            // The process's.
	unsettled int            // Runs whose results are not answered.
	keys      map[string]int // Runs, by partition key.

	joinedWith int // The buckets it owned first.
}

func newRecord() record {
	return record{shows: map[EventKind]bool{}, waits: map[string][]time.Duration{}, running: map[string]int{}, given: map[int]int{}, taken: map[int]int{}}
}

// show lets events of these kinds stand in the rows.
func (r *record) show(kinds ...EventKind) {
	for _, each := range kinds {
		r.shows[each] = true
	}
}

// note hears of an event.
func (r *record) note(p *process, event Event) {
	r.telling.Lock()
	defer r.telling.Unlock()
	event.of = p
	if p != nil {
		event.Worker = p.name
	}
	r.heard = append(r.heard, event)
}

// noteEnqueued hears of a request.
func (r *record) noteEnqueued(duplicate bool) {
	if duplicate {
		r.note(nil, Event{Event: eventDuplicate})
	} else {
		r.note(nil, Event{Event: eventEnqueued})
	}
}

// end says that the scene is over.
func (r *record) end() { r.ended = true }

// flush writes down what was heard of one moment, in an order that goroutines do not decide.
func (r *record) flush(at time.Duration) {
	r.telling.Lock()
	heard := r.heard
	r.heard = nil
	r.telling.Unlock()
	if r.ended {
		return
	}
	slices.SortStableFunc(heard, func(a, b Event) int {
		return cmp.Or(cmp.Compare(a.of.rank(), b.of.rank()), cmp.Compare(ranks[a.Event], ranks[b.Event]), cmp.Compare(a.seq, b.seq))
	})
	for _, event := range heard {
		event.At = seconds(at)
		r.apply(&event)
		if r.shows[event.Event] {
			event.Lanes = r.snapshot()
			r.events = append(r.events, event)
		}
	}
}

func (r *record) snapshot() []Lane {
	lanes := make([]Lane, len(r.lanes))
	for i, each := range r.lanes {
		lanes[i] = each.Lane
	}
	return lanes
}

// apply counts an event, and moves the lane of its process.
func (r *record) apply(event *Event) {
	switch event.Event {
	case eventEnqueued:
		r.counts.Enqueued++
		r.open++
	case eventDuplicate:
		r.counts.Duplicates++
	case EventJoined:
		r.join(event.of)
	case EventRing:
		event.of.lane.Buckets = event.ring.Buckets
		if event.ring.Before == 0 {
			event.of.lane.joinedWith = event.ring.Buckets
		}
		r.shift(event.ring)
	case EventPaused, EventWoken, EventKilled, EventDraining, EventLeft:
		r.move(event.of, event.Event)
	case EventStarted:
		r.begin(event)
	case EventEnded:
		r.finish(event.of, event.key)
	case EventSettled, EventResultRefused:
		r.settled(event)
	case EventReclaimed:
		r.counts.Reclaimed++
		if event.status == domain.StatusDeadLetter {
			r.open--
		}
	case EventRepeated:
		r.counts.Repeated++
	case EventEarly:
		r.counts.OutOfOrder++
	case EventWriteRefused:
		r.counts.WritesRefused++
	case EventLostUpdate:
		r.counts.LostUpdates++
	default: // It is shown, and nothing more.
	}
}

func (r *record) join(p *process) {
	if !slices.Contains(r.lanes, &p.lane) {
		p.lane.number, p.lane.keys = p.number, map[string]int{}
		r.lanes = append(r.lanes, &p.lane)
		slices.SortFunc(r.lanes, func(a, b *lane) int { return cmp.Compare(a.number, b.number) })
	}
	p.lane.State = StateWorking
}

// shift counts the buckets that change hands.
func (r *record) shift(changed worker.RingChanged) {
	if changed.Before > 0 {
		r.given[changed.Workers] += max(0, changed.Before-changed.Buckets)
		r.taken[changed.Workers] += max(0, changed.Buckets-changed.Before)
	}
}

func (r *record) move(p *process, event EventKind) {
	p.lane.State = map[EventKind]State{
		EventPaused: StatePaused, EventWoken: StateWorking, EventKilled: StateKilled, EventDraining: StateDraining, EventLeft: StateLeft,
	}[event]
	if event != EventKilled {
		return
	}
	for _, key := range slices.Sorted(maps.Keys(p.lane.keys)) {
		for p.lane.keys[key] > 0 {
			r.finish(p, key)
		}
	}
}

func (r *record) begin(event *Event) {
	r.counts.Runs++
	if r.running[event.key] > 0 {
		r.counts.Overlaps++
	}
	r.running[event.key]++
	r.waits[event.key] = append(r.waits[event.key], event.waited)
	event.of.lane.keys[event.key]++
	event.of.lane.Running++
	event.of.lane.unsettled++
}

// finish says that a handler does nothing any more.
func (r *record) finish(p *process, key string) {
	r.running[key]--
	p.lane.keys[key]--
	p.lane.Running--
}

func (r *record) settled(event *Event) {
	event.of.lane.unsettled--
	if event.Event == EventResultRefused {
		r.counts.ResultsRefused++
		return
	}
	switch event.status {
	case domain.StatusCompleted:
		r.counts.Done++
		r.open--
	case domain.StatusFailed, domain.StatusDeadLetter:
		r.open--
	default: // It runs again.
	}
}

// waitsOf returns how long the runs of some keys have waited.
func (r *record) waitsOf(belongs func(key string) bool) *Waits {
	var all []time.Duration
	for key, waits := range r.waits {
		if belongs(key) {
			all = append(all, waits...)
		}
	}
	if len(all) == 0 {
		return nil
	}
	slices.Sort(all)
	rank := func(percent int) float64 { return seconds(all[(percent*len(all)+99)/100-1]) }
	return &Waits{P50: rank(50), P99: rank(99)}
}

// seconds are those of a duration, to the microsecond.
func seconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1e6 }

// isLost tells whether a settlement was refused because its claim is over.
func isLost(err error) bool { return errors.Is(err, domain.ErrLeaseLost) }
