package simulate

import (
	"context"
	"time"

	"github.com/holdfast-pg/holdfast/domain"
	"github.com/holdfast-pg/holdfast/domain/model"
	"github.com/holdfast-pg/holdfast/worker"
)

var _ worker.Queue = line{}

// line is the queue as one process reaches it: each statement is a moment of the schedule. A
// statement that was sent is not broken off, and has no timeout: both would be real time. Those
// of a process that was killed change nothing.
type line struct {
	jobs    *model.Queue
	process *process
}

// send waits for a statement's moment, and tells whether it takes effect.
func (l line) send(what string, which int64) (lives bool) {
	l.process.statement(what, which)
	return !l.process.killed
}

// forGood is a context for statements that are not broken off.
var forGood = context.Background()

// Open implements worker.Queue, as all that follow.
func (l line) Open(context.Context) (domain.Meta, error) {
	l.send("open", 0)
	return l.jobs.Open(forGood)
}

func (l line) Join(_ context.Context, registration domain.Registration) error {
	if !l.send("join", 0) {
		return nil
	}
	l.process.stage.note(l.process, Event{Event: EventJoined, Text: joinText(l.process)})
	return l.jobs.Join(forGood, registration)
}

func joinText(p *process) string {
	if p.joined > 1 {
		return p.name + " was taken for dead, and joins again under another id"
	}
	return p.name + " joins"
}

func (l line) Beat(_ context.Context, registration domain.Registration) (domain.WorkerStatus, error) {
	if !l.send("beat", 0) {
		return domain.WorkerAlive, nil
	}
	return l.jobs.Beat(forGood, registration)
}

func (l line) Members(_ context.Context, queues []string, ttl time.Duration) ([]domain.Membership, error) {
	l.send("members", 0)
	return l.jobs.Members(forGood, queues, ttl)
}

// Listen hears each ring at a moment of its own.
func (l line) Listen(ctx context.Context, ready func(), hear func(domain.Ring)) error {
	l.send("listen", 0)
	if err := ctx.Err(); err != nil {
		return err
	}
	return l.jobs.Listen(ctx, ready, func(ring domain.Ring) {
		l.process.stage.plan(l.process, "ring "+ring.Queue, int64(ring.Bucket), time.Millisecond, func() { hear(ring) })
	})
}

func (l line) Arm(_ context.Context, workerID string, queues []string) error {
	if !l.send("arm", 0) {
		return nil
	}
	return l.jobs.Arm(forGood, workerID, queues)
}

func (l line) Disarm(_ context.Context, workerID string, queues []string) error {
	if !l.send("disarm", 0) {
		return nil
	}
	return l.jobs.Disarm(forGood, workerID, queues)
}

func (l line) Look(_ context.Context, request domain.LookRequest) (domain.Outlook, error) {
	l.send("look", 0)
	return l.jobs.Look(forGood, request)
}

// Claim tells the claims of two windows apart by their first bucket.
func (l line) Claim(_ context.Context, request domain.ClaimRequest) ([]domain.ClaimedJob, error) {
	if len(request.Buckets) == 0 || !l.send("claim", int64(request.Buckets[0])) {
		return nil, nil
	}
	return l.jobs.Claim(forGood, request)
}

func (l line) Renew(_ context.Context, workerID string, lease time.Duration, claims []domain.Claim) ([]domain.Claim, error) {
	if !l.send("renew", 0) {
		return claims, nil
	}
	return l.jobs.Renew(forGood, workerID, lease, claims)
}

func (l line) Settle(_ context.Context, workerID string, settlements []domain.Settlement) []domain.Settled {
	if !l.send("settle", 0) {
		return make([]domain.Settled, len(settlements))
	}
	return l.jobs.Settle(forGood, workerID, settlements)
}

// Elect ends with the process that was elected: a lock does not outlive its connection.
func (l line) Elect(_ context.Context, work func(ctx context.Context)) (elected bool, err error) {
	if !l.send("elect", 0) || !l.process.stage.elect(l.process) {
		return false, nil
	}
	work(forGood)
	l.process.stage.unelect(l.process)
	return true, nil
}

func (l line) Reclaim(_ context.Context, after int64) (reclaimed []domain.Reclaimed, over int64, err error) {
	if !l.send("reclaim", 0) {
		return nil, after, nil
	}
	return l.jobs.Reclaim(forGood, after)
}

func (l line) KeepHouse(_ context.Context, rules domain.HouseRules) (domain.HouseReport, error) {
	if !l.send("keep house", 0) {
		return domain.HouseReport{}, nil
	}
	return l.jobs.KeepHouse(forGood, rules)
}

func (l line) Drain(_ context.Context, workerID string) error {
	if !l.send("drain", 0) {
		return nil
	}
	return l.jobs.Drain(forGood, workerID)
}

func (l line) Leave(_ context.Context, workerID string) error {
	if !l.send("leave", 0) {
		return nil
	}
	return l.jobs.Leave(forGood, workerID)
}

// Close does nothing: the queue is everybody's.
func (l line) Close() {}
