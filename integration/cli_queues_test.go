package integration

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/holdfast-pg/holdfast"
	"github.com/holdfast-pg/holdfast/domain"
	"github.com/holdfast-pg/holdfast/integration/pgtest"
)

// decoded is what a command prints as JSON.
func decoded[T any](t *testing.T, database *pgtest.Database, args ...string) (value T) {
	t.Helper()
	document := runCLI(t, database, 0, append(args, "-o", "json")...).stdout.String()
	if err := json.Unmarshal([]byte(document), &value); err != nil {
		t.Fatalf("%v:\n%s", err, document)
	}
	return value
}

func TestCLI_QueuesSetChangesWhatIsGivenAndPrintsAll(t *testing.T) {
	t.Parallel()
	database := pgtest.New(t)
	runCLI(t, database, 0, "queues", "set", "mail", "--ordered", "--max-attempts", "9", "--retention-mode", "keep", "--keep-for", "36h", "--retention", "30d")
	table := &runCLI(t, database, 0, "queues", "set", "mail", "--ring=false", "--dedupe-window", "1d12h").stdout
	for name, value := range map[string]string{
		"queue": "mail", "paused": "no", "ordered": "yes", "max attempts": "9", "retention mode": "keep",
		"keep for": "36h0m0s", "retention": "30d", "dedupe window": "36h0m0s", "ring": "no",
	} {
		wantLine(t, table, name, value)
	}
	printed := decoded[map[string]any](t, database, "queues", "set", "mail", "--ordered=false")
	if printed["ordered"] != false || printed["retention"] != "30d" || printed["max_attempts"] != 9.0 {
		t.Errorf("%v", printed)
	}
}

func TestCLI_QueuesSetRefusesInWords(t *testing.T) {
	t.Parallel()
	database := pgtest.New(t)
	enqueueCLI(t, database, "tick", "--queue", "mail")
	for words, args := range map[string][]string{
		`set queue "mail": ordered: the queue has jobs`:                         {"mail", "--ordered"},
		"max attempts: 0 is not between 1 and 1000000":                          {"mail", "--max-attempts", "0"},
		`retention mode: "burn" is none of archive, keep, drop`:                 {"mail", "--retention-mode", "burn"},
		"keep for: must not be longer than the retention: change both together": {"mail", "--keep-for", "8d"},
		"dedupe window: 0s is not positive":                                     {"mail", "--dedupe-window", "0s"},
		"queue: is empty":                                                       {""},
	} {
		wantOutput(t, &runCLI(t, database, 2, append([]string{"queues", "set"}, args...)...).stderr, words)
	}
}

func TestCLI_QueuesPauseAndResumeMayBeRepeated(t *testing.T) {
	t.Parallel()
	database := pgtest.New(t)
	for _, command := range []string{"pause", "pause", "resume", "resume"} {
		runCLI(t, database, 0, "queues", command, domain.DefaultQueue)
		queue, err := domain.FindQueue(t.Context(), database.Pool, domain.DefaultQueue)
		if err != nil || queue.Paused != (command == "pause") {
			t.Errorf("after %s: %+v, %v", command, queue, err)
		}
	}
	for _, command := range []string{"pause", "resume"} {
		wantOutput(t, &runCLI(t, database, 1, "queues", command, "nowhere").stderr, command+` queue "nowhere": no such queue`)
	}
}

func TestCLI_WorkersListPrintsWhatTheySayOfThemselves(t *testing.T) {
	t.Parallel()
	database := pgtest.New(t)
	queue := database.Queue(t)
	join(t, queue, "w1")
	join(t, queue, "w2")
	wantError(t, queue.Leave(t.Context(), "w2"), nil)
	living := runCLI(t, database, 0, "workers", "list").stdout.String()
	if !strings.Contains(living, "w1  alive   default") || !strings.Contains(living, " ago ") || !strings.Contains(living, "version=1.2.0") || strings.Contains(living, "w2") {
		t.Errorf("printed:\n%s", living)
	}
	wantOutput(t, &runCLI(t, database, 0, "workers", "list", "--all").stdout, "w1  alive", "w2  dead")
	listed := decoded[struct{ Items []domain.WorkerRecord }](t, database, "workers", "list", "--all")
	if len(listed.Items) != 2 || listed.Items[1].Status != domain.WorkerDead || !sameJSON(listed.Items[0].Metadata, registration("w1").Metadata) {
		t.Errorf("%+v", listed)
	}
}

func TestCLI_WorkersDrainEndsARunningWorker(t *testing.T) {
	t.Parallel()
	database := pgtest.New(t)
	run := startWorker(t, database, database.Pool, "w", quick(), holdfast.Handle(func(context.Context, holdfast.Job[note]) error { return nil }))
	pgtest.Eventually(t, patience, "the worker has joined", func() bool {
		return pgtest.Value[int](t, database, "SELECT count(*) FROM holdfast.workers") == 1
	})
	wantOutput(t, &runCLI(t, database, 0, "workers", "drain", "w-1").stdout, "w-1 is told to drain")
	run.mustReturn()
	for _, id := range []string{"w-1", "nobody"} {
		wantOutput(t, &runCLI(t, database, 1, "workers", "drain", id).stderr, `no worker with the id "`+id+`" is alive`, "holdfast workers list --all")
	}
}

func TestCLI_KeysHotPrintsSharesAndSaysThatItIsASample(t *testing.T) {
	t.Parallel()
	database := pgtest.New(t)
	fill(t, database, "mail", false, "tenant:7", 90, 10)
	runCLI(t, database, 0, "queues", "set", "mail")
	hot := runCLI(t, database, 0, "keys", "hot", "--queue", "mail", "--limit", "2")
	if got := strings.Fields(hot.stdout.String()); strings.Join(got, " ") != "KEY JOBS SEEN SHARE tenant:7 90 90.0 % other:1 1 1.0 %" {
		t.Errorf("printed:\n%s", hot.stdout.String())
	}
	wantOutput(t, &hot.stderr, "a sample: 100 jobs at the head of queue mail", "holdfast.Shard")
	printed := decoded[struct {
		Queue string
		Jobs  int
		Items []domain.KeyShare
	}](t, database, "keys", "hot", "--queue", "mail")
	if printed.Queue != "mail" || printed.Jobs != 100 || len(printed.Items) != 10 || printed.Items[0] != (domain.KeyShare{Key: "tenant:7", Jobs: 90, Share: 0.9}) {
		t.Errorf("%+v", printed)
	}
	wantOutput(t, &runCLI(t, database, 0, "keys", "hot").stderr, "nothing waits in queue default")
	wantOutput(t, &runCLI(t, database, 1, "keys", "hot", "--queue", "nowhere").stderr, `find queue "nowhere": no such queue`)
}
