package support

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"github.com/holdfast-pg/holdfast/domain"
	"github.com/holdfast-pg/holdfast/worker"
)

// Worker is what a worker is and does.
type Worker struct {
	ID             string              `json:"id"`
	Status         domain.WorkerStatus `json:"status"`
	Live           bool                `json:"live"` // It is alive and was seen within its time to live: others count it in.
	Queues         []Owned             `json:"queues"`
	StartedAt      time.Time           `json:"started_at"`
	LastSeenAt     time.Time           `json:"last_seen_at"`
	SilenceSeconds float64             `json:"silence_seconds"`
	Kinds          []string            `json:"kinds"`     // Those it runs; empty when it runs every kind, or does not say.
	Says           json.RawMessage     `json:"says"`      // Of itself, at its last heartbeat.
	InFlight       domain.Count        `json:"in_flight"` // Claims that the database knows of.
	Claims         []HeldClaim         `json:"claims"`    // The oldest of them.
}

// Owned is a queue that a worker serves, and which buckets it claims from first.
type Owned struct {
	Queue    string          `json:"queue"`
	Affinity worker.Affinity `json:"affinity"`
	Owned    int             `json:"owned"`
	Of       int             `json:"of"`
	Buckets  []int           `json:"buckets"` // Ascending.
}

// HeldClaim is a claim that a worker holds.
type HeldClaim struct {
	Job              domain.JobID `json:"job"`
	Queue            string       `json:"queue"`
	Kind             string       `json:"kind"`
	Key              string       `json:"key"`
	Attempt          int          `json:"attempt"`
	MaxAttempts      int          `json:"max_attempts"`
	Generation       int64        `json:"generation"`
	ClaimedSeconds   float64      `json:"claimed_seconds"`
	LeaseLeftSeconds float64      `json:"lease_left_seconds"` // Below zero: the lease has ended.
}

// FindWorker returns a worker with at most so many of its claims; domain.ErrWorkerUnknown: the
// registry, which forgets the dead after a day, does not know it.
func FindWorker(ctx context.Context, db domain.Snapshotter, id string, claims int) (found Worker, err error) {
	err = domain.Snapshot(ctx, db, func(db domain.DBTX) error {
		record, err := domain.FindWorker(ctx, db, id)
		if err != nil {
			return err
		}
		workers, err := readFleet(ctx, db)
		if err != nil {
			return err
		}
		inFlight, err := domain.CountInFlight(ctx, db)
		if err != nil {
			return err
		}
		held, err := domain.WorkerClaims(ctx, db, id, claims)
		if err != nil {
			return err
		}
		found = newWorker(workers, newFleetWorker(record), held)
		found.InFlight = inFlight.OfWorker(id)
		return nil
	})
	return found, err
}

func newWorker(workers *fleet, w fleetWorker, held []domain.HeldClaim) Worker {
	found := Worker{
		ID: w.ID, Status: w.Status, Live: w.isLive(), StartedAt: w.StartedAt, LastSeenAt: w.LastSeenAt,
		SilenceSeconds: w.Silence.Seconds(), Kinds: slices.Concat([]string{}, w.says.Kinds), Says: w.Metadata,
		Claims: make([]HeldClaim, len(held)),
	}
	for _, queue := range w.Queues {
		owned := slices.Concat([]int{}, workers.owned(w, queue))
		found.Queues = append(found.Queues, Owned{Queue: queue, Affinity: w.says.Affinity, Owned: len(owned), Of: workers.bucketCount, Buckets: owned})
	}
	for i, claim := range held {
		found.Claims[i] = HeldClaim{
			Job: claim.ID, Queue: claim.Queue, Kind: claim.Kind, Key: claim.PartitionKey, Attempt: claim.Attempt, MaxAttempts: claim.MaxAttempts,
			Generation: claim.Generation, ClaimedSeconds: claim.ClaimedFor.Seconds(), LeaseLeftSeconds: claim.LeaseLeft.Seconds(),
		}
	}
	return found
}
