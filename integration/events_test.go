package integration

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-pg/holdfast"
	"github.com/holdfast-pg/holdfast/domain"
	"github.com/holdfast-pg/holdfast/integration/pgtest"
)

// storyOf tells the events of a job in words: what happened, at which attempt, by which
// worker, and what was said.
func storyOf(t *testing.T, database *pgtest.Database, id domain.JobID) string {
	t.Helper()
	events, err := domain.JobEvents(t.Context(), database.Pool, id, 100)
	if err != nil {
		t.Fatal(err)
	}
	lines := make([]string, len(events))
	for i, event := range events {
		if *event.JobID != id || event.At.IsZero() || event.Actor != nil {
			t.Errorf("an event of job %s is %+v", id, event)
		}
		lines[i] = fmt.Sprintf("%s %s %s: %s", event.Kind, number(event.Attempt), cmp.Or(text(event.WorkerID), "-"), text(event.Detail))
	}
	return strings.Join(lines, "\n")
}

func text(value *string) string {
	if value == nil {
		return ""
	}
	return *value
}

func number(value *int) string {
	if value == nil {
		return "-"
	}
	return strconv.Itoa(*value)
}

func wantStory(t *testing.T, database *pgtest.Database, id domain.JobID, want ...string) {
	t.Helper()
	if got := storyOf(t, database, id); got != strings.Join(want, "\n") {
		t.Errorf("the story of the job is\n%s\nwant\n%s", got, strings.Join(want, "\n"))
	}
}

func countEvents(t *testing.T, database *pgtest.Database) int {
	t.Helper()
	return pgtest.Value[int](t, database, "SELECT count(*) FROM holdfast.events")
}

func TestEvents_FailuresSayWhatTheHandlerSaid(t *testing.T) {
	t.Parallel()
	database := pgtest.New(t)
	queue := database.Queue(t)
	dead := enqueue(t, database, domain.MaxAttempts(2), domain.Key("order:9182"))
	first := claimOne(t, queue, "w1")
	mustSettle(t, queue, first, domain.Outcome{Verdict: domain.Retry, Error: "smtp 421"}, domain.StatusPending)
	mustSettle(t, queue, claimOne(t, queue, "w2"), domain.Outcome{Verdict: domain.Retry, Error: "smtp 451"}, domain.StatusDeadLetter)
	failed := enqueue(t, database)
	mustSettle(t, queue, claimOne(t, queue, "w1"), domain.Outcome{Verdict: domain.Fail, Error: "no such address"}, domain.StatusFailed)

	wantStory(t, database, dead, "retried 1 w1: smtp 421", "dead_lettered 2 w2: smtp 451")
	wantStory(t, database, failed, "failed 1 w1: no such address")
	events, err := domain.JobEvents(t.Context(), database.Pool, dead, 1)
	if err != nil || len(events) != 1 || events[0].Kind != domain.EventDeadLettered {
		t.Errorf("the latest event is %+v, error %v", events, err)
	}
	events, _ = domain.JobEvents(t.Context(), database.Pool, dead, 2)
	if one := events[0]; *one.Generation != first.Generation || *one.Queue != domain.DefaultQueue || *one.JobKind != "note" || *one.PartitionKey != "order:9182" {
		t.Errorf("the event does not tell of its job: %+v", one)
	}
}

func TestEvents_ReleaseIsNotedWhereItIsUnusual(t *testing.T) {
	t.Parallel()
	database := pgtest.New(t)
	queue := database.Queue(t)
	id := enqueue(t, database, domain.MaxAttempts(3))
	release := func(workerID string, outcome domain.Outcome) {
		t.Helper()
		outcome.Delay = 0
		mustSettle(t, queue, claimOne(t, queue, workerID), outcome, domain.StatusPending)
	}
	fenced := domain.OutcomeOf(fmt.Errorf("charge: %w", domain.ErrFenced), 1, 0)
	for range 3 {
		release("w1", domain.OutcomeOf(domain.Snooze(time.Minute), 1, 0))
		release("w1", domain.Outcome{Verdict: domain.Release})
		release("w1", domain.ReleaseFor("no handler", 0))
		release("w1", fenced)
		release("w2", domain.ReleaseFor("no handler", 0))
	}
	said := "fenced 1 w1: charge: fenced: the resource has seen a higher token"
	wantStory(t, database, id, "released 1 w1: no handler", said, "released 1 w2: no handler")
	mustSettle(t, queue, claimOne(t, queue, "w1"), domain.Outcome{Verdict: domain.Retry, Error: "smtp 421"}, domain.StatusPending)
	release("w1", fenced)
	wantStory(t, database, id, "released 1 w1: no handler", said, "released 1 w2: no handler", "retried 1 w1: smtp 421", strings.Replace(said, "1", "2", 1))
}

