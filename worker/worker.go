package worker

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-pg/holdfast/domain"
)

// Worker claims jobs and runs their handlers.
type Worker struct {
	queue    Queue
	config   Config
	handlers map[string]Handler
	ran      atomic.Bool
	ended    atomic.Bool             // Run has returned.
	session  atomic.Pointer[session] // nil while there is none.
	stopNow  chan struct{}
	stopOnce sync.Once
}

// errRanBefore ends a second Run: the first has closed the queue.
var errRanBefore = errors.New("worker: Run was called before, and a worker runs once: make another one")

// Reasons for which a session stops claiming, besides the end of Run's context.
var (
	errDrainOrdered = errors.New("an operator ordered a drain")
	errDeclaredDead = errors.New("the registry holds this worker for dead")
)

// New returns a worker of the queue, which Run closes at its end. Errors: a Config that does
// not validate, no handler, two handlers of one kind.
func New(queue Queue, config Config, handlers ...Handler) (*Worker, error) {
	if err := config.Validate(); err != nil {
		return nil, err
	}
	if len(handlers) == 0 {
		return nil, errors.New("worker: no handler given")
	}
	byKind := make(map[string]Handler, len(handlers))
	for _, handler := range handlers {
		if _, exists := byKind[handler.kind]; exists {
			return nil, fmt.Errorf("worker: two handlers of kind %q", handler.kind)
		}
		byKind[handler.kind] = handler
	}
	return &Worker{queue: queue, config: config.WithDefaults(), handlers: byKind, stopNow: make(chan struct{})}, nil
}

// StopNow ends the wait for handlers: when Run's context has ended, or as soon as it ends,
// handlers are cancelled and their jobs given back without spending an attempt, and Run
// returns. Further calls do nothing.
func (w *Worker) StopNow() {
	w.stopOnce.Do(func() { close(w.stopNow) })
}

// Run works until the context ends or an operator drains the worker; then it stops claiming,
// waits for its handlers up to the drain deadline, records their results, gives the rest
// back and returns nil: it holds no job. While the database cannot be reached it tries again
// and again. Errors: domain.ErrNotMigrated, domain.SchemaError, domain.ErrWorkerExists, or
// what kept it from giving its jobs back, in which case they return when their leases end.
// A worker runs once: a second call returns an error.
func (w *Worker) Run(ctx context.Context) error {
	if w.ran.Swap(true) {
		return errRanBefore
	}
	defer w.queue.Close()
	defer w.ended.Store(true)
	for {
		session, err := w.join(ctx)
		if ctx.Err() != nil && err != nil {
			return nil
		}
		if err != nil {
			return err
		}
		w.session.Store(session)
		reason, err := session.run(ctx)
		w.session.Store(nil)
		if !errors.Is(reason, errDeclaredDead) {
			return err
		}
		w.config.Logger.Warn("rejoining under another id", "worker_id", session.id, "reason", reason)
		if err != nil {
			w.config.Logger.Error("what was held under the old id comes back when its leases end", "worker_id", session.id, "error", err)
		}
	}
}

// join opens the queue and enters the registry, as often as it takes. Each try has an id of
// its own: one whose reply was lost has taken its id.
func (w *Worker) join(ctx context.Context) (*session, error) {
	for tries := 1; ; tries++ {
		registration := domain.Registration{ID: w.config.NewID(), Queues: w.config.Queues, Metadata: w.config.facts(w.handlers).encode()}
		meta, err := w.queue.Open(ctx)
		if err == nil {
			err = w.checkBuckets(meta)
		}
		if err == nil {
			err = w.queue.Join(ctx, registration)
		}
		if err == nil {
			return newSession(w, registration.ID, meta), nil
		}
		if !domain.IsTemporary(err) || ctx.Err() != nil {
			return nil, err
		}
		wait := reconnectWait(tries, w.config.Random())
		w.config.Logger.Error("cannot join, trying again", "error", err, "wait", wait)
		if !pause(ctx, w.config.Clock, wait) {
			return nil, ctx.Err()
		}
	}
}

// checkBuckets makes sure that the installation is the one that was expected.
func (w *Worker) checkBuckets(meta domain.Meta) error {
	if w.config.Buckets != 0 && w.config.Buckets != meta.BucketCount {
		return &domain.InvalidError{Field: "Buckets", Reason: fmt.Sprintf("%d are expected and the installation has %d", w.config.Buckets, meta.BucketCount)}
	}
	return nil
}

// reconnectWait is how long to wait before the next try to reach the database: 100 ms
// doubled each time, 10 s at most, less up to half as jitter, so that workers do not return
// in step.
func reconnectWait(tries int, random float64) time.Duration {
	wait := min(100*time.Millisecond<<min(tries-1, 7), 10*time.Second)
	return wait - time.Duration(random*float64(wait)/2)
}

// pause waits, and tells whether the whole time passed before the context ended.
func pause(ctx context.Context, clock Clock, d time.Duration) bool {
	fired, stop := clock.NewTimer(d)
	defer stop()
	select {
	case <-fired:
		return ctx.Err() == nil
	case <-ctx.Done():
		return false
	}
}
