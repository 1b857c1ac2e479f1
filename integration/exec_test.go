package integration

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/holdfast-pg/holdfast/domain"
	"github.com/holdfast-pg/holdfast/integration/pgtest"
)

const (
	interrupt = syscall.SIGINT
	terminate = syscall.SIGTERM
)

// work starts a worker that runs the command.
func work(t *testing.T, database *pgtest.Database, command string, flags ...string) *process {
	t.Helper()
	return newProcess(t, database.URL, append([]string{"work", "--exec", command}, flags...)...).start(t)
}

// drains ends a worker in good order.
func drains(t *testing.T, worker *process) {
	t.Helper()
	worker.signal(t, terminate)
	worker.ends(t, 0)
}

// awaitJob waits until a job stands as it should.
func awaitJob(t *testing.T, database *pgtest.Database, id domain.JobID, what string, condition func(job domain.JobRecord) bool) domain.JobRecord {
	t.Helper()
	var job domain.JobRecord
	pgtest.Eventually(t, patience, "the job is "+what, func() bool {
		job = find(t, database, id)
		return condition(job)
	})
	return job
}

func awaitStatus(t *testing.T, database *pgtest.Database, id domain.JobID, want domain.Status) domain.JobRecord {
	t.Helper()
	return awaitJob(t, database, id, string(want), func(job domain.JobRecord) bool { return job.Status == want })
}

// wantNothingHeld checks that no job is claimed and no worker registered as alive.
func wantNothingHeld(t *testing.T, database *pgtest.Database) {
	t.Helper()
	if n := pgtest.Value[int](t, database, "SELECT count(*) FROM holdfast.inbox WHERE status = 'processing'"); n != 0 {
		t.Errorf("%d jobs are still held", n)
	}
	live, err := domain.LiveWorkers(t.Context(), database.Pool, domain.DefaultQueue, time.Minute, 10)
	if err != nil || len(live) != 0 {
		t.Errorf("workers that are alive: %v (%v)", live, err)
	}
}

func exists(file string) bool {
	_, err := os.Stat(file)
	return err == nil
}

func TestExec_WorkerRunsEveryJobToItsEnd(t *testing.T) {
	t.Parallel()
	database := pgtest.New(t)
	enqueueNotes(t, database, 20)
	// The id of each job with its payload, one line a job.
	worker := work(t, database, `echo "$HOLDFAST_JOB_ID $HOLDFAST_ATTEMPT of $HOLDFAST_MAX_ATTEMPTS $(cat)"`, "--log-format", "json")
	untilCompleted(t, database, 20)
	drains(t, worker)
	wantNothingHeld(t, database)
	lines := strings.Split(strings.TrimSpace(worker.stdout.String()), "\n")
	if len(lines) != 20 {
		t.Errorf("the program printed %d lines, want 20", len(lines))
	}
	for _, id := range pgtest.Values[string](t, database, "SELECT id::text FROM holdfast.inbox_archive") {
		wantOutput(t, &worker.stdout, id+` 1 of 5 {"text": "hello"}`)
	}
}

func TestExec_ExitCode65FailsTheJobWithTheEndOfStderr(t *testing.T) {
	t.Parallel()
	database := pgtest.New(t)
	id := enqueueCLI(t, database, "send_receipt")
	worker := work(t, database, `i=0; while [ $i -lt 2000 ]; do i=$((i+1)); echo "line $i" >&2; done; echo "no such order" >&2; exit 65`)
	job := awaitStatus(t, database, id, domain.StatusFailed)
	drains(t, worker)
	if job.Attempts != 1 || job.LastError == nil || !strings.HasPrefix(*job.LastError, "exit status 65: ") || !strings.HasSuffix(*job.LastError, "line 2000\nno such order") {
		t.Errorf("%d attempts, last error: %.40q…", job.Attempts, *job.LastError)
	}
	wantOutput(t, &worker.stderr, "line 1\n", "no such order")
	wantOutput(t, &runCLI(t, database, 0, "jobs", "show", id.String()).stdout, "failed", "no such order")
}

func TestExec_OtherExitCodesRetryTheJob(t *testing.T) {
	t.Parallel()
	database := pgtest.New(t)
	for _, code := range []string{"1", "75"} {
		id := enqueueCLI(t, database, "code"+code, "--max-attempts", "3")
		worker := work(t, database, "echo attempt $HOLDFAST_ATTEMPT >&2; exit "+code, "--kind", "code"+code)
		job := awaitJob(t, database, id, "waiting for its second attempt", func(job domain.JobRecord) bool {
			return job.Attempts == 1 && job.LastError != nil
		})
		drains(t, worker)
		if job.Status != domain.StatusPending || *job.LastError != "exit status "+code+": attempt 1" || !job.AvailableAt.After(job.CreatedAt) {
			t.Errorf("exit code %s: %+v", code, job)
		}
	}
}

