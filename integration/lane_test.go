package integration

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/holdfast-pg/holdfast/domain"
	"github.com/holdfast-pg/holdfast/integration/pgtest"
)

// newOrdered returns a database with an ordered queue, "mail", and a claimer of it.
func newOrdered(tb testing.TB) (*pgtest.Database, *domain.Queue) {
	tb.Helper()
	database := pgtest.New(tb)
	makeOrdered(tb, database, "mail")
	return database, database.Queue(tb)
}

func makeOrdered(tb testing.TB, database *pgtest.Database, name string) {
	tb.Helper()
	database.Exec(tb, "INSERT INTO holdfast.queues (name, ordered) VALUES ($1, true)", name)
}

// enqueueIn adds a job to a lane of the ordered queue.
func enqueueIn(t *testing.T, database *pgtest.Database, key string, options ...domain.EnqueueOption) domain.JobID {
	t.Helper()
	return enqueue(t, database, append(options, domain.OnQueue("mail"), domain.Key(key))...)
}

// laneRequest asks for all that can be had of an ordered queue.
func laneRequest(queue string) domain.ClaimRequest {
	return domain.ClaimRequest{
		WorkerID: "w1", Queue: queue, Buckets: everyBucket(), Quota: 100, Batch: 100, Lease: lease, Lanes: true,
	}
}

func claimLanes(tb testing.TB, queue *domain.Queue, request domain.ClaimRequest) []domain.ClaimedJob {
	tb.Helper()
	jobs, err := queue.Claim(tb.Context(), request)
	if err != nil {
		tb.Fatal(err)
	}
	return jobs
}

// wantLanes claims from the ordered queue and expects these jobs, in any order.
func wantLanes(t *testing.T, queue *domain.Queue, want ...domain.JobID) []domain.ClaimedJob {
	t.Helper()
	jobs := claimLanes(t, queue, laneRequest("mail"))
	missing := slices.Clone(want)
	for _, job := range jobs {
		missing = slices.DeleteFunc(missing, func(id domain.JobID) bool { return id == job.ID })
	}
	if len(jobs) != len(want) || len(missing) > 0 {
		t.Fatalf("claimed %v, want %v", jobs, want)
	}
	return jobs
}

func TestInOrder_OneJobOfALaneAtATime(t *testing.T) {
	t.Parallel()
	database, queue := newOrdered(t)
	first, second := enqueueIn(t, database, "a"), enqueueIn(t, database, "a")
	other := enqueueIn(t, database, "b")
	enqueue(t, database)
	jobs := wantLanes(t, queue, first, other)
	wantLanes(t, queue)
	i := slices.IndexFunc(jobs, func(job domain.ClaimedJob) bool { return job.ID == first })
	if job := jobs[i]; job.PartitionKey != "a" || job.Attempt != 1 || job.Retention != domain.RetentionArchive || string(job.Payload) != `{"text": "hello"}` {
		t.Fatalf("claimed %+v", job)
	}
	mustSettle(t, queue, jobs[i], domain.Outcome{}, domain.StatusCompleted)
	wantLanes(t, queue, second)
	if jobs := claim(t, queue, "w1", 10); len(jobs) != 1 {
		t.Fatalf("the claim of plain jobs took %d", len(jobs))
	}
}

func TestInOrder_RetryHoldsItsLane(t *testing.T) {
	t.Parallel()
	for _, verdict := range []domain.Verdict{domain.Retry, domain.Release} {
		t.Run(verdict.String(), func(t *testing.T) {
			t.Parallel()
			database, queue := newOrdered(t)
			first, second := enqueueIn(t, database, "a"), enqueueIn(t, database, "a")
			mustSettle(t, queue, wantLanes(t, queue, first)[0], domain.Outcome{Verdict: verdict, Delay: time.Hour}, domain.StatusPending)
			wantLanes(t, queue)
			database.EndWait(t, first)
			mustSettle(t, queue, wantLanes(t, queue, first)[0], domain.Outcome{}, domain.StatusCompleted)
			wantLanes(t, queue, second)
		})
	}
}

func TestInOrder_EndedLeaseHoldsTheLaneUntilItsJobRuns(t *testing.T) {
	t.Parallel()
	database, queue := newOrdered(t)
	first := enqueueIn(t, database, "a")
	enqueueIn(t, database, "a")
	wantLanes(t, queue, first)
	database.ExpireLease(t, first)
	wantLanes(t, queue)
	mustReclaim(t, queue, 1)
	wantLanes(t, queue)
	database.EndWait(t, first)
	wantLanes(t, queue, first)
}

func TestInOrder_DelayedHeadHoldsItsLane(t *testing.T) {
	t.Parallel()
	database, queue := newOrdered(t)
	first := enqueueIn(t, database, "a", domain.In(time.Hour))
	enqueueIn(t, database, "a")
	wantLanes(t, queue)
	database.EndWait(t, first)
	wantLanes(t, queue, first)
}

