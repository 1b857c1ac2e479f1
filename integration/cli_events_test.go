package integration

import (
	"encoding/json"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/holdfast-pg/holdfast/domain"
	"github.com/holdfast-pg/holdfast/integration/pgtest"
)

// someEvents makes a job with a story, at generations 1099511627777 and 1099511627778, and an
// event of an operator.
func someEvents(t *testing.T, database *pgtest.Database) domain.JobID {
	t.Helper()
	queue := database.Queue(t)
	id := enqueue(t, database, domain.Key("order:9182"), domain.MaxAttempts(2))
	late := claimOne(t, queue, "w1")
	database.ExpireLease(t, id)
	mustReclaim(t, queue, 1)
	wantError(t, settle(t, queue, late, domain.Outcome{}).Err, domain.ErrLeaseLost)
	database.EndWait(t, id)
	mustSettle(t, queue, claimOne(t, queue, "w2"), domain.Outcome{Verdict: domain.Retry, Error: "smtp 421\nthen\tnothing"}, domain.StatusDeadLetter)
	database.Exec(t, "INSERT INTO holdfast.events (event, queue, actor, detail) VALUES ('queue_paused', 'bulk', 'ann@desk', $1)", "too many: "+strings.Repeat("ä", 200))
	return id
}

var eventTime = regexp.MustCompile(`\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d\.\d+( UTC|Z)`)

// withoutTimes replaces what differs from one run to the next.
func withoutTimes(text string, id domain.JobID) string {
	return strings.ReplaceAll(eventTime.ReplaceAllString(text, "TIME"), id.String(), "JOB")
}

// cells puts one bar between the columns of a table, in place of what pads them.
func cells(table string) string {
	return regexp.MustCompile(`  +`).ReplaceAllString(regexp.MustCompile(` +\n`).ReplaceAllString(table, "\n"), " | ")
}

func runInUTC(t *testing.T, database *pgtest.Database, code int, args ...string) *process {
	t.Helper()
	p := newProcess(t, database.URL, args...)
	p.command.Env = append(p.command.Env, "TZ=UTC")
	return p.start(t).ends(t, code)
}

func TestCLI_JobsShowTellsTheStory(t *testing.T) {
	t.Parallel()
	database := pgtest.New(t)
	id := someEvents(t, database)
	table := withoutTimes(runInUTC(t, database, 0, "jobs", "show", id.String()).stdout.String(), id)
	want := `TIME | EVENT | GENERATION | ATTEMPT | WORKER | BY | DETAIL
TIME | reclaimed | 1099511627777 | 1 | w1 | - | -
TIME | lease_lost | 1099511627777 | 1 | w1 | - | its result was refused: complete
TIME | dead_lettered | 1099511627778 | 2 | w2 | - | smtp 421 then nothing
`
	if _, story, _ := strings.Cut(cells(table), "\n\n"); story != want {
		t.Errorf("printed:\n%s\nwant the story\n%s", table, want)
	}
	wantLine(t, &runInUTC(t, database, 0, "jobs", "show", id.String()).stdout, "status", "dead_letter")

	var document struct {
		ID     domain.JobID
		Gone   bool
		Status domain.Status
		Events []json.RawMessage
	}
	printed := runInUTC(t, database, 0, "jobs", "show", id.String(), "-o", "jsonl").stdout.String()
	if err := json.Unmarshal([]byte(printed), &document); err != nil || document.ID != id || document.Gone || document.Status != domain.StatusDeadLetter || len(document.Events) != 3 {
		t.Fatalf("%+v, error %v:\n%s", document, err, printed)
	}
	wantEvent := `{"id":2,"at":"TIME","event":"lease_lost","job_id":"JOB","generation":1099511627777,"attempt":1,"queue":"default","kind":"note","partition_key":"order:9182","worker_id":"w1","actor":null,"detail":"its result was refused: complete"}`
	if got := withoutTimes(string(document.Events[1]), id); got != wantEvent {
		t.Errorf("an event as JSON is\n%s\nwant\n%s", got, wantEvent)
	}
}

