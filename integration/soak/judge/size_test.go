package judge

import (
	"fmt"
	"os"
	"runtime"
	"strconv"
	"testing"
	"time"

	"github.com/holdfast-pg/holdfast/integration/soak/history"
)

// What a judgement remembers of a plain job, with all that grows with the number of jobs.
const bytesPerJob = 400

// HOLDFAST_TEST_JUDGE_JOBS=200000 measures a run of that size.
func TestJudge_RemembersJobsNotRecords(t *testing.T) { // Not parallel: it measures memory.
	jobs := 5_000
	if text := os.Getenv("HOLDFAST_TEST_JUDGE_JOBS"); text != "" {
		var err error
		if jobs, err = strconv.Atoi(text); err != nil {
			t.Fatal(err)
		}
	}
	dir := writeLarge(t, jobs)
	runtime.GC()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	began := time.Now()
	j, err := read(t.Context(), dir, allRules)
	if err != nil {
		t.Fatal(err)
	}
	took := time.Since(began)
	runtime.GC()
	runtime.ReadMemStats(&after)
	each := (int(after.HeapAlloc) - int(before.HeapAlloc)) / jobs
	t.Logf("%d jobs, %d operations, %d changes: %s, %d bytes a job", jobs, j.counts.Operations, j.counts.Changes, took.Round(time.Millisecond), each)
	if each > bytesPerJob {
		t.Errorf("%d bytes a job, want %d at most", each, bytesPerJob)
	}
	if len(j.violations) > 0 {
		t.Errorf("violations: %v", j.violations)
	}
}

// writeLarge writes a run of jobs with ten records each, every tenth of which was reclaimed.
func writeLarge(t *testing.T, jobs int) (dir string) {
	t.Helper()
	s := newStory(t)
	dir = t.TempDir()
	files := map[string]*history.Writer{}
	for _, name := range []string{history.WALFile, history.SinkFile, history.FaultsFile, history.FinalFile, history.ClientFile("producer"), history.ClientFile("client")} {
		file, err := history.Create(dir, name)
		if err != nil {
			t.Fatal(err)
		}
		files[name] = file
	}
	for i := range jobs {
		s.ops, s.changes, s.lives = s.ops[:0], s.changes[:0], s.lives[:0]
		l := s.enqueue()
		worker := fmt.Sprintf("worker-%d", i%16)
		if i%10 == 0 {
			l.claim(worker).reclaim()
		}
		l.claim(worker).renew().execute("complete").settle("complete")
		for _, op := range s.ops {
			write(t, files[history.ClientFile(op.Process)], op)
		}
		for _, change := range s.changes {
			write(t, files[history.WALFile], change)
		}
		write(t, files[history.FinalFile], l.row)
	}
	for _, file := range files {
		if err := file.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if err := history.Finish(dir, s.run); err != nil {
		t.Fatal(err)
	}
	return dir
}

func write(t *testing.T, file *history.Writer, record any) {
	t.Helper()
	if err := file.Write(record); err != nil {
		t.Fatal(err)
	}
}
