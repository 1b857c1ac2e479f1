package integration

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"time"

	"pgregory.net/rapid"

	"github.com/holdfast-pg/holdfast/domain"
)

func (h *history) timePasses(t *rapid.T) {
	h.begin(t)
	step := someStep.Draw(t, "step")
	h.say("%s pass", step)
	h.shift(t, step)
	h.shifted += step
	h.clock.Advance(step)
}

func (h *history) keepHouse(t *rapid.T) {
	h.begin(t)
	rules := domain.HouseRules{
		WorkerTTL: someDuration.Draw(t, "worker TTL"), DeadWorkersFor: someDuration.Draw(t, "dead workers for"),
		MarksFor: someDuration.Draw(t, "marks for"), FencesFor: someDuration.Draw(t, "fences for"),
		EventsFor: someDuration.Draw(t, "events for"), ArchiveAhead: 0,
	}
	h.run(t, "DELETE FROM holdfast.events WHERE job_id IS NULL") // The model keeps none of these.
	theirs, err := h.queue.KeepHouse(t.Context(), rules)
	if err != nil {
		t.Fatalf("keep house: %v\n%s", err, h.text())
	}
	ours, _ := h.model.KeepHouse(t.Context(), rules)
	// The archive's days are those of the calendar, where time does not pass by steps.
	theirs.DaysCreated, theirs.DaysDropped = ours.DaysCreated, ours.DaysDropped
	slices.Sort(theirs.WorkersDied)
	if theirs.WorkersDied == nil {
		theirs.WorkersDied = []string{}
	}
	h.say("housekeeping cleans up: workers after %s, dead ones after %s, marks after %s, fences after %s, events after %s",
		rules.WorkerTTL, rules.DeadWorkersFor, rules.MarksFor, rules.FencesFor, rules.EventsFor)
	same(t, h, "report of housekeeping", theirs, ours)
}

func (h *history) setQueue(t *rapid.T) {
	h.begin(t)
	name := h.queues[oneOfTwo.Draw(t, "queue")]
	var change domain.QueueChange
	switch rapid.IntRange(0, 4).Draw(t, "setting") {
	case 0:
		change.Ordered = new(rapid.Bool().Draw(t, "ordered"))
	case 1:
		change.MaxAttempts = new(rapid.IntRange(0, 3).Draw(t, "max attempts"))
	case 2:
		change.RetentionMode = new(rapid.SampledFrom([]domain.RetentionMode{domain.RetentionArchive, domain.RetentionKeep, domain.RetentionDrop}).Draw(t, "retention"))
	case 3:
		change.KeepFor = new(rapid.SampledFrom([]time.Duration{0, time.Hour, 8 * 24 * time.Hour}).Draw(t, "keep for"))
	default:
		change.DedupeWindow = new(someDuration.Draw(t, "dedupe window"))
	}
	theirs, err := domain.SetQueue(t.Context(), h.Pool, name, change)
	ours, wanted := h.model.SetQueue(t.Context(), name, change)
	written, _ := json.Marshal(change)
	h.say("a person sets %s to %s: %s", name, regexp.MustCompile(`"\w+":null,?`).ReplaceAll(written, nil), toldAs(err))
	same(t, h, "answer to the setting", toldAs(err), toldAs(wanted))
	same(t, h, "settings", theirs, ours)
}

func (h *history) pause(t *rapid.T) {
	h.begin(t)
	name := h.queues[oneOfTwo.Draw(t, "queue")]
	if rapid.IntRange(0, 3).Draw(t, "pause") == 0 {
		err := domain.PauseQueue(t.Context(), h.Pool, name)
		h.say("a person pauses %s: %s", name, toldAs(err))
		same(t, h, "answer to the pause", toldAs(err), toldAs(h.model.PauseQueue(t.Context(), name)))
		return
	}
	err := domain.ResumeQueue(t.Context(), h.Pool, name)
	h.say("a person resumes %s: %s", name, toldAs(err))
	same(t, h, "answer to the resumption", toldAs(err), toldAs(h.model.ResumeQueue(t.Context(), name)))
}

// registration is one of a worker that says of itself what it drew.
func (h *history) registration(t *rapid.T) domain.Registration {
	metadata := rapid.SampledFrom([]string{`{}`, `{"host": "h"}`}).Draw(t, "metadata")
	return domain.Registration{ID: someWorker.Draw(t, "worker"), Queues: h.queues[oneOfTwo.Draw(t, "without"):], Metadata: json.RawMessage(metadata)}
}

func (h *history) join(t *rapid.T) {
	h.begin(t)
	worker := h.registration(t)
	err := h.queue.Join(t.Context(), worker)
	h.say("%s joins for %s: %s", worker.ID, strings.Join(worker.Queues, " "), toldAs(err))
	same(t, h, "answer to the join", toldAs(err), toldAs(h.model.Join(t.Context(), worker)))
}

func (h *history) beat(t *rapid.T) {
	h.begin(t)
	worker := h.registration(t)
	theirs, err := h.queue.Beat(t.Context(), worker)
	ours, wanted := h.model.Beat(t.Context(), worker)
	h.say("%s beats: %s %s", worker.ID, theirs, onlyErrors(err))
	same(t, h, "answer to the heartbeat", [2]string{string(theirs), toldAs(err)}, [2]string{string(ours), toldAs(wanted)})
}

