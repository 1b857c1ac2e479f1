package model_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-pg/holdfast/domain"
	"github.com/holdfast-pg/holdfast/domain/model"
	"github.com/holdfast-pg/holdfast/worker"
)

var (
	_ worker.Queue = (*model.Queue)(nil)
	_ worker.Clock = (*model.Clock)(nil)
)

var noon = time.Date(2026, time.March, 4, 12, 0, 0, 0, time.UTC)

const lease = 90 * time.Second

// world is an installation in memory, with the clock that its workers see.
type world struct {
	*model.Queue
	t     *testing.T
	clock *model.Clock
}

// newWorld returns an installation of one bucket at noon, with backoffs that are not random.
func newWorld(t *testing.T) world {
	t.Helper()
	clock := model.NewClock(noon)
	queue := model.New(model.Settings{
		BucketCount: 1,
		Now:         clock.Now,
		Backoff:     func(attempts int) time.Duration { return domain.Backoff(attempts, 0.5) },
	})
	return world{Queue: queue, t: t, clock: clock}
}

func (w world) enqueue(job model.NewJob) domain.JobID {
	w.t.Helper()
	job.Kind = "send"
	result, err := w.Enqueue(w.t.Context(), job)
	if err != nil || result.Duplicate {
		w.t.Fatalf("Enqueue: %+v, %v", result, err)
	}
	return result.ID
}

// claim claims at most so many jobs of the default queue for the worker.
func (w world) claim(workerID string, batch int) []domain.ClaimedJob {
	w.t.Helper()
	jobs, err := w.Claim(w.t.Context(), domain.ClaimRequest{
		WorkerID: workerID, Queue: domain.DefaultQueue, Buckets: []int{0}, Quota: batch, Batch: batch, Lease: lease,
	})
	if err != nil {
		w.t.Fatalf("Claim: %v", err)
	}
	return jobs
}

func (w world) claimOne(workerID string) domain.ClaimedJob {
	w.t.Helper()
	jobs := w.claim(workerID, 1)
	if len(jobs) != 1 {
		w.t.Fatalf("worker %s claimed %d jobs, want one", workerID, len(jobs))
	}
	return jobs[0]
}

func (w world) settle(job domain.ClaimedJob, outcome domain.Outcome) domain.Settled {
	w.t.Helper()
	return w.Settle(w.t.Context(), job.WorkerID, []domain.Settlement{{Claim: job.Claim, Retention: job.Retention, Outcome: outcome}})[0]
}

func (w world) find(id domain.JobID) domain.JobRecord {
	w.t.Helper()
	job, err := w.FindJob(w.t.Context(), id)
	if err != nil {
		w.t.Fatalf("FindJob: %v", err)
	}
	return job
}

func (w world) reclaim() []domain.Reclaimed {
	w.t.Helper()
	reclaimed, _, err := w.Reclaim(w.t.Context(), 0)
	if err != nil {
		w.t.Fatalf("Reclaim: %v", err)
	}
	return reclaimed
}

func (w world) keepHouse(rules domain.HouseRules) domain.HouseReport {
	w.t.Helper()
	report, err := w.KeepHouse(w.t.Context(), rules)
	if err != nil {
		w.t.Fatalf("KeepHouse: %v", err)
	}
	return report
}

func equal[T any](t *testing.T, got, want T) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func wantError(t *testing.T, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("error %v, want %v", err, want)
	}
}

func TestOpen_TellsTheInstallationsFacts(t *testing.T) {
	t.Parallel()
	meta, err := model.New(model.Settings{BucketCount: 16, Epoch: 3}).Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	equal(t, meta, domain.Meta{BucketCount: 16, Epoch: 3, SchemaVersion: domain.SchemaVersion, OldestBinary: domain.SchemaVersion})
}

func TestRun_CanBeRepeated(t *testing.T) {
	t.Parallel()
	run := func() []domain.JobRecord {
		clock := model.NewClock(noon)
		queue := model.New(model.Settings{Now: clock.Now, Random: rand.New(rand.NewPCG(4, 2)), BucketCount: 4})
		w := world{Queue: queue, t: t, clock: clock}
		for range 40 {
			w.enqueue(model.NewJob{})
		}
		w.claim("w1", 20)
		clock.Advance(2 * lease)
		w.reclaim()
		return queue.Jobs()
	}
	equal(t, run(), run())
}

func TestContextThatIsOver_ChangesNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.enqueue(model.NewJob{})
	over, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := w.Claim(over, domain.ClaimRequest{Queue: domain.DefaultQueue, Buckets: []int{0}, Quota: 1, Batch: 1}); err == nil {
		t.Error("Claim took no notice of the context")
	}
	if answers := w.Settle(over, "w1", make([]domain.Settlement, 2)); answers[0].Err == nil || answers[1].Err == nil {
		t.Error("Settle took no notice of the context")
	}
	if got := len(w.claim("w1", 9)); got != 1 {
		t.Errorf("%d jobs are left, want the one", got)
	}
}
