package worker_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-pg/holdfast/domain"
	"github.com/holdfast-pg/holdfast/domain/model"
	"github.com/holdfast-pg/holdfast/worker"
)

const buckets = 32

var noon = time.Date(2026, time.March, 4, 12, 0, 0, 0, time.UTC)

// world is an installation in memory with one worker, in a bubble of testing/synctest. Its
// time stands still until the test moves it.
type world struct {
	*queue
	t      *testing.T
	config worker.Config
	log    *logbook

	worker   *worker.Worker
	stop     context.CancelFunc
	returned chan struct{}
	err      error // Run's, once it returned.
}

// newWorld returns an installation at noon, for use within synctest.Test. Its worker has the
// default configuration, draws the middle of every range that it leaves to chance, and is
// called w1, then w2 and so on.
func newWorld(t *testing.T) *world {
	t.Helper()
	clock := model.NewClock(noon)
	w := &world{t: t, log: &logbook{}, returned: make(chan struct{})}
	w.queue = &queue{
		Queue: model.New(model.Settings{
			BucketCount: buckets,
			Now:         clock.Now,
			Backoff:     func(attempts int) time.Duration { return domain.Backoff(attempts, 0.5) },
		}),
		clock:  clock,
		faults: map[string][]fault{},
	}
	joined := 0
	w.config = worker.Config{
		Clock:  clock,
		Random: func() float64 { return 0.5 },
		NewID:  func() string { joined++; return fmt.Sprintf("w%d", joined) },
		// Rings have tests of their own.
		PollOnly: true,
		Logger:   slog.New(slog.NewTextHandler(w.log, &slog.HandlerOptions{Level: slog.LevelDebug})),
	}
	return w
}

// start runs a worker of the handlers until the test ends, which fails if the worker then
// does not return, or leaves a job behind.
func (w *world) start(handlers ...worker.Handler) {
	w.t.Helper()
	created, err := worker.New(w.queue, w.config, handlers...)
	if err != nil {
		w.t.Fatal(err)
	}
	ctx, stop := context.WithCancel(w.t.Context())
	w.worker, w.stop = created, stop
	go func() {
		defer close(w.returned)
		w.err = created.Run(ctx)
	}()
	w.t.Cleanup(w.finish)
	synctest.Wait()
}

func (w *world) finish() {
	w.stop()
	w.advance(5 * time.Minute)
	switch {
	case !w.hasReturned():
		w.t.Error("the worker has not returned")
	case w.err == nil:
		w.holdsNothing()
	}
	if w.closed != 1 {
		w.t.Errorf("the queue was closed %d times, want once", w.closed)
	}
	if w.t.Failed() {
		w.t.Log("\n" + w.log.text())
	}
}

// holdsNothing is the promise that a drain keeps.
func (w *world) holdsNothing() {
	w.t.Helper()
	for _, job := range w.Jobs() {
		if job.Status == domain.StatusProcessing {
			w.t.Errorf("job %s is still held by %s", job.ID, *job.ClaimedBy)
		}
	}
}

func (w *world) hasReturned() bool {
	select {
	case <-w.returned:
		return true
	default:
		return false
	}
}

// wantReturned fails the test unless Run has returned nil.
func (w *world) wantReturned() {
	w.t.Helper()
	if !w.hasReturned() {
		w.t.Fatal("Run has not returned")
	}
	if w.err != nil {
		w.t.Fatalf("Run returned %v", w.err)
	}
}

// wantWorking fails the test if Run has returned.
func (w *world) wantWorking() {
	w.t.Helper()
	if w.hasReturned() {
		w.t.Fatalf("Run has returned, with %v", w.err)
	}
}

// advance moves the clock from timer to timer, and waits at each until nothing moves.
func (w *world) advance(d time.Duration) {
	synctest.Wait()
	end := w.clock.Now().Add(d)
	for {
		left := end.Sub(w.clock.Now())
		next, some := w.clock.Next()
		if !some || next > left {
			w.clock.Advance(left)
			synctest.Wait()
			return
		}
		w.clock.Advance(next)
		synctest.Wait()
	}
}

// elapsed is how long after noon it is.
func (w *world) elapsed() time.Duration {
	return w.clock.Now().Sub(noon)
}

func (w *world) enqueue(job model.NewJob) domain.JobID {
	w.t.Helper()
	if job.Kind == "" {
		job.Kind = "send"
	}
	result, err := w.Enqueue(w.t.Context(), job)
	if err != nil {
		w.t.Fatal(err)
	}
	return result.ID
}

func (w *world) enqueueSome(n int) {
	w.t.Helper()
	for range n {
		w.enqueue(model.NewJob{})
	}
}

