package simulate

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/holdfast-pg/holdfast/domain"
	"github.com/holdfast-pg/holdfast/worker"
)

// errKilled is what a handler of a killed process returns when the story is over and nobody
// listens any more.
var errKilled = errors.New("the process was killed")

// process is a worker process, and the clock of its worker.
type process struct {
	stage  *stage
	number int // From 1.
	name   string
	joined int // How often it has joined, each time under another id.

	cancel   context.CancelFunc
	returned chan struct{}
	err      error // Run's, once it returned.

	// Guarded by schedule.mutex.
	stopped bool
	missed  []*moment

	killed bool          // Set before it is stopped, for good.
	buried chan struct{} // Closed when the story is over.

	lane lane // The record's own.
}

func (p *process) rank() int {
	if p == nil {
		return 0
	}
	return p.number
}

// start runs a worker of the stage's handlers. Its settings are the defaults, but for what the
// story changes.
func (s *stage) start(name string, change func(*worker.Config)) *process {
	p := &process{stage: s, number: len(s.processes) + 1, name: name, returned: make(chan struct{}), buried: make(chan struct{})}
	p.lane.Worker = name
	s.processes = append(s.processes, p)
	config := worker.Config{
		Clock:    p,
		Random:   func() float64 { return s.chance(p.name, p.Now().UnixNano()) },
		NewID:    p.newID,
		Logger:   slog.New(slog.DiscardHandler),
		Observer: p.observer(),
	}
	change(&config)
	var handlers []worker.Handler
	for _, kind := range s.kinds {
		handlers = append(handlers, worker.HandleKind(kind.name, func(_ context.Context, job domain.ClaimedJob) error {
			return kind.handle(&run{stage: s, process: p, job: job})
		}))
	}
	created, err := worker.New(line{s.jobs, p}, config, handlers...)
	if err != nil {
		panic(fmt.Sprintf("simulate: the settings of %s: %v", name, err)) // They are constants.
	}
	ctx, cancel := context.WithCancel(context.Background())
	p.cancel = cancel
	go func() {
		defer close(p.returned)
		p.err = created.Run(ctx)
	}()
	return p
}

func (p *process) newID() string {
	p.joined++
	if p.joined == 1 {
		return p.name
	}
	return fmt.Sprintf("%s-%d", p.name, p.joined)
}

// Now returns the time of the stage.
func (p *process) Now() time.Time { return p.stage.Now() }

// NewTimer plans a moment at which the channel receives. Two timers of the same time are told
// apart by the functions that wait for them.
func (p *process) NewTimer(d time.Duration) (fired <-chan time.Time, stop func()) {
	channel := make(chan time.Time, 1)
	m := p.stage.plan(p, callers(), 0, d, func() { channel <- p.stage.Now() })
	return channel, func() { p.stage.cancel(m) }
}

// wait returns when the time has passed for the process.
func (p *process) wait(what string, which int64, d time.Duration) {
	passed := make(chan struct{})
	p.stage.plan(p, what, which, d, func() { close(passed) })
	<-passed
}

// statement waits for as long as a statement takes, 1 to 3 ms. What its caller does next takes
// effect at that moment, and nobody else does anything meanwhile.
func (p *process) statement(what string, which int64) {
	p.wait(what, which, time.Millisecond+time.Duration(p.stage.chance(p.name+what, p.Now().UnixNano())*2e6))
}

// kill ends the process without a word of warning to it. Nothing happens to it any more.
func (p *process) kill() {
	p.killed = true
	p.stage.stop(p)
	p.stage.unelect(p)
	p.stage.note(p, Event{Event: EventKilled, Text: p.name + " is killed (SIGKILL)"})
}

// pause stops the process, and lets it go on after a time.
func (p *process) pause(d time.Duration) {
	p.stage.stop(p)
	p.stage.note(p, Event{Event: EventPaused, Text: fmt.Sprintf("%s is paused for %s (SIGSTOP)", p.name, d)})
	p.stage.after(d, func() {
		p.stage.resume(p)
		p.stage.note(p, Event{Event: EventWoken, Text: p.name + " wakes, and knows nothing of the time between (SIGCONT)"})
	})
}

// drain stops the worker in good order.
func (p *process) drain() {
	p.stage.note(p, Event{Event: EventDraining, Text: p.name + " is told to stop (SIGTERM)"})
	p.cancel()
}

func (p *process) hasReturned() bool {
	select {
	case <-p.returned:
		return true
	default:
		return false
	}
}

// names caches what callers found, by the program counters.
var names sync.Map

// callers names the functions that wait for a timer, the nearest first. Inlining does not matter.
func callers() string {
	var counters [6]uintptr
	runtime.Callers(3, counters[:])
	if known, ok := names.Load(counters); ok {
		return known.(string)
	}
	var path []string
	frames := runtime.CallersFrames(counters[:])
	for {
		frame, more := frames.Next()
		path = append(path, frame.Function)
		if !more {
			break
		}
	}
	named := strings.Join(path, " ")
	names.Store(counters, named)
	return named
}
