package worker

import (
	"context"
	"testing"
	"time"

	"github.com/holdfast-pg/holdfast/domain"
)

// A worker that nobody observes pays for no fact.
func TestObserver_CostsNothingWhenUnused(t *testing.T) {
	s := &session{Config: Config{Clock: SystemClock{}}}
	r := &run{session: s, job: domain.ClaimedJob{Kind: "send"}}
	ctx := context.Background()
	allocations := testing.AllocsPerRun(1000, func() {
		tell(s, s.Observer.Claimed, Claimed{Queue: "default", Jobs: 1, Took: time.Millisecond})
		s.tellStarted(ctx, r)
		s.tellHandled(r, domain.Outcome{})
		tell(s, s.Observer.Settled, Settled{Job: r.job})
		s.tick(&s.claimPulse)
	})
	if allocations != 0 {
		t.Errorf("%v allocations a job, want none", allocations)
	}
}
