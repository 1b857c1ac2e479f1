package integration

import (
	"sync"
	"testing"
	"time"

	"github.com/holdfast-pg/holdfast/domain"
	"github.com/holdfast-pg/holdfast/integration/pgtest"
)

// Eight claimers empty a queue of 5,000 jobs; a third of the claims are given back, so that
// most jobs are claimed more than once.
func TestExclusive_NoClaimIsGivenTwice(t *testing.T) {
	t.Parallel()
	const claimers, jobs = 8, 5000
	database := pgtest.New(t)
	enqueueNotes(t, database, jobs, domain.MaxAttempts(1000))
	var mutex sync.Mutex
	given := map[domain.Claim]bool{}
	tokens := map[int64]bool{}
	completed := map[domain.JobID]int{}
	atOnce(claimers, func(i int) {
		queue := database.Queue(t)
		workerID := string(rune('a' + i))
		for {
			mutex.Lock()
			done := len(completed) == jobs
			mutex.Unlock()
			if done || t.Failed() {
				return
			}
			claimed := claim(t, queue, workerID, 50)
			settlements := make([]domain.Settlement, len(claimed))
			mutex.Lock()
			for k, job := range claimed {
				outcome := domain.Outcome{Verdict: domain.Complete}
				if job.Generation%3 == 0 {
					outcome = domain.Outcome{Verdict: domain.Retry}
				}
				settlements[k] = domain.Settlement{Claim: job.Claim, Retention: job.Retention, Outcome: outcome}
				if given[job.Claim] || tokens[job.Generation] {
					t.Errorf("claim %+v was given twice", job.Claim)
				}
				given[job.Claim], tokens[job.Generation] = true, true
			}
			mutex.Unlock()
			for k, answer := range queue.Settle(t.Context(), workerID, settlements) {
				if answer.Err != nil {
					t.Errorf("settle: %v", answer.Err)
				}
				if answer.Status == domain.StatusCompleted {
					mutex.Lock()
					completed[claimed[k].ID]++
					mutex.Unlock()
				}
			}
		}
	})
	for id, times := range completed {
		if times != 1 {
			t.Errorf("job %s was completed %d times", id, times)
		}
	}
	if archived := pgtest.Value[int64](t, database, "SELECT count(*) FROM holdfast.inbox_archive"); archived != jobs {
		t.Errorf("%d jobs are archived, want %d", archived, jobs)
	}
	t.Logf("%d claims of %d jobs", len(given), jobs)
}

func TestTokensOnlyGrow_LaterClaimsOfAnyJobHaveLargerOnes(t *testing.T) {
	t.Parallel()
	database := pgtest.New(t)
	queue := database.Queue(t)
	var last int64
	for range 20 {
		enqueue(t, database)
		job := claimOne(t, queue, "w1")
		if job.Fence() <= last {
			t.Fatalf("token %d follows %d", job.Fence(), last)
		}
		last = job.Fence()
		if last%2 == 0 {
			mustSettle(t, queue, job, domain.Outcome{Verdict: domain.Release, Delay: time.Hour}, domain.StatusPending)
		} else {
			mustSettle(t, queue, job, domain.Outcome{}, domain.StatusCompleted)
		}
	}
	if epoch := last >> 40; epoch != 1 {
		t.Fatalf("token %d carries epoch %d, want 1", last, epoch)
	}
	database.Exec(t, "UPDATE holdfast.meta SET epoch = 2")
	enqueue(t, database)
	if job := claimOne(t, queue, "w1"); job.Fence()>>40 != 2 || job.Fence() <= last {
		t.Fatalf("after the epoch was raised the token is %d, after %d", job.Fence(), last)
	}
}

func TestClaim_TakesWhatIsDueAndNothingElse(t *testing.T) {
	t.Parallel()
	database := pgtest.New(t)
	queue := database.Queue(t)
	enqueue(t, database, domain.In(time.Hour))
	enqueue(t, database, domain.OnQueue("another"))
	due := enqueue(t, database)
	if job := claimOne(t, queue, "w1"); job.ID != due || job.Attempt != 1 || job.Kind != "note" || string(job.Payload) != `{"text": "hello"}` {
		t.Fatalf("claimed %+v, want the due job of the queue", job)
	}
	if more := claim(t, queue, "w2", 10); len(more) != 0 {
		t.Fatalf("claimed %d jobs more", len(more))
	}
}

func TestClaim_PausedQueueGivesNothing(t *testing.T) {
	t.Parallel()
	database := pgtest.New(t)
	queue := database.Queue(t)
	enqueue(t, database)
	database.Exec(t, "UPDATE holdfast.queues SET paused = true WHERE name = 'default'")
	if jobs := claim(t, queue, "w1", 10); len(jobs) != 0 {
		t.Fatalf("claimed %d jobs of a paused queue", len(jobs))
	}
	database.Exec(t, "UPDATE holdfast.queues SET paused = false WHERE name = 'default'")
	claimOne(t, queue, "w1")
}

func TestClaim_QuotaLeavesRoomForOtherBuckets(t *testing.T) {
	t.Parallel()
	database := pgtest.New(t)
	enqueueNotes(t, database, 20, domain.Key("a hot key"))
	enqueue(t, database, domain.Key("a cold key"))
	hot, cold := domain.BucketOf("a hot key", 1024), domain.BucketOf("a cold key", 1024)
	jobs, err := database.Queue(t).Claim(t.Context(), domain.ClaimRequest{
		WorkerID: "w1", Queue: domain.DefaultQueue, Buckets: []int{hot, cold}, Quota: 3, Batch: 10, Lease: lease,
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(jobs) != 4 {
		t.Fatalf("claimed %d jobs, want 3 of the hot bucket and 1 of the cold one", len(jobs))
	}
}
