package simulate

import (
	"context"
	"fmt"
	"strconv"

	"github.com/holdfast-pg/holdfast/app/orders"
	"github.com/holdfast-pg/holdfast/domain"
	"github.com/holdfast-pg/holdfast/worker"
)

// observer tells the record what the loop does.
func (p *process) observer() worker.Observer {
	return worker.Observer{
		Started:     p.started,
		Handled:     func(_ context.Context, handled worker.Handled) { p.tellOf(EventEnded, handled.Job, "ends") },
		Settled:     p.settled,
		Lost:        func(lost worker.Lost) { p.tellOf(EventLost, lost.Job, "has lost its lease of") },
		RingChanged: p.ringChanged,
		KeptHouse:   p.keptHouse,
		Drained: func(worker.Drained) {
			p.stage.note(p, Event{Event: EventLeft, Text: p.name + " has left, and holds nothing"})
		},
	}
}

// event is one of a job.
func (p *process) event(kind EventKind, job domain.ClaimedJob, text string) Event {
	return Event{Event: kind, Job: nameOf(job), Attempt: job.Attempt, Token: job.Generation, Text: p.name + " " + text, key: job.PartitionKey, seq: job.Seq}
}

func (p *process) tellOf(kind EventKind, job domain.ClaimedJob, text string) {
	p.stage.note(p, p.event(kind, job, text+" "+nameOf(job)))
}

func (p *process) started(ctx context.Context, started worker.Started) context.Context {
	event := p.event(EventStarted, started.Job, p.stage.startText(started))
	event.waited = started.Waited
	p.stage.note(p, event)
	return ctx
}

// startText tells of a start: of its token, or where waits matter, of its wait.
func (s *stage) startText(started worker.Started) string {
	if s.tellWaits {
		return fmt.Sprintf("starts %s, waited %.3f s", nameOf(started.Job), seconds(started.Waited))
	}
	return fmt.Sprintf("starts %s, attempt %d, token %s", nameOf(started.Job), started.Job.Attempt, orders.Brief(started.Job.Generation))
}

func (p *process) settled(settled worker.Settled) {
	kind, text := EventSettled, "completes "+nameOf(settled.Job)
	switch {
	case isLost(settled.Err):
		kind, text = EventResultRefused, "is refused the completion of "+nameOf(settled.Job)
	case settled.Outcome.Verdict != domain.Complete:
		text = settled.Outcome.Verdict.String() + " of " + nameOf(settled.Job)
	}
	event := p.event(kind, settled.Job, text)
	event.status = settled.Status
	p.stage.note(p, event)
}

func (p *process) ringChanged(changed worker.RingChanged) {
	event := Event{Event: EventRing, ring: changed, Text: fmt.Sprintf("%s sees %d workers, and owns %s buckets, %s before", p.name, changed.Workers, thousands(changed.Buckets), thousands(changed.Before))}
	if changed.Workers == 0 {
		event.Text = fmt.Sprintf("%s gives up its %s buckets", p.name, thousands(changed.Before))
	}
	p.stage.note(p, event)
}

func (p *process) keptHouse(kept worker.KeptHouse) {
	for _, job := range kept.Reclaimed {
		key := p.stage.keyOf(job.Claim.ID)
		p.stage.note(p, Event{
			Event: EventReclaimed, Job: job.Kind + " of " + key, Attempt: job.Attempts, Token: job.Claim.Generation,
			Text:   fmt.Sprintf("%s reclaims %s of %s from %s", p.name, job.Kind, key, job.Claim.WorkerID),
			status: job.Status, seq: job.Claim.Generation,
		})
	}
}

// keyOf is the partition key of a job.
func (s *stage) keyOf(id domain.JobID) string {
	job, err := s.jobs.FindJob(forGood, id)
	if err != nil {
		return id.String()
	}
	return job.PartitionKey
}

// thousands writes a number as people do.
func thousands(n int) string {
	if n < 1000 {
		return strconv.Itoa(n)
	}
	return fmt.Sprintf("%d,%03d", n/1000, n%1000)
}
