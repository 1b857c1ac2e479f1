package support

import (
	"cmp"
	"context"
	"slices"

	"github.com/holdfast-pg/holdfast/domain"
	"github.com/holdfast-pg/holdfast/worker"
)

// How much of each list Top reads: more than a screen shows of it.
const (
	mostHotKeys    = 10
	mostDeadGroups = 10
)

// Top is what a person who watches wants to see at once: how the installation stands, what its
// workers do, and what is behind the queues that are worst off.
type Top struct {
	Status   Status          `json:"status"`
	Counters domain.Counters `json:"counters"`
	Workers  []TopWorker     `json:"workers"` // In the order of their ids.

	// HotKeys are those at the head of the queue in which most is due; null where nobody has to
	// wait long enough for one to be hot.
	HotKeys *domain.KeySample `json:"hot_keys"`

	// Dead groups the dead jobs of the queue that has most; null where none is dead.
	Dead *domain.DeadGroups[domain.ErrorGroup] `json:"dead"`
}

// TopWorker is a worker of the registry, and what it said of itself at its last heartbeat.
type TopWorker struct {
	ID             string              `json:"id"`
	Status         domain.WorkerStatus `json:"status"`
	Live           bool                `json:"live"` // It is alive and was seen within its time to live: others count it in.
	Queues         []string            `json:"queues"`
	SilenceSeconds float64             `json:"silence_seconds"` // Since its last heartbeat.
	Says           worker.Facts        `json:"says"`
}

// ReadTop looks at everything at one moment.
func ReadTop(ctx context.Context, db domain.Snapshotter) (top Top, err error) {
	err = domain.Snapshot(ctx, db, func(db domain.DBTX) error {
		seen, err := look(ctx, db)
		if err != nil {
			return err
		}
		top = Top{Status: seen.status(), Workers: seen.topWorkers(), HotKeys: seen.topKeys()}
		if top.Counters, err = domain.ReadCounters(ctx, db); err != nil {
			return err
		}
		if worst := seen.worst(func(q queueSight) int64 { return q.Dead().Jobs }); worst != nil {
			groups, err := domain.DeadByError(ctx, db, worst.Queue, mostDeadGroups)
			top.Dead = &groups
			return err
		}
		return nil
	})
	return top, err
}

func (s sight) topWorkers() []TopWorker {
	workers := make([]TopWorker, len(s.fleet.workers))
	for i, each := range s.fleet.workers {
		workers[i] = TopWorker{
			ID: each.ID, Status: each.Status, Live: each.isLive(), Queues: each.Queues, SilenceSeconds: each.Silence.Seconds(), Says: each.says,
		}
	}
	return workers
}

func (s sight) topKeys() *domain.KeySample {
	worst := s.worst(func(q queueSight) int64 { return q.sample.Jobs })
	if worst == nil {
		return nil
	}
	return &worst.sample
}

// worst is the queue that has most of something; nil where none has any.
func (s sight) worst(count func(queueSight) int64) *queueSight {
	if len(s.queues) == 0 {
		return nil
	}
	worst := slices.MaxFunc(s.queues, func(a, b queueSight) int { return cmp.Compare(count(a), count(b)) })
	if count(worst) == 0 {
		return nil
	}
	return &worst
}
