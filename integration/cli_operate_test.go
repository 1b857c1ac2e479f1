package integration

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/holdfast-pg/holdfast/domain"
	"github.com/holdfast-pg/holdfast/integration/pgtest"
)

var someID = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}`)

// wantText checks all that a process wrote to a stream, with ids and blanks made alike.
func wantText(t *testing.T, stream *output, want string) {
	t.Helper()
	lines := strings.Split(strings.TrimSpace(someID.ReplaceAllString(stream.String(), "ID")), "\n")
	for i, line := range lines {
		lines[i] = strings.Join(strings.Fields(line), " ")
	}
	if got := strings.Join(lines, "\n"); got != strings.TrimSpace(want) {
		t.Errorf("printed\n%s\nwant\n%s", got, strings.TrimSpace(want))
	}
}

// deadJobs enqueues jobs of a key and lets them fail.
func deadJobs(t *testing.T, database *pgtest.Database, queue *domain.Queue, jobs int, options ...domain.EnqueueOption) []string {
	t.Helper()
	var ids []string
	for range jobs {
		ids = append(ids, enqueue(t, database, append(options, domain.Key("order:7"))...).String())
		mustSettle(t, queue, claimOne(t, queue, "w1"), domain.Outcome{Verdict: domain.Fail, Error: "smtp 421"}, domain.StatusFailed)
	}
	return ids
}

func TestCLI_JobsCancelEndsOneJobWithoutAsking(t *testing.T) {
	t.Parallel()
	database := pgtest.New(t)
	id := enqueue(t, database)
	run := runCLI(t, database, 0, "jobs", "cancel", id.String(), "--actor", "anna@ops-1", "--reason", "the order is void")
	wantText(t, &run.stdout, "cancelled 1 of 1 job")
	wantText(t, &run.stderr, "")
	wantLine(t, &runCLI(t, database, 0, "jobs", "show", id.String()).stdout, "last error", "cancelled by anna@ops-1: the order is void")
	again := runCLI(t, database, 1, "jobs", "cancel", id.String())
	wantText(t, &again.stdout, "cancelled 0 of 1 job")
	wantText(t, &again.stderr, "not cancelled: ID: it is failed\nholdfast: 1 job of 1 not cancelled")
}

func TestCLI_JobsReleaseTakesAJobFromItsWorker(t *testing.T) {
	t.Parallel()
	database := pgtest.New(t)
	queue := database.Queue(t)
	running, waiting := enqueue(t, database), enqueue(t, database, domain.In(3600e9))
	job := claimOne(t, queue, "w1")
	run := runCLI(t, database, 1, "jobs", "release", running.String(), waiting.String(), "0193d3f0-7c2a-7e4b-9a51-6f1d3c2a01f4", "-o", "json")
	var result struct {
		Operation   string
		Asked, Done int
		Left        []struct{ ID, Why string }
	}
	if err := json.Unmarshal([]byte(run.stdout.String()), &result); err != nil {
		t.Fatal(err)
	}
	if result.Operation != "release" || result.Asked != 3 || result.Done != 1 || len(result.Left) != 2 || result.Left[0].Why != "it is pending" || !strings.HasPrefix(result.Left[1].Why, "no such job") {
		t.Errorf("%+v", result)
	}
	wantError(t, settle(t, queue, job, domain.Outcome{}).Err, domain.ErrLeaseLost)
	// It is not by chance that the actor is somebody.
	if got := orders(t, database); len(got) != 1 || !regexp.MustCompile(`^released default note \S+ attempt 1 with its token w1 by \S+@\S+$`).MatchString(got[0]) {
		t.Errorf("the events are %q", got)
	}
}

func TestCLI_JobsRedriveShowsManyJobsFirst(t *testing.T) {
	t.Parallel()
	database := pgtest.New(t)
	queue := database.Queue(t)
	ids := deadJobs(t, database, queue, 2)
	preview := `to redrive: 2 jobs
