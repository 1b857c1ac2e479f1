package integration

import (
	"testing"

	"github.com/holdfast-pg/holdfast/domain"
	"github.com/holdfast-pg/holdfast/integration/pgtest"
)

func keepHouse(t *testing.T, queue *domain.Queue) domain.HouseReport {
	t.Helper()
	report, err := queue.KeepHouse(t.Context(), houseRules)
	if err != nil {
		t.Fatal(err)
	}
	return report
}

func TestKept_CompletedJobsStayForTheirTimeAndAreThenArchived(t *testing.T) {
	t.Parallel()
	const jobs = 1200 // More than one batch.
	database := pgtest.New(t)
	queue := database.Queue(t)
	database.Exec(t, "UPDATE holdfast.queues SET retention_mode = 'keep'")
	enqueueNotes(t, database, jobs)
	claimed := claim(t, queue, "w1", jobs)
	settlements := make([]domain.Settlement, len(claimed))
	for i, job := range claimed {
		settlements[i] = domain.Settlement{Claim: job.Claim, Retention: job.Retention}
	}
	queue.Settle(t.Context(), "w1", settlements)
	if report := keepHouse(t, queue); report.JobsArchived != 0 {
		t.Fatalf("%d jobs were archived at once", report.JobsArchived)
	}
	database.Exec(t, "UPDATE holdfast.inbox SET completed_at = now() - interval '25 hours' WHERE id <> $1", claimed[0].ID.String())
	if report := keepHouse(t, queue); report.JobsArchived != jobs-1 {
		t.Fatalf("%d jobs were archived, want %d", report.JobsArchived, jobs-1)
	}
	moved := find(t, database, claimed[1].ID)
	if !moved.Archived || moved.Status != domain.StatusCompleted || moved.Generation != claimed[1].Generation || *moved.FinishedBy != "w1" {
		t.Fatalf("the archived job is %+v", moved)
	}
	if kept := find(t, database, claimed[0].ID); kept.Archived {
		t.Fatal("a job was archived before its time")
	}
}

func TestKept_ReaderOfTheArchiveDoesNotEndHousekeeping(t *testing.T) {
	t.Parallel()
	database := pgtest.New(t)
	queue := database.Queue(t)
	dropDays(t, database)
	enqueue(t, database, domain.Once("k"))
	database.Exec(t, "UPDATE holdfast.idempotency_keys SET expires_at = now() - interval '1 second'")
	reader, err := database.Pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := reader.Exec(t.Context(), "SELECT count(*) FROM holdfast.jobs"); err != nil {
		t.Fatal(err)
	}
	if report := keepHouse(t, queue); report.DaysCreated != 0 || report.KeysExpired != 1 {
		t.Fatalf("while the archive is read housekeeping reported %+v, want no day made and the key expired", report)
	}
	if err := reader.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	if report := keepHouse(t, queue); report.DaysCreated != 15 {
		t.Fatalf("%d days were made afterwards, want 15", report.DaysCreated)
	}
}

func TestKept_FailedAndDeadJobsStay(t *testing.T) {
	t.Parallel()
	database := pgtest.New(t)
	queue := database.Queue(t)
	failed := enqueue(t, database)
	mustSettle(t, queue, claimOne(t, queue, "w1"), domain.Outcome{Verdict: domain.Fail}, domain.StatusFailed)
	dead := enqueue(t, database, domain.MaxAttempts(1))
	mustSettle(t, queue, claimOne(t, queue, "w1"), domain.Outcome{Verdict: domain.Retry}, domain.StatusDeadLetter)
	pending := enqueue(t, database)
	database.Exec(t, "UPDATE holdfast.inbox SET created_at = now() - interval '10 years', finished_at = finished_at - interval '10 years'")
	keepHouse(t, queue)
	wantStatus(t, database, failed, domain.StatusFailed)
	wantStatus(t, database, dead, domain.StatusDeadLetter)
	wantStatus(t, database, pending, domain.StatusPending)
}