func (h *history) drain(t *rapid.T) {
	h.begin(t)
	worker := someWorker.Draw(t, "worker")
	err := h.queue.Drain(t.Context(), worker)
	h.say("%s is to drain: %s", worker, toldAs(err))
	same(t, h, "answer to the drain", toldAs(err), toldAs(h.model.Drain(t.Context(), worker)))
}

func (h *history) leave(t *rapid.T) {
	h.begin(t)
	worker := someWorker.Draw(t, "worker")
	err := h.queue.Leave(t.Context(), worker)
	h.say("%s leaves: %s", worker, toldAs(err))
	same(t, h, "answer to the leave", toldAs(err), toldAs(h.model.Leave(t.Context(), worker)))
}

func (h *history) mark(t *rapid.T) {
	h.begin(t)
	_, claims := h.drawClaims(t, 1)
	id, name := claims[0].theirs.ID, someName.Draw(t, "name")
	theirs, err := domain.MarkHandled(t.Context(), h.Pool, id, name)
	ours, wanted := h.model.MarkHandled(t.Context(), id, name)
	h.say("a handler marks %q of %s: first %t", name, h.nameOf(id), theirs)
	same(t, h, "first mark", theirs, ours)
	same(t, h, "answer to the mark", toldAs(err), toldAs(wanted))
}

func (h *history) guard(t *rapid.T) {
	h.begin(t)
	_, claims := h.drawClaims(t, 1)
	name := someName.Draw(t, "resource")
	err := domain.Guard(t.Context(), h.Pool, name, claims[0].theirs.Claim)
	h.say("a handler guards %q with %s: %s", name, h.claimName(claims[0]), toldAs(err))
	// With the token of Postgres: of claims made at once, its order is not the model's.
	same(t, h, "answer to the guard", toldAs(err), toldAs(h.model.Guard(t.Context(), name, claims[0].theirs.Claim)))
}

func (h *history) bell(t *rapid.T) {
	h.begin(t)
	worker, queues := someWorker.Draw(t, "worker"), h.queues[oneOfTwo.Draw(t, "without"):]
	if rapid.Bool().Draw(t, "arm") {
		h.say("%s wants to be woken by %s", worker, strings.Join(queues, " "))
		same(t, h, "answer to the wish", toldAs(h.queue.Arm(t.Context(), worker, queues)), toldAs(h.model.Arm(t.Context(), worker, queues)))
		return
	}
	h.say("%s need not be woken by %s", worker, strings.Join(queues, " "))
	same(t, h, "answer to the wish", toldAs(h.queue.Disarm(t.Context(), worker, queues)), toldAs(h.model.Disarm(t.Context(), worker, queues)))
}

// look asks what changes nothing.
func (h *history) look(t *rapid.T) {
	h.begin(t)
	worker, queue := someWorker.Draw(t, "worker"), h.queues[oneOfTwo.Draw(t, "queue")]
	request := domain.LookRequest{
		Queue: queue, Own: []int{0, 1}, Others: []int{2}, Lanes: rapid.Bool().Draw(t, "lanes"),
		DueFor: rapid.SampledFrom([]time.Duration{0, time.Minute}).Draw(t, "due for"), Horizon: 2 * time.Hour,
	}
	h.say("somebody looks at %s and %s, lanes %t, due for %s", queue, worker, request.Lanes, request.DueFor)
	outlook, err := h.queue.Look(t.Context(), request)
	ourOutlook, wanted := h.model.Look(t.Context(), request)
	outlook.NextDue = h.sameDuration(outlook.NextDue, ourOutlook.NextDue)
	same(t, h, "outlook", outlook, ourOutlook)
	same(t, h, "answer to the look", toldAs(err), toldAs(wanted))

	held, err := domain.HeldJobs(t.Context(), h.Pool, worker)
	ourHeld, wanted := h.model.HeldJobs(t.Context(), worker)
	same(t, h, "number of jobs held", held, ourHeld)
	same(t, h, "answer about jobs held", toldAs(err), toldAs(wanted))

	oldest, err := domain.OldestPendingJob(t.Context(), h.Pool, queue)
	ourOldest, wanted := h.model.OldestPendingJob(t.Context(), queue)
	same(t, h, "oldest pending job", h.nameOf(oldest.ID), h.nameOf(ourOldest.ID))
	same(t, h, "answer about the oldest pending job", toldAs(err), toldAs(wanted))

	members, err := h.queue.Members(t.Context(), h.queues, time.Minute)
	ourMembers, wanted := h.model.Members(t.Context(), h.queues, time.Minute)
	for i := range members {
		if len(members[i].Workers) == 0 {
			members[i].Workers = nil
		}
	}
	same(t, h, "members", members, ourMembers)
	same(t, h, "answer about members", toldAs(err), toldAs(wanted))

	queues, err := domain.ListQueues(t.Context(), h.Pool, 10)
	ourQueues, wanted := h.model.ListQueues(t.Context(), 10)
	same(t, h, "queues", queues, ourQueues)
	same(t, h, "answer about queues", toldAs(err), toldAs(wanted))
}
