package integration

import (
	"slices"
	"testing"
	"time"

	"github.com/holdfast-pg/holdfast/domain"
	"github.com/holdfast-pg/holdfast/integration/pgtest"
)

func TestSupport_OldestPendingJobIsTheLagOfItsQueue(t *testing.T) {
	t.Parallel()
	database := pgtest.New(t)
	_, err := domain.OldestPendingJob(t.Context(), database.Pool, domain.DefaultQueue)
	wantError(t, err, domain.ErrNotFound)
	enqueueNotes(t, database, 20)
	old := enqueue(t, database, domain.Key("order:9182"))
	enqueue(t, database, domain.OnQueue("another"))
	database.Exec(t, "UPDATE holdfast.inbox SET available_at = now() - interval '10 minutes' WHERE id = $1", old.String())
	oldest, err := domain.OldestPendingJob(t.Context(), database.Pool, domain.DefaultQueue)
	if err != nil || oldest.ID != old || oldest.PartitionKey != "order:9182" || oldest.Age < 10*time.Minute || oldest.Age > 11*time.Minute {
		t.Fatalf("oldest is %+v, error %v", oldest, err)
	}
}

func TestSupport_DeadLettersAreCountedPerKey(t *testing.T) {
	t.Parallel()
	database := pgtest.New(t)
	queue := database.Queue(t)
	for i, key := range []string{"order:1", "order:2", "order:1"} {
		enqueue(t, database, domain.Key(key), domain.MaxAttempts(1))
		outcome := domain.Outcome{Verdict: domain.Retry, Error: "smtp 421"}
		want := domain.StatusDeadLetter
		if i == 2 {
			outcome = domain.Outcome{Verdict: domain.Fail, Error: "no such address"}
			want = domain.StatusFailed
		}
		mustSettle(t, queue, claimOne(t, queue, "w1"), outcome, want)
	}
	counts, err := domain.DeadLettersPerKey(t.Context(), database.Pool, domain.DefaultQueue, 10)
	if err != nil || len(counts.Items) != 2 || counts.Looked != 3 || counts.More || counts.Items[0].PartitionKey != "order:1" || counts.Items[0].Jobs != 2 || counts.Items[0].SampleError != "no such address" {
		t.Fatalf("dead letters are %+v, error %v", counts, err)
	}
}

func TestSupport_JobIsFoundWhereverItIs(t *testing.T) {
	t.Parallel()
	database := pgtest.New(t)
	queue := database.Queue(t)
	id := enqueue(t, database)
	job := claimOne(t, queue, "w1")
	if found := find(t, database, id); found.Archived || *found.ClaimedBy != "w1" || found.Generation != job.Generation || found.LeaseExpiresAt == nil {
		t.Fatalf("the claimed job is %+v", found)
	}
	mustSettle(t, queue, job, domain.Outcome{}, domain.StatusCompleted)
	if found := find(t, database, id); !found.Archived || found.Status != domain.StatusCompleted {
		t.Fatalf("the completed job is %+v", found)
	}
	_, err := domain.FindJob(t.Context(), database.Pool, domain.NewJobID(time.Now(), 7))
	wantError(t, err, domain.ErrNotFound)
}

func TestOperate_RedriveGivesDeadJobsAllTheirAttemptsBack(t *testing.T) {
	t.Parallel()
	database := pgtest.New(t)
	queue := database.Queue(t)
	dead := enqueue(t, database, domain.MaxAttempts(1))
	mustSettle(t, queue, claimOne(t, queue, "w1"), domain.Outcome{Verdict: domain.Retry, Error: "smtp 421"}, domain.StatusDeadLetter)
	failed := enqueue(t, database)
	mustSettle(t, queue, claimOne(t, queue, "w1"), domain.Outcome{Verdict: domain.Fail}, domain.StatusFailed)
	held := enqueue(t, database)
	claimOne(t, queue, "w1")
	redriven, err := domain.Redrive(t.Context(), database.Pool, dead, failed, held, domain.NewJobID(time.Now(), 7))
	if err != nil || len(redriven) != 2 {
		t.Fatalf("redrove %v, error %v; want the dead and the failed job", redriven, err)
	}
	wantStatus(t, database, held, domain.StatusProcessing)
	jobs := claim(t, queue, "w2", 10)
	if len(jobs) != 2 || jobs[0].Attempt != 1 || jobs[1].Attempt != 1 {
		t.Fatalf("after the redrive claimed %+v", jobs)
	}
}

func TestSupport_WorkersAreListedTheDeadOfTheLastDayOnRequest(t *testing.T) {
	t.Parallel()
	database := pgtest.New(t)
	queue := database.Queue(t)
	for _, id := range []string{"early", "late", "drains", "died", "died long ago"} {
		join(t, queue, id)
	}
	wantError(t, domain.Drain(t.Context(), database.Pool, "drains"), nil)
	database.Exec(t, "UPDATE holdfast.workers SET started_at = now() - interval '1 hour', last_seen_at = now() - interval '10 seconds' WHERE id = 'early'")
	database.Exec(t, "UPDATE holdfast.workers SET status = 'dead', last_seen_at = now() - interval '23 hours' WHERE id = 'died'")
	database.Exec(t, "UPDATE holdfast.workers SET status = 'dead', last_seen_at = now() - interval '25 hours' WHERE id = 'died long ago'")
	list := func(dead bool, limit int, want ...string) []domain.WorkerRecord {
		t.Helper()
		workers, err := domain.ListWorkers(t.Context(), database.Pool, dead, limit)
		var ids []string
		for _, worker := range workers {
			ids = append(ids, worker.ID)
		}
		if err != nil || !slices.Equal(ids, want) {
			t.Fatalf("listed %q, %v; want %q", ids, err, want)
		}
		return workers
	}
	early := list(false, 9, "early", "late", "drains")[0]
	if early.Status != domain.WorkerAlive || early.Silence < 10*time.Second || early.Silence > time.Minute || !slices.Equal(early.Queues, []string{domain.DefaultQueue}) {
		t.Errorf("%+v", early)
	}
	list(true, 9, "early", "late", "drains", "died")
	list(true, 2, "early", "late")
}
