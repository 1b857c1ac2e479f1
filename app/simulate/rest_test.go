package simulate

import (
	"runtime"
	"strings"
	"testing"

	"github.com/holdfast-pg/holdfast/app/orders"
)

// What the runtime counts is what it says when it stops the world to look at each goroutine.
func TestRest_EveryOtherGoroutineWaits(t *testing.T) {
	rest, undo := alone()
	defer undo()
	s := newStage(1, rest)
	crashSet(s, true, orders.Sent)
	s.settle()
	stacks := make([]byte, 1<<20)
	looked := 0
	for !s.isOver() {
		if err := s.step(t.Context(), longest); err != nil {
			t.Fatal(err)
		}
		stacks = stacks[:runtime.Stack(stacks[:cap(stacks)], true)]
		if states := statesOf(string(stacks)); states["running"] != 1 || states["runnable"] != 0 {
			t.Fatalf("after %s: %v", s.Now().Sub(began), states)
		}
		looked++
	}
	if looked < 300 {
		t.Errorf("only %d moments", looked)
	}
	s.end()
	if err := s.strike(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// statesOf counts goroutines by what they do, from lines such as "goroutine 7 [select, 2 minutes]:".
func statesOf(stacks string) map[string]int {
	states := map[string]int{}
	for line := range strings.Lines(stacks) {
		if _, rest, found := strings.Cut(line, " ["); found && strings.HasPrefix(line, "goroutine ") {
			state, _, _ := strings.Cut(strings.TrimRight(rest, "]:\n"), ",")
			states[state]++
		}
	}
	return states
}
