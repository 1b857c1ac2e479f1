package support

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/holdfast-pg/holdfast/domain"
	"github.com/holdfast-pg/holdfast/worker"
)

// WhatIf is what would become of a queue's ring if its workers changed.
type WhatIf struct {
	Queue   string  `json:"queue"`
	Buckets int     `json:"buckets"`
	Workers int     `json:"workers"` // That are live.
	Then    int     `json:"then"`    // That there would be.
	Moved   int     `json:"moved"`   // Buckets that would have another owner.
	Share   float64 `json:"share"`   // Of the buckets, 0 to 1.
	Least   int     `json:"least"`   // What a worker would own.
	Mean    float64 `json:"mean"`
	Most    int     `json:"most"`
}

// Change is what to suppose of the workers of a queue: how many there are, or who leaves.
type Change struct {
	Workers int    // That there would be, if Leave is "". Those that joined last leave; those that join have ids of no meaning.
	Join    bool   // One more than there are.
	Leave   string // The worker that would leave.
}

// Suppose tells how many buckets would move. domain.InvalidError: more workers than a report
// looks at; domain.ErrUnknownQueue: there is no such queue;
// domain.ErrWorkerUnknown: no live worker of the queue has the id of the one that leaves.
func Suppose(ctx context.Context, db domain.Snapshotter, queue string, change Change) (answer WhatIf, err error) {
	if change.Workers > mostWorkers {
		return WhatIf{}, &domain.InvalidError{Field: "workers", Reason: fmt.Sprintf("%d are more than %d", change.Workers, mostWorkers)}
	}
	err = onFleet(ctx, db, queue, func(workers *fleet) error {
		before := workers.serving(queue)
		after, err := change.apply(before)
		if err != nil {
			return fmt.Errorf("look among the live workers of queue %q for %q: %w", queue, change.Leave, err)
		}
		answer = compared(workers.ring(queue), after, workers.bucketCount)
		answer.Queue, answer.Workers = queue, len(before)
		return nil
	})
	return answer, err
}

// apply returns the ids of those that there would be.
func (c Change) apply(workers []fleetWorker) ([]string, error) {
	// The one that joined last is the last.
	byAge := slices.SortedFunc(slices.Values(workers), func(a, b fleetWorker) int {
		return cmp.Or(a.StartedAt.Compare(b.StartedAt), cmp.Compare(a.ID, b.ID))
	})
	ids := idsOf(byAge)
	if c.Leave != "" {
		at := slices.Index(ids, c.Leave)
		if at < 0 {
			return nil, domain.ErrWorkerUnknown
		}
		return slices.Delete(ids, at, at+1), nil
	}
	count := c.Workers
	if c.Join {
		count = len(ids) + 1
	}
	for len(ids) < count {
		ids = append(ids, fmt.Sprintf("joins-%d", len(ids)))
	}
	return ids[:count], nil
}

func compared(before worker.Ring, workers []string, bucketCount int) WhatIf {
	after := worker.NewRing(workers, bucketCount)
	answer := WhatIf{Buckets: bucketCount, Then: len(workers)}
	for bucket := range bucketCount {
		if before.Owner(bucket) != after.Owner(bucket) {
			answer.Moved++
		}
	}
	answer.Share = float64(answer.Moved) / float64(bucketCount)
	if len(workers) == 0 {
		return answer
	}
	var shares []int
	for _, id := range workers {
		shares = append(shares, len(after.Owned(id)))
	}
	answer.Least, answer.Most = slices.Min(shares), slices.Max(shares)
	answer.Mean = float64(bucketCount) / float64(len(workers))
	return answer
}
