package integration

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/holdfast-pg/holdfast/app/support"
	"github.com/holdfast-pg/holdfast/domain"
	"github.com/holdfast-pg/holdfast/integration/pgtest"
	"github.com/holdfast-pg/holdfast/worker"
)

// diagnosed checks what the status finds, and returns it.
func diagnosed(t *testing.T, database *pgtest.Database, want ...support.Trouble) support.Status {
	t.Helper()
	status, err := support.ReadStatus(t.Context(), database.Pool)
	if err != nil {
		t.Fatal(err)
	}
	var codes []support.Trouble
	for _, finding := range status.Findings {
		codes = append(codes, finding.Code)
		if finding.Seen == "" || finding.Means == "" || finding.Do == "" {
			t.Errorf("%+v leaves something open", finding)
		}
	}
	if !slices.Equal(codes, want) || status.Healthy != (len(want) == 0) {
		t.Fatalf("finds %v, want %v: %+v", codes, want, status)
	}
	if len(want) > 0 && (status.Verdict != status.Findings[0].Means || status.Do != status.Findings[0].Do) {
		t.Errorf("the verdict is %q, %q, not that of the first finding: %+v", status.Verdict, status.Do, status.Findings[0])
	}
	return status
}

// listening is what a worker says that has nothing to complain of.
const listening = `, "affinity": "ring", "wake": "listen", "concurrency": 8, "claim_p99_ms": 1.5`

// dueFor makes the jobs of the default queue wait for longer than is normal.
func dueFor(t *testing.T, database *pgtest.Database, ago string) {
	t.Helper()
	database.Exec(t, "UPDATE holdfast.inbox SET available_at = now() - $1::text::interval WHERE status = 'pending'", ago)
}

func TestStatus_HealthyOnACleanDatabaseAndWithWorkToDo(t *testing.T) {
	t.Parallel()
	database := pgtest.New(t)
	if status := diagnosed(t, database); status.Verdict != "healthy: 0 workers live" || status.Do != "nothing" {
		t.Errorf("%+v", status)
	}
	joinAs(t, database.Queue(t), "w1", listening)
	enqueueNotes(t, database, 5)
	enqueue(t, database, domain.In(time.Hour))
	dueFor(t, database, "3 seconds")
	status := diagnosed(t, database)
	if status.Workers != (support.Workforce{Live: 1, Concurrency: 8}) || len(status.Queues) != 1 || status.Queues[0].Ready.Jobs != 6 {
		t.Errorf("%+v", status)
	}
}

func TestStatus_QueueThatNobodyServes(t *testing.T) {
	t.Parallel()
	database := pgtest.New(t)
	joinAs(t, database.Queue(t), "w1", listening)
	enqueue(t, database, domain.OnQueue("mail"))
	if finding := diagnosed(t, database, support.NobodyServes).Findings[0]; finding.Queue != "mail" {
		t.Errorf("%+v", finding)
	}
	database.Exec(t, "UPDATE holdfast.inbox SET available_at = now() + interval '1 hour'")
	diagnosed(t, database)
}

func TestStatus_QueueThatIsPausedWithJobs(t *testing.T) {
	t.Parallel()
	database := pgtest.New(t)
	wantError(t, domain.PauseQueue(t.Context(), database.Pool, domain.DefaultQueue), nil)
	diagnosed(t, database)
	enqueue(t, database)
	diagnosed(t, database, support.PausedWithJobs)
}

func TestStatus_NobodyKeepsHouse(t *testing.T) {
	t.Parallel()
	database := pgtest.New(t)
	queue := database.Queue(t)
	joinAs(t, queue, "w1", listening)
	enqueue(t, database)
	claimOne(t, queue, "w1")
	database.Exec(t, "UPDATE holdfast.inbox SET lease_expires_at = now() - interval '55 seconds'")
	diagnosed(t, database)
	database.Exec(t, "UPDATE holdfast.inbox SET lease_expires_at = now() - interval '61 seconds'")
	diagnosed(t, database, support.HouseIsNotKept)
	database.Exec(t, `UPDATE holdfast.workers SET metadata = metadata || '{"housekeeping_seconds": 60}'`)
	diagnosed(t, database)
}