func TestInOrder_FailedAndDeadHeadsFreeTheLane(t *testing.T) {
	t.Parallel()
	database, queue := newOrdered(t)
	dead, failed, next := enqueueIn(t, database, "a", domain.MaxAttempts(1)), enqueueIn(t, database, "a"), enqueueIn(t, database, "a")
	mustSettle(t, queue, wantLanes(t, queue, dead)[0], domain.Outcome{Verdict: domain.Retry}, domain.StatusDeadLetter)
	mustSettle(t, queue, wantLanes(t, queue, failed)[0], domain.Outcome{Verdict: domain.Fail}, domain.StatusFailed)
	wantLanes(t, queue, next)
}

func TestInOrder_RedrivenJobRunsAfterTheOneInFlight(t *testing.T) {
	t.Parallel()
	database, queue := newOrdered(t)
	first, second, third := enqueueIn(t, database, "a"), enqueueIn(t, database, "a"), enqueueIn(t, database, "a")
	mustSettle(t, queue, wantLanes(t, queue, first)[0], domain.Outcome{Verdict: domain.Fail}, domain.StatusFailed)
	running := wantLanes(t, queue, second)[0]
	if redriven, err := domain.Redrive(t.Context(), database.Pool, first); err != nil || len(redriven) != 1 {
		t.Fatalf("redrove %v, error %v", redriven, err)
	}
	wantLanes(t, queue)
	mustSettle(t, queue, running, domain.Outcome{}, domain.StatusCompleted)
	mustSettle(t, queue, wantLanes(t, queue, first)[0], domain.Outcome{}, domain.StatusCompleted)
	wantLanes(t, queue, third)
}

// Somebody else, such as an operator, may be busy with the head's row: the job behind it must
// not take its place.
func TestInOrder_LockedHeadDoesNotLetTheSecondPass(t *testing.T) {
	t.Parallel()
	database, queue := newOrdered(t)
	first, other := enqueueIn(t, database, "a"), enqueueIn(t, database, "b")
	enqueueIn(t, database, "a")
	tx := begin(t, database)
	if _, err := tx.Exec(t.Context(), "SELECT FROM holdfast.inbox WHERE id = $1 FOR UPDATE", first.String()); err != nil {
		t.Fatal(err)
	}
	wantLanes(t, queue, other)
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	wantLanes(t, queue, first)
}

// A transaction that took its seq early may commit late. Its job comes next, and it waits for
// the one that is running.
func TestInOrder_LateCommitOfALowerSeqIsClaimedNext(t *testing.T) {
	t.Parallel()
	database, queue := newOrdered(t)
	tx := begin(t, database)
	late, err := domain.Enqueue(t.Context(), tx, note{}, domain.OnQueue("mail"), domain.Key("a"))
	if err != nil {
		t.Fatal(err)
	}
	second, third := enqueueIn(t, database, "a"), enqueueIn(t, database, "a")
	running := wantLanes(t, queue, second)[0]
	if err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	wantLanes(t, queue)
	mustSettle(t, queue, running, domain.Outcome{}, domain.StatusCompleted)
	mustSettle(t, queue, wantLanes(t, queue, late.ID)[0], domain.Outcome{}, domain.StatusCompleted)
	wantLanes(t, queue, third)
}

// The keys of one bucket: the first 300 are backing off, the last is ready. A claim visits 256
// keys of a bucket and goes on from there the next time, so two find it; so they do when
// ready lanes fill every claim.
func TestInOrder_BlockedKeysDoNotStarveTheNext(t *testing.T) {
	t.Parallel()
	database, queue := newOrdered(t)
	keys := keysOfBucket(7, 301)
	jobs := make([]domain.NewJob, len(keys))
	for i, key := range keys {
		jobs[i] = domain.NewJob{Args: note{}, Options: []domain.EnqueueOption{domain.OnQueue("mail"), domain.Key(key), domain.In(time.Hour)}}
	}
	results, err := domain.EnqueueMany(t.Context(), database.Pool, jobs...)
	if err != nil {
		t.Fatal(err)
	}
	last := results[len(results)-1].ID
	database.EndWait(t, last)
	wantLanes(t, queue)
	wantLanes(t, queue, last)
	// The walk came around: blocked lanes that become free are found wherever they are.
	database.EndWait(t, results[0].ID)
	for range 2 {
		if jobs := claimLanes(t, queue, laneRequest("mail")); len(jobs) == 1 && jobs[0].ID == results[0].ID {
			return
		}
	}
	t.Fatal("two claims did not come around to the first key")
}