func TestCLI_JobsShowSaysThatNothingHappened(t *testing.T) {
	t.Parallel()
	database := pgtest.New(t)
	id := enqueueCLI(t, database, "tick")
	wantLine(t, &runCLI(t, database, 0, "jobs", "show", id.String()).stdout, "events", "none: nothing unusual happened to it in the last 30 days")
	if story := decoded[map[string]any](t, database, "jobs", "show", id.String()); story["gone"] != false || len(story["events"].([]any)) != 0 || story["id"] != id.String() {
		t.Errorf("%v", story)
	}
}

func TestCLI_JobsShowTellsTheStoryOfAJobThatIsGone(t *testing.T) {
	t.Parallel()
	database := pgtest.New(t)
	id := someEvents(t, database)
	database.Exec(t, "DELETE FROM holdfast.inbox")
	shown := runCLI(t, database, 0, "jobs", "show", id.String())
	for name, value := range map[string]string{
		"id": id.String(), "status": "gone: it was purged or dropped, or its retention has passed; its events are left",
		"queue": "default", "kind": "note", "key": "order:9182",
	} {
		wantLine(t, &shown.stdout, name, value)
	}
	wantOutput(t, &shown.stdout, "dead_lettered", "smtp 421")
	story := decoded[map[string]any](t, database, "jobs", "show", id.String())
	if _, there := story["status"]; there || story["gone"] != true || story["id"] != id.String() || len(story["events"].([]any)) != 3 {
		t.Errorf("%v", story)
	}

	database.Exec(t, "DELETE FROM holdfast.events")
	unknown := runCLI(t, database, 1, "jobs", "show", id.String())
	wantOutput(t, &unknown.stderr, "find job "+id.String()+": no such job", "searched: the inbox, the archive, and the events of 30 days")
}

func TestCLI_EventsListPrintsTheLatestFirst(t *testing.T) {
	t.Parallel()
	database := pgtest.New(t)
	id := someEvents(t, database)
	table := withoutTimes(runInUTC(t, database, 0, "events", "list").stdout.String(), id)
	want := `ID | TIME | EVENT | QUEUE | JOB | GENERATION | ATTEMPT | WORKER | BY | DETAIL
4 | TIME | queue_paused | bulk | - | - | - | - | ann@desk | too many: ` + strings.Repeat("ä", 150) + `…
3 | TIME | dead_lettered | default | JOB | 1099511627778 | 2 | w2 | - | smtp 421 then nothing
2 | TIME | lease_lost | default | JOB | 1099511627777 | 1 | w1 | - | its result was refused: complete
1 | TIME | reclaimed | default | JOB | 1099511627777 | 1 | w1 | - | -
`
	if cells(table) != want {
		t.Errorf("printed:\n%s\nwant\n%s", table, want)
	}
	lines := runInUTC(t, database, 0, "events", "list", "--limit", "2", "-o", "jsonl")
	wantOutput(t, &lines.stderr, "only the latest 2 events are listed: --before 3 goes on")
	_, second, _ := strings.Cut(strings.TrimSpace(lines.stdout.String()), "\n")
	wantEvent := `{"id":3,"at":"TIME","event":"dead_lettered","job_id":"JOB","generation":1099511627778,"attempt":2,"queue":"default","kind":"note","partition_key":"order:9182","worker_id":"w2","actor":null,"detail":"smtp 421\nthen\tnothing"}`
	if got := withoutTimes(second, id); got != wantEvent {
		t.Errorf("the second line is\n%s\nwant\n%s", got, wantEvent)
	}
}

func TestCLI_EventsListFilters(t *testing.T) {
	t.Parallel()
	database := pgtest.New(t)
	someEvents(t, database)
	database.Exec(t, "UPDATE holdfast.events SET at = now() - interval '3 hours' WHERE event = 'reclaimed'")
	for want, args := range map[string][]string{
		"3 2 1": {"--queue", "default"},
		"4":     {"--queue", "bulk"},
		"2":     {"--event", "lease_lost"},
		"4 3 2": {"--since", "2h"},
		"2 1":   {"--before", "3"},
		"":      {"--event", "purged"},
	} {
		listed := decoded[struct{ Items []domain.Event }](t, database, append([]string{"events", "list"}, args...)...)
		ids := make([]string, len(listed.Items))
		for i, event := range listed.Items {
			ids[i] = strconv.FormatInt(event.ID, 10)
		}
		if got := strings.Join(ids, " "); got != want {
			t.Errorf("%v lists %s, want %s", args, got, want)
		}
	}
}
