package model

import (
	"slices"
	"time"

	"github.com/holdfast-pg/holdfast/domain"
)

// detailLimit is how many bytes a detail has at most. A longer one keeps its first 2,048
// characters, which have no more.
const detailLimit = 8 << 10

// note leaves an event of the job's latest claim, which the worker holds or held until now.
func (q *Queue) note(kind domain.EventKind, job *domain.JobRecord, workerID string, attempt int, detail *string) {
	event := aboutJob(*job)
	event.Kind, event.JobID, event.Generation, event.Attempt = kind, new(job.ID), new(job.Generation), new(attempt)
	event.WorkerID, event.Detail = new(workerID), detail
	q.addEvent(event)
}

func aboutJob(job domain.JobRecord) domain.Event {
	return domain.Event{Queue: new(job.Queue), JobKind: new(job.Kind), PartitionKey: new(job.PartitionKey)}
}

func (q *Queue) addEvent(event domain.Event) {
	q.lastEvent++
	event.ID, event.At = q.lastEvent, q.now()
	if event.Detail != nil {
		event.Detail = new(cutDetail(*event.Detail))
	}
	q.events = append(q.events, event)
}

func cutDetail(text string) string {
	if len(text) <= detailLimit {
		return text
	}
	return string([]rune(text)[:min(2048, len([]rune(text)))])
}

// noteRelease leaves the event that the outcome names, one only for each attempt and worker.
func (q *Queue) noteRelease(job *domain.JobRecord, workerID string, outcome domain.Outcome) {
	told := slices.ContainsFunc(q.events, func(event domain.Event) bool {
		return event.JobID != nil && *event.JobID == job.ID && event.Kind == outcome.Event &&
			*event.Attempt == job.Attempts && *event.WorkerID == workerID
	})
	if outcome.Event != "" && !told {
		q.note(outcome.Event, job, workerID, job.Attempts, &outcome.Error)
	}
}

// endings are the events of which one at most says how a claim ended. A release may leave none.
var endings = []domain.EventKind{
	domain.EventRetried, domain.EventReleased, domain.EventFenced, domain.EventFailed,
	domain.EventDeadLettered, domain.EventReclaimed, domain.EventCancelled,
}

func (q *Queue) endingOf(claim domain.Claim) (ending domain.Event, found bool) {
	at := slices.IndexFunc(q.events, func(event domain.Event) bool {
		return isOf(event, claim) && slices.Contains(endings, event.Kind)
	})
	if at < 0 {
		return domain.Event{}, false
	}
	return q.events[at], true
}

func isOf(event domain.Event, claim domain.Claim) bool {
	return event.JobID != nil && *event.JobID == claim.ID && event.Generation != nil && *event.Generation == claim.Generation
}

// noteLost notes once that a worker was told that its claim is over. A settlement that was
// refused says so for itself. A renewal may also have come after the worker's own settlement: it
// counts when the claim is still there, with an ended lease, or when somebody else ended it.
func (q *Queue) noteLost(workerID string, claim domain.Claim, settling bool, detail string) {
	job, exists := q.find(claim.ID)
	ending, ended := q.endingOf(claim)
	elsewhere := ended && (ending.Kind == domain.EventReclaimed || ending.Kind == domain.EventCancelled ||
		ending.Kind == domain.EventReleased && ending.Actor != nil)
	claim.WorkerID = workerID
	if !settling && !elsewhere && q.held(workerID, claim) == nil {
		return
	}
	if slices.ContainsFunc(q.events, func(event domain.Event) bool {
		return event.Kind == domain.EventLeaseLost && isOf(event, claim) && *event.WorkerID == workerID
	}) {
		return
	}
	event := domain.Event{Queue: ending.Queue, JobKind: ending.JobKind, PartitionKey: ending.PartitionKey}
	if exists {
		event = aboutJob(job)
	}
	event.Attempt = ending.Attempt
	if event.Attempt == nil && exists && job.Generation == claim.Generation && job.Status != domain.StatusPending {
		event.Attempt = &job.Attempts
	}
	event.Kind, event.JobID, event.Generation = domain.EventLeaseLost, &claim.ID, &claim.Generation
	event.WorkerID, event.Detail = &workerID, &detail
	q.addEvent(event)
}

// expireEvents forgets events of a certain age.
func (q *Queue) expireEvents(age time.Duration) (expired int64) {
	since, before := q.now().Add(-age), len(q.events)
	q.events = slices.DeleteFunc(q.events, func(event domain.Event) bool { return event.At.Before(since) })
	return int64(before - len(q.events))
}
