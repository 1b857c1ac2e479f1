package model_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"slices"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/holdfast-pg/holdfast/domain"
	"github.com/holdfast-pg/holdfast/domain/model"
)

// history plays random operations, also those of workers that are late, confused or dead, and
// holds every answer against the ledger.
type history struct {
	*ledger
	clock *model.Clock
	queue *model.Queue
}

var (
	someQueue  = rapid.SampledFrom([]string{domain.DefaultQueue, "mail"})
	someWorker = rapid.SampledFrom([]string{"w1", "w2", "w3"})
	someKey    = rapid.SampledFrom([]string{"a", "b", "c", "d"})
	someDelay  = rapid.SampledFrom([]time.Duration{0, 0, time.Microsecond, time.Second, time.Hour})
	someLease  = rapid.SampledFrom([]time.Duration{time.Second, lease})
	someStep   = rapid.SampledFrom([]time.Duration{time.Microsecond, time.Second, 5 * time.Second, lease, lease + time.Microsecond, time.Hour, day, 8 * day})
)

// rounds multiplies rapid's 100 histories: a stale claim whose fence differs in nothing but
// the generation is a rare turn of events.
const rounds = 100

func TestPromises_HoldInEveryHistory(t *testing.T) {
	t.Parallel()
	var played atomic.Int64
	all := rounds * historiesFactor(t)
	t.Cleanup(func() {
		t.Logf("%d histories were played", played.Load())
		if meant := int64(100 * all); played.Load() < meant && !t.Failed() {
			t.Errorf("%d histories were meant to be played", meant)
		}
	})
	for round := range all {
		t.Run(strconv.Itoa(round), func(t *testing.T) {
			t.Parallel()
			rapid.Check(t, func(t *rapid.T) {
				playHistory(t)
				played.Add(1)
			})
		})
	}
}

// historiesFactor is HOLDFAST_HISTORIES, which multiplies how many histories are played, here
// and by the tests of integration/history_test.go; default: 1.
func historiesFactor(t *testing.T) int {
	t.Helper()
	text := os.Getenv("HOLDFAST_HISTORIES")
	if text == "" {
		return 1
	}
	factor, err := strconv.Atoi(text)
	if err != nil || factor < 1 {
		t.Fatalf("HOLDFAST_HISTORIES is %q: a whole number from 1 on multiplies the histories", text)
	}
	return factor
}

func playHistory(t *rapid.T) {
	clock := model.NewClock(noon)
	h := history{ledger: newLedger(), clock: clock, queue: model.New(model.Settings{BucketCount: 3, Now: clock.Now})}
	t.Repeat(map[string]func(*rapid.T){
		"":            func(t *rapid.T) { h.agrees(t, h.queue.Now(), h.queue.Jobs()) },
		"enqueue":     h.enqueue,
		"enqueue set": h.enqueueSet,
		"claim":       h.claim,
		"claim more":  h.claim,
		"renew":       h.renew,
		"settle":      h.settle,
		"settle more": h.settle,
		"handle":      h.handle,
		"reclaim":     h.reclaim,
		"keep house":  h.keepHouse,
		"redrive":     h.redrive,
		"operate":     h.operate,
		"set queue":   h.setQueue,
		"registry":    h.registry,
		"effects":     h.effects,
		"advance":     func(t *rapid.T) { h.clock.Advance(someStep.Draw(t, "step")) },
	})
}

var errBroken = errors.New("broken")

