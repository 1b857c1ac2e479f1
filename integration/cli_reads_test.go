package integration

import (
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-pg/holdfast/domain"
	"github.com/holdfast-pg/holdfast/integration/pgtest"
)

// golden is output with ids, times and cursors replaced, and one space between words.
func golden(stream *output) string {
	text := stream.String()
	for _, each := range []struct{ pattern, word string }{
		{`[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}`, "ID"},
		{`\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3} \w+`, "TIME"},
		{`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.?\d*[Z+-][\d:]*`, "TIME"},
		{`--after \S+`, "--after CURSOR"},
		{`"next": "\w[^"]+"`, `"next": "CURSOR"`},
		{`(_seconds": -?)[\d.e+-]+`, "${1}N"},
		{`( )(\d+h)?(\d+m)?\d+s ago\b`, "${1}AGE ago"},
		{`\b(\d+d\d\dh|\d+h\d\dm|\d+m\d\ds|\d+\.\ds|\d+ms)\b`, "AGE"},
		{`\b0\.\d\d\b`, "RATE"},
		{` +`, " "},
		{`(?m) +$`, ""},
		{`(?m) (RATE|0) (RATE|0)$`, " IN OUT"},
	} {
		text = regexp.MustCompile(each.pattern).ReplaceAllString(text, each.word)
	}
	return text
}

// wantGolden compares output, without ids and times, with lines.
func wantGolden(t *testing.T, stream *output, lines ...string) {
	t.Helper()
	if got, want := golden(stream), strings.Join(lines, "\n")+"\n"; got != want {
		t.Errorf("printed:\n%swant:\n%s", got, want)
	}
}

// everyState makes a job in each state, named after it: a due one, one for later, one that is
// retried, one claimed, one past its lease, one failed, one dead-lettered, one archived.
func everyState(t *testing.T) *pgtest.Database {
	t.Helper()
	database := pgtest.New(t)
	queue := database.Queue(t)
	for _, job := range []struct {
		key     string
		outcome domain.Outcome
		status  domain.Status
	}{
		{"retrying", domain.Outcome{Verdict: domain.Retry, Delay: time.Hour, Error: "smtp 421"}, domain.StatusPending},
		{"failed", domain.Outcome{Verdict: domain.Fail, Error: `no such address "a@example.org"`}, domain.StatusFailed},
		{"dead", domain.Outcome{Verdict: domain.Retry, Error: "dial tcp 10.0.0.7:25: connection refused\nand more"}, domain.StatusDeadLetter},
		{"completed", domain.Outcome{}, domain.StatusCompleted},
	} {
		attempts := 5
		if job.status == domain.StatusDeadLetter {
			attempts = 1
		}
		enqueue(t, database, domain.Key(job.key), domain.MaxAttempts(attempts), domain.Once("once "+job.key))
		mustSettle(t, queue, claimOne(t, queue, "w1"), job.outcome, job.status)
	}
	enqueue(t, database, domain.Key("expired"))
	database.ExpireLease(t, claimOne(t, queue, "w1").ID)
	enqueue(t, database, domain.Key("processing"))
	claimOne(t, queue, "w2")
	enqueue(t, database, domain.Key("ready"))
	// Ids of one millisecond have no order, and lists go by them.
	database.Exec(t, `DO $$ DECLARE began timestamptz := clock_timestamp(); BEGIN
		WHILE clock_timestamp() < began + interval '2 milliseconds' LOOP NULL; END LOOP; END $$`)
	enqueue(t, database, domain.Key("scheduled"), domain.In(time.Hour))
	return database
}

func TestCLI_QueuesListSaysWhatWaitsRunsAndDied(t *testing.T) {
	t.Parallel()
	database := everyState(t)
	runCLI(t, database, 0, "queues", "set", "mail", "--ordered")
	runCLI(t, database, 0, "queues", "pause", "mail")
	listed := runCLI(t, database, 0, "queues", "list")
	wantGolden(t, &listed.stdout,
		"NAME OLDEST READY SCHEDULED RETRYING PROCESSING PAST LEASE DEAD IN/S OUT/S",
		"default AGE 1 1 1 2 1 2 IN OUT",
		"mail paused ordered - 0 0 0 0 0 0 IN OUT",
	)
	if listed.stderr.String() != "" {
		t.Errorf("stderr: %s", listed.stderr.String())
	}
	items := decoded[struct {
		Items []struct {
			Name    string
			Paused  bool
			KeepFor string `json:"keep_for"`
			Load    domain.QueueLoad
		}
	}](t, database, "queues", "list").Items
	if len(items) != 2 || items[0].Load.Ready != (domain.Count{Jobs: 1}) || items[0].Load.OldestAgeSeconds == nil || items[0].Load.Arrivals.Completed != 1 ||
		items[1].Name != "mail" || !items[1].Paused || items[1].KeepFor != "1d" || items[1].Load.OldestAgeSeconds != nil {
		t.Errorf("%+v", items)
	}
}

