package main

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/urfave/cli/v2"

	"github.com/holdfast-pg/holdfast/domain"
)

func TestUsage_CommandWithoutDatabaseNamesAllThreeWaysToGiveOne(t *testing.T) {
	for _, line := range []string{
		"enqueue kind", "jobs show 0193d3f0-7c2a-7e4b-9a51-6f1d3c2a01f4", "work --exec true",
		"migrate up", "migrate down --yes", "migrate status",
		"queues list", "queues set mail", "queues pause mail", "queues resume mail",
		"workers list", "workers drain w1", "keys hot", "jobs list", "dead groups", "dead list", "dead keys", "queues show mail", "leases list", "keys show order:7", "jobs explain 0193d3f0-7c2a-7e4b-9a51-6f1d3c2a01f4", "workers show w1", "ring show", "ring lookup order:7", "ring what-if --join", "status", "top", "top --print", "events list", "doctor", "tune --measure 1s", "health ready",
		"workers evict w1",
		"jobs cancel 0193d3f0-7c2a-7e4b-9a51-6f1d3c2a01f4", "jobs release 0193d3f0-7c2a-7e4b-9a51-6f1d3c2a01f4",
		"jobs redrive 0193d3f0-7c2a-7e4b-9a51-6f1d3c2a01f4", "jobs purge 0193d3f0-7c2a-7e4b-9a51-6f1d3c2a01f4",
		"dead redrive --all", "dead purge --queue mail",
		"roles create", "roles grant worker app", "roles grant", "roles revoke app", "roles list",
		"relay --queue outbox --to nats://127.0.0.1:1", "relay status", "relay replay --queue outbox --to nats://127.0.0.1:1 --since 1h",
	} {
		t.Run(line, func(t *testing.T) {
			execute(t, strings.Fields(line)...).refused(t, "--database-url", "HOLDFAST_DATABASE_URL", "DATABASE_URL")
		})
	}
}

