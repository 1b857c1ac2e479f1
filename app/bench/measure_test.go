package bench

import (
	"strings"
	"testing"
	"time"
)

func TestTotals_CostIsThatOfAJob(t *testing.T) {
	t.Parallel()
	all := totals{workReport: &workReport{Handled: 100, Trips: 20, PeakMemory: 3 << 20, CPU: 1500 * time.Millisecond}, Log: 150_000, Commits: 25}
	figures, err := all.costs(100)
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []Figure{{"log", "bytes/job", 1500}, {"commits", "/job", 0.25}, {"round trips", "/job", 0.2}, {"peak memory", "MB", 3}, {"processor", "s", 1.5}} {
		if figures[i] != want {
			t.Errorf("%+v, want %+v", figures[i], want)
		}
	}
}

func TestTotals_HandlersThatRanMoreOrLessOftenThanJobsSpoilTheRun(t *testing.T) {
	t.Parallel()
	for _, handled := range []int{99, 101} {
		all := totals{workReport: &workReport{Handled: handled}}
		if figures, err := all.costs(100); err == nil || figures != nil || !strings.Contains(err.Error(), "100 jobs were enqueued and their handlers ran") {
			t.Errorf("%d runs: %v, %v", handled, figures, err)
		}
	}
}