func TestEvents_ReclaimNamesTheWorkerWhoseLeaseEnded(t *testing.T) {
	t.Parallel()
	database := pgtest.New(t)
	queue := database.Queue(t)
	id := enqueue(t, database, domain.MaxAttempts(2))
	for _, workerID := range []string{"w1", "w2"} {
		database.EndWait(t, id)
		claimOne(t, queue, workerID)
		database.ExpireLease(t, id)
		mustReclaim(t, queue, 1)
	}
	wantStory(t, database, id, "reclaimed 1 w1: ", "dead_lettered 2 w2: the lease of worker w2 ended at the last attempt")
}

// A text that is composed in the database may be longer than an event's detail can be. It must
// not keep housekeeping from its work.
func TestEvents_LongDetailIsCut(t *testing.T) {
	t.Parallel()
	database := pgtest.New(t)
	queue := database.Queue(t)
	for _, long := range []string{strings.Repeat("x", 8192), strings.Repeat("😀", 2048)} {
		id := enqueue(t, database, domain.MaxAttempts(1))
		claimOne(t, queue, "w1")
		database.Exec(t, "UPDATE holdfast.inbox SET last_error = $2 WHERE id = $1", id.String(), long)
		database.ExpireLease(t, id)
		mustReclaim(t, queue, 1)
		events, err := domain.JobEvents(t.Context(), database.Pool, id, 2)
		if err != nil || len(events) != 1 {
			t.Fatalf("events %+v, error %v", events, err)
		}
		if detail := *events[0].Detail; len([]rune(detail)) != 2048 || len(detail) > 8192 || !strings.HasPrefix(detail, "the lease of worker w1 ended") {
			t.Errorf("the detail has %d bytes: %.60s", len(detail), detail)
		}
	}
}

func TestEvents_LostLeaseIsNotedOnce(t *testing.T) {
	t.Parallel()
	database := pgtest.New(t)
	queue := database.Queue(t)
	id := enqueue(t, database)
	job := claimOne(t, queue, "w1")
	database.ExpireLease(t, id)
	renew := func() {
		t.Helper()
		if held, err := queue.Renew(t.Context(), "w1", lease, []domain.Claim{job.Claim}); err != nil || len(held) != 0 {
			t.Fatalf("renewed %v, error %v", held, err)
		}
	}
	renew()
	lost := "lease_lost 1 w1: its renewal was refused"
	wantStory(t, database, id, lost)
	mustReclaim(t, queue, 1)
	atOnce(4, func(i int) {
		if i%2 == 0 {
			_, _ = queue.Renew(t.Context(), "w1", lease, []domain.Claim{job.Claim})
			return
		}
		if answer := settle(t, queue, job, domain.Outcome{}); !errors.Is(answer.Err, domain.ErrLeaseLost) {
			t.Errorf("the late completion answers %v", answer.Err)
		}
	})
	wantStory(t, database, id, lost, "reclaimed 1 w1: ")
}

