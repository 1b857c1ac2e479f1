package integration

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-pg/holdfast/app/support"
	"github.com/holdfast-pg/holdfast/domain"
	"github.com/holdfast-pg/holdfast/integration/pgtest"
)

func TestCLI_JobsExplainPrintsTheChainOfReasons(t *testing.T) {
	t.Parallel()
	database := pgtest.New(t)
	if _, err := domain.SetQueue(t.Context(), database.Pool, "mail", domain.QueueChange{Ordered: new(true)}); err != nil {
		t.Fatal(err)
	}
	var jobs []domain.JobID
	for _, in := range []time.Duration{2 * time.Hour, time.Hour} {
		jobs = append(jobs, enqueue(t, database, domain.OnQueue("mail"), domain.Key("order:7"), domain.In(in)))
	}
	wantError(t, domain.PauseQueue(t.Context(), database.Pool, "mail"), nil)
	table := runCLI(t, database, 0, "jobs", "explain", jobs[1].String()).stdout.String()
	want := `job        SECOND
state      pending
queue      mail
kind       note
key        order:7
bucket     58
why        queue mail is paused: nothing is claimed from it
do         holdfast queues resume mail
why        it is scheduled for TIME, in SPAN
do         nothing: it is claimed when it is due
why        no live worker serves queue mail
do         start a worker of queue mail; holdfast workers list --all prints those that were there
why        it is behind 1 job of key order:7, which run in order; the first is FIRST
  because  it is scheduled for TIME, in SPAN
  do       nothing: it is claimed when it is due
do         see to that job: holdfast jobs explain FIRST
`
	if got := masked(table, jobs[0], "FIRST", jobs[1], "SECOND"); got != want {
		t.Errorf("printed:\n%s\nwant:\n%s", got, want)
	}
	if found := decoded[support.Explanation](t, database, "jobs", "explain", jobs[1].String()); found.Job != jobs[1] || found.State != domain.StatusPending || len(found.Reasons) != 4 {
		t.Errorf("%+v", found)
	}
	line := runCLI(t, database, 0, "jobs", "explain", jobs[0].String(), "-o", "jsonl").stdout.String()
	wantLine := `{"job":"FIRST","state":"pending","queue":"mail","kind":"note","key":"order:7","bucket":58,"reasons":[` +
		`{"code":"queue_paused","text":"queue mail is paused: nothing is claimed from it","do":"holdfast queues resume mail"},` +
		`{"code":"scheduled","text":"it is scheduled for TIME, in SPAN","do":"nothing: it is claimed when it is due"},` +
		`{"code":"no_worker","text":"no live worker serves queue mail","do":"start a worker of queue mail; holdfast workers list --all prints those that were there"}]}` + "\n"
	if got := masked(line, jobs[0], "FIRST"); got != wantLine || !json.Valid([]byte(line)) {
		t.Errorf("printed:\n%s\nwant:\n%s", got, wantLine)
	}
}

var (
	moments = regexp.MustCompile(`20\d\d-\d\d-\d\d \d\d:\d\d:\d\d(\.\d+)? [A-Z]+`)
	spans   = regexp.MustCompile(`\b(\d+d)?(\d+h)?(\d+m)?\d+(\.\d+)?(h|ms|s)\b`)
)

// masked replaces what differs from run to run: moments, durations, and the ids given, each
// with the name that follows it.
func masked(text string, names ...any) string {
	text = spans.ReplaceAllString(moments.ReplaceAllString(text, "TIME"), "SPAN")
	for pair := range slices.Chunk(names, 2) {
		text = strings.ReplaceAll(text, fmt.Sprint(pair[0]), fmt.Sprint(pair[1]))
	}
	return text
}

func TestCLI_JobsExplainTellsUnknownFromMalformed(t *testing.T) {
	t.Parallel()
	database := pgtest.New(t)
	unknown := runCLI(t, database, 1, "jobs", "explain", "0193d3f0-7c2a-7e4b-9a51-6f1d3c2a01f4")
	wantOutput(t, &unknown.stderr, "find job 0193d3f0-7c2a-7e4b-9a51-6f1d3c2a01f4 in the inbox and in the archive: no such job")
	malformed := runCLI(t, database, 2, "jobs", "explain", "9182")
	wantOutput(t, &malformed.stderr, `job id: "9182" is not a UUID`)
}
