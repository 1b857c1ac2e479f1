package integration

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-pg/holdfast"
	"github.com/holdfast-pg/holdfast/domain"
	"github.com/holdfast-pg/holdfast/integration/pgtest"
	"github.com/holdfast-pg/holdfast/worker"
)

// liar is a queue whose hints are wrong, and which can be cut off: then every call fails.
type liar struct {
	*domain.Queue

	id      string
	lie     lie  // nil: it tells the truth about the workers.
	deaf    bool // No ring is heard.
	ownOnly bool // What others have left lying is not claimed.

	isCut atomic.Bool
}

// lie is what a worker is told of the workers of its queue.
type lie func(workerID string, seen []string) []string

func aloneInTheWorld(workerID string, _ []string) []string { return []string{workerID} }

func nobody(string, []string) []string { return nil }

func othersOnly(string, []string) []string { return []string{"x", "y"} }

func longStale(string, []string) []string { return []string{"dead", "one-1"} }

func anotherAtEachLook(workerID string, seen []string) (told []string) {
	for _, id := range append([]string{workerID, "dead", "x"}, seen...) {
		if rand.IntN(2) == 0 {
			told = append(told, id)
		}
	}
	return told
}

// startLiar runs a worker on a queue whose hints are wrong.
func startLiar(t *testing.T, database *pgtest.Database, name string, l *liar, config holdfast.Config, handlers ...holdfast.Handler) *workerRun {
	t.Helper()
	queue, err := domain.NewQueue(database.Pool, domain.Connections(domain.MinConnections), domain.ListenOn(database.DirectURL))
	if err != nil {
		t.Fatal(err)
	}
	l.Queue, l.id = queue, name+"-1"
	return startMade(t, database, name, config, func(config holdfast.Config) (*holdfast.Worker, error) {
		return worker.New(l, config, handlers...)
	})
}

var errCut = errors.New("the worker is cut off")

// cut is the error of every call while the worker is cut off.
func (l *liar) cut() error {
	if l.isCut.Load() {
		return errCut
	}
	return nil
}

func (l *liar) Members(ctx context.Context, queues []string, ttl time.Duration) ([]domain.Membership, error) {
	if err := l.cut(); err != nil {
		return nil, err
	}
	members, err := l.Queue.Members(ctx, queues, ttl)
	for i := range members {
		if l.lie != nil {
			members[i].Workers = l.lie(l.id, members[i].Workers)
		}
	}
	return members, err
}

func (l *liar) Listen(ctx context.Context, ready func(), hear func(domain.Ring)) error {
	return l.Queue.Listen(ctx, ready, func(ring domain.Ring) {
		if !l.deaf && !l.isCut.Load() {
			hear(ring)
		}
	})
}

func (l *liar) Claim(ctx context.Context, request domain.ClaimRequest) ([]domain.ClaimedJob, error) {
	if err := l.cut(); err != nil || l.ownOnly && request.DueFor > 0 {
		return nil, err
	}
	return l.Queue.Claim(ctx, request)
}

func (l *liar) Renew(ctx context.Context, workerID string, lease time.Duration, claims []domain.Claim) ([]domain.Claim, error) {
	if err := l.cut(); err != nil {
		return nil, err
	}
	return l.Queue.Renew(ctx, workerID, lease, claims)
}

func (l *liar) Settle(ctx context.Context, workerID string, settlements []domain.Settlement) []domain.Settled {
	if err := l.cut(); err != nil {
		return slices.Repeat([]domain.Settled{{Err: err}}, len(settlements))
	}
	return l.Queue.Settle(ctx, workerID, settlements)
}

func (l *liar) Beat(ctx context.Context, registered domain.Registration) (domain.WorkerStatus, error) {
	if err := l.cut(); err != nil {
		return "", err
	}
	return l.Queue.Beat(ctx, registered)
}

func (l *liar) Elect(ctx context.Context, work func(ctx context.Context)) (elected bool, err error) {
	if err := l.cut(); err != nil {
		return false, err
	}
	return l.Queue.Elect(ctx, work)
}

func (l *liar) Reclaim(ctx context.Context, after int64) ([]domain.Reclaimed, int64, error) {
	if err := l.cut(); err != nil {
		return nil, after, err
	}
	return l.Queue.Reclaim(ctx, after)
}

func (l *liar) KeepHouse(ctx context.Context, rules domain.HouseRules) (domain.HouseReport, error) {
	if err := l.cut(); err != nil {
		return domain.HouseReport{}, err
	}
	return l.Queue.KeepHouse(ctx, rules)
}

func (l *liar) Arm(ctx context.Context, workerID string, queues []string) error {
	if err := l.cut(); err != nil {
		return err
	}
	return l.Queue.Arm(ctx, workerID, queues)
}

func (l *liar) Disarm(ctx context.Context, workerID string, queues []string) error {
	if err := l.cut(); err != nil {
		return err
	}
	return l.Queue.Disarm(ctx, workerID, queues)
}
