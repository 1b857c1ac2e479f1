package support

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-pg/holdfast/domain"
)

// housekeepingRounds is how many intervals of housekeeping may pass after the end of a lease.
// One is normal: the lease ended just after a round. After a second one nobody keeps house.
const housekeepingRounds = 2

// processing tells who holds the job, until when, and whether anybody would take it back.
func (e explainer) processing(ctx context.Context, job domain.Standing) ([]Reason, error) {
	id := *job.ClaimedBy
	reasons := []Reason{{
		Code: Processing,
		Text: fmt.Sprintf("it runs: attempt %s, claimed by %s %s ago, %s", attempt(job), id, span(job.ClaimedFor), leaseOf(job)),
		Do:   fmt.Sprintf("nothing, unless it takes too long: holdfast workers show %s prints what its worker does", id),
	}}
	record, err := domain.FindWorker(ctx, e.db, id)
	switch {
	case errors.Is(err, domain.ErrWorkerUnknown):
		reasons = append(reasons, Reason{
			Code: HolderUnknown, Text: fmt.Sprintf("the registry does not know %s (any more)", id), Do: whenLeaseEnds(job),
		})
	case err != nil:
		return nil, err
	default:
		reasons = append(reasons, holder(newFleetWorker(record), job))
	}
	if job.LeaseLeft < 0 {
		reasons = append(reasons, e.overdue(job))
	}
	return reasons, nil
}

// holder tells how the worker stands that holds the job.
func holder(w fleetWorker, job domain.Standing) Reason {
	seen := fmt.Sprintf("last seen %s ago", span(w.Silence))
	switch {
	case w.Status == domain.WorkerDead:
		return Reason{Code: HolderDead, Text: fmt.Sprintf("%s is dead, %s: nobody ends this claim", w.ID, seen), Do: whenLeaseEnds(job)}
	case w.isLate():
		return Reason{Code: HolderLate, Text: fmt.Sprintf("%s has missed heartbeats, %s: it may be dead or cut off", w.ID, seen), Do: whenLeaseEnds(job)}
	case w.isDraining():
		return Reason{
			Code: HolderDraining, Text: fmt.Sprintf("%s is draining, %s", w.ID, seen),
			Do: "nothing: by its drain deadline it ends the job or gives it back without spending the attempt",
		}
	default:
		return Reason{Code: HolderAlive, Text: fmt.Sprintf("%s is alive, %s", w.ID, seen), Do: "nothing: it renews the lease for as long as its handler runs"}
	}
}

// overdue tells why a job is still claimed whose lease has ended.
func (e explainer) overdue(job domain.Standing) Reason {
	interval, live := time.Duration(0), 0
	for _, each := range e.fleet.workers {
		if each.isLive() || each.isDraining() && !each.isLate() {
			interval = max(interval, each.housekeeping())
			live++
		}
	}
	late := -job.LeaseLeft
	switch {
	case live == 0:
		return Reason{
			Code: NobodyKeepsHouse, Text: fmt.Sprintf("its lease ended %s ago, and no worker is alive to take it back", span(late)),
			Do: "start a worker, of any queue: each reclaims what is past its lease",
		}
	case late > housekeepingRounds*interval:
		return Reason{
			Code: NobodyKeepsHouse,
			Text: fmt.Sprintf("its lease ended %s ago, more than %d intervals of housekeeping (%s), and %s did not take it back",
				span(late), housekeepingRounds, span(interval), counted(live, "live worker")),
			Do: "look in the logs of the workers for \"cannot reclaim\" and \"the election of a housekeeper failed\", and in pg_locks for a lock on its row",
		}
	default:
		return Reason{
			Code: LeaseEnded, Text: fmt.Sprintf("its lease ended %s ago: the next housekeeping takes it back, within %s", span(late), span(interval+interval/10)),
			Do: "nothing: then it waits for its backoff, or is dead-lettered if this was its last attempt",
		}
	}
}

func leaseOf(job domain.Standing) string {
	if job.LeaseLeft < 0 {
		return "its lease ended at " + stamp(*job.LeaseExpiresAt)
	}
	return fmt.Sprintf("its lease lasts until %s, for %s", stamp(*job.LeaseExpiresAt), span(job.LeaseLeft))
}

func whenLeaseEnds(job domain.Standing) string {
	if job.LeaseLeft < 0 {
		return "nothing: a lease that is over is taken back from any worker"
	}
	return fmt.Sprintf("wait until the lease ends, in %s; or end the claim now: holdfast jobs release %s", span(job.LeaseLeft), job.ID)
}
