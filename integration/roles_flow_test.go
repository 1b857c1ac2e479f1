package integration

import (
	"context"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/holdfast-pg/holdfast"
	"github.com/holdfast-pg/holdfast/app/doctor"
	"github.com/holdfast-pg/holdfast/db"
	"github.com/holdfast-pg/holdfast/domain"
	"github.com/holdfast-pg/holdfast/integration/pgtest"
)

func TestRoles_ProducerEnqueuesFromGoAndInSQL(t *testing.T) {
	t.Parallel()
	database := pgtest.New(t)
	pool := poolAs(t, database, rolesOf(t, database)+"_producer")
	first, err := domain.Enqueue(t.Context(), pool, note{}, domain.OnQueue("mail"), domain.Once("one"))
	if err != nil {
		t.Fatal(err)
	}
	set, err := domain.EnqueueMany(t.Context(), pool, domain.NewJob{Args: note{}}, domain.NewJob{Args: note{}, Options: []domain.EnqueueOption{domain.OnQueue("mail"), domain.Once("one")}})
	if err != nil || !set[1].Duplicate || set[1].ID != first.ID || set[1].State != domain.StatusPending {
		t.Errorf("%+v, %v", set, err)
	}
	if again, err := enqueueSQL(t.Context(), pool, "'note', queue => 'mail', idempotency_key => 'one'"); err != nil || !again.Duplicate || again.ID != first.ID {
		t.Errorf("%+v, %v", again, err)
	}
	if jobs := pgtest.Value[int](t, database, "SELECT count(*) FROM holdfast.inbox"); jobs != 2 {
		t.Errorf("%d jobs, want 2", jobs)
	}
}

// The real worker with the rights of its role alone: every way for a job to end, in every kind of
// queue, and all of housekeeping.
func TestRoles_WorkerWorksAndKeepsHouse(t *testing.T) {
	t.Parallel()
	database := pgtest.New(t)
	pool := poolAs(t, database, rolesOf(t, database)+"_worker")
	config := quick()
	config.Queues = []string{"default", "lanes", "kept", "dropped"}
	config.DirectURL = as(database, pool.Config().ConnConfig.RuntimeParams["role"])
	for name, change := range map[string]domain.QueueChange{
		"lanes":   {Ordered: new(true)},
		"kept":    {RetentionMode: new(domain.RetentionKeep), KeepFor: new(time.Duration(0))},
		"dropped": {RetentionMode: new(domain.RetentionDrop)},
	} {
		if _, err := domain.SetQueue(t.Context(), database.Pool, name, change); err != nil {
			t.Fatal(err)
		}
	}
	database.Exec(t, "INSERT INTO holdfast.workers (id, queues, last_seen_at) VALUES ('old', '{default}', now() - interval '9 days')")
	database.Exec(t, "INSERT INTO holdfast.fences (resource, token, touched_at) VALUES ('old', 1, now() - interval '99 days')")
	database.Exec(t, "INSERT INTO holdfast.handled (scope, key, job_id, handled_at) VALUES ('old', 'old', gen_random_uuid(), now() - interval '99 days')")
	database.Exec(t, "INSERT INTO holdfast.idempotency_keys (queue, key, job_id, expires_at) VALUES ('default', 'old', gen_random_uuid(), now() - interval '1 day')")
	database.Exec(t, "INSERT INTO holdfast.events (event, at) VALUES ('retried', now() - interval '99 days')")
	day := "holdfast.inbox_archive_" + time.Now().UTC().AddDate(0, 0, 14).Format("20060102")
	database.Exec(t, "DROP TABLE "+day)
	for _, queue := range config.Queues {
		enqueueNotes(t, database, 20, domain.OnQueue(queue), domain.Key("k"))
	}
	follow := enqueue(t, database, domain.Key("follow"))
	run := startWorker(t, database, pool, "w", config, holdfast.HandleTx(pool, func(ctx context.Context, tx pgx.Tx, job holdfast.Job[note]) error {
		if _, err := domain.MarkHandled(ctx, tx, job.ID, "effect"); err != nil {
			return err
		}
		if err := domain.Guard(ctx, tx, "resource:"+job.ID.String(), job.Claim); err != nil {
			return err
		}
		if job.ID == follow {
			_, err := domain.Enqueue(ctx, tx, note{}, domain.OnQueue("kept"))
			return err
		}
		if job.Seq%10 == 1 && job.Attempt == 1 {
			return holdfast.RetryIn(0, errFirstTime)
		}
		return nil
	}))
	pgtest.Eventually(t, patience, "everything is done and archived", func() bool {
		return pgtest.Value[int](t, database, "SELECT count(*) FROM holdfast.inbox") == 0
	})
	untilCompleted(t, database, 62)
	pgtest.Eventually(t, patience, "housekeeping has made the day and forgotten what is old", func() bool {
		return pgtest.Value[bool](t, database, `
			SELECT to_regclass($1) IS NOT NULL
				AND NOT EXISTS (SELECT FROM holdfast.workers WHERE id = 'old')
				AND NOT EXISTS (SELECT FROM holdfast.fences WHERE resource = 'old')
				AND NOT EXISTS (SELECT FROM holdfast.handled WHERE key = 'old')
				AND NOT EXISTS (SELECT FROM holdfast.idempotency_keys WHERE key = 'old')
				AND NOT EXISTS (SELECT FROM holdfast.events WHERE at < now() - interval '9 days')`, day)
	})
	run.drain()
	if log := run.log.String(); strings.Contains(log, "permission denied") {
		t.Errorf("the worker lacks something:\n%.2000s", log)
	}
}

