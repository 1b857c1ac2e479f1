package model

import (
	"context"
	"fmt"
	"slices"

	"github.com/holdfast-pg/holdfast/domain"
)

// Settle ends a worker's claims, each with its outcome, and answers in the order of the set.
// Only the current claim of a job can settle it; whether its lease has ended does not matter.
func (q *Queue) Settle(ctx context.Context, workerID string, settlements []domain.Settlement) []domain.Settled {
	answers := make([]domain.Settled, len(settlements))
	if err := ctx.Err(); err != nil {
		for i := range answers {
			answers[i].Err = fmt.Errorf("settle %d jobs: %w", len(settlements), err)
		}
		return answers
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, group := range groupSettlements(settlements) {
		settled := map[domain.Claim]domain.Status{}
		for _, i := range group {
			if job := q.held(workerID, settlements[i].Claim); job != nil {
				settled[settlements[i].Claim] = q.settle(job, settlements[i])
			}
		}
		for _, i := range group {
			answers[i] = q.answer(settlements[i], settled)
		}
		for _, i := range group {
			if answers[i].Err != nil {
				q.noteLost(workerID, settlements[i].Claim, true, "its result was refused: "+settlements[i].Outcome.Verdict.String())
			}
		}
	}
	return answers
}

// groupSettlements returns the positions of the settlements that one statement records, in
// the order in which the statements run: that of the first of each sort.
func groupSettlements(settlements []domain.Settlement) [][]int {
	type sort struct {
		verdict   domain.Verdict
		retention domain.RetentionMode
	}
	var sorts []sort
	var groups [][]int
	for i, settlement := range settlements {
		this := sort{verdict: settlement.Outcome.Verdict}
		if this.verdict == domain.Complete {
			this.retention = settlement.Retention
		}
		at := slices.Index(sorts, this)
		if at < 0 {
			at = len(sorts)
			sorts = append(sorts, this)
			groups = append(groups, nil)
		}
		groups[at] = append(groups[at], i)
	}
	return groups
}

// settle ends the job's current claim and returns the state that it leaves the job in.
func (q *Queue) settle(job *domain.JobRecord, settlement domain.Settlement) domain.Status {
	outcome := settlement.Outcome
	switch outcome.Verdict {
	case domain.Complete:
		q.complete(job, settlement.Retention)
	case domain.Retry:
		q.retry(job, outcome.Delay, outcome.Error)
	case domain.Fail:
		q.fail(job, outcome.Error)
	case domain.Release:
		q.release(job, outcome)
	default:
		panic(fmt.Sprintf("model: unknown verdict %d", outcome.Verdict))
	}
	return job.Status
}

func (q *Queue) complete(job *domain.JobRecord, retention domain.RetentionMode) {
	q.finish(job, domain.StatusCompleted)
	job.CompletedAt = job.FinishedAt
	switch retention {
	case domain.RetentionKeep:
	case domain.RetentionDrop:
		delete(q.inbox, job.ID)
	default:
		q.moveToArchive(job)
	}
}

// finish ends the current claim of a job, and the job with it.
func (q *Queue) finish(job *domain.JobRecord, status domain.Status) {
	now := q.now()
	job.Status = status
	job.FinishedAt, job.FinishedBy = &now, job.ClaimedBy
	unclaim(job)
}

func unclaim(job *domain.JobRecord) {
	job.ClaimedBy, job.ClaimedAt, job.LeaseExpiresAt = nil, nil, nil
}

// answer tells what became of a settlement. One that was sent before without a reply may be
// what ended its claim: then the job's state shows it.
func (q *Queue) answer(settlement domain.Settlement, settled map[domain.Claim]domain.Status) domain.Settled {
	if status, ok := settled[settlement.Claim]; ok {
		return domain.Settled{Status: status}
	}
	job, exists := q.find(settlement.Claim.ID)
	switch {
	case !settlement.Unconfirmed || !tookEffect(settlement, job, exists):
		return domain.Settled{Err: domain.ErrLeaseLost}
	case !exists:
		return domain.Settled{Status: domain.StatusCompleted} // And dropped.
	default:
		return domain.Settled{Status: job.Status}
	}
}

// tookEffect tells whether a settlement is what ended its claim, as far as the job shows it:
// a retry or a release looks like a reclaim of the same claim, and a job that was to be
// dropped is not there, whoever dropped it.
func tookEffect(settlement domain.Settlement, job domain.JobRecord, exists bool) bool {
	if !exists {
		return settlement.Outcome.Verdict == domain.Complete && settlement.Retention == domain.RetentionDrop
	}
	if job.Generation != settlement.Claim.Generation {
		return false
	}
	switch settlement.Outcome.Verdict {
	case domain.Complete:
		return job.Status == domain.StatusCompleted
	case domain.Fail:
		return job.Status == domain.StatusFailed
	default:
		return job.Status == domain.StatusPending || job.Status == domain.StatusDeadLetter
	}
}
