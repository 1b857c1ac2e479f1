package integration

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/holdfast-pg/holdfast/app/support"
	"github.com/holdfast-pg/holdfast/integration/pgtest"
)

func TestRelay_CommandPublishesOverHTTPAndReplays(t *testing.T) {
	t.Parallel()
	database := pgtest.New(t)
	for _, payload := range []string{"1", "2", "3"} {
		enqueueMessage(t, database, "placed", "order:1", payload)
	}
	var requests, down atomic.Int64
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		user, password, _ := r.BasicAuth()
		switch {
		case user != "relay" || password != "secret":
			w.WriteHeader(http.StatusForbidden)
		case down.Load() != 0:
			w.WriteHeader(http.StatusServiceUnavailable)
		default:
			requests.Add(1)
		}
	}))
	t.Cleanup(service.Close)
	to := strings.Replace(service.URL, "http://", "http://relay:secret@", 1) + "/hook/{kind}?token=secret"

	p := newProcess(t, database.URL, "relay", "--queue", "outbox", "--log-format", "text")
	p.command.Env = append(p.command.Env, "HOLDFAST_RELAY_TO="+to)
	p.start(t)
	pgtest.Eventually(t, patience, "the messages are published", func() bool { return requests.Load() == 3 })
	down.Store(1)
	enqueueMessage(t, database, "placed", "order:1", "4")
	p.says(t, "the destination takes nothing")
	wantOutput(t, &p.stderr, "503 Service Unavailable")
	down.Store(0)
	pgtest.Eventually(t, patience, "the last message is published", func() bool { return requests.Load() == 4 })

	// What it said when it joined: its next heartbeat is ten seconds away.
	var said struct{ Items []support.RelayStatus }
	if err := json.Unmarshal([]byte(runCLI(t, database, 0, "relay", "status", "-o", "json").stdout.String()), &said); err != nil {
		t.Fatal(err)
	}
	if len(said.Items) > 1 {
		t.Errorf("the relays are %+v", said.Items)
	}
	p.signal(t, syscall.SIGTERM)
	p.ends(t, 0)
	if strings.Contains(p.stderr.String(), "secret") {
		t.Errorf("the log holds a secret:\n%s", p.stderr.String())
	}

	preview := runCLI(t, database, 0, "relay", "replay", "--queue", "outbox", "--to", to, "--since", "1h", "--dry-run")
	wantOutput(t, &preview.stderr, "to publish again: 4 jobs to http://relay:***@", "order:1", "they keep their ids")
	if requests.Load() != 4 {
		t.Error("a dry run has published")
	}
	wantOutput(t, &runCLI(t, database, 2, "relay", "replay", "--queue", "outbox", "--to", to, "--since", "1h").stderr, "add --yes")
	done := runCLI(t, database, 0, "relay", "replay", "--queue", "outbox", "--to", to, "--since", "1h", "--key", "order:1", "--yes")
	wantOutput(t, &done.stdout, "published 4 jobs again, 0 refused")
	if requests.Load() != 8 {
		t.Errorf("%d requests, want 8", requests.Load())
	}
	wantOutput(t, &runCLI(t, database, 1, "relay", "replay", "--queue", "nosuch", "--to", to, "--since", "1h", "--yes").stderr, `queue "nosuch"`)
	wantOutput(t, &runCLI(t, database, 2, "relay", "--queue", "outbox", "--to", "amqp://user:secret@host").stderr, `unknown scheme "amqp://"`)
}

func TestCLI_RelayStatusPrintsTheSameInTheTableAndAsJSON(t *testing.T) {
	t.Parallel()
	database := pgtest.New(t)
	wantLines(t, runCLI(t, database, 0, "relay", "status").stdout.String(), "QUEUE  DESTINATION  RELAYS  LAG  WAITING  IN FLIGHT  DEAD  PUBLISHED  REFUSED  LAST ERROR")
	database.Exec(t, "INSERT INTO holdfast.queues (name) VALUES ('outbox')")
	for _, id := range []string{"r1", "r2"} {
		database.Exec(t, `INSERT INTO holdfast.workers (id, queues, metadata) VALUES ($1, '{outbox}', '{"more": {"relay": {
			"destination": "nats://host:4222/orders", "away": true, "published": 20, "refused": 1, "put_off": 7, "failed": 0,
			"last_error": "NATS cannot be reached:\nno route", "last_error_at": "2026-03-04T12:00:00Z"}}}')`, id)
	}
	database.Exec(t, `INSERT INTO holdfast.workers (id, queues, metadata) VALUES ('w', '{outbox}', '{"concurrency": 3}')`)
	wantLines(t, runCLI(t, database, 0, "relay", "status").stdout.String(),
		"QUEUE   DESTINATION              RELAYS        LAG  WAITING  IN FLIGHT  DEAD  PUBLISHED  REFUSED  LAST ERROR",
		"outbox  nats://host:4222/orders  2, 2 waiting  -    0        0          0     40         2        NATS cannot be reached: no route")
	database.Exec(t, `INSERT INTO holdfast.workers (id, queues, status, last_seen_at, metadata) VALUES
		('gone', '{outbox}', 'dead', now() - interval '2 hours', '{"more": {"relay": {"destination": "nats://host:4222/orders", "published": 9, "last_error": "before", "last_error_at": "2027-01-01T00:00:00Z"}}}')`)
	line := runCLI(t, database, 0, "relay", "status", "-o", "jsonl").stdout.String()
	line = regexp.MustCompile(`"said_seconds":[0-9.e-]+`).ReplaceAllString(line, `"said_seconds":0`)
	wantLines(t, line, `{"queue":"outbox","destination":"nats://host:4222/orders","relays":2,"away":2,"lag_seconds":null,"waiting":{"jobs":0,"more":false},"in_flight":{"jobs":0,"more":false},"dead":{"jobs":0,"more":false},`+
		`"published":40,"refused":2,"put_off":14,"failed":0,"last_error":"NATS cannot be reached:\nno route","last_error_at":"2026-03-04T12:00:00Z","said_seconds":0}`)

	database.Exec(t, "UPDATE holdfast.workers SET status = 'dead', last_seen_at = now() - interval '3 hours' WHERE id IN ('r1', 'r2')")
	wantLines(t, runCLI(t, database, 0, "relay", "status").stdout.String(),
		"QUEUE   DESTINATION              RELAYS           LAG  WAITING  IN FLIGHT  DEAD  PUBLISHED  REFUSED  LAST ERROR",
		"outbox  nats://host:4222/orders  none for 2h0m0s  -    0        0          0     0          0        before")
}

// wantLines checks an output word for word.
func wantLines(t *testing.T, output string, want ...string) {
	t.Helper()
	if got := strings.TrimRight(output, "\n"); got != strings.Join(want, "\n") {
		t.Errorf("the output is\n%s\nwant\n%s", got, strings.Join(want, "\n"))
	}
}