func TestRoles_OperatorMends(t *testing.T) {
	t.Parallel()
	database := pgtest.New(t)
	queue := database.Queue(t)
	pool := poolAs(t, database, rolesOf(t, database)+"_operator")
	by := domain.By{Actor: "anna@ops-1"}
	join(t, queue, "w1")
	var ids []domain.JobID
	for range 4 {
		enqueue(t, database)
		job := claimOne(t, queue, "w1")
		mustSettle(t, queue, job, domain.Outcome{Verdict: domain.Fail, Error: "no"}, domain.StatusFailed)
		ids = append(ids, job.ID)
	}
	if done, err := by.Redrive(t.Context(), pool, 0, ids[:3]...); err != nil || len(done) != 3 {
		t.Errorf("redrive: %v, %v", done, err)
	}
	if done, err := by.Cancel(t.Context(), pool, ids[0]); err != nil || len(done) != 1 {
		t.Errorf("cancel: %v, %v", done, err)
	}
	if done, err := by.Purge(t.Context(), pool, ids[3]); err != nil || len(done) != 1 {
		t.Errorf("purge: %v, %v", done, err)
	}
	for name, err := range map[string]error{
		"pause":  by.PauseQueue(t.Context(), pool, "default"),
		"resume": by.ResumeQueue(t.Context(), pool, "default"),
		"drain":  by.Drain(t.Context(), pool, "w1"),
	} {
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := by.SetQueue(t.Context(), pool, "new", domain.QueueChange{MaxAttempts: new(7)}); err != nil {
		t.Error(err)
	}
	if _, _, err := by.Evict(t.Context(), pool, "w1"); err != nil {
		t.Error(err)
	}
	if job, err := domain.FindJob(t.Context(), pool, ids[1]); err != nil || len(job.Payload) == 0 {
		t.Errorf("%+v, %v", job, err)
	}
}

// as is the address of a database for a session with the rights of a role.
func as(database *pgtest.Database, role string) string {
	address, err := url.Parse(database.DirectURL)
	if err != nil {
		panic(err)
	}
	values := address.Query()
	values.Set("role", role)
	address.RawQuery = values.Encode()
	return address.String()
}

func TestRoles_ViewerLooks(t *testing.T) {
	t.Parallel()
	database := pgtest.New(t)
	role := rolesOf(t, database) + "_viewer"
	id := enqueue(t, database, domain.Key("order:7")).String()
	// What other commands read is in the table of statements.
	for _, line := range []string{"status", "jobs list", "jobs explain " + id, "ring show", "migrate status", "roles list"} {
		newProcess(t, as(database, role), strings.Fields(line)...).start(t).ends(t, 0)
	}
	for line, words := range map[string]string{
		"jobs show " + id:      `role "` + role + `" lacks SELECT on view jobs, which GetJob needs: the owner of the schema runs ` + "`holdfast roles grant worker|operator " + role + "`",
		"queues pause default": `role "` + role + `" lacks one of SELECT, UPDATE on table queues, which PauseQueue needs`,
	} {
		wantOutput(t, &newProcess(t, as(database, role), strings.Fields(line)...).start(t).ends(t, 1).stderr, words)
	}
	report, err := doctor.Examine(t.Context(), poolAs(t, database, role), doctor.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, finding := range report.Findings {
		if strings.Contains(finding.What, "cannot be checked") {
			t.Errorf("%+v", finding)
		}
	}
}

// A worker's role can ask all that doctor asks.
func TestRoles_WorkerExaminesEverything(t *testing.T) {
	t.Parallel()
	database := pgtest.New(t)
	report, err := doctor.Examine(t.Context(), poolAs(t, database, rolesOf(t, database)+"_worker"), doctor.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, check := range report.Checks {
		if check.Skipped != "" {
			t.Errorf("%s: %s", check.Check, check.Skipped)
		}
	}
	for _, finding := range report.Findings {
		if strings.Contains(finding.What, "cannot be checked") {
			t.Errorf("%+v", finding)
		}
	}
}

// The way back leaves roles that can be dropped.
func TestRoles_MigrationBackTakesTheGrantsAlong(t *testing.T) {
	t.Parallel()
	database := pgtest.New(t)
	prefix := rolesOf(t, database)
	for schemaVersion(t, database) >= 12 {
		if _, err := db.MigrateDown(t.Context(), database.Config(), false); err != nil {
			t.Fatal(err)
		}
	}
	database.Exec(t, "DROP ROLE "+prefix+"_worker")
	database.Exec(t, "CREATE ROLE "+prefix+"_worker") // For the end of the test.
}