func TestStatus_DeadLetters(t *testing.T) {
	t.Parallel()
	database := pgtest.New(t)
	queue := database.Queue(t)
	enqueue(t, database)
	mustSettle(t, queue, claimOne(t, queue, "w1"), domain.Outcome{Verdict: domain.Fail, Error: "no such address"}, domain.StatusFailed)
	diagnosed(t, database, support.DeadLettersExist)
}

func TestStatus_KeyThatHoldsMostOfTheQueue(t *testing.T) {
	t.Parallel()
	database := pgtest.New(t)
	joinAs(t, database.Queue(t), "w1", listening)
	fill(t, database, domain.DefaultQueue, false, "tenant:7", 99, 0)
	diagnosed(t, database) // Too few to tell.
	fill(t, database, domain.DefaultQueue, false, "tenant:7", 11, 100)
	finding := diagnosed(t, database, support.KeyIsHot).Findings[0]
	if finding.Seen != "52 % of 210 jobs at the head of the queue have the key tenant:7" {
		t.Error(finding.Seen)
	}
	fill(t, database, domain.DefaultQueue, false, "tenant:8", 50, 0)
	diagnosed(t, database)
}

func TestStatus_HandlersThatTakeAllSlots(t *testing.T) {
	t.Parallel()
	database := pgtest.New(t)
	finish := make(chan struct{})
	config := quick()
	config.Concurrency, config.DirectURL = 1, database.DirectURL
	enqueue(t, database)
	startWorker(t, database, database.Pool, "w", config, worker.HandleKind("note", func(ctx context.Context, _ domain.ClaimedJob) error {
		select {
		case <-finish:
		case <-ctx.Done():
		}
		return nil
	}))
	t.Cleanup(func() { close(finish) })
	untilSaid(t, database, `{"in_flight": 1, "wake": "listen"}`)
	enqueue(t, database)
	dueFor(t, database, "1 minute")
	status, err := support.ReadStatus(t.Context(), database.Pool)
	if err != nil || !slices.ContainsFunc(status.Findings, func(f support.Finding) bool { return f.Code == support.HandlersAreSlow }) {
		t.Fatalf("%+v, %v", status, err)
	}
}

// untilSaid waits until the one worker says so of itself.
func untilSaid(t *testing.T, database *pgtest.Database, facts string) {
	t.Helper()
	pgtest.Eventually(t, patience, "a heartbeat says "+facts, func() bool {
		return pgtest.Value[bool](t, database, "SELECT count(*) > 0 FROM holdfast.workers WHERE metadata @> $1::text::jsonb", facts)
	})
}

func TestStatus_JobsThatWaitThoughSlotsAreFree(t *testing.T) {
	t.Parallel()
	database := pgtest.New(t)
	joinAs(t, database.Queue(t), "w1", listening)
	enqueue(t, database)
	dueFor(t, database, "11 seconds")
	diagnosed(t, database, support.JobsWait)
}

func TestStatus_WorkersThatAllPoll(t *testing.T) {
	t.Parallel()
	database := pgtest.New(t)
	config := quick()
	config.PollOnly = true
	startWorker(t, database, database.Pool, "w", config, completing())
	polling := func() bool {
		status, err := support.ReadStatus(t.Context(), database.Pool)
		return err == nil && slices.ContainsFunc(status.Findings, func(f support.Finding) bool { return f.Code == support.WorkersPoll })
	}
	pgtest.Eventually(t, patience, "the status says that its workers poll", polling)
	joinAs(t, database.Queue(t), "listens", listening)
	database.Exec(t, "UPDATE holdfast.workers SET started_at = now() - interval '1 minute'")
	if polling() {
		t.Error("one that listens is not enough")
	}
}