func must(t *rapid.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func drawJob(t *rapid.T) model.NewJob {
	job := model.NewJob{
		Kind: "send", Queue: someQueue.Draw(t, "queue"), Key: someKey.Draw(t, "key"),
		Delay: someDelay.Draw(t, "delay"), MaxAttempts: rapid.IntRange(1, 3).Draw(t, "max attempts"),
	}
	if rapid.IntRange(0, 9).Draw(t, "old stamp") == 0 {
		job.Ordered = new(rapid.Bool().Draw(t, "ordered"))
	}
	if rapid.Bool().Draw(t, "once") {
		job.IdempotencyKey = someKey.Draw(t, "idempotency key")
	}
	return job
}

func (h history) enqueue(t *rapid.T) {
	job := drawJob(t)
	result, err := h.queue.Enqueue(t.Context(), job)
	must(t, err)
	h.noteEnqueue(t, job, result)
}

func (h history) enqueueSet(t *rapid.T) {
	jobs := rapid.SliceOfN(rapid.Custom(drawJob), 1, 4).Draw(t, "jobs")
	results, err := h.queue.EnqueueMany(t.Context(), jobs...)
	must(t, err)
	for i, job := range jobs {
		h.noteEnqueue(t, job, results[i])
	}
}

func (h history) noteEnqueue(t *rapid.T, job model.NewJob, result domain.EnqueueResult) {
	settings, _ := h.queue.FindQueue(t.Context(), job.Queue)
	h.enqueued(t, h.queue.Now(), job, settings, result)
}

func (h history) claim(t *rapid.T) {
	request := domain.ClaimRequest{
		WorkerID: someWorker.Draw(t, "worker"), Queue: someQueue.Draw(t, "queue"),
		Buckets: rapid.SliceOfN(rapid.IntRange(0, 2), 0, 4).Draw(t, "buckets"),
		Quota:   rapid.IntRange(1, 3).Draw(t, "quota"), Batch: rapid.IntRange(1, 5).Draw(t, "batch"),
		Lease: someLease.Draw(t, "lease"), Lanes: rapid.Bool().Draw(t, "lanes"),
		DueFor: rapid.SampledFrom([]time.Duration{0, 0, time.Second}).Draw(t, "due for"),
	}
	jobs, err := h.queue.Claim(t.Context(), request)
	must(t, err)
	if settings, _ := h.queue.FindQueue(t.Context(), request.Queue); len(jobs) > request.Batch || len(jobs) > 0 && settings.Paused {
		t.Fatalf("%d jobs for %+v of a queue with %+v", len(jobs), request, settings)
	}
	for _, job := range jobs {
		if job.AvailableAt.After(h.queue.Now().Add(-request.DueFor)) {
			t.Fatalf("job %s was claimed before its time", job.ID)
		}
		h.inOrder(t, job, request.Lanes)
		h.claimed(t, job, h.queue.Now().Add(request.Lease))
	}
}

// drawClaims draws from all claims that one worker ever made.
func (h history) drawClaims(t *rapid.T) (workerID string, claims []domain.ClaimedJob) {
	workerID = someWorker.Draw(t, "worker")
	var own []domain.ClaimedJob
	for _, job := range h.claims {
		if job.WorkerID == workerID {
			own = append(own, job)
		}
	}
	if len(own) == 0 {
		t.Skip("the worker never claimed a job")
	}
	claims = rapid.SliceOfNDistinct(rapid.SampledFrom(own), 1, 4, func(job domain.ClaimedJob) int64 { return job.Generation }).Draw(t, "claims")
	return workerID, claims
}

func (h history) renew(t *rapid.T) {
	workerID, jobs := h.drawClaims(t)
	var claims []domain.Claim
	for _, job := range jobs {
		claims = append(claims, job.Claim)
	}
	term := someLease.Draw(t, "lease")
	held, err := h.queue.Renew(t.Context(), workerID, term, claims)
	must(t, err)
	h.renewed(t, h.queue.Now(), term, claims, held)
}

func (h history) settle(t *rapid.T) {
	workerID, jobs := h.drawClaims(t)
	var settlements []domain.Settlement
	for _, job := range jobs {
		settlements = append(settlements, domain.Settlement{
			Claim: job.Claim, Retention: job.Retention, Unconfirmed: rapid.Bool().Draw(t, "unconfirmed"),
			Outcome: domain.Outcome{
				Verdict: rapid.SampledFrom([]domain.Verdict{domain.Complete, domain.Retry, domain.Fail, domain.Release}).Draw(t, "verdict"),
				Delay:   someDelay.Draw(t, "delay"),
			},
		})
	}
	for i, answer := range h.queue.Settle(t.Context(), workerID, settlements) {
		h.settled(t, h.queue.Now(), settlements[i], answer)
	}
}

// handle plays a handler in a transaction. Its success counts as a completion, its error as
// nothing at all.
func (h history) handle(t *rapid.T) {
	_, jobs := h.drawClaims(t)
	job, current, broken := jobs[0], h.live(jobs[0].Claim), rapid.Bool().Draw(t, "broken")
	ran := false
	err := h.queue.HandleTx(func(context.Context, domain.ClaimedJob) error {
		ran = true
		if broken {
			return errBroken
		}
		return nil
	})(t.Context(), job)
	switch {
	case ran != current:
		t.Fatalf("the handler of claim %+v ran: %t", job.Claim, ran)
	case !current && !errors.Is(err, domain.ErrLeaseLost), current && broken && !errors.Is(err, errBroken):
		t.Fatalf("the handler of claim %+v, current %t, answers %v", job.Claim, current, err)
	case current && !broken:
		answer := domain.Settled{Status: domain.StatusCompleted, Err: err}
		h.settled(t, h.queue.Now(), domain.Settlement{Claim: job.Claim, Retention: job.Retention}, answer)
	}
}

func (h history) reclaim(t *rapid.T) {
	all, _, err := h.queue.Reclaim(t.Context(), 0)
	must(t, err)
	h.reclaimed(t, h.queue.Now(), all)
}

func (h history) keepHouse(t *rapid.T) {
	rules := house
	rules.MarksFor, rules.FencesFor = 100*365*day, 100*365*day
	_, err := h.queue.KeepHouse(t.Context(), rules)
	must(t, err)
}

func (h history) drawIDs(t *rapid.T) []domain.JobID {
	if len(h.ids) == 0 {
		t.Skip("there is no job")
	}
	return rapid.SliceOfN(rapid.SampledFrom(h.ids), 1, 5).Draw(t, "jobs")
}

func (h history) redrive(t *rapid.T) {
	asked := h.drawIDs(t)
	done, err := h.queue.Redrive(t.Context(), anna, 0, asked...)
	must(t, err)
	h.redriven(t, asked, done)
}

// operate plays what else a person does to jobs.
func (h history) operate(t *rapid.T) {
	switch rapid.IntRange(0, 3).Draw(t, "what") {
	case 0:
		asked := h.drawIDs(t)
		done, err := h.queue.Cancel(t.Context(), anna, asked...)
		must(t, err)
		h.cancelled(t, asked, done)
	case 1:
		asked := h.drawIDs(t)
		done, err := h.queue.Purge(t.Context(), anna, asked...)
		must(t, err)
		h.purged(t, asked, done)
	case 2:
		_, jobs := h.drawClaims(t)
		var claims []domain.Claim
		for _, job := range jobs {
			claims = append(claims, job.Claim)
		}
		done, err := h.queue.Release(t.Context(), anna, claims...)
		must(t, err)
		h.freed(t, claims, done)
	default:
		worker := someWorker.Draw(t, "worker")
		released, err := h.queue.Evict(t.Context(), anna, worker)
		if held := h.left(worker); held != released || err != nil && (held > 0 || !errors.Is(err, domain.ErrWorkerUnknown)) {
			t.Fatalf("the eviction of %s, which holds %d jobs: %d, %v", worker, held, released, err)
		}
	}
}

func (h history) setQueue(t *rapid.T) {
	name := someQueue.Draw(t, "queue")
	before, _ := h.queue.FindQueue(t.Context(), name)
	change := domain.QueueChange{
		Ordered:       new(rapid.IntRange(0, 5).Draw(t, "ordered") == 0),
		RetentionMode: new(rapid.SampledFrom([]domain.RetentionMode{domain.RetentionArchive, domain.RetentionKeep, domain.RetentionDrop}).Draw(t, "retention")),
	}
	fixed := before.Ordered != *change.Ordered && slices.ContainsFunc(h.queue.Jobs(), func(job domain.JobRecord) bool {
		return job.Queue == name && job.Status != domain.StatusCompleted
	})
	if after, err := h.queue.SetQueue(t.Context(), name, change); (err != nil) != fixed || err == nil && after.RetentionMode != *change.RetentionMode {
		t.Fatalf("%+v of %+v, fixed %t: %+v, %v", change, before, fixed, after, err)
	}
	if rapid.IntRange(0, 3).Draw(t, "paused") == 0 {
		_ = h.queue.PauseQueue(t.Context(), name) // It may not exist.
	} else {
		_ = h.queue.ResumeQueue(t.Context(), name)
	}
}

// registry plays what must not matter to any job, but for the claims of a worker that leaves.
func (h history) registry(t *rapid.T) {
	worker := domain.Registration{ID: someWorker.Draw(t, "worker"), Queues: []string{domain.DefaultQueue}, Metadata: json.RawMessage("{}")}
	before, known := h.queue.Beat(t.Context(), worker)
	var err error
	switch rapid.IntRange(0, 2).Draw(t, "what") {
	case 0:
		if err = h.queue.Join(t.Context(), worker); (err == nil) != errors.Is(known, domain.ErrWorkerUnknown) {
			t.Fatalf("join of a worker in state %q: %v", before, err)
		}
	case 1:
		if err = h.queue.Drain(t.Context(), worker.ID); (err == nil) != (before == domain.WorkerAlive) {
			t.Fatalf("drain of a worker in state %q: %v", before, err)
		}
	default:
		must(t, h.queue.Leave(t.Context(), worker.ID))
		h.left(worker.ID)
	}
	if after, _ := h.queue.Beat(t.Context(), worker); before == domain.WorkerDead && after != domain.WorkerDead {
		t.Fatalf("a dead worker became %q", after)
	}
}

func (h history) effects(t *rapid.T) {
	_, jobs := h.drawClaims(t)
	name := someKey.Draw(t, "name")
	for _, job := range jobs {
		first, err := h.queue.MarkHandled(t.Context(), job.ID, name)
		must(t, err)
		if key := job.ID.String() + name; first == h.marked[key] {
			t.Fatalf("mark %s: first %t, and it was made before: %t", key, first, h.marked[key])
		} else {
			h.marked[key] = true
		}
		switch err := h.queue.Guard(t.Context(), name, job.Claim); {
		case err == nil && job.Fence() >= h.admitted[name]:
			h.admitted[name] = job.Fence()
		case !errors.Is(err, domain.ErrFenced) || job.Fence() >= h.admitted[name]:
			t.Fatalf("token %d at a resource that has seen %d: %v", job.Fence(), h.admitted[name], err)
		}
	}
}