func TestUsage_BadValuesAreRefusedBeforeTheDatabaseIsAsked(t *testing.T) {
	for _, test := range []struct {
		name  string
		args  []string
		words string
	}{
		{"work without a program", []string{"work"}, "--exec COMMAND is missing"},
		{"work with an empty program", []string{"work", "--exec", " "}, "--exec COMMAND is missing"},
		{"work with an empty kind", []string{"work", "--exec", "x", "--kind", ""}, "--kind is empty"},
		{"work with an empty queue", []string{"work", "--exec", "x", "--queue", "a", "--queue", ""}, "--queue is empty"},
		{"a relay of nothing", []string{"relay", "--to", "nats://host"}, "--queue QUEUE is missing"},
		{"a relay to nowhere", []string{"relay", "--queue", "outbox"}, "--to URL is missing"},
		{"an unknown destination", []string{"relay", "--queue", "outbox", "--to", "amqp://user:secret@host"}, `unknown scheme "amqp://"; the known ones are nats://, https://, http://, postgres://, postgresql://, kafka://`},
		{"a destination that is no URL", []string{"relay", "--queue", "outbox", "--to", "host:4222"}, "--to is no URL; the known schemes are nats://"},
		{"a destination with a slip", []string{"relay", "--queue", "outbox", "--to", "nats://host?tsl=true"}, `nats knows no parameter "tsl"; it knows: tls, creds`},
		{"a mode of CloudEvents", []string{"relay", "--queue", "outbox", "--to", "https://host?ce_mode=x"}, `ce_mode "x" is none of binary, structured`},
		{"a mechanism", []string{"relay", "--queue", "outbox", "--to", "kafka://host?sasl=x"}, `sasl "x" is none of plain, `},
		{"no batch", []string{"relay", "--queue", "outbox", "--to", "nats://host", "--batch", "0"}, "--batch must be positive, it is 0"},
		{"a batch that outlives its leases", []string{"relay", "--queue", "outbox", "--to", "nats://host", "--lease", "20s"}, "Timeout (10s) must be positive and at most a third of the worker's Lease (20s)"},
		{"output of relay status", []string{"relay", "status", "-o", "xml"}, `--output "xml" is none of table, json, jsonl`},
		{"a replay of nothing", []string{"relay", "replay", "--to", "nats://host", "--since", "1h"}, "--queue QUEUE is missing"},
		{"a replay of all there ever was", []string{"relay", "replay", "--queue", "outbox", "--to", "nats://host"}, "--since DURATION is missing"},
		{"time of a replay", []string{"relay", "replay", "--queue", "outbox", "--to", "nats://host", "--since", "soon"}, `--since "soon" is no duration`},
		{"no concurrency", []string{"work", "--exec", "x", "--concurrency", "0"}, "--concurrency must be positive, it is 0"},
		{"negative lease", []string{"work", "--exec", "x", "--lease", "-5s"}, "--lease must be positive, it is -5s"},
		{"no heartbeat", []string{"work", "--exec", "x", "--heartbeat", "0s"}, "--heartbeat must be positive"},
		{"no housekeeping", []string{"work", "--exec", "x", "--housekeeping", "0s"}, "--housekeeping must be positive"},
		{"an address without a port", []string{"work", "--exec", "x", "--listen", "localhost"}, `--listen "localhost" is not HOST:PORT`},
		{"an empty address", []string{"work", "--exec", "x", "--listen", ""}, `--listen "" is not HOST:PORT`},
		{"no time to drain", []string{"work", "--exec", "x", "--drain-deadline", "0s"}, "--drain-deadline must be positive"},
		{"no time to connect", []string{"migrate", "up", "--connect-timeout", "0s"}, "--connect-timeout must be positive"},
		{"log level", []string{"migrate", "up", "--log-level", "loud"}, `log level "loud" is none of debug, info, warn, error`},
		{"log format", []string{"work", "--exec", "x", "--log-format", "xml"}, `log format "xml" is none of auto, text, json`},
		{"output of enqueue", []string{"enqueue", "kind", "-o", "xml"}, `--output "xml" is none of table, json, jsonl`},
		{"output of jobs show", []string{"jobs", "show", "x", "-o", "xml"}, `--output "xml" is none of table, json, jsonl`},
		{"output of migrate status", []string{"migrate", "status", "--output=xml"}, `--output "xml" is none of table, json, jsonl`},
		{"output of version", []string{"version", "-o", ""}, `--output "" is none of table, json, jsonl`},
		{"job id", []string{"jobs", "show", "9182"}, `"9182" is not a UUID`},
		{"job id to explain", []string{"jobs", "explain", "9182"}, `"9182" is not a UUID`},
		{"output of jobs explain", []string{"jobs", "explain", "x", "-o", "xml"}, `--output "xml" is none of table, json, jsonl`},
		{"output of workers show", []string{"workers", "show", "w1", "-o", "xml"}, `--output "xml" is none of table, json, jsonl`},
		{"no claims", []string{"workers", "show", "w1", "--limit", "0"}, "--limit must be positive, it is 0"},
		{"output of ring show", []string{"ring", "show", "-o", "xml"}, `--output "xml" is none of table, json, jsonl`},
		{"no time between looks", []string{"top", "--interval", "0s"}, "--interval must be positive, it is 0s"},
		{"output of top", []string{"top", "-o", "xml"}, `--output "xml" is none of table, json, jsonl`},
		{"output of dead keys", []string{"dead", "keys", "-o", "xml"}, `--output "xml" is none of table, json, jsonl`},
		{"no dead keys", []string{"dead", "keys", "--limit", "0"}, "--limit must be positive, it is 0"},
		{"output of status", []string{"status", "-o", "xml"}, `--output "xml" is none of table, json, jsonl`},
		{"no key to look up", []string{"ring", "lookup"}, "usage: holdfast ring lookup KEY"},
		{"nothing to suppose", []string{"ring", "what-if"}, "one of --workers N, --join and --leave ID"},
		{"two things to suppose", []string{"ring", "what-if", "--join", "--workers", "3"}, "one of --workers N, --join and --leave ID"},
		{"nobody to suppose", []string{"ring", "what-if", "--workers", "0"}, "--workers must be positive, it is 0"},
		{"no worker to leave", []string{"ring", "what-if", "--leave", ""}, "--leave is empty"},
		{"down without consent", []string{"migrate", "down"}, "add --yes"},
		{"all down without consent", []string{"migrate", "down", "--all"}, "add --yes"},
		{"duration", []string{"enqueue", "kind", "--in", "soon"}, `"soon" for flag -in`},
		{"time", []string{"enqueue", "kind", "--at", "tomorrow"}, `"tomorrow" for flag -at`},
		{"both times", []string{"enqueue", "kind", "--in", "1s", "--at", "2026-12-24T18:00:00Z"}, "--in and --at exclude each other"},
		{"number", []string{"enqueue", "kind", "--max-attempts", "many"}, `"many" for flag -max-attempts`},
		{"days", []string{"queues", "set", "mail", "--retention", "7 d"}, `--retention "7 d" is no duration`},
		{"less than a day beside days", []string{"queues", "set", "mail", "--keep-for", "1d36h"}, `--keep-for "1d36h" is no duration`},
		{"switch", []string{"queues", "set", "mail", "--ordered=maybe"}, `"maybe" for -ordered`},
		{"value behind a switch", []string{"queues", "set", "mail", "--ordered", "false"}, "usage: holdfast queues set NAME"},
		{"attempts of a queue", []string{"queues", "set", "mail", "--max-attempts", "many"}, `"many" for flag -max-attempts`},
		{"output of queues list", []string{"queues", "list", "-o", "xml"}, `--output "xml" is none of table, json, jsonl`},
		{"output of queues set", []string{"queues", "set", "mail", "-o", "xml"}, `--output "xml" is none of table, json, jsonl`},
		{"output of workers list", []string{"workers", "list", "-o", "xml"}, `--output "xml" is none of table, json, jsonl`},
		{"output of keys hot", []string{"keys", "hot", "-o", "xml"}, `--output "xml" is none of table, json, jsonl`},
		{"output of events list", []string{"events", "list", "-o", "xml"}, `--output "xml" is none of table, json, jsonl`},
		{"no events", []string{"events", "list", "--limit", "0"}, "--limit must be positive, it is 0"},
		{"kind of event", []string{"events", "list", "--event", "retry"}, `--event "retry" is none of retried, released, `},
		{"time of events", []string{"events", "list", "--since", "yesterday"}, `--since "yesterday" is no duration`},
		{"no time of events", []string{"events", "list", "--since", "0s"}, `--since "0s" is no duration`},
		{"place in the events", []string{"events", "list", "--before", "-1"}, "--before must be the id of an event, it is -1"},
		{"no job", []string{"jobs", "cancel"}, "usage: holdfast jobs cancel ID..."},
		{"one id of two", []string{"jobs", "redrive", "0193d3f0-7c2a-7e4b-9a51-6f1d3c2a01f4", "9182"}, `"9182" is not a UUID`},
		{"nobody", []string{"jobs", "release", "0193d3f0-7c2a-7e4b-9a51-6f1d3c2a01f4", "--actor", ""}, "actor: is empty"},
		{"no attempts", []string{"jobs", "redrive", "0193d3f0-7c2a-7e4b-9a51-6f1d3c2a01f4", "--max-attempts", "0"}, "--max-attempts must be positive, it is 0"},
		{"output of jobs purge", []string{"jobs", "purge", "x", "-o", "xml"}, `--output "xml" is none of table, json, jsonl`},
		{"no filter", []string{"dead", "redrive", "--yes"}, "which jobs? Give a filter"},
		{"an empty filter", []string{"dead", "purge", "--kind", ""}, "--kind is empty"},
		{"all and a filter", []string{"dead", "purge", "--all", "--key", "a"}, "--all and a filter exclude each other"},
		{"age", []string{"dead", "redrive", "--older-than", "old"}, `--older-than "old" is no duration`},
		{"negative age", []string{"dead", "redrive", "--older-than", "-5h"}, `--older-than "-5h" is no duration`},
		{"no rate", []string{"dead", "redrive", "--all", "--rate", "0"}, "--rate must be positive, it is 0"},
		{"output of dead redrive", []string{"dead", "redrive", "--all", "-o", "xml"}, `--output "xml" is none of table, json, jsonl`},
		{"output of workers evict", []string{"workers", "evict", "w1", "-o", "xml"}, `--output "xml" is none of table, json, jsonl`},
		{"too long a reason", []string{"workers", "evict", "w1", "--reason", strings.Repeat("x", 1001)}, "reason: has 1001 characters, 1000 at most"},
		{"no keys", []string{"keys", "hot", "--limit", "0"}, "--limit must be positive, it is 0"},
		{"no jobs to list", []string{"jobs", "list", "--limit", "0"}, "--limit must be positive, it is 0"},
		{"no dead jobs to list", []string{"dead", "list", "--limit", "-1"}, "--limit must be positive, it is -1"},
		{"no leases to list", []string{"leases", "list", "--limit", "0"}, "--limit must be positive, it is 0"},
		{"no jobs of a key", []string{"keys", "show", "order:7", "--limit", "0"}, "--limit must be positive, it is 0"},
		{"groups by what", []string{"dead", "groups", "--by", "moon"}, `--by "moon" is none of error, key`},
		{"half a grant", []string{"roles", "grant", "worker"}, "give a duty and a role, or neither"},
		{"duty", []string{"roles", "grant", "boss", "app"}, `duty: "boss" is none of producer, worker, operator, viewer`},
		{"long prefix", []string{"roles", "create", "--prefix", strings.Repeat("x", 55)}, "prefix: has 55 bytes, 54 at most"},
		{"empty prefix", []string{"roles", "create", "--prefix", ""}, "--prefix is empty"},
		{"output of roles list", []string{"roles", "list", "-o", "xml"}, `--output "xml" is none of table, json, jsonl`},
		{"no key", []string{"keys", "show"}, "usage: holdfast keys show KEY"},
		{"output of queues show", []string{"queues", "show", "mail", "-o", "xml"}, `--output "xml" is none of table, json, jsonl`},
		{"scenario", []string{"bench", "nosuch"}, `scenario: "nosuch" is none of drain, `},
		{"size", []string{"bench", "--size", "huge"}, `--size: "huge" is none of small, full`},
		{"share", []string{"bench", "--share", "70"}, "--share: 70 is not between 0 and 1"},
		{"no jobs", []string{"bench", "--jobs", "0"}, "--jobs must be positive, it is 0"},
		{"no time for a bench", []string{"bench", "--duration", "-5s"}, "--duration must be positive, it is -5s"},
		{"less than a second", []string{"bench", "--duration", "100ms"}, "--duration: 100ms is less than a second"},
		{"payload too small", []string{"bench", "--payload", "1"}, "--payload: 1 is not between 64 and 200000 bytes"},
		{"no repetition", []string{"bench", "--repeat", "0"}, "--repeat must be positive, it is 0"},
		{"output of bench", []string{"bench", "-o", "xml"}, `--output "xml" is none of table, json, jsonl`},
		{"work that is not described", []string{"tune", "--rate", "5", "--p50", "1s"}, "--rate, --p50 and --p99 describe the work; or --measure DURATION"},
		{"no work", []string{"tune", "--rate", "0", "--p50", "1s", "--p99", "1s"}, "--rate: 0 is not more than 0"},
		{"a p99 below the p50", []string{"tune", "--rate", "5", "--p50", "2s", "--p99", "1s"}, "--p99: 1s is not at least the p50 (2s)"},
		{"nobody to work", []string{"tune", "--rate", "5", "--p50", "1s", "--p99", "1s", "--workers", "0"}, "--workers: 0 is not at least 1"},
		{"a share in percent", []string{"tune", "--rate", "5", "--p50", "1s", "--p99", "1s", "--hot-key", "40"}, "--hot-key: 40 is not at least 0 and at most 1"},
		{"no lease to tune", []string{"tune", "--rate", "5", "--p50", "1s", "--p99", "1s", "--lease", "0s"}, "--lease must be positive, it is 0s"},
		{"no time to measure", []string{"tune", "--measure", "0s"}, "--measure must be positive, it is 0s"},
		{"output of tune", []string{"tune", "-o", "xml"}, `--output "xml" is none of table, json, jsonl, go, env`},
		{"no connections", []string{"work", "--exec", "x", "--connections", "0"}, "--connections must be positive, it is 0"},
		{"too few connections", []string{"work", "--exec", "x", "--connections", "3"}, "Connections (3) must be at least 4"},
		{"check", []string{"doctor", "--check", "nosuch"}, `--check "nosuch" is none of server_version, writable, `},
		{"no time to hold vacuum back", []string{"doctor", "--held-for", "0s"}, "--held-for must be positive, it is 0s"},
		{"output of doctor", []string{"doctor", "-o", "xml"}, `--output "xml" is none of table, json, jsonl`},
		{"output of health ready", []string{"health", "ready", "-o", "xml"}, `--output "xml" is none of table, json, jsonl`},
		{"an empty worker", []string{"health", "ready", "--worker", ""}, "--worker is empty"},
		{"output of env", []string{"env", "-o", "xml"}, `--output "xml" is none of table, json, jsonl`},
		{"header", []string{"enqueue", "kind", "--header", "trace"}, `--header "trace" is not NAME=VALUE`},
	} {
		t.Run(test.name, func(t *testing.T) {
			// Nothing listens there: a command that asks would not end with a usage error.
			args := append(test.args, "--database-url", "postgres://127.0.0.1:1/none")
			if test.name == "output of version" {
				args = test.args
			}
			execute(t, args...).refused(t, test.words)
		})
	}
}

