package integration

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-pg/holdfast/db"
	"github.com/holdfast-pg/holdfast/domain"
	"github.com/holdfast-pg/holdfast/integration/pgtest"
)

const unknownID = "01a1fc2c-7eb2-7f61-a8bc-5e78be9c003a"

// unknown are what commands say of an id, a key or a name that there is not. "" stands for a command
// that takes any: queues set creates the queue, every key has a bucket, every kind can be enqueued.
var unknown = map[string]struct{ args, says string }{
	"jobs show":     {unknownID, "find job " + unknownID + ": no such job: it never was, was purged or dropped, or its retention has passed (searched: the inbox, the archive, and the events of 30 days)"},
	"jobs explain":  {unknownID, "find job " + unknownID + " in the inbox and in the archive: no such job: it never was, was purged or dropped, or its retention has passed"},
	"jobs cancel":   {unknownID, "not cancelled: " + unknownID + ": no such job"},
	"jobs release":  {unknownID, "not released: " + unknownID + ": no such job"},
	"jobs redrive":  {unknownID, "not redriven: " + unknownID + ": no such job"},
	"jobs purge":    {unknownID + " --yes", "not purged: " + unknownID + ": no such job"},
	"queues show":   {"nowhere", `find queue "nowhere": no such queue`},
	"queues pause":  {"nowhere", `queue "nowhere": no such queue`},
	"queues resume": {"nowhere", `queue "nowhere": no such queue`},
	"workers show":  {"w9", `no worker with the id "w9" is in the registry`},
	"workers drain": {"w9", `no worker with the id "w9" is alive`},
	"workers evict": {"w9 --yes", `no worker with the id "w9" is known, and none holds a job`},
	"health ready":  {"--worker w9", `no worker with the id "w9" is alive`},
	"ring what-if":  {"--leave w9", `"w9"`},
	// A key is nothing but its jobs: without one that waits, runs or is dead nothing is known of it,
	// and completed ones cannot be found by their key.
	"keys show":    {"order:9", `find key "order:9" in queue "default": no job of this key waits, runs or is dead; looked at its lane, the first 1000 jobs that wait in its bucket`},
	"queues set":   {},
	"ring lookup":  {},
	"enqueue":      {},
	"roles grant":  {"viewer nobody", `role "nobody"`},
	"roles revoke": {"nobody", `role "nobody"`},
}

// cliWrites are the commands that write without leaving an event.
var cliWrites = []string{"enqueue", "work", "relay", "roles create", "roles grant", "roles revoke"}

func TestCLI_UnknownIDKeyOrQueueSaysWhatWasSearched(t *testing.T) {
	t.Parallel()
	database := pgtest.New(t)
	commands := cliCommands(t)
	var lines [][]string
	var says []string
	for name, test := range unknown {
		if test.says != "" {
			lines, says = append(lines, strings.Fields(name+" "+test.args)), append(says, test.says)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(commands)) {
		args := cliArgs[name]
		if _, listed := unknown[name]; args != "" && !strings.HasPrefix(args, "-") && !listed {
			t.Errorf("what %s says of an unknown argument is not tested", name)
		}
		// enqueue creates the queue; work and relay wait for it.
		if slices.Contains(commands[name], "queue") && !slices.Contains(cliWrites, name) && cliElsewhere[name] == "" {
			lines, says = append(lines, cliLine(name, map[string]string{"DEAD": unknownID}, "--queue", "nowhere")), append(says, `find queue "nowhere": no such queue`)
		}
	}
	for i, ran := range runMany(t, database.URL, lines) {
		if ran.code != 1 || !strings.Contains(ran.stderr.String(), says[i]) || ran.stdout.String() != "" && !strings.Contains(lines[i][0]+lines[i][1], "jobs") {
			t.Errorf("holdfast %v: exit code %d, it says %q%q, want %q", lines[i], ran.code, ran.stdout.String(), ran.stderr.String(), says[i])
		}
	}
}

func TestCLI_OlderSchemaNamesTheCommandThatMendsIt(t *testing.T) {
	t.Parallel()
	database := pgtest.New(t)
	for version := domain.SchemaVersion; version > 8; version-- {
		if _, err := db.MigrateDown(t.Context(), database.Config(), false); err != nil {
			t.Fatal(err)
		}
	}
	ids := map[string]string{"DEAD": unknownID, "RUNNING": unknownID, "WAITING": unknownID}
	var lines [][]string
	for _, name := range asksDatabase(t, func([]string) bool { return true }) {
		if name != "migrate status" && name != "doctor" {
			lines = append(lines, cliLine(name, ids))
		}
	}
	for i, ran := range runMany(t, database.URL, lines) {
		if ran.code != 1 || !strings.Contains(ran.stderr.String(), "the schema stands at version 8") || !strings.Contains(ran.stderr.String(), "run `holdfast migrate up`") || ran.stdout.String() != "" {
			t.Errorf("holdfast %v: exit code %d, it says %s%s", lines[i], ran.code, ran.stdout.String(), ran.stderr.String())
		}
	}
	wantOutput(t, &runCLI(t, database, 3, "doctor", "--check", "schema_version").stdout, "  fix  holdfast migrate up\n")
	runCLI(t, database, 0, "migrate", "status")
	runCLI(t, database, 0, "migrate", "up")
	runCLI(t, database, 0, "jobs", "list")
}

// Commands that look work on a server that cannot be written to; those that write say why they do
// not.
func TestCLI_ReadOnlyServerAnswersAndTakesNoOrders(t *testing.T) {
	t.Parallel()
	database, ids := cliWorld(t)
	database.Exec(t, `DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET default_transaction_read_only = on', current_database()); END $$`)
	var lines [][]string
	var writes []bool
	commands := cliCommands(t)
	for _, name := range asksDatabase(t, func([]string) bool { return true }) {
		lines = append(lines, cliLine(name, ids))
		writes = append(writes, isOrder(commands[name]) || slices.Contains(cliWrites, name))
	}
	for i, ran := range runMany(t, database.URL, append(lines, []string{"migrate", "down", "--yes"})) {
		said := ran.stderr.String()
		switch {
		case i == len(lines):
			if ran.code != 1 || !strings.Contains(said, "read-only") {
				t.Errorf("migrate down: exit code %d, it says %s", ran.code, said)
			}
		case writes[i] && (ran.code != 1 || !strings.Contains(said, "the transaction is read-only: use the primary")):
			t.Errorf("holdfast %v: exit code %d, it says %s%s", lines[i], ran.code, ran.stdout.String(), said)
		case !writes[i] && ran.code != 0 && lines[i][0] != "doctor":
			t.Errorf("holdfast %v: exit code %d, it says %s", lines[i], ran.code, said)
		}
	}
}