func TestEvents_LateResultIsNotedThoughTheJobIsGone(t *testing.T) {
	t.Parallel()
	database := pgtest.New(t)
	queue := database.Queue(t)
	if _, err := domain.SetQueue(t.Context(), database.Pool, domain.DefaultQueue, domain.QueueChange{RetentionMode: new(domain.RetentionDrop)}); err != nil {
		t.Fatal(err)
	}
	id := enqueue(t, database, domain.Key("order:9182"))
	late := claimOne(t, queue, "w1")
	database.ExpireLease(t, id)
	mustReclaim(t, queue, 1)
	database.EndWait(t, id)
	mustSettle(t, queue, claimOne(t, queue, "w2"), domain.Outcome{}, domain.StatusCompleted)
	wantError(t, settle(t, queue, late, domain.Outcome{Verdict: domain.Fail}).Err, domain.ErrLeaseLost)

	wantStory(t, database, id, "reclaimed 1 w1: ", "lease_lost 1 w1: its result was refused: fail")
	story, err := domain.FindJobStory(t.Context(), database.Pool, id, 10)
	if err != nil || !story.Gone || len(story.Events) != 2 || text(story.Events[1].Queue) != domain.DefaultQueue || text(story.Events[1].PartitionKey) != "order:9182" {
		t.Errorf("the story is %+v, error %v", story, err)
	}
}

// A renewal that comes after the worker's own settlement does not find the claim either. That
// is nothing unusual.
func TestEvents_RenewalOfWhatTheWorkerHasSettledIsNoLoss(t *testing.T) {
	t.Parallel()
	database := pgtest.New(t)
	queue := database.Queue(t)
	for _, outcome := range outcomes {
		id := enqueue(t, database, domain.MaxAttempts(1))
		job := claimOne(t, queue, "w1")
		outcome.Delay = time.Hour
		if answer := settle(t, queue, job, outcome); answer.Err != nil {
			t.Fatal(answer.Err)
		}
		before := countEvents(t, database)
		if held, err := queue.Renew(t.Context(), "w1", lease, []domain.Claim{job.Claim}); err != nil || len(held) != 0 {
			t.Fatalf("renewed %v, error %v", held, err)
		}
		if after := countEvents(t, database); after != before {
			t.Errorf("after a %s: %s", outcome.Verdict, storyOf(t, database, id))
		}
	}
}

// What a worker is told does not depend on the incident log.
func TestEvents_WorkerIsToldOfALostLeaseThoughItCannotBeNoted(t *testing.T) {
	t.Parallel()
	database := pgtest.New(t)
	queue := database.Queue(t)
	id := enqueue(t, database)
	job := claimOne(t, queue, "w1")
	database.ExpireLease(t, id)
	mustReclaim(t, queue, 1)
	database.Exec(t, "ALTER TABLE holdfast.events ADD CONSTRAINT nobody_notes CHECK (event <> 'lease_lost')")
	wantError(t, settle(t, queue, job, domain.Outcome{}).Err, domain.ErrLeaseLost)
	if held, err := queue.Renew(t.Context(), "w1", lease, []domain.Claim{job.Claim}); err != nil || len(held) != 0 {
		t.Errorf("renewed %v, error %v", held, err)
	}
}

func TestEvents_HappyPathLeavesNone(t *testing.T) {
	t.Parallel()
	const jobs = 100
	database := pgtest.New(t)
	enqueueNotes(t, database, jobs)
	run := startWorker(t, database, database.Pool, "w", quick(), holdfast.Handle(func(context.Context, holdfast.Job[note]) error { return nil }))
	untilCompleted(t, database, jobs)
	run.drain()
	if count := countEvents(t, database); count != 0 {
		t.Errorf("%d jobs that were completed left %d events: %v", jobs, count, pgtest.Values[string](t, database, "SELECT event || ' ' || coalesce(detail, '') FROM holdfast.events"))
	}
}

// A worker's renewal may cross its settlement, and is then looked into. Nothing else costs a
// round trip.
func TestEvents_NothingIsAskedOnTheHappyPath(t *testing.T) {
	t.Parallel()
	database := pgtest.New(t)
	queue := database.Queue(t)
	enqueueNotes(t, database, 20)
	jobs := claim(t, queue, "w1", 20)
	claims := make([]domain.Claim, len(jobs))
	for i, job := range jobs {
		claims[i] = job.Claim
	}
	if held, err := queue.Renew(t.Context(), "w1", lease, claims); err != nil || len(held) != len(jobs) {
		t.Fatalf("renewed %d, error %v", len(held), err)
	}
	for _, job := range jobs {
		mustSettle(t, queue, job, domain.Outcome{}, domain.StatusCompleted)
	}
	if asked := database.Executed("RecordLostLeases"); asked != 0 || countEvents(t, database) != 0 {
		t.Errorf("a note was asked for %d times", asked)
	}
}

