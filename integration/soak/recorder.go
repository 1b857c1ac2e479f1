package main

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/holdfast-pg/holdfast/domain"
	"github.com/holdfast-pg/holdfast/integration/soak/history"
)

// recorder writes down what a worker asks of its queue, and what it is told.
type recorder struct {
	*domain.Queue
	diary *diary
}

func (r *recorder) Claim(ctx context.Context, request domain.ClaimRequest) ([]domain.ClaimedJob, error) {
	begin := time.Now()
	jobs, err := r.Queue.Claim(ctx, request)
	for _, job := range jobs {
		r.diary.write(history.Op{
			Op: history.OpClaim, Begin: begin, Outcome: history.OK,
			Job: job.ID.String(), Queue: job.Queue, PartitionKey: job.PartitionKey, Kind: job.Kind,
			WorkerID: job.WorkerID, Generation: job.Generation, Attempt: job.Attempt,
		})
	}
	if err != nil {
		outcome, text := outcomeOf(err)
		r.diary.write(history.Op{Op: history.OpClaim, Begin: begin, Outcome: outcome, Error: text, Queue: request.Queue, WorkerID: request.WorkerID})
	}
	return jobs, err
}

func (r *recorder) Renew(ctx context.Context, workerID string, lease time.Duration, claims []domain.Claim) ([]domain.Claim, error) {
	begin := time.Now()
	renewed, err := r.Queue.Renew(ctx, workerID, lease, claims)
	held := map[domain.Claim]bool{}
	for _, claim := range renewed {
		held[claim] = true
	}
	for _, claim := range claims {
		outcome, text := outcomeOf(err)
		if err == nil && !held[claim] {
			outcome = history.Stale
		}
		r.diary.write(history.Op{
			Op: history.OpRenew, Begin: begin, Outcome: outcome, Error: text,
			Job: claim.ID.String(), WorkerID: workerID, Generation: claim.Generation,
		})
	}
	return renewed, err
}

func (r *recorder) Settle(ctx context.Context, workerID string, settlements []domain.Settlement) []domain.Settled {
	begin := time.Now()
	answers := r.Queue.Settle(ctx, workerID, settlements)
	for i, settlement := range settlements {
		outcome, text := outcomeOf(answers[i].Err)
		r.diary.write(history.Op{
			Op: history.OpSettle, Begin: begin, Outcome: outcome, Error: text,
			Job: settlement.Claim.ID.String(), WorkerID: workerID, Generation: settlement.Claim.Generation,
			Verdict: settlement.Outcome.Verdict.String(), Status: string(answers[i].Status), Repeated: settlement.Unconfirmed,
		})
	}
	return answers
}

// didNotHappen tells whether an error says for certain that nothing was written: the server
// refused it, or was never reached. A session that is ended may have committed just before. What
// pgconn.SafeToRetry says is no guide: pgx 5.12 tells a lost answer to COMMIT as "conn closed", and
// that as safe.
func didNotHappen(err error) bool {
	var answer *pgconn.PgError
	if errors.As(err, &answer) {
		return !strings.HasPrefix(answer.Code, "57P")
	}
	var connecting *pgconn.ConnectError
	return errors.As(err, &connecting)
}