func TestCLI_QueuesShowPrintsCountsAndSettings(t *testing.T) {
	t.Parallel()
	database := everyState(t)
	wantGolden(t, &runCLI(t, database, 0, "queues", "show", "default").stdout,
		"queue default", "oldest due AGE", "ready 1", "scheduled 1", "retrying 1", "processing 2", "past their lease 1", "failed 1",
		"dead-lettered 1", "completed, kept 0", "came in RATE/s: 8 within AGE, 1 of them completed", "were completed RATE/s: 1 within AGE", "paused no", "ordered no",
		"max attempts 5", "retention mode archive", "keep for 1d", "retention 7d", "dedupe window 7d", "ring yes",
	)
	wantOutput(t, &runCLI(t, database, 1, "queues", "show", "nowhere").stderr, `find queue "nowhere": no such queue`)
}

func TestCLI_JobsListFindsTheJobsOfEachState(t *testing.T) {
	t.Parallel()
	database := everyState(t)
	for state, row := range map[string]string{
		"ready":       "ID ready AGE note ready 0 of 5 -",
		"scheduled":   "ID scheduled in AGE note scheduled 0 of 5 -",
		"retrying":    "ID retrying in AGE note retrying 1 of 5 - smtp 421",
		"failed":      `ID failed AGE note failed 1 of 5 - no such address "a@example.org"`,
		"dead_letter": "ID dead_letter AGE note dead 1 of 1 - dial tcp 10.0.0.7:25: connection refused and more",
		"completed":   "ID completed AGE note completed 1 of 5 -",
	} {
		listed := runCLI(t, database, 0, "jobs", "list", "--state", state)
		wantGolden(t, &listed.stdout, "ID STATE SINCE KIND KEY ATTEMPTS HELD BY LAST ERROR", row)
		if listed.stderr.String() != "" {
			t.Errorf("stderr: %s", listed.stderr.String())
		}
	}
	wantGolden(t, &runCLI(t, database, 0, "jobs", "list", "--state", "processing", "-o", "table").stdout,
		"ID STATE SINCE KIND KEY ATTEMPTS HELD BY LAST ERROR",
		"ID processing, past its lease AGE note expired 1 of 5 w1",
		"ID processing AGE note processing 1 of 5 w2",
	)
	empty := runCLI(t, database, 0, "jobs", "list", "--kind", "other")
	wantGolden(t, &empty.stdout, "ID STATE SINCE KIND KEY ATTEMPTS HELD BY LAST ERROR")
	wantGolden(t, &empty.stderr, "no job found")
	wantOutput(t, &runCLI(t, database, 1, "jobs", "list", "--queue", "nowhere").stderr, `find queue "nowhere": no such queue`)
	wantOutput(t, &runCLI(t, database, 2, "jobs", "list", "--state", "lost").stderr, `state: "lost" is none of [ready scheduled`)
	wantOutput(t, &runCLI(t, database, 2, "jobs", "list", "--after", "nowhere").stderr, `after: "nowhere" is not where a page of this list ended`)
}

func TestCLI_JobsListGoesOnAtItsCursor(t *testing.T) {
	t.Parallel()
	database := everyState(t)
	var keys []string
	args := []string{"jobs", "list", "--limit", "3"}
	for range 4 {
		page := decoded[domain.JobPage](t, database, args...)
		for _, job := range page.Items {
			keys = append(keys, job.PartitionKey)
		}
		if page.Next == "" {
			break
		}
		args = append([]string{"jobs", "list", "--limit", "3"}, "--after", page.Next)
	}
	if got := strings.Join(keys, " "); got != "scheduled ready processing expired dead failed retrying" {
		t.Errorf("listed %s", got)
	}
	wantGolden(t, &runCLI(t, database, 0, "jobs", "list", "--limit", "1").stderr, "there is more: --after CURSOR")
}