func TestHelp_EveryCommandPrintsItsOwnOnStdout(t *testing.T) {
	eachCommand(testApp(), func(path []string, command *cli.Command) {
		name := "holdfast " + strings.Join(path, " ")
		got := execute(t, append(path, "--help")...)
		if got.code != exitDone || got.stderr != "" {
			t.Errorf("%s --help: exit code %d, stderr %s", name, got.code, got.stderr)
		}
		if command.Usage == "" && !command.Hidden {
			t.Errorf("%s has no usage line", name)
		}
		form := "USAGE:\n   " + name
		if command.ArgsUsage != "" {
			form += " " + command.ArgsUsage
		}
		if !strings.Contains(got.stdout, form) {
			t.Errorf("the help does not say %q:\n%s", form, got.stdout)
		}
		for _, flag := range command.Flags {
			if !strings.Contains(got.stdout, "--"+flag.Names()[0]) {
				t.Errorf("%s --help does not list --%s", name, flag.Names()[0])
			}
		}
		if same := execute(t, append([]string{"help"}, path...)...); same != got {
			t.Errorf("holdfast help %s prints something else", strings.Join(path, " "))
		}
	})
}

func TestHelp_ProgramAloneListsTheCommandsAndTheExitCodes(t *testing.T) {
	alone := execute(t)
	if alone.code != exitDone || alone.stderr != "" {
		t.Errorf("exit code %d, stderr %s", alone.code, alone.stderr)
	}
	for _, words := range []string{"demo ", "simulate ", "bench ", "migrate ", "enqueue ", "work ", "jobs ", "dead ", "queues ", "leases ", "workers ", "keys ", "ring ", "roles ", "status ", "doctor ", "health ", "env ", "completion ", "version ", "Exit codes: 0 done", "holdfast migrate up", "--database-url"} {
		if !strings.Contains(alone.stdout, words) {
			t.Errorf("the help does not say %q:\n%s", words, alone.stdout)
		}
	}
	for _, hidden := range []string{"demo-receipt", "bench-worker"} {
		if strings.Contains(alone.stdout, hidden) {
			t.Errorf("the help shows %s", hidden)
		}
	}
	for _, line := range []string{"--help", "-h", "help"} {
		if execute(t, line) != alone {
			t.Errorf("holdfast %s prints something else than holdfast", line)
		}
	}
	for _, group := range []string{"jobs", "migrate", "queues", "workers", "keys", "dead", "leases", "ring", "roles", "health"} {
		if got := execute(t, group); got.code != exitDone || got != execute(t, group, "--help") {
			t.Errorf("holdfast %s does not print its help: %+v", group, got)
		}
	}
}

