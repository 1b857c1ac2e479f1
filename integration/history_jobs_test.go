package integration

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"pgregory.net/rapid"

	"github.com/holdfast-pg/holdfast/domain"
	"github.com/holdfast-pg/holdfast/domain/model"
)

// Few of everything, so that the same job comes to the same worker again.
var (
	oneOfTwo     = rapid.IntRange(0, 1)
	someWorker   = rapid.SampledFrom([]string{"w1", "w2"})
	someKey      = rapid.SampledFrom([]string{"a", "b", "c"})
	someName     = rapid.SampledFrom([]string{"x", "y"})
	someDelay    = rapid.SampledFrom([]time.Duration{0, 0, 0, time.Minute, time.Hour})
	someLease    = rapid.SampledFrom([]time.Duration{time.Minute, 3 * time.Minute})
	someDuration = rapid.SampledFrom([]time.Duration{time.Minute, time.Hour, 7 * 24 * time.Hour})

	// No archived job gets to be between 7 and 8 days old: at which minute of its day a job is
	// completed depends on when the test runs, and its day is dropped as a whole.
	someStep = rapid.SampledFrom([]time.Duration{time.Minute, time.Minute, 2 * time.Minute, 3 * time.Minute, time.Hour, 9 * 24 * time.Hour})

	someVerdict = rapid.SampledFrom([]domain.Verdict{domain.Complete, domain.Release, domain.Complete, domain.Retry, domain.Fail})
)

var errHandler = errors.New("the handler's error")

// toldAs is what a caller is told by an error.
func toldAs(err error) string {
	var invalid *domain.InvalidError
	if errors.As(err, &invalid) {
		return "invalid " + invalid.Field
	}
	for told, kind := range map[string]error{
		"lease lost": domain.ErrLeaseLost, "fenced": domain.ErrFenced, "no such queue": domain.ErrUnknownQueue, "no such job": domain.ErrNotFound,
		"worker exists": domain.ErrWorkerExists, "worker unknown": domain.ErrWorkerUnknown, "the handler's error": errHandler,
	} {
		if errors.Is(err, kind) {
			return told
		}
	}
	if err != nil {
		return err.Error()
	}
	return "done"
}

// newJob is a job to enqueue, for Postgres and for the model.
type newJob struct {
	theirs domain.NewJob
	ours   model.NewJob
}

func (h *history) drawJob(t *rapid.T, number int) newJob {
	payload := json.RawMessage(strconv.Itoa(number))
	job := newJob{
		theirs: domain.NewJob{Args: domain.RawArgs{JobKind: "send", Payload: payload}},
		ours:   model.NewJob{Kind: "send", Payload: payload, Queue: h.queues[oneOfTwo.Draw(t, "queue")], Delay: someDelay.Draw(t, "delay")},
	}
	options := []domain.EnqueueOption{domain.OnQueue(job.ours.Queue), domain.In(job.ours.Delay)}
	once := rapid.IntRange(0, 3).Draw(t, "once") == 0
	if once {
		job.ours.IdempotencyKey = someKey.Draw(t, "idempotency key")
		options = append(options, domain.Once(job.ours.IdempotencyKey))
	}
	if !once || rapid.Bool().Draw(t, "with a key") {
		job.ours.Key = someKey.Draw(t, "key")
		options = append(options, domain.Key(job.ours.Key))
	}
	if job.ours.MaxAttempts = rapid.IntRange(0, 3).Draw(t, "max attempts"); job.ours.MaxAttempts > 0 {
		options = append(options, domain.MaxAttempts(job.ours.MaxAttempts))
	}
	if rapid.IntRange(0, 5).Draw(t, "at a time") == 0 {
		// Half minutes, for an order among those that were put off otherwise.
		job.ours.RunAt = h.clock.Now().Add(90 * time.Second)
		options = append(options, domain.At(time.Now().Add(90*time.Second)))
	}
	job.theirs.Options = options
	return job
}

func (h *history) enqueue(t *rapid.T) {
	h.begin(t)
	set := make([]newJob, rapid.IntRange(1, 3).Draw(t, "jobs"))
	var jobs []domain.NewJob
	for i := range set {
		set[i] = h.drawJob(t, len(h.script)*10+i)
		jobs = append(jobs, set[i].theirs)
	}
	results, err := h.enqueueReal(t, jobs)
	if err != nil {
		t.Fatalf("enqueue: %v\n%s", err, h.text())
	}
	h.say("a producer enqueues %s", inWords(set, results))
	var ours []domain.EnqueueResult
	for i, job := range set {
		if !results[i].Duplicate {
			job.ours.ID = results[i].ID
		}
		result, err := h.model.Enqueue(t.Context(), job.ours)
		if err != nil {
			t.Fatalf("enqueue on the model: %v\n%s", err, h.text())
		}
		ours = append(ours, result)
	}
	same(t, h, "answers to the enqueue", results, ours)
	for _, job := range h.model.Jobs() {
		if h.names[job.ID] == "" {
			h.names[job.ID] = fmt.Sprintf("%s#%d", job.PartitionKey, job.Seq)
			h.ids = append(h.ids, job.ID)
		}
	}
	h.script[len(h.script)-1] += ": " + h.namesOf(idsOf(results))
}

