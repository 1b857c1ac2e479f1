package worker_test

import (
	"testing"
	"testing/synctest"
	"time"
)

func TestHousekeeping_LostElectionsAreNotWaitedForForEver(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.start(returning(nil))
		w.spoil("Elect", fault{err: errCut, times: 2})
		w.advance(3 * 31 * time.Second)
		equal(t, "rounds after two lost elections and one won", len(w.calls("Reclaim")), 1)
		w.spoil("Elect", fault{err: errCut, times: 4})
		w.advance(2 * 31 * time.Second)
		equal(t, "rounds after two more were lost", len(w.calls("Reclaim")), 1)
		w.advance(2 * 31 * time.Second)
		equal(t, "rounds after four", len(w.calls("Reclaim")), 3)
		equal(t, "warnings", w.log.count("level=WARN", "without being elected"), 2)
	})
}
