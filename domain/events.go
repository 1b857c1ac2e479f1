package domain

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/jackc/pgx/v5/pgtype"

	"github.com/holdfast-pg/holdfast/gen"
)

// EventKind is what happened.
type EventKind = gen.EventKind

// The kinds of events. What workers and housekeeping do by themselves has no actor.
const (
	EventRetried       EventKind = gen.HoldfastEventKindRetried       // An attempt failed; the job waits for the next one.
	EventReleased      EventKind = gen.HoldfastEventKindReleased      // Given back with the attempt refunded, by its worker or by a person.
	EventFenced        EventKind = gen.HoldfastEventKindFenced        // Given back because a guarded resource had seen a higher token.
	EventFailed        EventKind = gen.HoldfastEventKindFailed        // Its handler said never to retry.
	EventDeadLettered  EventKind = gen.HoldfastEventKindDeadLettered  // Its attempts are spent.
	EventReclaimed     EventKind = gen.HoldfastEventKindReclaimed     // Its lease ended, and housekeeping took it back.
	EventLeaseLost     EventKind = gen.HoldfastEventKindLeaseLost     // A worker was told that its claim is over.
	EventRedriven      EventKind = gen.HoldfastEventKindRedriven      // A person put it back with all its attempts.
	EventCancelled     EventKind = gen.HoldfastEventKindCancelled     // A person ended it.
	EventPurged        EventKind = gen.HoldfastEventKindPurged        // A person deleted it.
	EventQueueChanged  EventKind = gen.HoldfastEventKindQueueChanged  // A setting is another.
	EventQueuePaused   EventKind = gen.HoldfastEventKindQueuePaused   // Nothing is claimed from it.
	EventQueueResumed  EventKind = gen.HoldfastEventKindQueueResumed  // It is claimed from again.
	EventWorkerDrained EventKind = gen.HoldfastEventKindWorkerDrained // A person told it to drain.
	EventWorkerEvicted EventKind = gen.HoldfastEventKindWorkerEvicted // A person took everything from it.
	EventEpochAdvanced EventKind = gen.HoldfastEventKindEpochAdvanced // Tokens begin anew, above all before: a failover, or a restore.
)

// EventKinds lists all of them.
func EventKinds() []EventKind { return gen.AllEventKindValues() }

// Event is something unusual that happened. A job that is claimed and completed leaves none,
// and so does one that its handler puts off. Events are kept for 30 days, also when their job
// is gone.
type Event struct {
	ID           int64     `json:"id"` // Their order.
	At           time.Time `json:"at"`
	Kind         EventKind `json:"event"`
	JobID        *JobID    `json:"job_id"`     // Nil: it happened to a queue, a worker or the installation.
	Generation   *int64    `json:"generation"` // The fence token of the claim concerned.
	Attempt      *int      `json:"attempt"`    // That of the claim.
	Queue        *string   `json:"queue"`
	JobKind      *string   `json:"kind"`
	PartitionKey *string   `json:"partition_key"`
	WorkerID     *string   `json:"worker_id"` // Who held the claim, or whom it happened to.
	Actor        *string   `json:"actor"`     // Who ordered it.
	Detail       *string   `json:"detail"`    // An error, or a reason.
}

func newEvent(row gen.HoldfastEvent) Event {
	event := Event{
		ID: row.ID, At: row.At, Kind: row.Event, Generation: row.LeaseGeneration, Queue: row.Queue, JobKind: row.Kind,
		PartitionKey: row.PartitionKey, WorkerID: row.WorkerID, Actor: row.Actor, Detail: row.Detail,
	}
	if row.JobID.Valid {
		event.JobID = new(JobID(row.JobID.Bytes))
	}
	if row.Attempt != nil {
		event.Attempt = new(int(*row.Attempt))
	}
	return event
}

// JobStory is what is known of a job, and what happened to it.
type JobStory struct {
	ID   JobID `json:"id"`
	Gone bool  `json:"gone"` // Purged, dropped or past its retention: only its events are left.
	*JobRecord

	// Events are those of the last 30 days in their order: when there are more than asked for,
	// the latest.
	Events []Event `json:"events"`
}

