package integration

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/holdfast-pg/holdfast/domain"
	"github.com/holdfast-pg/holdfast/integration/pgtest"
)

// cliArgs are what a command needs beside the database. DEAD, RUNNING and WAITING stand for the ids
// of jobs, as cliWorld has them.
var cliArgs = map[string]string{
	"enqueue":      "note",
	"work":         "--exec true",
	"migrate down": "--yes",
	"jobs show":    "DEAD", "jobs explain": "DEAD",
	"jobs cancel": "WAITING", "jobs release": "RUNNING", "jobs redrive": "DEAD", "jobs purge": "DEAD --yes",
	"dead redrive": "--kind note --yes", "dead purge": "--kind note --yes",
	"queues show": "default", "queues set": "default --max-attempts 9", "queues pause": "default", "queues resume": "default",
	"workers show": "w1", "workers drain": "w1", "workers evict": "w1 --yes",
	"keys show": "failed", "ring lookup": "order:7", "ring what-if": "--join",
	"relay": "--queue default --to http://127.0.0.1:1", "relay replay": "--queue default --to http://127.0.0.1:1 --since 1h --dry-run",
	"roles grant": "viewer pg_monitor", "roles revoke": "pg_monitor",
}

// cliElsewhere are the commands that tests of their own run, and that no test here does.
var cliElsewhere = map[string]string{
	"demo":         "TestDemo_",
	"bench":        "TestBench_",
	"env":          "TestEnv_",
	"health live":  "TestHealth_Live, TestCLI_WorkListen",
	"migrate sql":  "TestMigrateSQL_",
	"version":      "TestOutput_, TestUsage_",
	"tune":         "TestCLI_Tune",
	"migrate up":   "TestCLI_Migrate",
	"migrate down": "TestCLI_Migrate",
}

// cliCommands asks the program for its commands and their flags, so that one that is added is
// tested with the others.
func cliCommands(t *testing.T) map[string][]string {
	t.Helper()
	var settings struct {
		Items []struct {
			Setting  string
			Commands []string
		}
	}
	printed := newProcess(t, "", "env", "-o", "json").start(t).ends(t, 0).stdout.String()
	if err := json.Unmarshal([]byte(printed), &settings); err != nil {
		t.Fatal(err)
	}
	commands := map[string][]string{}
	for _, item := range settings.Items {
		for _, command := range item.Commands {
			commands[command] = append(commands[command], strings.TrimPrefix(item.Setting, "--"))
		}
	}
	if len(commands) < 40 {
		t.Fatalf("there are %d commands only", len(commands))
	}
	return commands
}

// asksDatabase lists the commands that ask a database, without those that tests of their own run.
func asksDatabase(t *testing.T, are func(flags []string) bool) (names []string) {
	t.Helper()
	for name, flags := range cliCommands(t) {
		if slices.Contains(flags, "database-url") && cliElsewhere[name] == "" && are(flags) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// isOrder tells whether a command changes something, and says who ordered it.
func isOrder(flags []string) bool { return slices.Contains(flags, "actor") }

// cliWorld is a database in which something is to be seen of everything, and that looks the same
// however long a test waits for its turn.
func cliWorld(t *testing.T) (database *pgtest.Database, ids map[string]string) {
	t.Helper()
	database = everyState(t)
	queue := database.Queue(t)
	joinAs(t, queue, "w1", listening+`, "in_flight": 1, "handle_p99_ms": 40`)
	database.Exec(t, "UPDATE holdfast.inbox SET available_at = now() - interval '1 hour' WHERE partition_key = 'ready'")
	database.Exec(t, "UPDATE holdfast.inbox SET lease_expires_at = now() - interval '1 hour' WHERE partition_key = 'expired'")
	database.Exec(t, "UPDATE holdfast.inbox SET lease_expires_at = now() + interval '1 hour' WHERE partition_key = 'processing'")
	by := domain.By{Actor: "ann@desk"}
	wantError(t, by.PauseQueue(t.Context(), database.Pool, domain.DefaultQueue), nil)
	wantError(t, by.ResumeQueue(t.Context(), database.Pool, domain.DefaultQueue), nil)
	ids = map[string]string{}
	for token, key := range map[string]string{"DEAD": "failed", "RUNNING": "processing", "WAITING": "scheduled", "READY": "ready"} {
		ids[token] = pgtest.Value[string](t, database, "SELECT id::text FROM holdfast.inbox WHERE partition_key = '"+key+"'")
	}
	return database, ids
}

// cliLine is the command line of a command with what it needs.
func cliLine(name string, ids map[string]string, more ...string) []string {
	words := append(strings.Fields(name+" "+cliArgs[name]), more...)
	for i, word := range words {
		if id := ids[word]; id != "" {
			words[i] = id
		}
	}
	return words
}

// runMany runs command lines, a few at a time, and returns the processes in the same order.
func runMany(t *testing.T, url string, lines [][]string) []*process {
	t.Helper()
	ran := make([]*process, len(lines))
	for i, line := range lines {
		ran[i] = newProcess(t, url, line...)
		ran[i].command.Env = append(ran[i].command.Env, "TZ=UTC")
	}
	var group errgroup.Group
	group.SetLimit(4)
	for _, each := range ran {
		group.Go(func() error {
			if err := each.command.Start(); err != nil {
				return err
			}
			late := time.AfterFunc(patience, func() { _ = each.command.Process.Kill() })
			defer late.Stop()
			_ = each.command.Wait() // The code tells.
			each.code = each.command.ProcessState.ExitCode()
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
	return ran
}

// What is needed for a command that is gone would hide that one is not tested.
func TestCLI_WhatTestsNeedForACommandIsOfOneThatExists(t *testing.T) {
	t.Parallel()
	commands := cliCommands(t)
	for _, name := range slices.Concat(slices.Collect(maps.Keys(cliArgs)), slices.Collect(maps.Keys(cliElsewhere))) {
		if commands[name] == nil {
			t.Errorf("there is no command %s", name)
		}
	}
}