ID STATUS QUEUE KIND KEY
ID failed default note order:7
ID failed default note order:7
they are due at once with all their attempts; what an earlier attempt did may happen again`
	refused := runCLI(t, database, 2, append([]string{"jobs", "redrive"}, ids...)...)
	wantText(t, &refused.stderr, preview+"\nholdfast: redrive 2 jobs? Nobody can be asked here, where stdin is no terminal: add --yes to do it, or --dry-run to only look")
	wantText(t, &refused.stdout, "")
	wantText(t, &runCLI(t, database, 0, append([]string{"jobs", "redrive", "--dry-run"}, ids...)...).stderr, preview)
	run := runCLI(t, database, 0, append([]string{"jobs", "redrive", "--yes", "--max-attempts", "9"}, ids...)...)
	wantText(t, &run.stderr, preview)
	wantText(t, &run.stdout, "redriven 2 of 2 jobs")
	if nine := pgtest.Value[int](t, database, "SELECT count(*) FROM holdfast.inbox WHERE status = 'pending' AND max_attempts = 9"); nine != 2 {
		t.Errorf("%d jobs are pending with 9 attempts", nine)
	}
}

func TestCLI_JobsPurgeAlwaysAsks(t *testing.T) {
	t.Parallel()
	database := pgtest.New(t)
	id := deadJobs(t, database, database.Queue(t), 1)[0]
	refused := runCLI(t, database, 2, "jobs", "purge", id)
	wantOutput(t, &refused.stderr, "to purge: 1 job\n", "deleted for good", "idempotency keys are free again", "purge 1 job? Nobody can be asked here", "add --yes")
	run := runCLI(t, database, 0, "jobs", "purge", id, "--yes", "-o", "jsonl")
	wantText(t, &run.stdout, `{"operation":"purge","asked":1,"done":1,"left":[]}`)
	wantOutput(t, &runCLI(t, database, 0, "jobs", "show", id).stdout, "gone: it was purged", "purged")
}

func TestCLI_DeadRedriveTellsWhatItCanBreak(t *testing.T) {
	t.Parallel()
	database := pgtest.New(t)
	fillDead(t, database, "default", "note", 7, 2, true)
	fill(t, database, "default", true, "key:1", 3, 0)
	dry := runCLI(t, database, 0, "dead", "redrive", "--queue", "default", "--dry-run")
	wantText(t, &dry.stderr, `to redrive: 7 jobs
