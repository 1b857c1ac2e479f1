package integration

import (
	"fmt"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-pg/holdfast/domain"
	"github.com/holdfast-pg/holdfast/integration/pgtest"
)

// runbooks are what people follow at two in the morning.
var runbooks = []string{"../docs/runbook.md", "../docs/transport.md", "../docs/schema-evolution.md", "../deploy/prometheus/alerts.yaml"}

// notRun are the commands of the runbooks that are not run here, and why.
var notRun = map[string]string{
	"holdfast work --listen":              "names a flag; TestDocs_FlagsThatAreListedExist knows it",
	"holdfast work --direct-url URL":      "works until it is stopped; TestCLI_ has tests of workers",
	"holdfast work --exec ./send-receipt": "is refused, as TestEvolution_NewestProgramRefusesTheSchemaBefore shows",
	"holdfast migrate sql | psql":         "needs psql; TestMigrate_PrintedScriptsDoTheSame runs the script",
}

// writing are the commands after which a database is another.
var writing = regexp.MustCompile(`holdfast (jobs (cancel|release|redrive|purge)|dead (redrive|purge)|queues (set|pause|resume)|workers (drain|evict)|migrate (up|down))\b`)

// exits are the codes of commands that are done, by their beginning, where it is not only 0:
// what all tests of a server do at once is no concern of a runbook.
var exits = map[string][]int{"holdfast doctor": {0, 3}}

// Whoever follows a runbook or an alert finds commands that do what they say.
func TestRunbook_EveryCommandRuns(t *testing.T) {
	t.Parallel()
	commands := shownCommands(t)
	if len(commands) < 40 {
		t.Errorf("only %d commands were found", len(commands))
	}
	for command := range notRun {
		if !slices.Contains(commands, command) {
			t.Errorf("no runbook shows %q", command)
		}
	}
	reading := inTrouble(t)
	for _, command := range commands {
		if notRun[command] != "" {
			continue
		}
		t.Run(command, func(t *testing.T) {
			t.Parallel()
			place := reading
			if writing.MatchString(command) {
				place = inTrouble(t)
			}
			place.follow(t, command)
		})
	}
}

func TestRunbook_EveryStatementRuns(t *testing.T) {
	t.Parallel()
	database := pgtest.New(t)
	ran := 0
	for _, document := range runbooks {
		for _, block := range sqlBlocks(t, document) {
			if strings.HasPrefix(block, "-- +goose") {
				continue // TestEvolution_MigrationsOfTheDocumentBreakNoProgram runs them as goose does.
			}
			// One at a time: some must not be in a transaction.
			for statement := range strings.SplitSeq(strings.TrimSuffix(block, ";"), ";\n") {
				if _, err := database.Conn(t).Exec(t.Context(), statement); err != nil {
					t.Errorf("%s: %v\n%s", document, err, statement)
				}
				ran++
			}
		}
	}
	if ran < 4 {
		t.Errorf("only %d statements were found", ran)
	}
}

var (
	shownCommand = regexp.MustCompile("(?m)`((?:[A-Z]+='[^`']*' )?holdfast [^`]+)`|^(?:    |\\$ )(holdfast [^#\n]+)|command: (holdfast .+)$")
	label        = regexp.MustCompile(`\{\{[^}]*\}\}`)
)

// shownCommands are the command lines of the runbooks, each once.
func shownCommands(t *testing.T) []string {
	t.Helper()
	found := map[string]bool{}
	for _, file := range runbooks {
		for _, match := range shownCommand.FindAllStringSubmatch(read(t, file), -1) {
			line := label.ReplaceAllString(match[1]+match[2]+match[3], "NAME")
			found[strings.Join(strings.Fields(line), " ")] = true
		}
	}
	return slices.Sorted(maps.Keys(found))
}

// trouble is a database on which there is something to see, and what to name.
type trouble struct {
	database    *pgtest.Database
	job, worker string
}

// inTrouble makes a queue with jobs in every state, and a worker that has lost one.
func inTrouble(t *testing.T) trouble {
	t.Helper()
	database := pgtest.New(t)
	queue := database.Queue(t)
	place := trouble{database: database, worker: "vm-1-0123456789abcdef"}
	entry := registration(place.worker)
	entry.Queues, entry.Metadata = []string{"payments"}, []byte(`{"worker_ttl_seconds": 600}`)
	wantError(t, queue.Join(t.Context(), entry), nil)
	put := func(options ...domain.EnqueueOption) domain.JobID {
		return enqueue(t, database, append(options, domain.OnQueue("payments"), domain.Key("order:7"))...)
	}
	put(domain.MaxAttempts(1))
	put()
	lost := put()
	held, err := queue.Claim(t.Context(), domain.ClaimRequest{
		WorkerID: place.worker, Queue: "payments", Buckets: everyBucket(), Quota: 3, Batch: 3, Lease: lease,
	})
	if err != nil || len(held) != 3 {
		t.Fatalf("claimed %v (error %v), want three jobs", held, err)
	}
	mustSettle(t, queue, held[0], domain.Outcome{Verdict: domain.Retry, Error: "connection refused"}, domain.StatusDeadLetter)
	mustSettle(t, queue, held[1], domain.Outcome{Verdict: domain.Retry, Error: "connection refused"}, domain.StatusPending)
	database.ExpireLease(t, lost)
	place.job = put().String()
	return place
}

var placeholder = regexp.MustCompile(`\b[A-Z]{2,}\b`)

// follow runs a command as a person would, who answers yes when asked.
func (p trouble) follow(t *testing.T, command string) {
	t.Helper()
	names := map[string]string{"ID": p.job, "NAME": "payments", "KEY": "order:7", "KIND": "note"}
	if strings.Contains(command, "holdfast workers ") {
		names["ID"] = p.worker
	}
	assignments, line, _ := strings.Cut(command, "holdfast ")
	line = assignments + "holdfast " + placeholder.ReplaceAllStringFunc(line, func(word string) string {
		if names[word] == "" {
			t.Errorf("%q has the placeholder %s, for which this test has no value", command, word)
		}
		return names[word]
	})
	done := p.shell(t, line)
	if done.code == 2 && strings.Contains(done.stderr.String(), "add --yes") {
		done = p.shell(t, line+" --yes")
	}
	wanted := []int{0}
	for beginning, codes := range exits {
		if strings.HasPrefix(line, beginning) {
			wanted = codes
		}
	}
	if !slices.Contains(wanted, done.code) {
		t.Errorf("%s: exit code %d, want one of %v; stdout:\n%s\nstderr:\n%s", line, done.code, wanted, done.stdout.String(), done.stderr.String())
	}
}

// shell runs a line of a shell to its end.
func (p trouble) shell(t *testing.T, line string) *process {
	t.Helper()
	run := newProcess(t, p.database.DirectURL)
	run.command.Env[0] = fmt.Sprintf("PATH=%s:%s", filepath.Dir(run.command.Path), strings.TrimPrefix(run.command.Env[0], "PATH="))
	run.command.Path, run.command.Args = "/bin/sh", []string{"sh", "-c", line}
	run.start(t).end(t)
	return run
}