func TestExec_JobWhoseAttemptsAreSpentIsDeadLettered(t *testing.T) {
	t.Parallel()
	database := pgtest.New(t)
	id := enqueueCLI(t, database, "tick", "--max-attempts", "1")
	worker := work(t, database, "exit 1")
	awaitStatus(t, database, id, domain.StatusDeadLetter)
	drains(t, worker)
}

func TestExec_KindsAndQueuesChooseTheJobs(t *testing.T) {
	t.Parallel()
	database := pgtest.New(t)
	a, b := enqueueCLI(t, database, "a", "--queue", "one"), enqueueCLI(t, database, "b", "--queue", "two")
	other := enqueueCLI(t, database, "c", "--queue", "one")
	elsewhere := enqueueCLI(t, database, "a", "--queue", "three")
	worker := work(t, database, "true", "--queue", "one", "--queue", "two", "--kind", "a", "--kind", "b", "--kind", "a", "--log-format", "json")
	awaitStatus(t, database, a, domain.StatusCompleted)
	awaitStatus(t, database, b, domain.StatusCompleted)
	worker.says(t, "no handler for this kind")
	drains(t, worker)
	for _, id := range []domain.JobID{other, elsewhere} {
		if job := find(t, database, id); job.Status != domain.StatusPending || job.Attempts != 0 {
			t.Errorf("a job of another kind or queue: %+v", job)
		}
	}
}

func TestExec_StoppingWorkerLetsProgramsFinish(t *testing.T) {
	t.Parallel()
	for name, signal := range map[string]syscall.Signal{"SIGTERM": terminate, "Ctrl-C": interrupt} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			database := pgtest.New(t)
			dir := t.TempDir()
			id := enqueueCLI(t, database, "tick")
			worker := work(t, database, "cd '"+dir+"'; : >begun; while [ ! -e go ]; do sleep 0.02; done")
			pgtest.Eventually(t, patience, "the program runs", func() bool { return exists(filepath.Join(dir, "begun")) })
			if signal == interrupt {
				// A terminal sends it to the whole group: the program must not get it.
				if err := syscall.Kill(-worker.command.Process.Pid, signal); err != nil {
					t.Fatal(err)
				}
			} else {
				worker.signal(t, signal)
			}
			worker.says(t, "worker draining")
			if err := os.WriteFile(filepath.Join(dir, "go"), nil, 0o600); err != nil {
				t.Fatal(err)
			}
			worker.ends(t, 0)
			if job := find(t, database, id); job.Status != domain.StatusCompleted || job.Attempts != 1 {
				t.Errorf("%+v", job)
			}
			wantNothingHeld(t, database)
		})
	}
}

func TestExec_DrainDeadlineStopsTheProgramAndGivesTheJobBack(t *testing.T) {
	t.Parallel()
	database := pgtest.New(t)
	file := filepath.Join(t.TempDir(), "begun")
	id := enqueueCLI(t, database, "tick")
	worker := work(t, database, "echo $$ >'"+file+"'; sleep 600; :", "--drain-deadline", "100ms")
	program := pidIn(t, file)
	worker.signal(t, terminate)
	worker.ends(t, 0)
	if syscall.Kill(program, 0) == nil {
		t.Error("the program runs on")
	}
	if job := find(t, database, id); job.Status != domain.StatusPending || job.Attempts != 0 {
		t.Errorf("want the job pending with its attempt given back: %+v", job)
	}
	wantNothingHeld(t, database)
}

func TestExec_SecondSignalGivesTheJobBackAtOnce(t *testing.T) {
	t.Parallel()
	database := pgtest.New(t)
	file := filepath.Join(t.TempDir(), "begun")
	id := enqueueCLI(t, database, "tick")
	worker := work(t, database, "exec sh -c 'echo $$ >"+file+"; exec sleep 600'")
	program := pidIn(t, file)
	worker.signal(t, interrupt)
	worker.says(t, "worker draining").signal(t, interrupt)
	worker.says(t, "stopping at once").ends(t, 0)
	if syscall.Kill(program, 0) == nil {
		t.Error("the program runs on")
	}
	if job := find(t, database, id); job.Status != domain.StatusPending || job.Attempts != 0 {
		t.Errorf("want the job pending with its attempt given back: %+v", job)
	}
	wantNothingHeld(t, database)
}

func pidIn(t *testing.T, file string) int {
	t.Helper()
	var pid int
	pgtest.Eventually(t, patience, "a process id stands in "+filepath.Base(file), func() bool {
		text, _ := os.ReadFile(file)
		pid, _ = strconv.Atoi(strings.TrimSpace(string(text)))
		return pid > 1
	})
	return pid
}
