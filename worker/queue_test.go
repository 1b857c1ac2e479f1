package worker_test

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/holdfast-pg/holdfast/domain"
	"github.com/holdfast-pg/holdfast/domain/model"
	"github.com/holdfast-pg/holdfast/worker"
)

var _ worker.Queue = (*queue)(nil)

// errCut is temporary, as what a broken connection answers.
var errCut = errors.New("the line is cut")

// queue is the model at the other end of a line that a test can watch and cut.
type queue struct {
	*model.Queue
	clock *model.Clock

	mutex  sync.Mutex
	seen   []call
	faults map[string][]fault
	closed int

	// members changes what the worker sees of the others.
	members func(seen []domain.Membership) []domain.Membership

	// overs are what the next reclaims report as over, in place of what is.
	overs []int64
}

// call is one use of the queue.
type call struct {
	method      string
	at          time.Duration // Since noon.
	workerID    string
	request     domain.ClaimRequest
	looked      domain.LookRequest
	renewed     []domain.Claim
	settlements []domain.Settlement
	after       int64
	metadata    json.RawMessage
}

// fault is what befalls a call.
type fault struct {
	err   error           // What the worker hears.
	lost  bool            // The call takes effect all the same: only its reply is lost.
	takes time.Duration   // The call waits for so long.
	until <-chan struct{} // The call waits for this to close.
	times int             // How many calls it befalls; default: one.
}

// always is for ever, in a fault.
const always = math.MaxInt

// spoil plans a fault for the next calls of a method, after those that are planned already.
func (q *queue) spoil(method string, f fault) {
	q.mutex.Lock()
	defer q.mutex.Unlock()
	f.times = max(f.times, 1)
	q.faults[method] = append(q.faults[method], f)
}

// mend forgets the faults that are planned for a method.
func (q *queue) mend(method string) {
	q.mutex.Lock()
	defer q.mutex.Unlock()
	delete(q.faults, method)
}

// calls returns the calls of a method so far.
func (q *queue) calls(method string) []call {
	q.mutex.Lock()
	defer q.mutex.Unlock()
	return slices.DeleteFunc(slices.Clone(q.seen), func(c call) bool { return c.method != method })
}

// ownClaims returns the claims of what is the worker's own, without those of strays.
func (q *queue) ownClaims() []call {
	return slices.DeleteFunc(q.calls("Claim"), func(c call) bool { return c.request.DueFor > 0 })
}

// asked returns the claims of what is the worker's own and the looks, in order.
func (q *queue) asked() []call {
	q.mutex.Lock()
	defer q.mutex.Unlock()
	return slices.DeleteFunc(slices.Clone(q.seen), func(c call) bool {
		return c.method != "Look" && c.method != "Claim" || c.request.DueFor > 0
	})
}

// note records a call and returns its fault, if one is planned.
func (q *queue) note(c call) fault {
	q.mutex.Lock()
	defer q.mutex.Unlock()
	c.at = q.clock.Now().Sub(noon)
	q.seen = append(q.seen, c)
	planned := q.faults[c.method]
	if len(planned) == 0 {
		return fault{}
	}
	if planned[0].times--; planned[0].times == 0 {
		q.faults[c.method] = planned[1:]
	}
	return planned[0]
}

// send takes a call to the model and its answer back, as far as the line allows.
func send[T any](ctx context.Context, q *queue, c call, effect func() (T, error)) (T, error) {
	var none T
	f := q.note(c)
	if err := f.wait(ctx, q.clock); err != nil {
		return none, err
	}
	if f.err != nil && !f.lost {
		return none, f.err
	}
	answer, err := effect()
	if f.err != nil {
		return none, f.err
	}
	return answer, err
}