func TestEvents_WorkerSaysWhyItGaveJobsBack(t *testing.T) {
	t.Parallel()
	database := pgtest.New(t)
	unknown, err := domain.Enqueue(t.Context(), database.Pool, domain.RawArgs{JobKind: "unheard of", Payload: []byte(`{}`)})
	if err != nil {
		t.Fatal(err)
	}
	id := enqueue(t, database)
	config := quick()
	config.DrainDeadline = time.Millisecond
	started := make(chan struct{})
	run := startWorker(t, database, database.Pool, "w", config, holdfast.Handle(func(ctx context.Context, _ holdfast.Job[note]) error {
		close(started)
		<-ctx.Done()
		return fmt.Errorf("gave up: %w", context.Cause(ctx))
	}))
	<-started
	pgtest.Eventually(t, patience, "the job of an unknown kind is given back", func() bool { return storyOf(t, database, unknown.ID) != "" })
	run.drain()
	wantStory(t, database, unknown.ID, "released 1 w-1: the worker has no handler for this kind")
	wantStory(t, database, id, "released 1 w-1: the drain deadline of the worker passed while the handler ran: gave up: the worker is stopping")
}

func TestEvents_JobsHeldToTheEndAreNoted(t *testing.T) {
	t.Parallel()
	database := pgtest.New(t)
	queue := database.Queue(t)
	id := enqueue(t, database)
	claimOne(t, queue, "w1")
	if err := queue.Leave(t.Context(), "w1"); err != nil {
		t.Fatal(err)
	}
	wantStory(t, database, id, "released 1 w1: the worker left while it held the job")
}

func TestEvents_EpochLeavesOne(t *testing.T) {
	t.Parallel()
	database := pgtest.New(t)
	database.Exec(t, "UPDATE holdfast.meta SET incarnation = '1/2/3'")
	enqueueNotes(t, database, 4)
	queues := [2]*domain.Queue{database.Queue(t), database.Queue(t)}
	atOnce(2, func(i int) { claim(t, queues[i], fmt.Sprint("w", i), 2) })
	page, err := domain.ListEvents(t.Context(), database.Pool, domain.EventFilter{Limit: 10})
	if err != nil || len(page.Events) != 1 {
		t.Fatalf("events %+v, error %v", page.Events, err)
	}
	if event := page.Events[0]; event.Kind != domain.EventEpochAdvanced || event.JobID != nil || !strings.HasPrefix(text(event.Detail), "to epoch ") {
		t.Errorf("the event is %+v", event)
	}
}

func TestEvents_AreKeptFor30Days(t *testing.T) {
	t.Parallel()
	database := pgtest.New(t)
	queue := database.Queue(t)
	database.Exec(t, `INSERT INTO holdfast.events (event, at, detail)
		SELECT 'retried', now() - interval '30 days' - interval '1 minute' * (1501 - i), 'old' FROM generate_series(1, 1500) AS i`)
	database.Exec(t, "INSERT INTO holdfast.events (event, at) SELECT 'retried', now() - interval '30 days' + interval '1 minute' * i FROM generate_series(1, 3) AS i")
	report, err := queue.KeepHouse(t.Context(), houseRules)
	if err != nil || report.EventsExpired != 1500 {
		t.Errorf("%d events were forgotten, want 1500; error %v", report.EventsExpired, err)
	}
	if left := pgtest.Value[int](t, database, "SELECT count(*) FROM holdfast.events WHERE detail IS NULL"); left != 3 || countEvents(t, database) != 3 {
		t.Errorf("%d young events are left, and %d in all", left, countEvents(t, database))
	}
}
