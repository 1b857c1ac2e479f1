package simulate

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"
)

// happened lets everything happen, and returns what did, in order.
func happened(s *schedule, log *[]string) string {
	for next := s.take(); next != nil; next = s.take() {
		next.happen()
	}
	return strings.Join(*log, " ")
}

func TestSchedule_OrderDoesNotDependOnWhoPlannedFirst(t *testing.T) {
	w1, w2 := &process{number: 1}, &process{number: 2}
	plans := []struct {
		name  string
		of    *process
		what  string
		which int64
		after time.Duration
	}{
		{"story", nil, "", 1, time.Second},
		{"w1-beat", w1, "beat", 0, time.Second},
		{"w1-claim-3", w1, "claim", 3, time.Second},
		{"w1-claim-7", w1, "claim", 7, time.Second},
		{"w2-beat", w2, "beat", 0, time.Second},
		{"later", nil, "", 0, 2 * time.Second},
	}
	for range 50 {
		s, log := &schedule{now: began}, []string{}
		for _, i := range rand.Perm(len(plans)) {
			p := plans[i]
			s.plan(p.of, p.what, p.which, p.after, func() { log = append(log, p.name) })
		}
		if got := happened(s, &log); got != "story w1-beat w1-claim-3 w1-claim-7 w2-beat later" {
			t.Fatal(got)
		}
	}
}

func TestSchedule_StoppedProcessCatchesUpInOrder(t *testing.T) {
	s, log := &schedule{now: began}, []string{}
	p := &process{number: 1}
	note := func(text string) func() {
		return func() { log = append(log, text+"@"+s.now.Sub(began).String()) }
	}
	s.plan(p, "a", 0, 3*time.Second, note("third"))
	s.plan(p, "b", 0, 2*time.Second, note("second"))
	dropped := s.plan(p, "c", 0, 2*time.Second, note("dropped"))
	s.plan(p, "a", 0, 9*time.Second, note("in time"))
	s.plan(nil, "", 1, time.Second, func() { s.stop(p) })
	s.plan(nil, "", 2, 4*time.Second, func() { s.cancel(dropped) })
	s.plan(nil, "", 3, 5*time.Second, func() { s.resume(p) })
	if got := happened(s, &log); got != "second@5s third@5s in time@9s" {
		t.Error(got)
	}
}

func TestRecord_OrderOfTellingDoesNotMatter(t *testing.T) {
	w1, w2 := &process{number: 1, name: "w1"}, &process{number: 2, name: "w2"}
	told := []struct {
		of    *process
		event Event
	}{
		{nil, Event{Event: EventOutside, Text: "moved"}},
		{w1, Event{Event: EventReclaimed, Text: "reclaimed-4", seq: 4}},
		{w1, Event{Event: EventReclaimed, Text: "reclaimed-9", seq: 9}},
		{w1, Event{Event: EventDid, Text: "did", seq: 1}},
		{w2, Event{Event: EventLost, Text: "lost", seq: 2}},
		{w2, Event{Event: EventSkipped, Text: "skipped", seq: 1}},
	}
	for range 50 {
		r := newRecord()
		r.show(EventOutside, EventReclaimed, EventDid, EventLost, EventSkipped)
		for _, i := range rand.Perm(len(told)) {
			r.note(told[i].of, told[i].event)
		}
		r.flush(time.Second)
		var texts []string
		for _, event := range r.events {
			texts = append(texts, event.Text)
		}
		if want := []string{"moved", "reclaimed-4", "reclaimed-9", "did", "lost", "skipped"}; !slices.Equal(texts, want) {
			t.Fatal(texts)
		}
	}
}