// FindJobStory returns what is known of a job, archived or gone, with its events, at most
// limit. ErrNotFound: there is neither a job nor an event.
func FindJobStory(ctx context.Context, db DBTX, id JobID, limit int) (JobStory, error) {
	story := JobStory{ID: id}
	job, err := FindJob(ctx, db, id)
	switch {
	case errors.Is(err, ErrNotFound):
		story.Gone = true
	case err != nil:
		return JobStory{}, err
	default:
		story.JobRecord = &job
	}
	if story.Events, err = JobEvents(ctx, db, id, limit); err != nil {
		return JobStory{}, err
	}
	if story.Gone && len(story.Events) == 0 {
		return JobStory{}, fmt.Errorf("find job %s: %w (searched: the inbox, the archive, and the events of 30 days)", id, ErrNotFound)
	}
	return story, nil
}

// JobEvents lists the latest events of a job, at most limit, in their order.
func JobEvents(ctx context.Context, db DBTX, id JobID, limit int) ([]Event, error) {
	rows, err := gen.New().ListJobEvents(ctx, db, gen.ListJobEventsParams{JobID: id.uuid(), MaxRows: int32(limit)})
	if err != nil {
		return nil, fmt.Errorf("list the events of job %s: %w", id, explain(err))
	}
	slices.Reverse(rows)
	events := make([]Event, len(rows))
	for i, row := range rows {
		events[i] = newEvent(row)
	}
	return events, nil
}

// eventsLookedAt is how many events a list looks at, however few of them are asked for.
const eventsLookedAt = 10_000

// EventFilter says which events are asked for. What is zero asks for all.
type EventFilter struct {
	Queue  string
	Kind   EventKind
	Within time.Duration // Those of the latest time.
	Before int64         // Those before the one with this id.
	Limit  int           // At most so many, which must be given.
}

// EventPage is a part of the list of all events, the latest first.
type EventPage struct {
	Events []Event

	// Next continues the list, as EventFilter.Before; 0: this was the end.
	Next int64

	// LookedBackTo is the time of the oldest event that was looked at, if the list ends there
	// because it looks at 10,000 events at a time, whatever is asked for.
	LookedBackTo *time.Time
}

// ListEvents lists events, the latest first. It looks at 10,000 events at most.
func ListEvents(ctx context.Context, db DBTX, filter EventFilter) (EventPage, error) {
	if filter.Before == 0 {
		filter.Before = math.MaxInt64
	}
	rows, err := gen.New().ListEvents(ctx, db, gen.ListEventsParams{
		Queue: filter.Queue, Event: string(filter.Kind), Within: filter.Within, BeforeID: filter.Before,
		LookAt: eventsLookedAt, MaxRows: int32(filter.Limit),
	})
	if err != nil {
		return EventPage{}, fmt.Errorf("list events: %w", explain(err))
	}
	page := EventPage{Events: []Event{}}
	for _, row := range rows {
		if row.ID != 0 {
			page.Events = append(page.Events, newEvent(gen.HoldfastEvent{
				ID: row.ID, At: row.At, JobID: row.JobID, LeaseGeneration: row.LeaseGeneration, Attempt: row.Attempt,
				Event: EventKind(row.Event), Queue: row.Queue, Kind: row.Kind, PartitionKey: row.PartitionKey,
				WorkerID: row.WorkerID, Actor: row.Actor, Detail: row.Detail,
			}))
		}
	}
	switch {
	case len(page.Events) == filter.Limit:
		page.Next = page.Events[filter.Limit-1].ID
	case len(rows) > 0 && rows[0].LookedAt == eventsLookedAt && !rows[0].Beyond:
		page.Next, page.LookedBackTo = rows[0].LastID, &rows[0].LastAt
	}
	return page, nil
}

// refusal is that a worker is told that its claim is over.
type refusal struct {
	claim    Claim
	settling bool // By a settlement, else by a renewal.
	detail   string
}

// noteLimit bounds what a worker waits for the note of a lost lease.
const noteLimit = time.Second

// noteLost leaves an event for each claim that was found to be over, once however often it is
// found. As well as it can: what the worker is told does not depend on it, and the lost lease
// is in its log.
func (q *Queue) noteLost(ctx context.Context, workerID string, refusals []refusal) {
	if len(refusals) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, noteLimit)
	defer cancel()
	params := gen.RecordLostLeasesParams{WorkerID: workerID}
	for _, each := range refusals[:min(len(refusals), housekeepingBatch)] {
		params.IDs = append(params.IDs, pgtype.UUID{Bytes: each.claim.ID, Valid: true})
		params.LeaseGenerations = append(params.LeaseGenerations, each.claim.Generation)
		params.Settlings = append(params.Settlings, each.settling)
		params.Details = append(params.Details, each.detail)
	}
	_, _ = q.queries.RecordLostLeases(ctx, q.planned, params)
}
