package support

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/holdfast-pg/holdfast/domain"
)

// unserved tells why no worker would claim the job and run it; nothing when one would.
func (e explainer) unserved(job domain.Standing) []Reason {
	serving := e.fleet.serving(job.Queue)
	if len(serving) == 0 {
		return []Reason{e.unowned(job)}
	}
	able := slices.DeleteFunc(slices.Clone(serving), func(w fleetWorker) bool { return !w.says.Runs(job.Kind) })
	if len(able) == 0 {
		return []Reason{{
			Code: KindNotServed,
			Text: fmt.Sprintf("%s of queue %s, and none runs kind %s: they run %s, and give others back each time they claim them",
				counted(len(serving), "live worker"), job.Queue, job.Kind, kinds(serving)),
			Do: fmt.Sprintf("start a worker of queue %s with a handler for kind %s", job.Queue, job.Kind),
		}}
	}
	owner, bound := e.owner(job)
	if !bound || owner.says.Runs(job.Kind) || slices.ContainsFunc(able, fleetWorker.isFree) {
		return nil
	}
	return []Reason{{
		Code: OwnerLacksKind,
		Text: fmt.Sprintf("%s, the owner of its bucket, %d, does not run kind %s, and gives the job back each time it claims it; %s would run it",
			owner.ID, job.Bucket, job.Kind, listed(idsOf(able))),
		Do: fmt.Sprintf("give every worker of queue %s the same handlers, or kind %s a queue of its own", job.Queue, job.Kind),
	}}
}

// unowned tells why the queue has no live worker.
func (e explainer) unowned(job domain.Standing) Reason {
	start := fmt.Sprintf("start a worker of queue %s; holdfast workers list --all prints those that were there", job.Queue)
	silent := e.fleet.those(job.Queue, fleetWorker.isSilent)
	if len(silent) > 0 {
		last := slices.MinFunc(silent, func(a, b fleetWorker) int { return cmp.Compare(a.Silence, b.Silence) })
		return Reason{
			Code: BucketUnowned,
			Text: fmt.Sprintf("its bucket, %d, has no owner: %s of queue %s registered as alive, and none was seen for %s; the last is %s, %s ago",
				job.Bucket, counted(len(silent), "worker"), job.Queue, span(last.ttl()), last.ID, span(last.Silence)),
			Do: "see whether they can reach the database; " + start,
		}
	}
	text := fmt.Sprintf("no live worker serves queue %s", job.Queue)
	if draining := e.fleet.those(job.Queue, fleetWorker.isDraining); len(draining) > 0 {
		text += fmt.Sprintf(", %d drain", len(draining))
	}
	return Reason{Code: NoWorker, Text: text, Do: start}
}

// owner returns the owner of the job's bucket. False: its workers go by no ring.
func (e explainer) owner(job domain.Standing) (owner fleetWorker, bound bool) {
	owner, found := e.fleet.find(e.fleet.ring(job.Queue).Owner(job.Bucket))
	return owner, found && !owner.isFree()
}

// busy tells why those who would claim the job do not: its owner is late or has no slot to
// spare, or, where workers go by no ring, none of them has.
func (e explainer) busy(job domain.Standing) []Reason {
	owner, bound := e.owner(job)
	free := slices.DeleteFunc(e.fleet.serving(job.Queue), func(w fleetWorker) bool { return !w.isFree() || w.isBusy() || w.isLate() })
	switch {
	case len(free) > 0:
		return nil
	case bound && owner.isLate():
		return []Reason{{
			Code: OwnerLate,
			Text: fmt.Sprintf("%s, the owner of its bucket, %d, has missed heartbeats: last seen %s ago", owner.ID, job.Bucket, span(owner.Silence)),
			Do:   fmt.Sprintf("nothing, if other workers serve queue %s: they take what has waited for 2s, and its buckets when it was not seen for %s", job.Queue, span(owner.ttl())),
		}}
	case bound && owner.isBusy():
		return []Reason{{
			Code: OwnerBusy,
			Text: fmt.Sprintf("%s, the owner of its bucket, %d, is busy: %d in flight with a concurrency of %d, when last seen %s ago",
				owner.ID, job.Bucket, owner.says.InFlight, owner.says.Concurrency, span(owner.Silence)),
			Do: "nothing, if other workers have slots to spare: they take what has waited for 2s; else add workers or concurrency",
		}}
	case !bound && !slices.ContainsFunc(e.fleet.serving(job.Queue), func(w fleetWorker) bool { return !w.isBusy() && !w.isLate() }):
		return []Reason{{
			Code: WorkersBusy,
			Text: fmt.Sprintf("every worker of queue %s is busy or late: %s", job.Queue, listed(idsOf(e.fleet.serving(job.Queue)))),
			Do:   "add workers or concurrency; holdfast workers show ID prints what one is busy with",
		}}
	}
	return nil
}

// claimer names who claims the job next.
func (e explainer) claimer(job domain.Standing) string {
	if owner, bound := e.owner(job); bound {
		return fmt.Sprintf("%s, the owner of its bucket, %d,", owner.ID, job.Bucket)
	}
	return "any worker of queue " + job.Queue
}

// kinds names what the workers run.
func kinds(workers []fleetWorker) string {
	var all []string
	for _, each := range workers {
		all = append(all, each.says.Kinds...)
	}
	slices.Sort(all)
	return listed(slices.Compact(all))
}
