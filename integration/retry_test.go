package integration

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/holdfast-pg/holdfast/domain"
	"github.com/holdfast-pg/holdfast/integration/pgtest"
)

func TestAttemptsAreBounded_SpentJobIsDeadLetteredAndBlocksNobody(t *testing.T) {
	t.Parallel()
	database := pgtest.New(t)
	queue := database.Queue(t)
	id := enqueue(t, database, domain.Key("order:9182"), domain.MaxAttempts(3))
	for attempt := 1; attempt <= 3; attempt++ {
		job := claimOne(t, queue, "w1")
		if job.Attempt != attempt || job.MaxAttempts != 3 {
			t.Fatalf("claim says attempt %d of %d, want %d of 3", job.Attempt, job.MaxAttempts, attempt)
		}
		want := domain.StatusPending
		if attempt == 3 {
			want = domain.StatusDeadLetter
		}
		mustSettle(t, queue, job, domain.Outcome{Verdict: domain.Retry, Error: "smtp 421"}, want)
	}
	dead := find(t, database, id)
	if *dead.LastError != "smtp 421" || dead.ClaimedBy != nil || dead.LeaseExpiresAt != nil || dead.FinishedAt == nil || *dead.FinishedBy != "w1" {
		t.Fatalf("the dead-lettered job is %+v", dead)
	}
	next := enqueue(t, database, domain.Key("order:9182"))
	if job := claimOne(t, queue, "w1"); job.ID != next {
		t.Fatalf("claimed %s, want the next job of the key", job.ID)
	}
}

func TestAttemptsAreBounded_ReleaseGivesTheAttemptBack(t *testing.T) {
	t.Parallel()
	database := pgtest.New(t)
	queue := database.Queue(t)
	id := enqueue(t, database, domain.MaxAttempts(1))
	for range 5 {
		job := claimOne(t, queue, "w1")
		if job.Attempt != 1 {
			t.Fatalf("after releases the claim says attempt %d", job.Attempt)
		}
		mustSettle(t, queue, job, domain.Outcome{Verdict: domain.Release}, domain.StatusPending)
	}
	if job := find(t, database, id); job.Attempts != 0 {
		t.Fatalf("%d attempts are counted", job.Attempts)
	}
}

func TestRetry_WaitsForItsDelay(t *testing.T) {
	t.Parallel()
	database := pgtest.New(t)
	queue := database.Queue(t)
	for _, verdict := range []domain.Verdict{domain.Retry, domain.Release} {
		id := enqueue(t, database)
		mustSettle(t, queue, claimOne(t, queue, "w1"), domain.Outcome{Verdict: verdict, Delay: time.Hour}, domain.StatusPending)
		if jobs := claim(t, queue, "w1", 10); len(jobs) != 0 {
			t.Fatalf("a job that waits after a %s was claimed", verdict)
		}
		if wait := pgtest.Value[time.Duration](t, database, "SELECT available_at - now() FROM holdfast.inbox WHERE id = $1", id.String()); wait < 59*time.Minute || wait > time.Hour {
			t.Fatalf("after a %s of an hour the job waits %s", verdict, wait)
		}
	}
}

func TestRetry_FailedJobIsNotTriedAgain(t *testing.T) {
	t.Parallel()
	database := pgtest.New(t)
	queue := database.Queue(t)
	id := enqueue(t, database)
	mustSettle(t, queue, claimOne(t, queue, "w1"), domain.Outcome{Verdict: domain.Fail, Error: "no such address"}, domain.StatusFailed)
	if jobs := claim(t, queue, "w1", 10); len(jobs) != 0 {
		t.Fatal("a failed job was claimed")
	}
	if job := find(t, database, id); *job.LastError != "no such address" || job.FinishedAt == nil || job.CompletedAt != nil {
		t.Fatalf("the failed job is %+v", job)
	}
}

// One hostile error text must harm neither its row nor the others of its batch.
func TestRetry_HostileErrorTextsAreStoredClean(t *testing.T) {
	t.Parallel()
	database := pgtest.New(t)
	queue := database.Queue(t)
	hostile := []string{"nul \x00 inside", "invalid \xff\xfe UTF-8", strings.Repeat("é", 5<<20), "plain"}
	enqueueNotes(t, database, len(hostile))
	jobs := claim(t, queue, "w1", len(hostile))
	settlements := make([]domain.Settlement, len(jobs))
	for i, job := range jobs {
		settlements[i] = domain.Settlement{Claim: job.Claim, Retention: job.Retention, Outcome: domain.OutcomeOf(textError(hostile[i]), 1, 0.5)}
	}
	for i, answer := range queue.Settle(t.Context(), "w1", settlements) {
		if answer.Err != nil {
			t.Fatalf("the error %.20q broke its settlement: %v", hostile[i], answer.Err)
		}
		if stored := *find(t, database, jobs[i].ID).LastError; len(stored) == 0 || len(stored) > 8<<10 || !utf8.ValidString(stored) {
			t.Errorf("stored %d bytes of %.20q", len(stored), hostile[i])
		}
	}
}

type textError string

func (e textError) Error() string { return string(e) }
