package bench

import (
	"testing"
	"time"
)

func TestAddition_TurnsAddUpToOneRate(t *testing.T) {
	t.Parallel()
	var all addition
	all.add(addition{jobs: 1000, elapsed: time.Second, log: 500_000})
	all.add(addition{jobs: 200, elapsed: 2 * time.Second, log: 100_000})
	if got := all.rate(); got != 400 {
		t.Errorf("%g jobs/s, want 400", got)
	}
	if got := all.logEach(); got != 500 {
		t.Errorf("%g bytes of log a job, want 500", got)
	}
}
