package bench

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/holdfast-pg/holdfast"
	"github.com/holdfast-pg/holdfast/app"
	"github.com/holdfast-pg/holdfast/app/tune"
	"github.com/holdfast-pg/holdfast/domain"
	"github.com/holdfast-pg/holdfast/worker"
)

// waitFrom says which wait a worker records; "" is none.
type waitFrom string

const (
	// waitEnqueue is from the enqueue to the handler, both by the clock of the machine.
	waitEnqueue waitFrom = "enqueue"
	// waitEach is the same, told of each job: when its handler began.
	waitEach waitFrom = "each"
	// waitDue is from when the job could be claimed to its claim, both by the database's clock.
	waitDue waitFrom = "due"
)

// workerSettings say how a worker process works. What is not set is a worker's default.
type workerSettings struct {
	URL         string            `json:"url"`
	Concurrency int               `json:"concurrency"`
	Connections int               `json:"connections"`
	Lease       time.Duration     `json:"lease"`
	Affinity    holdfast.Affinity `json:"affinity"`
	PollOnly    bool              `json:"poll_only"`
	Observed    bool              `json:"observed"` // It logs and measures itself, as one with --listen.
	Traced      float64           `json:"traced"`   // The share of its handlers of which it records spans, if it is observed; 0: it makes none.

	Tuned *tune.Workload `json:"tuned"` // In place of all above: what is recommended for it.

	Sleep time.Duration `json:"sleep"` // What a handler does.
	Times *times        `json:"times"` // Or for how long it sleeps.
	Hold  bool          `json:"hold"`  // Handlers wait until the crew is told to finish.
	Wait  waitFrom      `json:"wait"`
}

// workReport is what a worker process did.
type workReport struct {
	Handled    int           `json:"handled"`
	Wait       *histogram    `json:"wait"`
	Trips      int64         `json:"trips"`
	Claims     statementWork `json:"claims"`
	Renewals   statementWork `json:"renewals"`
	PeakMemory uint64        `json:"peak_memory"` // Resident, in bytes; 0 where the system does not tell.

	// Began is when handlers began, by the time in the payload of their jobs; both are
	// nanoseconds since 1970. Only with waitEach.
	Began map[int64]int64 `json:"began,omitempty"`

	CPU time.Duration `json:"-"` // Of the whole process, which only its parent knows.
}

// What a worker process is asked on stdin while it works, a line each.
const (
	asksCount  = "count\n"
	asksFinish = "finish\n"
)

// What a worker process says on stdout, a line each; a number alone is how many jobs its
// handlers have run, and the last line is its report.
const (
	saysReady = "ready"
	saysError = "error "
	saysSent  = "sent "
)

// sent is what a worker process has sent to the server so far.
type sent struct {
	Statements   int64 `json:"statements"`
	Trips        int64 `json:"trips"`
	Pings        int64 `json:"pings"`
	Transactions int64 `json:"transactions"` // That have ended.
}

// workerProcess is the worker, the handler in it, and what both count.
type workerProcess struct {
	settings workerSettings
	handled  atomic.Int64
	begun    atomic.Int64 // Handlers.
	wait     *histogram
	traced   *stopwatch
	finish   chan struct{} // Closed by release, when handlers that hold their jobs may return.
	release  func()

	mutex  sync.Mutex
	stdout io.Writer
	began  map[int64]int64
}

// RunWorker is a worker process: it reads its settings, a line of JSON, says that it is ready,
// works from the next line until the context or stdin ends, and prints its report. Meanwhile a
// line of asksCount asks what it has sent so far, and one of asksFinish has handlers that hold
// their jobs return.
func RunWorker(ctx context.Context, stdin io.Reader, stdout io.Writer) error {
	p := &workerProcess{
		wait: newHistogram(), traced: newStopwatch(), finish: make(chan struct{}),
		began: map[int64]int64{}, stdout: stdout,
	}
	p.release = sync.OnceFunc(func() { close(p.finish) })
	lines := bufio.NewReader(stdin)
	line, err := lines.ReadBytes('\n')
	if err == nil {
		err = json.Unmarshal(line, &p.settings)
	}
	if err != nil {
		return fmt.Errorf("read the worker's settings from stdin: %w", err)
	}
	pool, err := openTraced(ctx, p.settings.URL, 2, p.traced)
	if err != nil {
		return err
	}
	defer pool.Close()
	config := p.config()
	if p.settings.Observed {
		metrics, err := app.NewMetrics("bench", p.tracers())
		if err != nil {
			return err
		}
		defer metrics.Close()
		config.Observer = metrics.Observer()
	}
	made, err := holdfast.NewWorker(pool, config, worker.HandleKind(jobKind, p.handle))
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	p.say(saysReady)
	if !p.awaitStart(ctx, lines, cancel) {
		return errors.New("the bench ended before the worker began")
	}
	stop := p.tellProgress()
	err = made.Run(ctx)
	stop()
	if err != nil {
		return err
	}
	return p.report()
}

