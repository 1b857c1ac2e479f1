package simulate

import (
	"fmt"
	"time"

	"github.com/holdfast-pg/holdfast/domain"
)

// run is one run of a handler, and what a handler can do.
type run struct {
	stage   *stage
	process *process
	job     domain.ClaimedJob
}

// work takes time, and whatever becomes of the context. The handlers here are careless on
// purpose: what holds then, holds.
func (r *run) work(d time.Duration) {
	r.process.wait("work", r.job.Generation, d)
}

// between draws how long this run takes for something.
func (r *run) between(least, most time.Duration) time.Duration {
	return r.stage.between(r.job.Kind, r.job.Seq<<8+int64(r.job.Attempt), least, most)
}

// transact waits for a transaction, whose writes take effect at that moment.
func (r *run) transact() {
	r.process.statement("transact", r.job.Generation)
}

// markHandled makes the mark of this job's effect, and tells whether it is the first.
func (r *run) markHandled() bool {
	first, err := r.stage.jobs.MarkHandled(forGood, r.job.ID, r.job.Kind)
	return err == nil && first
}

// admitted tells whether the resource takes this claim's token; always, if nobody compares.
func (r *run) admitted(resource string) bool {
	return r.stage.guard == nil || r.stage.guard(forGood, resource, r.job.Claim) == nil
}

// crash kills the process in the middle of the handler.
func (r *run) crash() error {
	r.process.kill()
	<-r.process.buried
	return errKilled
}

// pause stops the process in the middle of the handler, which goes on when it is woken.
func (r *run) pause(d time.Duration) {
	r.process.pause(d)
	r.work(0)
}

// tell records what the handler does.
func (r *run) tell(event EventKind, format string, args ...any) {
	r.stage.note(r.process, Event{
		Event: event, Job: nameOf(r.job), Attempt: r.job.Attempt, Token: r.job.Generation, seq: r.job.Seq,
		Text: r.process.name + " " + fmt.Sprintf(format, args...),
	})
}

// nameOf names a job for people.
func nameOf(job domain.ClaimedJob) string { return job.Kind + " of " + job.PartitionKey }