ID STATUS QUEUE KIND KEY
ID dead_letter default note key:1
ID dead_letter default note key:0
ID dead_letter default note key:1
ID dead_letter default note key:0
ID dead_letter default note key:1
…
they are due at once with all their attempts; what an earlier attempt did may happen again
7 jobs are of 2 ordered keys, behind which 3 jobs wait or run: each goes back to its place; the later jobs wait behind it, but those that have run already stay done`)
	wantText(t, &dry.stdout, "")
	var preview domain.Preview
	document := runCLI(t, database, 0, "dead", "redrive", "--all", "--dry-run", "-o", "json").stdout.String()
	if err := json.Unmarshal([]byte(document), &preview); err != nil || preview.Jobs != 7 || preview.Later != 3 || len(preview.Sample) != 5 || preview.Until == nil {
		t.Errorf("%v:\n%s", err, document)
	}
	run := runCLI(t, database, 0, "dead", "redrive", "--key", "key:1", "--error", "smtp", "--yes", "-o", "jsonl")
	wantText(t, &run.stdout, `{"operation":"redrive","done":4,"seen":4,"of":4}`)
	wantOutput(t, &run.stderr, `"msg":"redriven","done":4,"seen":4,"of":4`)
	again := runCLI(t, database, 0, "dead", "redrive", "--key", "key:1", "--yes")
	wantText(t, &again.stdout, "redriven 0 of 0 jobs")
	wantText(t, &again.stderr, "no failed or dead-lettered job fits")
	wantOutput(t, &runCLI(t, database, 1, "dead", "redrive", "--queue", "nowhere").stderr, `find queue "nowhere": no such queue`)
}

func TestCLI_DeadPurgeDeletesWhatIsOldEnough(t *testing.T) {
	t.Parallel()
	database := pgtest.New(t)
	fillDead(t, database, "default", "note", 9, 2, false)
	database.Exec(t, "UPDATE holdfast.inbox SET finished_at = finished_at - interval '30 days' WHERE partition_key = 'key:1'")
	wantOutput(t, &runCLI(t, database, 2, "dead", "purge", "--older-than", "7d").stderr, "to purge: 5 jobs\n", "add --yes")
	wantText(t, &runCLI(t, database, 0, "dead", "purge", "--older-than", "7d", "--yes").stdout, "purged 5 of 5 jobs")
	if left := pgtest.Value[int](t, database, "SELECT count(*) FROM holdfast.inbox"); left != 4 {
		t.Errorf("%d jobs are left", left)
	}
}

// A hundred thousand dead jobs, Ctrl-C in the middle, and the same command again.
func TestCLI_DeadRedriveIsInterruptedWithinABatchAndResumed(t *testing.T) {
	t.Parallel()
	const dead = 100_000
	database := pgtest.New(t)
	fillDead(t, database, "default", "note", dead, 1000, false)
	run := newProcess(t, database.URL, "dead", "redrive", "--all", "--yes", "--rate", "4000").start(t).says(t, `"done":1000,`)
	run.signal(t, syscall.SIGINT)
	run.ends(t, 130)
	redriven := wantRedrivenBySeq(t, database)
	wantText(t, &run.stdout, fmt.Sprintf("redriven %d of 100000 jobs", redriven))
	wantOutput(t, &run.stderr, "to redrive: more than 10000 jobs\n", "run the command again for the rest\nholdfast: interrupted\n")
	if redriven == 0 || redriven > dead/2 || redriven%domain.MaxWalkBatch != 0 {
		t.Errorf("%d jobs are redriven", redriven)
	}
	rest := runCLI(t, database, 0, "dead", "redrive", "--all", "--yes")
	wantText(t, &rest.stdout, fmt.Sprintf("redriven %d of %d jobs", dead-redriven, dead-redriven))
	if events := pgtest.Value[int](t, database, "SELECT count(DISTINCT job_id) FROM holdfast.events WHERE event = 'redriven'"); events != dead {
		t.Errorf("%d jobs have an event", events)
	}
	disorder := pgtest.Value[int](t, database, `
		SELECT count(*) FROM (
			SELECT seq < lag(seq) OVER (PARTITION BY partition_key ORDER BY available_at, seq) AS back FROM holdfast.inbox
		) AS claims WHERE back`)
	if disorder != 0 {
		t.Errorf("%d jobs would be claimed after a later one of their key", disorder)
	}
}

func TestCLI_WorkersEvictTakesEverythingFromAPausedWorker(t *testing.T) {
	t.Parallel()
	database := pgtest.New(t)
	// A program that does nothing for longer than anybody waits.
	worker := newProcess(t, database.URL, "work", "--exec", "sleep 600", "--heartbeat", "1s", "--drain-deadline", "1s").start(t)
	enqueue(t, database)
	pgtest.Eventually(t, patience, "the job runs", func() bool {
		return pgtest.Value[int](t, database, "SELECT count(*) FROM holdfast.inbox WHERE status = 'processing'") == 1
	})
	worker.signal(t, syscall.SIGSTOP)
	id := pgtest.Value[string](t, database, "SELECT id FROM holdfast.workers")
	refused := runCLI(t, database, 2, "workers", "evict", id)
	wantOutput(t, &refused.stderr, "to evict: "+id+", alive, of default, last seen ", "it holds 1 job: ", "evict "+id+"? Nobody can be asked here")
	wantText(t, &runCLI(t, database, 0, "workers", "evict", id, "--dry-run").stdout, "")
	wantText(t, &runCLI(t, database, 0, "workers", "evict", id, "--yes", "--actor", "anna").stdout, id+" is evicted: 1 job released")
	job := claimOne(t, database.Queue(t), "w2") // At once, though the lease of the other would still run.
	worker.signal(t, syscall.SIGCONT)
	worker.says(t, "rejoining under another id")
	if now := find(t, database, job.ID); now.Status != domain.StatusProcessing || *now.ClaimedBy != "w2" {
		t.Errorf("the job is %+v", now)
	}
	var done struct {
		Worker, Status       string
		Held, Released, Left int
	}
	document := runCLI(t, database, 0, "workers", "evict", id, "--yes", "-o", "json").stdout.String()
	if err := json.Unmarshal([]byte(document), &done); err != nil || done.Worker != id || done.Status != "dead" || done.Held != 0 || done.Released != 0 {
		t.Errorf("%v:\n%s", err, document)
	}
	wantOutput(t, &runCLI(t, database, 1, "workers", "evict", "nobody", "--yes").stderr, `no worker with the id "nobody" is known`)
}

func TestCLI_OrdersSayWhoAndWhy(t *testing.T) {
	t.Parallel()
	database := pgtest.New(t)
	join(t, database.Queue(t), "w1")
	for _, order := range [][]string{
		{"queues", "set", "mail", "--max-attempts", "9"},
		{"queues", "set", "mail", "--max-attempts", "3"},
		{"queues", "pause", "mail"},
		{"queues", "resume", "mail"},
		{"workers", "drain", "w1"},
	} {
		runCLI(t, database, 0, append(order, "--actor", "anna", "--reason", "the provider is slow")...)
	}
	want := `queue_changed mail by anna created: the provider is slow
queue_changed mail by anna max attempts 9 to 3: the provider is slow
queue_paused mail by anna the provider is slow
queue_resumed mail by anna the provider is slow
worker_drained w1 by anna the provider is slow`
	if got := strings.Join(orders(t, database), "\n"); got != want {
		t.Errorf("the events are\n%s\nwant\n%s", got, want)
	}
	wantOutput(t, &runCLI(t, database, 2, "queues", "pause", "mail", "--actor", "").stderr, "actor: is empty")
	wantOutput(t, &runCLI(t, database, 2, "queues", "pause", "mail", "--reason", strings.Repeat("x", 1001)).stderr, "reason: has 1001 characters, 1000 at most")
}
