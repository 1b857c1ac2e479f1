package worker

import (
	"context"
	"runtime/debug"
	"time"

	"github.com/holdfast-pg/holdfast/domain"
)

// Observer is told what a worker does, for metrics, traces and tests: one function for each sort
// of fact, and nil for what nobody wants to know. It changes nothing but the context of handlers.
//
// Functions are called by the goroutines that do the work, many at once, never under a lock, and
// must return at once: a slow one slows the worker. A panic in one is logged, once a membership,
// and does no other harm. The times are those of Config.Clock, unless a field says otherwise.
type Observer struct {
	// Claimed tells of the answer to a claim, also of one that found nothing.
	Claimed func(Claimed)

	// Started tells that a handler is about to run. The context that it returns, made from the
	// one that it gets, is the handler's.
	Started func(ctx context.Context, started Started) context.Context

	// Handled tells that the handler has ended, with the context that Started returned.
	Handled func(ctx context.Context, handled Handled)

	// Flushed tells of the answer to a batch of results.
	Flushed func(Flushed)

	// Settled tells how a claim has ended in the database, once for each.
	Settled func(Settled)

	// Renewed tells of the answer to a renewal.
	Renewed func(Renewed)

	// Lost tells that the worker gave a job up because its lease was lost. Its handler, if it still
	// runs, has been cancelled.
	Lost func(Lost)

	// Woken tells that the worker stopped waiting for work.
	Woken func(Woken)

	// RingChanged tells that the workers of a queue have changed, and at the end that this one left.
	RingChanged func(RingChanged)

	// KeptHouse tells of a round of housekeeping for which the worker was elected.
	KeptHouse func(KeptHouse)

	// Drained tells that the worker has left the registry.
	Drained func(Drained)
}

// Claimed is the answer to a claim.
type Claimed struct {
	Queue string
	Jobs  int
	Took  time.Duration
	Err   error // Jobs may come beside one.
}

// Started is a handler that is about to run.
type Started struct {
	Job domain.ClaimedJob

	// Waited is from when the job could first be claimed to now: until the claim by the database's
	// clock, and from its answer on by the worker's.
	Waited time.Duration
}

// Handled is a handler that has ended.
type Handled struct {
	Job     domain.ClaimedJob
	Outcome domain.Outcome // What it asks for; Settled tells what came of it.
	Err     error          // What the handler returned; a *PanicError if it panicked.
	Took    time.Duration
}

// Flushed is the answer to a batch of results.
type Flushed struct {
	Jobs       int
	Unanswered int // Of these; they are sent again.
	Took       time.Duration
}

// Settled is the end of a claim.
type Settled struct {
	Job     domain.ClaimedJob
	Outcome domain.Outcome
	Status  domain.Status // The job's, if Err is nil.
	Err     error         // domain.ErrLeaseLost: another claim may hold the job, and nothing was written.
}

// Renewed is the answer to a renewal.
type Renewed struct {
	Leases int
	Lost   int // Of these; each is told of by Lost too.
	Took   time.Duration
	Err    error // Nobody knows what became of them; they are renewed again in time.
}

// Lost is a job whose lease is over before it was settled.
type Lost struct {
	Job domain.ClaimedJob

	// Overdue says that no renewal got through in time; else the database says that it is over.
	Overdue bool
}

// WakeSource is what ends a wait for work.
type WakeSource string

// The sources.
const (
	WakeNotify WakeSource = "notify" // A producer rang.
	WakeDue    WakeSource = "due"    // A known job has become due.
	WakePoll   WakeSource = "poll"   // It was time to look.
)

// Woken is the end of a wait for work.
type Woken struct {
	By WakeSource
}

// RingChanged is what a worker owns of a queue.
type RingChanged struct {
	Queue   string
	Workers int // That serve the queue; 0 when this worker has left.
	Buckets int // The worker's own, and before.
	Before  int
}

// KeptHouse is a round of housekeeping.
type KeptHouse struct {
	Reclaimed []domain.Reclaimed
	Report    domain.HouseReport // Zero when the round just reclaimed.
	Took      time.Duration
	Err       error // The first one of the round.
}

// Drained is the end of a membership.
type Drained struct {
	Reason error // Why the worker stopped claiming.
	Took   time.Duration
	Err    error // What kept it from giving its jobs back.
}

// tell passes a fact on to those who want to know.
func tell[F any](s *session, to func(F), fact F) {
	if to == nil {
		return
	}
	defer s.survive()
	to(fact)
}

// tellStarted returns the context of the handler.
func (s *session) tellStarted(ctx context.Context, r *run) (handling context.Context) {
	r.begun, r.handling = s.Clock.Now(), ctx
	if s.Observer.Started == nil {
		return ctx
	}
	defer s.survive()
	handling = ctx // What a panic leaves.
	if made := s.Observer.Started(ctx, Started{Job: r.job, Waited: r.job.Waited + r.begun.Sub(r.claimed)}); made != nil {
		handling, r.handling = made, made
	}
	return handling
}

// tellHandled tells of handlers that were started.
func (s *session) tellHandled(r *run, outcome domain.Outcome) {
	if s.Observer.Handled == nil || r.handling == nil {
		return
	}
	defer s.survive()
	s.Observer.Handled(r.handling, Handled{Job: r.job, Outcome: outcome, Err: r.err, Took: s.Clock.Now().Sub(r.begun)})
}

// survive keeps a panic of the observer from ending the worker. It is to be deferred.
func (s *session) survive() {
	value := recover()
	if value == nil || s.observerPanicked.Swap(true) {
		return
	}
	s.log.Error("the observer panicked: what it is told may be missing from metrics and traces", "panic", value, "stack", string(debug.Stack()))
}
