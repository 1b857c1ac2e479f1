package integration

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/holdfast-pg/holdfast"
	"github.com/holdfast-pg/holdfast/domain"
	"github.com/holdfast-pg/holdfast/integration/pgtest"
)

func setQueue(t *testing.T, database *pgtest.Database, name string, change domain.QueueChange) domain.QueueSettings {
	t.Helper()
	settings, err := domain.SetQueue(t.Context(), database.Pool, name, change)
	if err != nil {
		t.Fatal(err)
	}
	if found, err := domain.FindQueue(t.Context(), database.Pool, name); err != nil || found != settings {
		t.Fatalf("SetQueue says %+v, FindQueue %+v, %v", settings, found, err)
	}
	return settings
}

// wantInvalid checks that a call was refused because of the field.
func wantInvalid(t *testing.T, err error, field, words string) {
	t.Helper()
	if invalid := new(domain.InvalidError); !errors.As(err, &invalid) || invalid.Field != field || !strings.Contains(invalid.Reason, words) {
		t.Errorf("error %v, want an InvalidError of %q that says %q", err, field, words)
	}
}

// Three places state the defaults: the table, which an enqueue and a joining worker use, the
// domain, which SetQueue uses, and the documentation of the domain.
func TestQueues_DefaultsAreTheSameHoweverAQueueComesToBe(t *testing.T) {
	t.Parallel()
	database := pgtest.New(t)
	enqueue(t, database, domain.OnQueue("enqueued"))
	for _, name := range []string{"enqueued", "set"} {
		if got := setQueue(t, database, name, domain.QueueChange{}); got != domain.DefaultQueueSettings(name) {
			t.Errorf("queue %s: %+v", name, got)
		}
	}
}

func TestQueues_ChangeTouchesWhatIsGiven(t *testing.T) {
	t.Parallel()
	database := pgtest.New(t)
	want := domain.DefaultQueueSettings("mail")
	for _, step := range []struct {
		change domain.QueueChange
		want   func()
	}{
		{domain.QueueChange{Ordered: new(true), Retention: new(30 * 24 * time.Hour)}, func() { want.Ordered, want.Retention = true, 30*24*time.Hour }},
		// More than the default retention: this queue's own counts.
		{domain.QueueChange{KeepFor: new(10 * 24 * time.Hour)}, func() { want.KeepFor = 10 * 24 * time.Hour }},
		{domain.QueueChange{MaxAttempts: new(3)}, func() { want.MaxAttempts = 3 }},
		{domain.QueueChange{RetentionMode: new(domain.RetentionDrop)}, func() { want.RetentionMode = domain.RetentionDrop }},
		{domain.QueueChange{DedupeWindow: new(90 * time.Second)}, func() { want.DedupeWindow = 90 * time.Second }},
		{domain.QueueChange{Ring: new(false)}, func() { want.Ring = false }},
		{domain.QueueChange{Ordered: new(false)}, func() { want.Ordered = false }},
		{domain.QueueChange{}, func() {}},
	} {
		step.want()
		if got := setQueue(t, database, "mail", step.change); got != want {
			t.Fatalf("queue is %+v, want %+v", got, want)
		}
	}
}

func TestQueues_RefusalsOfTheDatabaseComeInWords(t *testing.T) {
	t.Parallel()
	database := pgtest.New(t)
	_, err := domain.SetQueue(t.Context(), database.Pool, domain.DefaultQueue, domain.QueueChange{KeepFor: new(8 * 24 * time.Hour)})
	wantInvalid(t, err, "keep for", "must not be longer than the retention")
	_, err = domain.SetQueue(t.Context(), database.Pool, "mail", domain.QueueChange{Retention: new(time.Hour)})
	wantInvalid(t, err, "keep for", "24h0m0s is longer than the retention of 1h0m0s")
	_, err = domain.FindQueue(t.Context(), database.Pool, "mail")
	wantError(t, err, domain.ErrUnknownQueue)
	_, err = domain.SetQueue(t.Context(), pgtest.Empty(t).Pool, "mail", domain.QueueChange{})
	wantError(t, err, domain.ErrNotMigrated)
}