func TestHelp_WordIsAKindToEnqueueLikeAnyOther(t *testing.T) {
	for _, kind := range []string{"help", "h"} {
		execute(t, "enqueue", kind).refused(t, "no database given")
	}
}

func TestHelp_EnqueueAndWorkShowAnExample(t *testing.T) {
	for command, example := range map[string]string{
		"enqueue": `  holdfast enqueue send_receipt '{"order_id": 9182}' --key order:9182 --once receipt:9182`,
		"work":    "  holdfast work --kind send_receipt --exec ./send-receipt",
	} {
		if got := execute(t, command, "--help"); !strings.Contains(got.stdout, example) {
			t.Errorf("holdfast %s --help lacks its example:\n%s", command, got.stdout)
		}
	}
}

func TestHealth_LiveRefusesWhatIsNoAddress(t *testing.T) {
	for _, address := range []string{"", "127.0.0.1:9090", "ftp://127.0.0.1", "http://", "http://user:secret@127.0.0.1:1"} {
		execute(t, "health", "live", "--address", address).refused(t, "the address must have the form http://host:port")
	}
	execute(t, "health", "live", "--timeout", "0s").refused(t, "--timeout must be positive")
}

func TestVersion_NamesProgramAndSchema(t *testing.T) {
	got := execute(t, "version")
	if got.code != exitDone || !strings.HasPrefix(got.stdout, "holdfast "+buildVersion()+", schema ") {
		t.Errorf("%+v", got)
	}
	var version struct {
		Version, Go string
		Schema      int
	}
	got = execute(t, "version", "-o", "json")
	if err := json.Unmarshal([]byte(got.stdout), &version); err != nil || got.code != exitDone {
		t.Fatalf("%v: %+v", err, got)
	}
	if version.Schema != domain.SchemaVersion || version.Version != buildVersion() || version.Go == "" {
		t.Errorf("%+v", version)
	}
	if execute(t, "version", "-o", "table") != execute(t, "version") {
		t.Error("table is not the default")
	}
}

func TestMigrateSQL_NeedsNoDatabase(t *testing.T) {
	up, down := execute(t, "migrate", "sql"), execute(t, "migrate", "sql", "--down")
	if up.code != exitDone || !strings.Contains(up.stdout, "CREATE TABLE holdfast.inbox") {
		t.Errorf("up: exit code %d:\n%.500s", up.code, up.stdout)
	}
	if down.code != exitDone || !strings.Contains(down.stdout, "DROP TABLE holdfast.inbox") {
		t.Errorf("down: exit code %d:\n%.500s", down.code, down.stdout)
	}
}

func TestExit_InterruptedCommandSaysSoAndNoMore(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	got := executeWith(ctx, "", "migrate", "up", "--database-url", "postgres://127.0.0.1:1/none")
	if got.code != exitInterrupted || got.stderr != "holdfast: interrupted\n" {
		t.Errorf("%+v", got)
	}
}

func TestExit_InterruptedWorkerThatHoldsNothingIsDone(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if got := executeWith(ctx, "", "work", "--exec", "true", "--database-url", "postgres://127.0.0.1:1/none"); got.code != exitDone {
		t.Errorf("%+v", got)
	}
}