func TestCLI_DeadGroupsAndList(t *testing.T) {
	t.Parallel()
	database := everyState(t)
	groups := runCLI(t, database, 0, "dead", "groups")
	wantGolden(t, &groups.stdout,
		"KIND ERROR JOBS FIRST LAST WHAT THEY SAY",
		"note cb4c8db6 1 TIME TIME dial tcp ?: connection refused",
		"note 1a1fad66 1 TIME TIME no such address ?",
	)
	wantGolden(t, &runCLI(t, database, 0, "dead", "groups", "--by", "key").stdout,
		"KEY JOBS FIRST LAST LAST ERROR",
		"dead 1 TIME TIME dial tcp 10.0.0.7:25: connection refused and more",
		`failed 1 TIME TIME no such address "a@example.org"`,
	)
	printed := decoded[domain.DeadGroups[domain.ErrorGroup]](t, database, "dead", "groups")
	if printed.Queue != "default" || printed.Looked != 2 || printed.More || printed.Items[0].LastError != "dial tcp 10.0.0.7:25: connection refused\nand more" {
		t.Errorf("%+v", printed)
	}
	wantGolden(t, &runCLI(t, database, 0, "dead", "list", "--error", printed.Items[1].Fingerprint).stdout,
		"ID STATE SINCE KIND KEY ATTEMPTS ERROR LAST ERROR",
		`ID failed AGE note failed 1 of 5 `+printed.Items[1].Fingerprint+` no such address "a@example.org"`,
	)
	if page := decoded[domain.JobPage](t, database, "dead", "list", "--key", "dead"); len(page.Items) != 1 || page.Items[0].State != domain.StateDeadLetter {
		t.Errorf("%+v", page)
	}
	runCLI(t, database, 0, "queues", "set", "mail")
	wantGolden(t, &runCLI(t, database, 0, "dead", "groups", "--queue", "mail").stderr, "no job of queue mail is dead")
	wantOutput(t, &runCLI(t, database, 1, "dead", "groups", "--queue", "nowhere").stderr, `find queue "nowhere": no such queue`)
}

func TestCLI_LeasesListShowsWhatIsInFlight(t *testing.T) {
	t.Parallel()
	database := everyState(t)
	wantGolden(t, &runCLI(t, database, 0, "leases", "list").stdout,
		"ID QUEUE KIND KEY HELD BY FOR LEASE",
		"ID default note expired w1 AGE ended AGE ago",
		"ID default note processing w2 AGE AGE left",
	)
	expired := runCLI(t, database, 0, "leases", "list", "--expired", "--queue", "default", "-o", "jsonl")
	if lines := strings.Split(strings.TrimSpace(expired.stdout.String()), "\n"); len(lines) != 1 || !strings.Contains(lines[0], `"partition_key":"expired"`) {
		t.Errorf("printed:\n%s", expired.stdout.String())
	}
}

func TestCLI_KeysShowPrintsTheJobsOfAKeyInTheirOrder(t *testing.T) {
	t.Parallel()
	database, queue := newOrdered(t)
	for range 3 {
		enqueueIn(t, database, "order:7")
	}
	jobs, err := domain.FindKey(t.Context(), database.Pool, "mail", "order:7", 10)
	if err != nil || len(jobs.Jobs) != 3 {
		t.Fatalf("%+v, %v", jobs, err)
	}
	wantLanes(t, queue, jobs.Jobs[0].ID)
	wantGolden(t, &runCLI(t, database, 0, "keys", "show", "order:7", "--queue", "mail").stdout,
		"key order:7 of queue mail, bucket 58", "",
		"ID STATE SINCE KIND ATTEMPTS HELD BY LAST ERROR",
		"ID processing AGE note 1 of 5 w1",
		"ID ready AGE note 0 of 5 -",
		"ID ready AGE note 0 of 5 -",
	)
	wantOutput(t, &runCLI(t, database, 1, "keys", "show", "order:8", "--queue", "mail").stderr,
		`find key "order:8" in queue "mail": no job of this key waits, runs or is dead; looked at its lane, the first 1000 jobs that wait in its bucket`)
}