func (w *world) find(id domain.JobID) domain.JobRecord {
	w.t.Helper()
	job, err := w.FindJob(context.WithoutCancel(w.t.Context()), id)
	if err != nil {
		w.t.Fatal(err)
	}
	return job
}

// count tells how many jobs are in the state.
func (w *world) count(status domain.Status) int {
	count := 0
	for _, job := range w.Jobs() {
		if job.Status == status {
			count++
		}
	}
	return count
}

// giveBack ends the current claim of a job as an operator would, and holds the job back.
func (w *world) giveBack(id domain.JobID, delay time.Duration) {
	w.t.Helper()
	job := w.find(id)
	answer := w.Queue.Settle(w.t.Context(), *job.ClaimedBy, []domain.Settlement{{
		Claim: claimOf(job), Outcome: domain.Outcome{Verdict: domain.Release, Delay: delay},
	}})[0]
	if answer.Err != nil {
		w.t.Fatal(answer.Err)
	}
}

// wantJob fails the test unless the job has the state and has spent so many attempts.
func (w *world) wantJob(id domain.JobID, status domain.Status, attempts int) {
	w.t.Helper()
	if job := w.find(id); job.Status != status || job.Attempts != attempts {
		w.t.Errorf("the job is %s after %d attempts, want %s after %d", job.Status, job.Attempts, status, attempts)
	}
}

// gate is a handler that holds each job until the test lets it go or its context ends.
type gate struct {
	t   *testing.T
	let chan error

	mutex   sync.Mutex
	started []domain.ClaimedJob
	running int
	most    int     // How many ran at once at most.
	causes  []error // Why contexts ended.
}

func newGate(t *testing.T) *gate {
	t.Helper()
	return &gate{t: t, let: make(chan error)}
}

func (g *gate) handler() worker.Handler {
	return worker.HandleKind("send", func(ctx context.Context, job domain.ClaimedJob) error {
		g.enter(job)
		defer g.leave()
		select {
		case err := <-g.let:
			return err
		case <-ctx.Done():
			g.mutex.Lock()
			defer g.mutex.Unlock()
			g.causes = append(g.causes, context.Cause(ctx))
			return ctx.Err()
		}
	})
}

// stubborn is a handler that holds each job until the test lets it go, whatever becomes of
// its context.
func (g *gate) stubborn() worker.Handler {
	return worker.HandleKind("send", func(_ context.Context, job domain.ClaimedJob) error {
		g.enter(job)
		defer g.leave()
		return <-g.let
	})
}

func (g *gate) enter(job domain.ClaimedJob) {
	g.mutex.Lock()
	defer g.mutex.Unlock()
	g.started = append(g.started, job)
	g.running++
	g.most = max(g.most, g.running)
}

func (g *gate) leave() {
	g.mutex.Lock()
	defer g.mutex.Unlock()
	g.running--
}

// open lets so many jobs go with the error.
func (g *gate) open(n int, err error) {
	g.t.Helper()
	for range n {
		synctest.Wait()
		select {
		case g.let <- err:
		default:
			g.t.Fatal("no job waits at the gate")
		}
	}
	synctest.Wait()
}

// jobs returns the jobs that were started so far.
func (g *gate) jobs() []domain.ClaimedJob {
	g.mutex.Lock()
	defer g.mutex.Unlock()
	return slices.Clone(g.started)
}

// stopped returns why contexts ended so far.
func (g *gate) stopped() []error {
	g.mutex.Lock()
	defer g.mutex.Unlock()
	return slices.Clone(g.causes)
}

// returning is a handler that returns the error at once.
func returning(err error) worker.Handler {
	return worker.HandleKind("send", func(context.Context, domain.ClaimedJob) error { return err })
}

// logbook keeps what was logged.
type logbook struct {
	mutex sync.Mutex
	lines []string
}

func (l *logbook) Write(line []byte) (int, error) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	l.lines = append(l.lines, string(line))
	return len(line), nil
}

func (l *logbook) text() string {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	return strings.Join(l.lines, "")
}

// count tells how many lines hold all the parts.
func (l *logbook) count(parts ...string) int {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	count := 0
	for _, line := range l.lines {
		if !slices.ContainsFunc(parts, func(part string) bool { return !strings.Contains(line, part) }) {
			count++
		}
	}
	return count
}

func equal[T comparable](t *testing.T, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Errorf("%s: %v, want %v", what, got, want)
	}
}

// letter is a payload.
type letter struct {
	To string `json:"to"`
}

func (letter) Kind() string { return "send" }

func payload(t *testing.T, value any) json.RawMessage {
	t.Helper()
	encoded, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return encoded
}
