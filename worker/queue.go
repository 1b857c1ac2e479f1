package worker

import (
	"context"
	"time"

	"github.com/holdfast-pg/holdfast/domain"
)

// Queue is what the loop needs of a store of jobs. domain.Queue keeps them in Postgres,
// domain/model.Queue in memory. Every method is safe for concurrent use and says in its own
// documentation what it promises.
type Queue interface {
	Open(ctx context.Context) (domain.Meta, error)
	Join(ctx context.Context, worker domain.Registration) error
	Beat(ctx context.Context, worker domain.Registration) (domain.WorkerStatus, error)
	Members(ctx context.Context, queues []string, ttl time.Duration) ([]domain.Membership, error)
	Listen(ctx context.Context, ready func(), hear func(domain.Ring)) error
	Arm(ctx context.Context, workerID string, queues []string) error
	Disarm(ctx context.Context, workerID string, queues []string) error
	Look(ctx context.Context, request domain.LookRequest) (domain.Outlook, error)
	Claim(ctx context.Context, request domain.ClaimRequest) ([]domain.ClaimedJob, error)
	Renew(ctx context.Context, workerID string, lease time.Duration, claims []domain.Claim) ([]domain.Claim, error)
	Settle(ctx context.Context, workerID string, settlements []domain.Settlement) []domain.Settled
	Elect(ctx context.Context, work func(ctx context.Context)) (elected bool, err error)
	Reclaim(ctx context.Context, after int64) (reclaimed []domain.Reclaimed, over int64, err error)
	KeepHouse(ctx context.Context, rules domain.HouseRules) (domain.HouseReport, error)
	Drain(ctx context.Context, workerID string) error
	Leave(ctx context.Context, workerID string) error
	Close()
}

var _ Queue = (*domain.Queue)(nil)