func TestInOrder_LanesOfABucketTakeTurns(t *testing.T) {
	t.Parallel()
	database, queue := newOrdered(t)
	keys := keysOfBucket(7, 5)
	for range 2 {
		for _, key := range keys {
			enqueueIn(t, database, key)
		}
	}
	for _, limit := range []string{"batch", "quota"} {
		request := laneRequest("mail")
		if limit == "batch" {
			request.Batch = 2
		} else {
			request.Quota = 2
		}
		claimed := map[string]int{}
		for range 3 {
			for _, job := range claimLanes(t, queue, request) {
				claimed[job.PartitionKey]++
				mustSettle(t, queue, job, domain.Outcome{Verdict: domain.Release}, domain.StatusPending)
			}
		}
		for _, key := range keys {
			if claimed[key] == 0 {
				t.Errorf("three claims of two by %s took %v: %s had no turn", limit, claimed, key)
			}
		}
	}
}

func TestInOrder_BucketsQuotaAndBatchBoundAClaim(t *testing.T) {
	t.Parallel()
	database, queue := newOrdered(t)
	for bucket := range 4 {
		for _, key := range keysOfBucket(bucket, 5) {
			enqueueIn(t, database, key)
		}
	}
	request := laneRequest("mail")
	request.Quota, request.Batch, request.Buckets = 3, 8, []int{3, 1, 2}
	perBucket := map[int]int{}
	for _, job := range claimLanes(t, queue, request) {
		perBucket[job.Bucket]++
	}
	if want := map[int]int{1: 3, 2: 2, 3: 3}; fmt.Sprint(perBucket) != fmt.Sprint(want) {
		t.Fatalf("claimed %v by bucket, want %v", perBucket, want)
	}
}

// Work in one bucket of an ordered queue does not keep a claim out of the same bucket of
// another.
func TestInOrder_QueuesDoNotBlockEachOther(t *testing.T) {
	t.Parallel()
	database, queue := newOrdered(t)
	makeOrdered(t, database, "bills")
	first, other := enqueueIn(t, database, "a"), enqueue(t, database, domain.OnQueue("bills"), domain.Key("a"))
	tx := begin(t, database)
	if _, err := tx.Exec(t.Context(), generated(t, "LockLanes"), []int32{int32(first.Bucket())}, "mail"); err != nil {
		t.Fatal(err)
	}
	wantLanes(t, queue)
	if jobs := claimLanes(t, queue, laneRequest("bills")); len(jobs) != 1 || jobs[0].ID != other {
		t.Fatalf("claimed %v of the other queue", jobs)
	}
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	wantLanes(t, queue, first)
}

func TestInOrder_PausedQueueGivesNothing(t *testing.T) {
	t.Parallel()
	database, queue := newOrdered(t)
	id := enqueueIn(t, database, "a")
	database.Exec(t, "UPDATE holdfast.queues SET paused = true WHERE name = 'mail'")
	wantLanes(t, queue)
	database.Exec(t, "UPDATE holdfast.queues SET paused = false WHERE name = 'mail'")
	wantLanes(t, queue, id)
}

func TestInOrder_DueForWaitsForTheHead(t *testing.T) {
	t.Parallel()
	database, queue := newOrdered(t)
	first, plain := enqueueIn(t, database, "a"), enqueue(t, database)
	overdue := enqueueIn(t, database, "a")
	backdate := "UPDATE holdfast.inbox SET available_at = now() - interval '1 minute' WHERE id = ANY($1::uuid[])"
	database.Exec(t, backdate, []string{overdue.String()})
	lanes, others := laneRequest("mail"), laneRequest(domain.DefaultQueue)
	lanes.DueFor, others.DueFor, others.Lanes = time.Minute, time.Minute, false
	if taken := len(claimLanes(t, queue, lanes)) + len(claimLanes(t, queue, others)); taken != 0 {
		t.Fatalf("claimed %d jobs that have not been due for a minute", taken)
	}
	database.Exec(t, backdate, []string{first.String(), plain.String()})
	if jobs := claimLanes(t, queue, lanes); len(jobs) != 1 || jobs[0].ID != first {
		t.Fatalf("claimed %v, want the head", jobs)
	}
	if jobs := claimLanes(t, queue, others); len(jobs) != 1 || jobs[0].ID != plain {
		t.Fatalf("claimed %v, want the plain job", jobs)
	}
}

// begin opens a transaction that is rolled back when the test ends.
func begin(t *testing.T, database *pgtest.Database) pgx.Tx {
	t.Helper()
	tx, err := database.Pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = tx.Rollback(context.Background()) })
	return tx
}

// keysOfBucket makes up partition keys of one bucket of 1,024, in their order.
func keysOfBucket(bucket, n int) []string {
	var keys []string
	for i := 0; len(keys) < n; i++ {
		if key := fmt.Sprintf("key:%08d", i); domain.BucketOf(key, 1024) == bucket {
			keys = append(keys, key)
		}
	}
	return keys
}

// generated returns the text of a query as the generated code sends it.
func generated(t *testing.T, name string) string {
	t.Helper()
	texts, err := generatedQueries()
	if err != nil {
		t.Fatal(err)
	}
	return texts[name]
}
