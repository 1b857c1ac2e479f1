package support

import (
	"context"
	"fmt"

	"github.com/holdfast-pg/holdfast/domain"
)

// pending tells what the job waits for: everything that keeps it, then, when nothing does,
// who is to claim it.
func (e explainer) pending(ctx context.Context, job domain.Standing, further bool) ([]Reason, error) {
	var reasons []Reason
	if job.QueuePaused {
		reasons = append(reasons, Reason{
			Code: QueuePaused, Text: fmt.Sprintf("queue %s is paused: nothing is claimed from it", job.Queue),
			Do: "holdfast queues resume " + job.Queue,
		})
	}
	if job.DueIn > 0 {
		reasons = append(reasons, later(job))
	}
	reasons = append(reasons, e.unserved(job)...)
	if job.Ordered {
		lane, err := e.lane(ctx, job, further, reasons)
		if err != nil {
			return nil, err
		}
		reasons = append(reasons, lane...)
	}
	if len(reasons) > 0 {
		return reasons, nil
	}
	return e.next(ctx, job)
}

// later tells until when the job waits, and why.
func later(job domain.Standing) Reason {
	at, in := stamp(job.AvailableAt), span(job.DueIn)
	switch {
	case job.Generation == 0:
		return Reason{Code: Scheduled, Text: fmt.Sprintf("it is scheduled for %s, in %s", at, in), Do: "nothing: it is claimed when it is due"}
	case job.Attempts == 0:
		return Reason{
			Code: GivenBack, Text: fmt.Sprintf("it was claimed and given back without spending an attempt: snoozed, released, or of a kind that its worker does not know; it may run again at %s, in %s", at, in),
			Do: "nothing: it is claimed when it is due",
		}
	case job.LastError == nil:
		return Reason{
			Code: Retrying, Text: fmt.Sprintf("it is to be tried again at %s, in %s: attempt %s ended without an error, so its lease was lost or it was snoozed", at, in, attempt(job)),
			Do: "nothing: it is claimed when it is due",
		}
	default:
		return Reason{
			Code: Retrying, Text: fmt.Sprintf("it is to be tried again at %s, in %s: attempt %s is over%s", at, in, attempt(job), lastError(job)),
			Do: "mend what the error names before its attempts are spent",
		}
	}
}

// lane tells which job of its key is before the job, and with further why that one does not
// run, as far as the reasons known do not say it.
func (e explainer) lane(ctx context.Context, job domain.Standing, further bool, known []Reason) ([]Reason, error) {
	lane, err := domain.FindLane(ctx, e.db, job)
	if err != nil {
		return nil, err
	}
	before := Reason{Do: "see to that job: holdfast jobs explain "}
	var id domain.JobID
	switch {
	case lane.Before > 0:
		id = *lane.Head
		before.Code = BehindHead
		before.Text = fmt.Sprintf("it is behind %s of key %s, which run in order; the first is %s", atMost(lane.Before, "job"), job.PartitionKey, id)
	case lane.Claimed != nil:
		id = *lane.Claimed
		before.Code = LaneBusy
		before.Text = fmt.Sprintf("another job of key %s has been claimed, and they run one at a time: %s", job.PartitionKey, id)
	default:
		return nil, nil
	}
	before.Do += id.String()
	if further {
		other, err := domain.FindStanding(ctx, e.db, id)
		if err != nil {
			return nil, err
		}
		because, err := e.reasons(ctx, other, false)
		if err != nil {
			return nil, err
		}
		before.Because = without(because, known)
	}
	return []Reason{before}, nil
}

// next tells who is to claim a job that is due and that nothing keeps.
func (e explainer) next(ctx context.Context, job domain.Standing) ([]Reason, error) {
	reasons := e.busy(job)
	if !job.Ordered {
		count, err := domain.JobsBefore(ctx, e.db, job)
		if err != nil {
			return nil, err
		}
		if count > 0 {
			reasons = append(reasons, Reason{
				Code: JobsBefore, Text: fmt.Sprintf("it has been due for %s, and %s of its bucket, %d, come before it", span(-job.DueIn), atMost(count, "due job"), job.Bucket),
				Do: fmt.Sprintf("holdfast keys hot --queue %s tells whether one key is behind that; more workers or more concurrency work them off sooner", job.Queue),
			})
		}
	}
	if len(reasons) > 0 {
		return reasons, nil
	}
	return []Reason{{
		Code: Due, Text: fmt.Sprintf("nothing keeps it: it has been due for %s, and the next claim of %s takes it", span(-job.DueIn), e.claimer(job)),
		Do: "ask again in a few seconds; if it still waits, a transaction may hold a lock on its row",
	}}, nil
}

// atMost is a number that was counted up to a bound.
func atMost(n int, what string) string {
	if n >= domain.JobsCounted {
		return fmt.Sprintf("more than %d %ss", domain.JobsCounted-1, what)
	}
	return counted(n, what)
}