func TestQueues_OrderedIsFixedWhileTheQueueHasJobsThatMayRun(t *testing.T) {
	t.Parallel()
	database := pgtest.New(t)
	queue := database.Queue(t)
	setQueue(t, database, domain.DefaultQueue, domain.QueueChange{RetentionMode: new(domain.RetentionKeep)})
	before := setQueue(t, database, "another", domain.QueueChange{Ordered: new(true)})
	enqueue(t, database, domain.OnQueue("another"))
	refused := func(name, state string, ordered bool) {
		t.Helper()
		_, err := domain.SetQueue(t.Context(), database.Pool, name, domain.QueueChange{Ordered: &ordered, MaxAttempts: new(9)})
		if err == nil {
			t.Errorf("with a %s job the queue %s changed", state, name)
		}
		wantInvalid(t, err, "ordered", "drain the queue first, or use another one")
	}
	refused("another", "pending", false)
	if after, err := domain.FindQueue(t.Context(), database.Pool, "another"); err != nil || after != before {
		t.Errorf("the refused change left %+v, %v", after, err)
	}
	enqueue(t, database)
	refused(domain.DefaultQueue, "pending", true)
	mustSettle(t, queue, claimOne(t, queue, "w1"), domain.Outcome{Verdict: domain.Fail}, domain.StatusFailed)
	refused(domain.DefaultQueue, "failed", true)
	setQueue(t, database, domain.DefaultQueue, domain.QueueChange{Ordered: new(false), MaxAttempts: new(7)})
	database.Exec(t, "DELETE FROM holdfast.inbox WHERE queue = 'default'")
	enqueue(t, database)
	job := claimOne(t, queue, "w1")
	refused(domain.DefaultQueue, "claimed", true)
	mustSettle(t, queue, job, domain.Outcome{}, domain.StatusCompleted)
	wantStatus(t, database, job.ID, domain.StatusCompleted) // And still in the inbox.
	if !setQueue(t, database, domain.DefaultQueue, domain.QueueChange{Ordered: new(true)}).Ordered {
		t.Error("a queue whose jobs are completed did not become ordered")
	}
	if !find(t, database, enqueue(t, database)).Ordered {
		t.Error("the next job is not ordered")
	}
}

// The enqueue has read the queue and not committed when the change comes.
func TestQueues_JobThatIsBeingEnqueuedKeepsTheOldWayAndRuns(t *testing.T) {
	t.Parallel()
	database := pgtest.New(t)
	tx, err := database.Pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback(context.WithoutCancel(t.Context()))
	result, err := domain.Enqueue(t.Context(), tx, note{})
	if err != nil {
		t.Fatal(err)
	}
	setQueue(t, database, domain.DefaultQueue, domain.QueueChange{Ordered: new(true)})
	if err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	if find(t, database, result.ID).Ordered {
		t.Error("the job has the stamp of a time after its enqueue")
	}
	if job := claimOne(t, database.Queue(t), "w1"); job.ID != result.ID {
		t.Errorf("claimed %s", job.ID)
	}
}

// The first caller holds the queue's row when the second comes.
func TestQueues_SecondOfTwoCallersChangesWhatTheFirstLeft(t *testing.T) {
	t.Parallel()
	database := pgtest.New(t)
	setQueue(t, database, "mail", domain.QueueChange{})
	tx, err := database.Pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback(context.WithoutCancel(t.Context()))
	if _, err := domain.SetQueue(t.Context(), tx, "mail", domain.QueueChange{MaxAttempts: new(3), Retention: new(30 * 24 * time.Hour)}); err != nil {
		t.Fatal(err)
	}
	type answer struct {
		settings domain.QueueSettings
		err      error
	}
	second := make(chan answer, 1)
	go func() {
		settings, err := domain.SetQueue(t.Context(), database.Pool, "mail", domain.QueueChange{MaxAttempts: new(4), KeepFor: new(10 * 24 * time.Hour)})
		second <- answer{settings, err}
	}()
	pgtest.Eventually(t, patience, "the second caller waits", func() bool {
		return pgtest.Value[int](t, database, "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'") == 1
	})
	if err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	got := <-second
	want := domain.DefaultQueueSettings("mail")
	want.MaxAttempts, want.Retention, want.KeepFor = 4, 30*24*time.Hour, 10*24*time.Hour
	if got.err != nil || got.settings != want {
		t.Errorf("the second caller got %+v, %v; want %+v", got.settings, got.err, want)
	}
	setQueue(t, database, "mail", domain.QueueChange{})
}

func TestQueues_CallersWhoCreateOneAtOnceAllGetTheirChange(t *testing.T) {
	t.Parallel()
	const callers = 8
	database := pgtest.New(t)
	connections := openConnections(t, database, callers)
	failures := make([]error, callers)
	atOnce(callers, func(i int) {
		change := domain.QueueChange{MaxAttempts: new(i + 1)}
		settings, err := domain.SetQueue(t.Context(), connections[i], "mail", change)
		if err == nil && settings.MaxAttempts != i+1 {
			err = fmt.Errorf("caller %d got %+v", i, settings)
		}
		failures[i] = err
	})
	if err := errors.Join(failures...); err != nil {
		t.Fatal(err)
	}
}

