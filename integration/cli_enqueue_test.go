package integration

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-pg/holdfast/domain"
	"github.com/holdfast-pg/holdfast/integration/pgtest"
)

// enqueueCLI enqueues a job with the command line and returns its id.
func enqueueCLI(t *testing.T, database *pgtest.Database, args ...string) domain.JobID {
	t.Helper()
	printed := runCLI(t, database, 0, append([]string{"enqueue"}, args...)...).stdout.String()
	id, err := domain.ParseJobID(strings.TrimSpace(printed))
	if err != nil {
		t.Fatalf("holdfast enqueue %q prints %q: %v", args, printed, err)
	}
	return id
}

func TestCLI_EnqueueTakesThePayloadFromItsArgumentAFileOrStdin(t *testing.T) {
	t.Parallel()
	database := pgtest.New(t)
	const payload = `{"order_id": 9182}`
	file := filepath.Join(t.TempDir(), "payload.json")
	if err := os.WriteFile(file, []byte(payload), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, argument := range []string{payload, "@" + file, "-"} {
		process := newProcess(t, database.URL, "enqueue", "send_receipt", argument)
		process.command.Stdin = strings.NewReader(payload)
		process.start(t).ends(t, 0)
		id, err := domain.ParseJobID(strings.TrimSpace(process.stdout.String()))
		if err != nil {
			t.Fatal(err)
		}
		job := find(t, database, id)
		if !sameJSON(job.Payload, json.RawMessage(payload)) || job.Kind != "send_receipt" || job.Queue != domain.DefaultQueue {
			t.Errorf("%s: %+v", argument, job)
		}
	}
	if job := find(t, database, enqueueCLI(t, database, "tick")); string(job.Payload) != "{}" {
		t.Errorf("without a payload it is %s, want {}", job.Payload)
	}
	wantOutput(t, &runCLI(t, database, 1, "enqueue", "send_receipt", "@"+file+".nosuch").stderr, "read the payload: open ", ".nosuch")
}

func TestCLI_EnqueueOptionsReachTheJob(t *testing.T) {
	t.Parallel()
	database := pgtest.New(t)
	job := find(t, database, enqueueCLI(t, database, "report", "{}", "--queue", "reports", "--key", "tenant:7", "--once", "report:1",
		"--max-attempts", "3", "--header", "trace=a,b=c", "--header", "origin="))
	if job.Queue != "reports" || job.PartitionKey != "tenant:7" || job.IdempotencyKey == nil || *job.IdempotencyKey != "report:1" || job.MaxAttempts != 3 {
		t.Errorf("%+v", job)
	}
	if !sameJSON(job.Headers, json.RawMessage(`{"trace": "a,b=c", "origin": ""}`)) {
		t.Errorf("headers: %s", job.Headers)
	}
}

func TestCLI_EnqueueHoldsTheJobBack(t *testing.T) {
	t.Parallel()
	database := pgtest.New(t)
	later := find(t, database, enqueueCLI(t, database, "tick", "--in", "1h30m"))
	if wait := later.AvailableAt.Sub(later.CreatedAt); wait.Round(time.Minute) != 90*time.Minute {
		t.Errorf("--in 1h30m holds the job back for %s", wait)
	}
	at := find(t, database, enqueueCLI(t, database, "tick", "--at", "2199-12-24T18:00:00+01:00"))
	if want := time.Date(2199, 12, 24, 17, 0, 0, 0, time.UTC); !at.AvailableAt.Equal(want) {
		t.Errorf("--at holds the job back until %s, want %s", at.AvailableAt, want)
	}
}

func TestCLI_EnqueueOnceSaysThatTheJobIsThereAlready(t *testing.T) {
	t.Parallel()
	database := pgtest.New(t)
	id := enqueueCLI(t, database, "send_receipt", "--once", "receipt:9182").String()
	if again := runCLI(t, database, 0, "enqueue", "send_receipt", "--once", "receipt:9182").stdout.String(); again != id+" is that job already (pending)\n" {
		t.Errorf("the second enqueue prints %q", again)
	}
	var answer struct {
		ID        string `json:"id"`
		Duplicate bool   `json:"duplicate"`
		State     string `json:"state"`
	}
	document := runCLI(t, database, 0, "enqueue", "send_receipt", "--once", "receipt:9182", "-o", "json").stdout.String()
	if err := json.Unmarshal([]byte(document), &answer); err != nil || answer.ID != id || !answer.Duplicate || answer.State != "pending" {
		t.Errorf("as JSON it prints %s (%v)", document, err)
	}
	if n := pgtest.Value[int](t, database, "SELECT count(*) FROM holdfast.inbox"); n != 1 {
		t.Errorf("there are %d jobs, want 1", n)
	}
}

func TestCLI_EnqueueWarnsOfALargePayload(t *testing.T) {
	t.Parallel()
	database := pgtest.New(t)
	process := runCLI(t, database, 0, "enqueue", "tick", `"`+strings.Repeat("x", 3<<10)+`"`)
	wantOutput(t, &process.stderr, "warning: the payload has 3074 bytes")
	if _, err := domain.ParseJobID(strings.TrimSpace(process.stdout.String())); err != nil {
		t.Errorf("stdout holds more than the id: %s", process.stdout.String())
	}
}

func TestCLI_EnqueueRefusesWhatIsNoJob(t *testing.T) {
	t.Parallel()
	database := pgtest.New(t)
	large := filepath.Join(t.TempDir(), "large.json")
	if err := os.WriteFile(large, []byte(`"`+strings.Repeat("x", 256<<10)+`"`), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Run("all", func(t *testing.T) {
		for _, test := range []struct {
			name  string
			args  []string
			words string
		}{
			{"bad JSON", []string{"tick", "{order_id: 9182}"}, "payload: is not valid JSON"},
			{"empty payload", []string{"tick", ""}, "payload: is not valid JSON"},
			{"empty stdin", []string{"tick", "-"}, "payload: is not valid JSON"},
			{"two documents", []string{"tick", "{} {}"}, "payload: is not valid JSON"},
			{"payload over the limit", []string{"tick", "@" + large}, "payload: has 262146 bytes, 262144 at most"},
			{"NUL in the payload", []string{"tick", `{"a": "\u0000"}`}, "payload: holds"},
			{"empty kind", []string{""}, "kind: is empty"},
			{"empty key", []string{"tick", "--key", ""}, "key: is empty"},
			{"over-long key", []string{"tick", "--key", strings.Repeat("x", 201)}, "key: has 201 characters, 200 at most"},
			{"empty idempotency key", []string{"tick", "--once", ""}, "idempotency key: is empty"},
			{"over-long idempotency key", []string{"tick", "--once", strings.Repeat("x", 201)}, "idempotency key: has 201 characters"},
			{"empty queue", []string{"tick", "--queue="}, "queue: is empty"},
			{"negative delay", []string{"tick", "--in", "-5s"}, "delay: -5s is negative"},
			{"no attempts", []string{"tick", "--max-attempts", "0"}, "max attempts: 0 is not between 1 and"},
		} {
			t.Run(test.name, func(t *testing.T) {
				t.Parallel()
				process := runCLI(t, database, 2, append([]string{"enqueue"}, test.args...)...)
				wantOutput(t, &process.stderr, "holdfast: enqueue: "+test.words)
			})
		}
	})
	if n := pgtest.Value[int](t, database, "SELECT count(*) FROM holdfast.inbox"); n != 0 {
		t.Errorf("%d jobs were enqueued", n)
	}
}