func TestOncePerKey_KeysExpireWithTheirWindow(t *testing.T) {
	t.Parallel()
	database := pgtest.New(t)
	queue := database.Queue(t)
	first := enqueue(t, database, domain.Once("k"))
	if report := keepHouse(t, queue); report.KeysExpired != 0 {
		t.Fatalf("%d keys expired within their window", report.KeysExpired)
	}
	database.Exec(t, "UPDATE holdfast.idempotency_keys SET expires_at = now() - interval '1 second'")
	if report := keepHouse(t, queue); report.KeysExpired != 1 {
		t.Fatalf("%d keys expired, want 1", report.KeysExpired)
	}
	if again := enqueue(t, database, domain.Once("k")); again == first {
		t.Fatal("the key still stands for the old job")
	}
}

func TestHandled_MarkOutlivesItsJob(t *testing.T) {
	t.Parallel()
	database := pgtest.New(t)
	queue := database.Queue(t)
	id := enqueue(t, database)
	if _, err := domain.MarkHandled(t.Context(), database.Pool, id, "send_receipt"); err != nil {
		t.Fatal(err)
	}
	database.Exec(t, "UPDATE holdfast.handled SET handled_at = now() - interval '1 year'")
	if report := keepHouse(t, queue); report.MarksExpired != 0 {
		t.Fatal("the mark of a job that can still run expired")
	}
	mustSettle(t, queue, claimOne(t, queue, "w1"), domain.Outcome{}, domain.StatusCompleted)
	if report := keepHouse(t, queue); report.MarksExpired != 1 {
		t.Fatalf("%d marks expired after their job was archived, want 1", report.MarksExpired)
	}
}

func TestFencedEffects_UnusedResourcesAreForgotten(t *testing.T) {
	t.Parallel()
	database := pgtest.New(t)
	for _, resource := range []string{"used", "unused"} {
		if err := domain.Guard(t.Context(), database.Pool, resource, domain.Claim{Generation: 7}); err != nil {
			t.Fatal(err)
		}
	}
	database.Exec(t, "UPDATE holdfast.fences SET touched_at = now() - interval '31 days' WHERE resource = 'unused'")
	if report := keepHouse(t, database.Queue(t)); report.FencesExpired != 1 {
		t.Fatalf("%d resources were forgotten, want 1", report.FencesExpired)
	}
	wantError(t, domain.Guard(t.Context(), database.Pool, "used", domain.Claim{Generation: 6}), domain.ErrFenced)
}

// Rows on their way to the default partition are refused there when their day gets a partition
// while they wait.
func TestKept_DayThatIsMadeMeanwhileFailsNothing(t *testing.T) {
	t.Parallel()
	database := pgtest.New(t)
	queue := database.Queue(t)
	database.Exec(t, "UPDATE holdfast.queues SET retention_mode = 'keep', keep_for = '0 seconds'")
	enqueue(t, database)
	mustSettle(t, queue, claimOne(t, queue, "w1"), domain.Outcome{}, domain.StatusCompleted)
	dropDays(t, database)
	waiting := func(query string) func() bool {
		return func() bool {
			return pgtest.Value[int](t, database, `
				SELECT count(*) FROM pg_stat_activity
				WHERE datname = current_database() AND wait_event_type = 'Lock' AND query LIKE '%name: ' || $1 || '%'`, query) == 1
		}
	}

	tx, err := database.Conn(t).Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(t.Context(), "SELECT holdfast.create_archive_days(0)"); err != nil {
		t.Fatal(err)
	}
	kept := make(chan error, 1)
	var report domain.HouseReport
	go func() {
		var err error
		report, err = queue.KeepHouse(t.Context(), houseRules)
		kept <- err
	}()
	pgtest.Eventually(t, patience, "the archiving waits", waiting("ArchiveCompletedJobs"))
	if err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := <-kept; err != nil || report.JobsArchived != 1 {
		t.Errorf("archived %d jobs, want 1; error %v", report.JobsArchived, err)
	}
}
