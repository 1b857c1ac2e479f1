package protocol

import (
	"errors"
	"fmt"
	"hash/maphash"
	"slices"
	"strings"
)

// ErrTooLarge says that there are more states than were allowed.
var ErrTooLarge = errors.New("there are more states than the limit")

// Violation is a broken promise, and the fewest steps to it from the first state.
type Violation struct {
	Promise Promise
	Path    []string
}

// String says what broke, and how, a step a line.
func (v *Violation) String() string {
	return fmt.Sprintf("broke %q:\n  %s", v.Promise, strings.Join(v.Path, "\n  "))
}

// Report is what an exploration saw.
type Report struct {
	States, Transitions int
	Steps               [len(kinds)][len(stages)]int // How often each was taken.
	Violation           *Violation
}

// node is a state that was reached, and how.
type node struct {
	state state
	from  int32
	by    step
}

// exploration goes breadth first, so that the first violation is one with the fewest steps.
type exploration struct {
	Bounds

	report Report
	nodes  []node
	// known has the nodes by the hashes of their states; two states of one hash would stop it.
	known map[uint64]int32
	seed  maphash.Seed
	// next has, in the order of nodes, the nodes that follow each; ends[i] is where those of i end.
	next []int32
	ends []int
}

// Explore visits every state that can be reached, at most so many, and stops at the first
// broken promise. If there is none, it looks for dead ends: states from which no steps lead to
// one in which every job is terminal. Not all who could act then must act, but some can: a
// crashed worker takes none of them.
func Explore(bounds Bounds, limit int) (Report, error) {
	e := exploration{Bounds: bounds, known: make(map[uint64]int32, 1<<16), seed: maphash.MakeSeed()}
	if _, err := e.add(node{state: bounds.first(), from: -1}); err != nil {
		return e.report, err
	}
	for at := 0; at < len(e.nodes); at++ {
		if len(e.nodes) > limit {
			return e.report, ErrTooLarge
		}
		if err := e.expand(at); err != nil || e.report.Violation != nil {
			return e.report, err
		}
	}
	e.findDeadEnd()
	return e.report, nil
}

func (e *exploration) expand(at int) error {
	var failure error
	m := moves{Bounds: e.Bounds, now: e.nodes[at].state}
	m.emit = func(what step, next state, broken Promise) {
		e.report.Transitions++
		e.report.Steps[what.kind][what.stage]++
		switch {
		case failure != nil || e.report.Violation != nil:
			return
		case broken != kept:
			e.report.Violation = &Violation{broken, append(e.path(at), what.String())}
			return
		case next == m.now:
			return
		}
		var found int32
		found, failure = e.add(node{next, int32(at), what})
		e.next = append(e.next, found)
	}
	m.all()
	e.ends = append(e.ends, len(e.next))
	return failure
}

// add returns the number of a node, which is new or known.
func (e *exploration) add(n node) (int32, error) {
	hash := maphash.Comparable(e.seed, n.state)
	if known, ok := e.known[hash]; ok {
		if e.nodes[known].state != n.state {
			return 0, errors.New("two states have the same hash: explore again")
		}
		return known, nil
	}
	number := int32(len(e.nodes))
	e.known[hash] = number
	e.nodes = append(e.nodes, n)
	e.report.States++
	return number, nil
}

// path says the steps from the first state to a node.
func (e *exploration) path(at int) []string {
	var said []string
	for ; e.nodes[at].from >= 0; at = int(e.nodes[at].from) {
		said = append(said, e.nodes[at].by.String())
	}
	slices.Reverse(said)
	return said
}

// findDeadEnd marks the nodes from which an end can be reached, from the last backwards, until
// nothing changes. The first that is left has the fewest steps to it.
func (e *exploration) findDeadEnd() {
	ends := make([]bool, len(e.nodes))
	for changed := true; changed; {
		changed = false
		for at := len(e.nodes) - 1; at >= 0; at-- {
			if !ends[at] && (e.nodes[at].state.isEnd() || slices.ContainsFunc(e.following(at), func(to int32) bool { return ends[to] })) {
				ends[at], changed = true, true
			}
		}
	}
	if at := slices.Index(ends, false); at >= 0 {
		e.report.Violation = &Violation{Kept, append(e.path(at), "from here no steps lead to an end of every job")}
	}
}

func (e *exploration) following(at int) []int32 {
	if at == 0 {
		return e.next[:e.ends[0]]
	}
	return e.next[e.ends[at-1]:e.ends[at]]
}

func (s *state) isEnd() bool {
	return s.unfinished() == 0 && s.filter(func(j int) bool { return s.jobs[j].status == absent }) == 0
}