func (h *history) enqueueReal(t *rapid.T, jobs []domain.NewJob) ([]domain.EnqueueResult, error) {
	if len(jobs) > 1 {
		return domain.EnqueueMany(t.Context(), h.Pool, jobs...)
	}
	result, err := domain.Enqueue(t.Context(), h.Pool, jobs[0].Args, jobs[0].Options...)
	return []domain.EnqueueResult{result}, err
}

func inWords(set []newJob, results []domain.EnqueueResult) string {
	var words []string
	for i, job := range set {
		word := fmt.Sprintf("key %q to %s", job.ours.Key, job.ours.Queue)
		if job.ours.IdempotencyKey != "" {
			word += fmt.Sprintf(" once per %q", job.ours.IdempotencyKey)
		}
		if job.ours.Delay > 0 {
			word += fmt.Sprintf(" in %s", job.ours.Delay)
		}
		if !job.ours.RunAt.IsZero() {
			word += " at a time 90 s ahead"
		}
		if job.ours.MaxAttempts > 0 {
			word += fmt.Sprintf(" for %d attempts", job.ours.MaxAttempts)
		}
		if results[i].Duplicate {
			word += " (a duplicate)"
		}
		words = append(words, word)
	}
	return strings.Join(words, ", ")
}

func idsOf(results []domain.EnqueueResult) []domain.JobID {
	ids := make([]domain.JobID, len(results))
	for i, result := range results {
		ids[i] = result.ID
	}
	return ids
}

func (h *history) claim(t *rapid.T) {
	h.begin(t)
	request := domain.ClaimRequest{
		WorkerID: someWorker.Draw(t, "worker"), Queue: h.queues[oneOfTwo.Draw(t, "queue")],
		Buckets: rapid.Permutation([]int{0, 1, 2}).Draw(t, "buckets")[rapid.IntRange(0, 9).Draw(t, "without")/9:],
		Quota:   rapid.IntRange(1, 3).Draw(t, "quota"), Batch: rapid.IntRange(1, 5).Draw(t, "batch"),
		Lease: someLease.Draw(t, "lease"), DueFor: rapid.SampledFrom([]time.Duration{0, 0, 0, time.Minute}).Draw(t, "due for"),
	}
	settings, _ := h.model.FindQueue(t.Context(), request.Queue)
	request.Lanes = settings.Ordered != (rapid.IntRange(0, 9).Draw(t, "misfits") == 0)
	theirs, err := h.queue.Claim(t.Context(), request)
	if err != nil {
		t.Fatalf("claim: %v\n%s", err, h.text())
	}
	ours, _ := h.model.Claim(t.Context(), request)
	h.say("%s claims %s from %s, lanes %t, buckets %v, at most %d each and %d in all, due for %s, for %s",
		request.WorkerID, h.namesOf(jobIDs(theirs)), request.Queue, request.Lanes, request.Buckets, request.Quota, request.Batch, request.DueFor, request.Lease)
	sortJobs(theirs)
	sortJobs(ours)
	same(t, h, "claimed jobs", h.namesOf(jobIDs(theirs)), h.namesOf(jobIDs(ours)))
	before := h.last
	for i := range theirs {
		if _, known := h.tokens[theirs[i].Generation]; known || theirs[i].Generation <= before {
			t.Fatalf("the claim of %s got a token that is not larger than those of the claims before\n%s", h.nameOf(theirs[i].ID), h.text())
		}
		h.tokens[theirs[i].Generation] = ours[i].Generation
		h.last = max(h.last, theirs[i].Generation)
		h.claims = append(h.claims, twoClaims{theirs[i], ours[i]})
		theirs[i] = h.sameClaim(theirs[i], ours[i])
	}
	same(t, h, "claims", theirs, ours)
}

func jobIDs(jobs []domain.ClaimedJob) []domain.JobID {
	ids := make([]domain.JobID, len(jobs))
	for i, job := range jobs {
		ids[i] = job.ID
	}
	return ids
}

// sortJobs puts the jobs of a claim in an order: Postgres answers in any.
func sortJobs(jobs []domain.ClaimedJob) {
	slices.SortFunc(jobs, func(a, b domain.ClaimedJob) int { return bytes.Compare(a.ID[:], b.ID[:]) })
}

func (h *history) sameClaim(theirs, ours domain.ClaimedJob) domain.ClaimedJob {
	theirs.Generation = h.token(theirs.Generation)
	theirs.Seq -= h.seq
	theirs.AvailableAt, theirs.CreatedAt = h.sameTime(theirs.AvailableAt, ours.AvailableAt), h.sameTime(theirs.CreatedAt, ours.CreatedAt)
	theirs.Waited = h.sameDuration(theirs.Waited, ours.Waited)
	return theirs
}
