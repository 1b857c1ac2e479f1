package model_test

import (
	"testing"
	"time"

	"github.com/holdfast-pg/holdfast/domain"
	"github.com/holdfast-pg/holdfast/domain/model"
)

func idsOf(jobs []domain.ClaimedJob) []domain.JobID {
	ids := []domain.JobID{}
	for _, job := range jobs {
		ids = append(ids, job.ID)
	}
	return ids
}

func TestClaim_LongestAvailableFirstThenEnqueueOrder(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	third := w.enqueue(model.NewJob{Delay: 2 * time.Second})
	first := w.enqueue(model.NewJob{})
	second := w.enqueue(model.NewJob{})
	w.enqueue(model.NewJob{Delay: time.Minute})
	w.clock.Advance(2 * time.Second)
	equal(t, idsOf(w.claim("w1", 9)), []domain.JobID{first, second, third})
}

func TestClaim_QuotaPerBucketInTheOrderOfBuckets(t *testing.T) {
	t.Parallel()
	queue := model.New(model.Settings{BucketCount: 2})
	w := world{Queue: queue, t: t}
	// Of two buckets, "a" is in the second and "d" in the first.
	keys := map[int]string{domain.BucketOf("a", 2): "a", domain.BucketOf("d", 2): "d"}
	var ids [2][]domain.JobID
	for range 5 {
		for bucket := range 2 {
			ids[bucket] = append(ids[bucket], w.enqueue(model.NewJob{Key: keys[bucket]}))
		}
	}
	request := domain.ClaimRequest{WorkerID: "w1", Queue: domain.DefaultQueue, Buckets: []int{1, 0}, Quota: 3, Batch: 5, Lease: lease}
	jobs, err := w.Claim(t.Context(), request)
	if err != nil {
		t.Fatal(err)
	}
	equal(t, idsOf(jobs), append(ids[1][:3:3], ids[0][:2]...))
	request.Buckets = []int{1, 1}
	if jobs, err = w.Claim(t.Context(), request); err != nil {
		t.Fatal(err)
	}
	equal(t, idsOf(jobs), ids[1][3:])
}

func TestClaim_TellsAllOfTheJob(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	id := w.enqueue(model.NewJob{Key: "order:9182", IdempotencyKey: "a"})
	equal(t, w.claimOne("w1"), domain.ClaimedJob{
		Claim: domain.Claim{ID: id, Generation: 1<<40 + 1, WorkerID: "w1"},
		Seq:   1, Queue: domain.DefaultQueue, Kind: "send", PartitionKey: "order:9182", IdempotencyKey: "a",
		Attempt: 1, MaxAttempts: 5, AvailableAt: noon, CreatedAt: noon, Payload: []byte("null"), Retention: domain.RetentionArchive,
	})
	job := w.find(id)
	equal(t, job.Status, domain.StatusProcessing)
	equal(t, *job.ClaimedBy, "w1")
	equal(t, *job.ClaimedAt, noon)
	equal(t, *job.LeaseExpiresAt, noon.Add(lease))
}

func TestClaim_NothingFromAPausedOrUnknownQueue(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	wantError(t, w.PauseQueue(t.Context(), domain.DefaultQueue), nil)
	w.enqueue(model.NewJob{})
	equal(t, len(w.claim("w1", 9)), 0)
	wantError(t, w.ResumeQueue(t.Context(), domain.DefaultQueue), nil)
	equal(t, len(w.claim("w1", 9)), 1)
	jobs, err := w.Claim(t.Context(), domain.ClaimRequest{Queue: "nowhere", Buckets: []int{0}, Quota: 1, Batch: 1})
	if len(jobs) != 0 || err != nil {
		t.Errorf("claimed %d jobs of a queue that does not exist, %v", len(jobs), err)
	}
}

func TestClaim_TakesOrderedJobsOrTheOthers(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ordered := w.enqueue(model.NewJob{Ordered: new(true)})
	plain := w.enqueue(model.NewJob{})
	equal(t, idsOf(w.claim("w1", 9)), []domain.JobID{plain})
	equal(t, w.find(ordered).Ordered, true)
	w.settle(w.claimLanes("w1", 9)[0], domain.Outcome{Verdict: domain.Release})
	equal(t, idsOf(w.claimLanes("w1", 9)), []domain.JobID{ordered})
}

func TestClaim_OnlyWhatHasBeenDueForSoLong(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	first := w.enqueue(model.NewJob{})
	w.clock.Advance(time.Second)
	w.enqueue(model.NewJob{})
	request := domain.ClaimRequest{WorkerID: "w1", Queue: domain.DefaultQueue, Buckets: []int{0}, Quota: 9, Batch: 9, Lease: lease, DueFor: time.Second}
	jobs, err := w.Claim(t.Context(), request)
	wantError(t, err, nil)
	equal(t, idsOf(jobs), []domain.JobID{first})
}

func TestClaim_OfAJobOnlyOneIsLive(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.enqueue(model.NewJob{})
	w.claimOne("w1")
	equal(t, len(w.claim("w2", 9)), 0)
	w.clock.Advance(2 * lease)
	equal(t, len(w.claim("w2", 9)), 0) // Only a reclaim takes it away.
}

func TestTokensOnlyGrow(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for range 3 {
		w.enqueue(model.NewJob{MaxAttempts: 100})
	}
	var last int64
	for range 20 {
		for _, job := range w.claim("w1", 2) {
			if job.Fence() <= last {
				t.Fatalf("token %d after %d", job.Fence(), last)
			}
			last = job.Fence()
			w.settle(job, domain.Outcome{Verdict: domain.Retry})
		}
	}
}

func TestTokensOnlyGrow_WithTheEpochAbove(t *testing.T) {
	t.Parallel()
	w := world{Queue: model.New(model.Settings{BucketCount: 1, Epoch: 7}), t: t}
	w.enqueue(model.NewJob{})
	equal(t, w.claimOne("w1").Fence(), int64(7<<40+1))
}

func TestAttemptsAreBounded(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	id := w.enqueue(model.NewJob{MaxAttempts: 3})
	for attempt := 1; attempt <= 3; attempt++ {
		job := w.claimOne("w1")
		equal(t, job.Attempt, attempt)
		w.settle(job, domain.Outcome{Verdict: domain.Retry, Error: "no answer"})
	}
	equal(t, w.find(id).Status, domain.StatusDeadLetter)
	equal(t, *w.find(id).LastError, "no answer")
	equal(t, *w.find(id).FinishedBy, "w1")
	equal(t, len(w.claim("w1", 9)), 0)
}

func TestAttempts_AReleaseRefundsOne(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	id := w.enqueue(model.NewJob{MaxAttempts: 1})
	for range 3 {
		answer := w.settle(w.claimOne("w1"), domain.Outcome{Verdict: domain.Release, Delay: time.Minute})
		equal(t, answer, domain.Settled{Status: domain.StatusPending})
		equal(t, w.find(id).Attempts, 0)
		equal(t, w.find(id).AvailableAt, w.Now().Add(time.Minute))
		w.clock.Advance(time.Minute)
	}
}
