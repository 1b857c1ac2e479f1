package integration

import (
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-pg/holdfast/domain"
	"github.com/holdfast-pg/holdfast/integration/pgtest"
)

// lease is long enough that none ends during a test by itself.
const lease = 90 * time.Second

// note is the payload of jobs whose content does not matter.
type note struct {
	Text string `json:"text"`
}

func (note) Kind() string { return "note" }

// enqueue adds a job and returns its id.
func enqueue(t *testing.T, database *pgtest.Database, options ...domain.EnqueueOption) domain.JobID {
	t.Helper()
	result, err := domain.Enqueue(t.Context(), database.Pool, note{Text: "hello"}, options...)
	if err != nil {
		t.Fatal(err)
	}
	return result.ID
}

// enqueueNotes adds n jobs of a queue in one statement.
func enqueueNotes(t *testing.T, database *pgtest.Database, n int, options ...domain.EnqueueOption) []domain.JobID {
	t.Helper()
	jobs := make([]domain.NewJob, n)
	for i := range jobs {
		jobs[i] = domain.NewJob{Args: note{Text: "hello"}, Options: options}
	}
	results, err := domain.EnqueueMany(t.Context(), database.Pool, jobs...)
	if err != nil {
		t.Fatal(err)
	}
	ids := make([]domain.JobID, n)
	for i, result := range results {
		ids[i] = result.ID
	}
	return ids
}

// everyBucket lists the buckets of a database with the default settings.
func everyBucket() []int {
	buckets := make([]int, 1024)
	for i := range buckets {
		buckets[i] = i
	}
	return buckets
}

// claim takes up to batch due jobs of the default queue.
func claim(t *testing.T, queue *domain.Queue, workerID string, batch int) []domain.ClaimedJob {
	t.Helper()
	jobs, err := queue.Claim(t.Context(), domain.ClaimRequest{
		WorkerID: workerID, Queue: domain.DefaultQueue, Buckets: everyBucket(), Quota: batch, Batch: batch, Lease: lease,
	})
	if err != nil {
		t.Fatal(err)
	}
	return jobs
}

// claimOne takes the one job that is due.
func claimOne(t *testing.T, queue *domain.Queue, workerID string) domain.ClaimedJob {
	t.Helper()
	jobs := claim(t, queue, workerID, 2)
	if len(jobs) != 1 {
		t.Fatalf("claimed %d jobs, want the one that is due", len(jobs))
	}
	return jobs[0]
}

// settle ends one claim and returns the answer.
func settle(t *testing.T, queue *domain.Queue, job domain.ClaimedJob, outcome domain.Outcome) domain.Settled {
	t.Helper()
	return queue.Settle(t.Context(), job.WorkerID, []domain.Settlement{{Claim: job.Claim, Retention: job.Retention, Outcome: outcome}})[0]
}

// mustSettle ends one claim and expects the job in a state.
func mustSettle(t *testing.T, queue *domain.Queue, job domain.ClaimedJob, outcome domain.Outcome, want domain.Status) {
	t.Helper()
	if answer := settle(t, queue, job, outcome); answer.Err != nil || answer.Status != want {
		t.Fatalf("settling as %s left the job %s (error %v), want %s", outcome.Verdict, answer.Status, answer.Err, want)
	}
}

// mustReclaim reclaims and expects as many jobs as given.
func mustReclaim(t *testing.T, queue *domain.Queue, want int) []domain.Reclaimed {
	t.Helper()
	reclaimed, _, err := queue.Reclaim(t.Context(), 0)
	if err != nil {
		t.Fatal(err)
	}
	if len(reclaimed) != want {
		t.Fatalf("reclaimed %d jobs, want %d", len(reclaimed), want)
	}
	return reclaimed
}

// find returns what is known of a job.
func find(t *testing.T, database *pgtest.Database, id domain.JobID) domain.JobRecord {
	t.Helper()
	job, err := domain.FindJob(t.Context(), database.Pool, id)
	if err != nil {
		t.Fatal(err)
	}
	return job
}

// wantStatus expects a job in a state.
func wantStatus(t *testing.T, database *pgtest.Database, id domain.JobID, want domain.Status) {
	t.Helper()
	if job := find(t, database, id); job.Status != want {
		t.Fatalf("job is %s, want %s", job.Status, want)
	}
}

// wantError expects an error of a kind.
func wantError(t *testing.T, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Fatalf("error %v, want %v", err, want)
	}
}

// atOnce runs n functions at the same time and waits for them.
func atOnce(n int, run func(i int)) {
	var ready, done sync.WaitGroup
	start := make(chan struct{})
	for i := range n {
		ready.Add(1)
		done.Go(func() {
			ready.Done()
			<-start
			run(i)
		})
	}
	ready.Wait()
	close(start)
	done.Wait()
}
