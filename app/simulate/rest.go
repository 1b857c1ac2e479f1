package simulate

import (
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync"
)

// turnsPerCollection is after how many moments the garbage is collected.
const turnsPerCollection = 1 << 14

// running keeps simulations of one process apart: each needs the only processor.
var running sync.Mutex

// rest tells when every goroutine of the program waits for something.
//
// The runtime counts the goroutines that could run and do not. It calls the count approximate,
// because other processors may change it meanwhile. There is none here: while the schedule
// counts, it holds the only one, so that a count of nothing means that nobody runs and nobody
// can. A goroutine that waits could go on by itself only for the sake of the garbage collector,
// which is therefore off, and does its work while all others rest; or when a timer of package
// time fires, and what the loop times that way is ignored.
type rest struct {
	runnable []metrics.Sample
	turns    int
}

// alone makes the program fit for rest until it is undone.
func alone() (r *rest, undo func()) {
	running.Lock()
	processors := runtime.GOMAXPROCS(1)
	percent := debug.SetGCPercent(-1)
	limit := debug.SetMemoryLimit(1 << 62)
	r = &rest{runnable: []metrics.Sample{{Name: "/sched/goroutines/runnable:goroutines"}}}
	return r, func() {
		debug.SetMemoryLimit(limit)
		debug.SetGCPercent(percent)
		runtime.GOMAXPROCS(processors)
		running.Unlock()
	}
}

// await returns when every other goroutine waits for something.
func (r *rest) await() {
	for {
		runtime.Gosched()
		metrics.Read(r.runnable)
		if r.runnable[0].Value.Uint64() == 0 {
			break
		}
	}
	if r.turns++; r.turns%turnsPerCollection == 0 {
		runtime.GC()
		r.await() // The collector wakes goroutines of its own.
	}
}
