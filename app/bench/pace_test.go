package bench

import (
	"testing"
	"time"
)

func TestPace_OffersEvenlyAndMakesUpForAStall(t *testing.T) {
	t.Parallel()
	p := &pace{perSecond: 1000}
	for _, step := range []struct {
		at   time.Duration
		want int
	}{
		{0, 0},
		{10 * time.Millisecond, 10},
		{10 * time.Millisecond, 0},
		{10500 * time.Microsecond, 0},
		{11 * time.Millisecond, 1},
		{time.Second, 989},
		{3 * time.Second, 2000},
	} {
		if got := p.due(step.at); got != step.want {
			t.Errorf("%d jobs are due at %s, want %d", got, step.at, step.want)
		}
	}
}