// tracers makes and collects spans, and sends them nowhere: what a collector costs is not asked.
func (p *workerProcess) tracers() trace.TracerProvider {
	if p.settings.Traced == 0 {
		return nil
	}
	return sdktrace.NewTracerProvider(sdktrace.WithSampler(sdktrace.TraceIDRatioBased(p.settings.Traced)), sdktrace.WithBatcher(tracetest.NewNoopExporter()))
}

func (p *workerProcess) config() holdfast.Config {
	config := holdfast.Config{
		Concurrency: p.settings.Concurrency,
		Connections: p.settings.Connections,
		Lease:       p.settings.Lease,
		Affinity:    p.settings.Affinity,
		PollOnly:    p.settings.PollOnly,
	}
	if p.settings.Tuned != nil {
		config = tune.Recommend(*p.settings.Tuned).Worker
	}
	config.Queues = []string{queueName}
	// An error of the worker spoils the measurement, whatever it would recover from.
	config.Logger = slog.New(slog.NewTextHandler(errorLines{p}, &slog.HandlerOptions{Level: slog.LevelError}))
	if p.settings.Observed {
		config.Logger = slog.New(slog.NewMultiHandler(config.Logger.Handler(), slog.NewJSONHandler(io.Discard, nil)))
	}
	return config
}

// awaitStart waits for the second line of stdin. Afterwards it does what further lines ask, and
// ends the context with stdin: nobody is left to work for.
func (p *workerProcess) awaitStart(ctx context.Context, lines *bufio.Reader, cancel func()) bool {
	started := make(chan struct{})
	go func() {
		defer cancel()
		if _, err := lines.ReadString('\n'); err != nil {
			return
		}
		close(started)
		p.obey(lines)
	}()
	select {
	case <-started:
		return true
	case <-ctx.Done():
		return false
	}
}

// obey does what the lines ask until they end.
func (p *workerProcess) obey(lines *bufio.Reader) {
	for {
		line, err := lines.ReadString('\n')
		if err != nil {
			return
		}
		switch line {
		case asksCount:
			p.saySent()
		case asksFinish:
			p.release()
		}
	}
}

func (p *workerProcess) saySent() {
	text, _ := json.Marshal(sent{ // Numbers: it cannot fail.
		Statements: p.traced.sent.Load(), Trips: p.traced.made.Load(), Pings: p.traced.pings.Load(), Transactions: p.traced.ended.Load(),
	})
	p.say(saysSent + string(text))
}

func (p *workerProcess) handle(ctx context.Context, job domain.ClaimedJob) error {
	if err := p.recordWait(job); err != nil {
		return err
	}
	if sleep := p.sleep(); sleep > 0 {
		timer := time.NewTimer(sleep)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	if p.settings.Hold {
		select {
		case <-p.finish:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	p.handled.Add(1)
	return nil
}

// sleep is for how long the next handler sleeps.
func (p *workerProcess) sleep() time.Duration {
	if p.settings.Times == nil {
		return p.settings.Sleep
	}
	return p.settings.Times.nth(p.begun.Add(1))
}

func (p *workerProcess) recordWait(job domain.ClaimedJob) error {
	now := time.Now()
	if p.settings.Wait == waitDue {
		p.wait.record(job.Waited)
	}
	if p.settings.Wait != waitEnqueue && p.settings.Wait != waitEach {
		return nil
	}
	var carried payload
	if err := json.Unmarshal(job.Payload, &carried); err != nil {
		return err
	}
	if p.settings.Wait == waitEnqueue {
		p.wait.record(now.Sub(time.Unix(0, carried.At)))
		return nil
	}
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.began[carried.At] = now.UnixNano()
	return nil
}

// tellProgress says every five milliseconds how many jobs were handled, until it is stopped.
func (p *workerProcess) tellProgress() (stop func()) {
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		again := time.NewTicker(5 * time.Millisecond)
		defer again.Stop()
		for told := int64(0); ; {
			if now := p.handled.Load(); now != told {
				told = now
				p.say(strconv.FormatInt(now, 10))
			}
			select {
			case <-again.C:
			case <-done:
				return
			}
		}
	}()
	return func() { close(done); <-ended }
}

func (p *workerProcess) report() error {
	report, err := json.Marshal(workReport{
		Handled: int(p.handled.Load()), Wait: p.wait, Trips: p.traced.made.Load(), PeakMemory: peakMemory(),
		Claims: p.traced.work("ClaimJobs"), Renewals: p.traced.work("RenewLeases"), Began: p.began,
	})
	if err == nil {
		p.say(string(report))
	}
	return err
}

func (p *workerProcess) say(line string) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	fmt.Fprintln(p.stdout, line)
}

// errorLines passes the worker's errors on to the bench.
type errorLines struct{ process *workerProcess }

func (e errorLines) Write(line []byte) (int, error) {
	e.process.say(saysError + strings.TrimSpace(string(line)))
	return len(line), nil
}

// peakMemory is the most that was resident since the program began. Linux tells; what
// getrusage tells there may be the parent's.
func peakMemory() uint64 {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0
	}
	_, rest, _ := strings.Cut(string(status), "VmHWM:")
	fields := strings.Fields(rest)
	if len(fields) == 0 {
		return 0
	}
	kilobytes, _ := strconv.ParseUint(fields[0], 10, 64)
	return kilobytes << 10
}
