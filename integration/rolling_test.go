package integration

import (
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-pg/holdfast/domain"
	"github.com/holdfast-pg/holdfast/integration/pgtest"
)

// rollingTimings are short enough that a lease which is not renewed while its worker drains
// ends before its program does, and is reclaimed at once.
var rollingTimings = []string{"--lease", "4s", "--heartbeat", "500ms", "--housekeeping", "300ms", "--log-format", "text"}

// rollingProgram is a job that takes as many seconds as its payload says. It notes when it
// begins, in a file for each worker, and when it has ended.
const rollingProgram = `echo "$HOLDFAST_JOB_ID" >>'%[1]s/begun.'"$HOLDFAST_WORKER_ID"; sleep "$(cat)"; echo "$HOLDFAST_JOB_ID" >>'%[1]s/ended'`

// Three workers are each replaced three times while jobs come in.
func TestLeavesNothingBehind_RollingRestartLosesNoLease(t *testing.T) {
	t.Parallel()
	database := pgtest.New(t)
	dir := t.TempDir()
	command := fmt.Sprintf(rollingProgram, dir)
	start := func() *process { return work(t, database, command, rollingTimings...) }

	workers := []*process{start(), start(), start()}
	retired := make([]*process, 0, 12)
	// Somewhat more than three workers of eight slots can do.
	producing := startProducer(t, database, 125*time.Millisecond, func(n int) domain.Args {
		return domain.RawArgs{JobKind: "sleep", Payload: []byte(strconv.Itoa(2 + n%4))}
	})
	for turn := range 9 {
		awaitBusy(t, dir, turn+3)
		place := turn % 3
		workers[place].signal(t, terminate)
		retired = append(retired, workers[place])
		workers[place] = start()
	}
	enqueued := len(producing.stop())
	untilCompleted(t, database, enqueued)
	retired = append(retired, workers...)
	for _, worker := range retired[9:] {
		worker.signal(t, terminate)
	}
	for _, worker := range retired {
		worker.ends(t, 0)
		wantNoLeaseLost(t, worker)
	}
	wantNothingHeld(t, database)
	if again := pgtest.Value[int](t, database, "SELECT count(*) FROM holdfast.inbox_archive WHERE attempts <> 1"); again != 0 {
		t.Errorf("%d of %d jobs were claimed again", again, enqueued)
	}
	begun, _ := filepath.Glob(filepath.Join(dir, "begun.*"))
	wantOnceEach(t, "begun", enqueued, begun...)
	wantOnceEach(t, "ended", enqueued, filepath.Join(dir, "ended"))
}

// awaitBusy waits until so many workers, those that are gone among them, have begun four jobs.
func awaitBusy(t *testing.T, dir string, want int) {
	t.Helper()
	pgtest.Eventually(t, patience, fmt.Sprintf("%d workers have begun four jobs", want), func() bool {
		busy := 0
		begun, _ := filepath.Glob(filepath.Join(dir, "begun.*"))
		for _, file := range begun {
			if strings.Count(read(t, file), "\n") >= 4 {
				busy++
			}
		}
		return busy >= want
	})
}

// wantNoLeaseLost checks that a worker neither lost a lease nor reclaimed another's.
func wantNoLeaseLost(t *testing.T, worker *process) {
	t.Helper()
	for _, words := range []string{"lease lost", "lease ended", "the result was refused", "given back", "level=ERROR"} {
		if strings.Contains(worker.stderr.String(), words) {
			t.Errorf("a worker says %q:\n%s", words, worker.stderr.String())
		}
	}
}

// wantOnceEach checks that files hold so many lines together, and none twice.
func wantOnceEach(t *testing.T, what string, want int, files ...string) {
	t.Helper()
	times := map[string]int{}
	for _, file := range files {
		for line := range strings.Lines(read(t, file)) {
			times[line]++
		}
	}
	if len(times) != want {
		t.Errorf("%d jobs have %s, want %d", len(times), what, want)
	}
	for id, n := range times {
		if n != 1 {
			t.Errorf("job %s has %s %d times", strings.TrimSpace(id), what, n)
		}
	}
}