// Claims wait for a lock on the table, as behind a migration.
func TestStatus_ClaimsThatTakeLong(t *testing.T) {
	t.Parallel()
	database := pgtest.New(t)
	wantError(t, domain.PauseQueue(t.Context(), database.Pool, domain.DefaultQueue), nil)
	enqueue(t, database)
	startWorker(t, database, database.Pool, "w", quick(), completing())
	untilSaid(t, database, `{"buckets": 1024}`)
	tx := beginOn(t, database.Conn(t))
	change(t, tx, "LOCK TABLE holdfast.inbox IN EXCLUSIVE MODE")
	wantError(t, domain.ResumeQueue(t.Context(), database.Pool, domain.DefaultQueue), nil)
	pgtest.Eventually(t, patience, "a claim has waited for 100 ms", func() bool {
		return pgtest.Value[bool](t, database, `
			SELECT count(*) > 0 FROM pg_stat_activity
			WHERE datname = current_database() AND wait_event_type = 'Lock' AND query LIKE '%name: ClaimJobs %' AND query_start < clock_timestamp() - interval '100 ms'`)
	})
	wantError(t, tx.Rollback(t.Context()), nil)
	untilCompleted(t, database, 1)
	pgtest.Eventually(t, patience, "the status says that claims are slow", func() bool {
		status, err := support.ReadStatus(t.Context(), database.Pool)
		return err == nil && slices.ContainsFunc(status.Findings, func(f support.Finding) bool { return f.Code == support.ClaimsAreSlow })
	})
}

func TestStatus_WorstComesFirst(t *testing.T) {
	t.Parallel()
	database := pgtest.New(t)
	queue := database.Queue(t)
	enqueue(t, database)
	mustSettle(t, queue, claimOne(t, queue, "w1"), domain.Outcome{Verdict: domain.Fail, Error: "no such address"}, domain.StatusFailed)
	for _, name := range []string{"a", "b"} {
		enqueue(t, database, domain.OnQueue(name))
	}
	wantError(t, domain.PauseQueue(t.Context(), database.Pool, "a"), nil)
	diagnosed(t, database, support.NobodyServes, support.PausedWithJobs, support.DeadLettersExist)
}

func TestCLI_StatusPrintsTheVerdictFirst(t *testing.T) {
	t.Parallel()
	database := pgtest.New(t)
	healthy := runCLI(t, database, 0, "status").stdout.String()
	want := `verdict healthy: 0 workers live
do nothing
workers 0 live, 0 draining, 0 not seen; 0 jobs in flight, 0 slots

QUEUE READY OLDEST RETRYING SCHEDULED PROCESSING DEAD IN/S OUT/S
default 0 - 0 0 0 0 0 0
`
	if got := squeezed(healthy); got != want {
		t.Errorf("printed:\n%s\nwant:\n%s", got, want)
	}
	enqueueNotes(t, database, 2)
	want = `verdict nobody works on queue default
do start a worker of queue default; holdfast workers list --all prints those that were there
seen 2 due, the oldest for SPAN, and no live worker serves the queue
workers 0 live, 0 draining, 0 not seen; 0 jobs in flight, 0 slots

QUEUE READY OLDEST RETRYING SCHEDULED PROCESSING DEAD IN/S OUT/S
default 2 SPAN 0 0 0 0 0.03 0
`
	if got := masked(squeezed(runCLI(t, database, 0, "status").stdout.String())); got != want {
		t.Errorf("printed:\n%s\nwant:\n%s", got, want)
	}
	printed := decoded[support.Status](t, database, "status")
	if printed.Healthy || len(printed.Findings) != 1 || printed.Findings[0].Code != support.NobodyServes || fmt.Sprint(printed.Queues[0].Ready) != "2" {
		t.Errorf("%+v", printed)
	}
}