func TestQueues_CreationThatThisSnapshotCannotSeeIsNamed(t *testing.T) {
	t.Parallel()
	database := pgtest.New(t)
	tx, err := database.Pool.BeginTx(t.Context(), pgx.TxOptions{IsoLevel: pgx.RepeatableRead})
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback(context.WithoutCancel(t.Context()))
	if _, err := domain.FindQueue(t.Context(), tx, domain.DefaultQueue); err != nil {
		t.Fatal(err)
	}
	setQueue(t, database, "mail", domain.QueueChange{})
	_, err = domain.SetQueue(t.Context(), tx, "mail", domain.QueueChange{})
	var database40001 interface{ SQLState() string }
	if !errors.Is(err, domain.ErrUnknownQueue) && (!errors.As(err, &database40001) || database40001.SQLState() != "40001") {
		t.Errorf("error %v", err)
	}
}

func TestQueues_AreListedByNameWithABound(t *testing.T) {
	t.Parallel()
	database := pgtest.New(t)
	for _, name := range []string{"mail", "Invoices", "a"} {
		setQueue(t, database, name, domain.QueueChange{})
	}
	for limit, want := range map[int]string{2: "Invoices a", 9: "Invoices a default mail"} {
		queues, err := domain.ListQueues(t.Context(), database.Pool, limit)
		var names []string
		for _, queue := range queues {
			names = append(names, queue.Name)
		}
		if err != nil || strings.Join(names, " ") != want {
			t.Errorf("%d at most: %v, %v", limit, names, err)
		}
	}
}

func TestQueues_PausingAnUnknownOneIsAnError(t *testing.T) {
	t.Parallel()
	database := pgtest.New(t)
	wantError(t, domain.PauseQueue(t.Context(), database.Pool, "nowhere"), domain.ErrUnknownQueue)
	wantError(t, domain.ResumeQueue(t.Context(), database.Pool, "nowhere"), domain.ErrUnknownQueue)
	if queues := pgtest.Value[int](t, database, "SELECT count(*) FROM holdfast.queues"); queues != 1 {
		t.Errorf("there are %d queues", queues)
	}
}

// A claim that began before the pause may still end; one that begins after it gets nothing.
// That claims go on is seen in the statement's count, so that nobody has to wait for nothing.
func TestQueues_PauseStopsTheClaimsOfARunningWorkerAndResumeStartsThem(t *testing.T) {
	t.Parallel()
	database := pgtest.New(t)
	var ran runs
	startWorker(t, database, database.Pool, "w", quick(), holdfast.Handle(func(_ context.Context, job holdfast.Job[note]) error {
		ran.add(job.ID)
		return nil
	}))
	enqueueNotes(t, database, 20)
	untilCompleted(t, database, 20)
	for range 2 {
		wantError(t, domain.PauseQueue(t.Context(), database.Pool, domain.DefaultQueue), nil)
	}
	enqueueNotes(t, database, 20)
	claims := database.Executed("ClaimJobs")
	pgtest.Eventually(t, patience, "the worker has tried to claim five times", func() bool {
		return database.Executed("ClaimJobs") >= claims+5
	})
	if pending := pgtest.Value[int](t, database, "SELECT count(*) FROM holdfast.inbox WHERE status = 'pending' AND attempts = 0"); pending != 20 {
		t.Errorf("of 20 jobs of the paused queue %d were never claimed", pending)
	}
	for range 2 {
		wantError(t, domain.ResumeQueue(t.Context(), database.Pool, domain.DefaultQueue), nil)
	}
	untilCompleted(t, database, 40)
	ran.wantEvery(t, 40, 1)
}

// The same worker runs on through every change.
func TestQueues_ChangesReachARunningWorker(t *testing.T) {
	t.Parallel()
	database := pgtest.New(t)
	startWorker(t, database, database.Pool, "w", quick(), holdfast.Handle(func(context.Context, holdfast.Job[note]) error { return nil }))
	left := func(id domain.JobID) string {
		job, err := domain.FindJob(t.Context(), database.Pool, id)
		switch {
		case errors.Is(err, domain.ErrNotFound):
			return "nowhere"
		case err != nil || job.Status != domain.StatusCompleted:
			return ""
		case job.Archived:
			return "archived"
		}
		return "in the inbox"
	}
	for _, step := range []struct {
		mode domain.RetentionMode
		want string
	}{{domain.RetentionKeep, "in the inbox"}, {domain.RetentionDrop, "nowhere"}, {domain.RetentionArchive, "archived"}} {
		setQueue(t, database, domain.DefaultQueue, domain.QueueChange{RetentionMode: &step.mode})
		id := enqueue(t, database)
		pgtest.Eventually(t, patience, "the job is "+step.want, func() bool { return left(id) == step.want })
	}
	setQueue(t, database, domain.DefaultQueue, domain.QueueChange{KeepFor: new(time.Duration(0))})
	pgtest.Eventually(t, patience, "housekeeping archives what was kept", func() bool {
		return pgtest.Value[int](t, database, "SELECT count(*) FROM holdfast.inbox") == 0
	})
}