func (f fault) wait(ctx context.Context, clock *model.Clock) error {
	fired, stop := clock.NewTimer(f.takes)
	defer stop()
	select {
	case <-fired:
	case <-ctx.Done():
		return ctx.Err()
	}
	if f.until == nil {
		return nil
	}
	select {
	case <-f.until:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (q *queue) Open(ctx context.Context) (domain.Meta, error) {
	return send(ctx, q, call{method: "Open"}, func() (domain.Meta, error) { return q.Queue.Open(ctx) })
}

func (q *queue) Join(ctx context.Context, registration domain.Registration) error {
	_, err := send(ctx, q, call{method: "Join", workerID: registration.ID}, func() (any, error) {
		return nil, q.Queue.Join(ctx, registration)
	})
	return err
}

func (q *queue) Beat(ctx context.Context, registration domain.Registration) (domain.WorkerStatus, error) {
	return send(ctx, q, call{method: "Beat", workerID: registration.ID, metadata: registration.Metadata}, func() (domain.WorkerStatus, error) {
		return q.Queue.Beat(ctx, registration)
	})
}

func (q *queue) Claim(ctx context.Context, request domain.ClaimRequest) ([]domain.ClaimedJob, error) {
	return send(ctx, q, call{method: "Claim", workerID: request.WorkerID, request: request}, func() ([]domain.ClaimedJob, error) {
		return q.Queue.Claim(ctx, request)
	})
}

func (q *queue) Members(ctx context.Context, queues []string, ttl time.Duration) ([]domain.Membership, error) {
	return send(ctx, q, call{method: "Members"}, func() ([]domain.Membership, error) {
		seen, err := q.Queue.Members(ctx, queues, ttl)
		if q.members != nil {
			seen = q.members(seen)
		}
		return seen, err
	})
}

func (q *queue) Listen(ctx context.Context, ready func(), hear func(domain.Ring)) error {
	// A listener is cut off once it listens, if at all.
	if cut := q.note(call{method: "Listen"}); cut.err != nil {
		if cut.lost {
			ready()
		}
		if err := cut.wait(ctx, q.clock); err != nil {
			return err
		}
		return cut.err
	}
	return q.Queue.Listen(ctx, ready, hear)
}

func (q *queue) Arm(ctx context.Context, workerID string, queues []string) error {
	_, err := send(ctx, q, call{method: "Arm", workerID: workerID}, func() (any, error) { return nil, q.Queue.Arm(ctx, workerID, queues) })
	return err
}

func (q *queue) Disarm(ctx context.Context, workerID string, queues []string) error {
	_, err := send(ctx, q, call{method: "Disarm", workerID: workerID}, func() (any, error) { return nil, q.Queue.Disarm(ctx, workerID, queues) })
	return err
}

func (q *queue) Look(ctx context.Context, request domain.LookRequest) (domain.Outlook, error) {
	return send(ctx, q, call{method: "Look", looked: request}, func() (domain.Outlook, error) { return q.Queue.Look(ctx, request) })
}

func (q *queue) Elect(ctx context.Context, work func(ctx context.Context)) (bool, error) {
	return send(ctx, q, call{method: "Elect"}, func() (bool, error) { return q.Queue.Elect(ctx, work) })
}

func (q *queue) Renew(ctx context.Context, workerID string, lease time.Duration, claims []domain.Claim) ([]domain.Claim, error) {
	return send(ctx, q, call{method: "Renew", workerID: workerID, renewed: claims}, func() ([]domain.Claim, error) {
		return q.Queue.Renew(ctx, workerID, lease, claims)
	})
}

func (q *queue) Settle(ctx context.Context, workerID string, settlements []domain.Settlement) []domain.Settled {
	answers, err := send(ctx, q, call{method: "Settle", workerID: workerID, settlements: settlements}, func() ([]domain.Settled, error) {
		return q.Queue.Settle(ctx, workerID, settlements), nil
	})
	if err != nil {
		answers = slices.Repeat([]domain.Settled{{Err: err}}, len(settlements))
	}
	return answers
}

func (q *queue) Reclaim(ctx context.Context, after int64) (reclaimed []domain.Reclaimed, over int64, err error) {
	reclaimed, err = send(ctx, q, call{method: "Reclaim", after: after}, func() (all []domain.Reclaimed, err error) {
		all, over, err = q.Queue.Reclaim(ctx, after)
		if len(q.overs) > 0 {
			over, q.overs = q.overs[0], q.overs[1:]
		}
		return all, err
	})
	return reclaimed, over, err
}

func (q *queue) KeepHouse(ctx context.Context, rules domain.HouseRules) (domain.HouseReport, error) {
	return send(ctx, q, call{method: "KeepHouse"}, func() (domain.HouseReport, error) { return q.Queue.KeepHouse(ctx, rules) })
}

func (q *queue) Drain(ctx context.Context, workerID string) error {
	_, err := send(ctx, q, call{method: "Drain", workerID: workerID}, func() (any, error) {
		return nil, q.Queue.Drain(ctx, workerID)
	})
	return err
}

func (q *queue) Leave(ctx context.Context, workerID string) error {
	_, err := send(ctx, q, call{method: "Leave", workerID: workerID}, func() (any, error) {
		return nil, q.Queue.Leave(ctx, workerID)
	})
	return err
}

func (q *queue) Close() {
	q.mutex.Lock()
	defer q.mutex.Unlock()
	q.closed++
}

// claimOf is the current claim of a job that is processing.
func claimOf(job domain.JobRecord) domain.Claim {
	return domain.Claim{ID: job.ID, Bucket: job.Bucket, Generation: job.Generation, WorkerID: *job.ClaimedBy}
}
