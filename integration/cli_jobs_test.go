package integration

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/holdfast-pg/holdfast/domain"
	"github.com/holdfast-pg/holdfast/integration/pgtest"
)

// shown is what `holdfast jobs show -o json` prints of a job.
func shown(t *testing.T, database *pgtest.Database, id domain.JobID) domain.JobRecord {
	t.Helper()
	var job domain.JobRecord
	document := runCLI(t, database, 0, "jobs", "show", id.String(), "-o", "json").stdout.String()
	if err := json.Unmarshal([]byte(document), &job); err != nil {
		t.Fatalf("%v:\n%s", err, document)
	}
	return job
}

// wantLine checks that a table has a line with the name and the value.
func wantLine(t *testing.T, table *output, name, value string) {
	t.Helper()
	for line := range strings.Lines(table.String()) {
		// Two spaces at least end a column.
		if found, rest, _ := strings.Cut(line, "  "); found == name && strings.TrimSpace(rest) == value {
			return
		}
	}
	t.Errorf("the table has no line %q with %q:\n%s", name, value, table.String())
}

func TestCLI_JobsShowPrintsWhatIsKnownOfAPendingJob(t *testing.T) {
	t.Parallel()
	database := pgtest.New(t)
	id := enqueueCLI(t, database, "send_receipt", `{"order_id":9182}`, "--key", "order:9182", "--once", "receipt:9182", "--header", "trace=abc")
	table := &runCLI(t, database, 0, "jobs", "show", id.String()).stdout
	for name, value := range map[string]string{
		"id": id.String(), "status": "pending", "queue": "default", "kind": "send_receipt", "key": "order:9182",
		"once": "receipt:9182", "attempts": "0 of 5", "headers": `{"trace": "abc"}`, "payload": `{"order_id": 9182}`,
	} {
		wantLine(t, table, name, value)
	}
	for _, absent := range []string{"claimed", "lease ends", "finished", "last error"} {
		if strings.Contains(table.String(), "\n"+absent) {
			t.Errorf("the table of a pending job has a line %q:\n%s", absent, table.String())
		}
	}
	if job := shown(t, database, id); job.ID != id || job.Status != domain.StatusPending || job.Archived || job.Kind != "send_receipt" {
		t.Errorf("%+v", job)
	}
}

func TestCLI_JobsShowFindsAnArchivedJob(t *testing.T) {
	t.Parallel()
	database := pgtest.New(t)
	id := completeOne(t, database, database.Queue(t))
	table := &runCLI(t, database, 0, "jobs", "show", id.String()).stdout
	wantLine(t, table, "status", "completed, archived")
	wantLine(t, table, "finished by", "w")
	if job := shown(t, database, id); job.Status != domain.StatusCompleted || !job.Archived || job.FinishedAt == nil {
		t.Errorf("%+v", job)
	}
}

func TestCLI_JobsShowKeepsALongErrorInItsColumn(t *testing.T) {
	t.Parallel()
	database := pgtest.New(t)
	id := enqueueCLI(t, database, "tick", `"`+strings.Repeat("ä", 1500)+`"`)
	database.Exec(t, "UPDATE holdfast.inbox SET last_error = $2 WHERE id = $1", id.String(), "exit status 1: first line\nsecond\tline")
	table := runCLI(t, database, 0, "jobs", "show", id.String()).stdout.String()
	at := strings.Index(table, "exit status 1")
	column := at - strings.LastIndex(table[:at], "\n") - 1
	if !strings.Contains(table, "first line\n"+strings.Repeat(" ", column)+"second    line\n") {
		t.Errorf("printed:\n%s", table)
	}
	if !strings.Contains(table, "ä … (3002 bytes; -o json prints all)\n") || strings.Contains(table, "\uFFFD") {
		t.Errorf("the payload is cut badly:\n%s", table)
	}
	if job := shown(t, database, id); len(job.Payload) != 3002 {
		t.Errorf("as JSON the payload has %d bytes", len(job.Payload))
	}
}

func TestCLI_JobsShowTellsUnknownFromMalformed(t *testing.T) {
	t.Parallel()
	database := pgtest.New(t)
	unknown := runCLI(t, database, 1, "jobs", "show", "0193d3f0-7c2a-7e4b-9a51-6f1d3c2a01f4")
	wantOutput(t, &unknown.stderr, "find job 0193d3f0-7c2a-7e4b-9a51-6f1d3c2a01f4: no such job")
	malformed := runCLI(t, database, 2, "jobs", "show", "9182")
	wantOutput(t, &malformed.stderr, `job id: "9182" is not a UUID`)
}
