package integration

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// alsoMasked is what differs from run to run beside ids, times and ages.
var alsoMasked = []struct{ pattern, word string }{
	{`\d{4}-\d\d-\d\d \d\d:\d\d:\d\d( UTC)?`, "TIME"},
	{`(?m)^\d\d:\d\d:\d\d `, "TIME "},
	{`\b(\d+h)?(\d+m)?\d+s\b`, "AGE"},
	{`(?s)"(arrivals|completions)": \{.*?\}`, `"$1": …`},
	{`(?s)"buckets": \[.*?\]`, `"buckets": …`},
	{`(came in|were completed) .*`, "$1 RATE"},
	{`(schema\W+)\d+`, "${1}N"},
}

// transcript is what a person would have seen of some commands.
func transcript(ran []*process, ids map[string]string) string {
	var text strings.Builder
	for _, each := range ran {
		line := strings.Join(each.command.Args[1:], " ")
		for token, id := range ids {
			line = strings.ReplaceAll(line, id, token)
		}
		fmt.Fprintf(&text, "$ holdfast %s\n%s", line, golden(&each.stdout))
		if said := golden(&each.stderr); said != "" {
			fmt.Fprintf(&text, "[on stderr]\n%s", said)
		}
		if each.code != 0 {
			fmt.Fprintf(&text, "[exit code %d]\n", each.code)
		}
		fmt.Fprintln(&text)
	}
	masked := text.String()
	for _, each := range alsoMasked {
		masked = regexp.MustCompile(each.pattern).ReplaceAllString(masked, each.word)
	}
	return masked
}

// wantTranscript compares with a file, which `go test -update` writes.
func wantTranscript(t *testing.T, name, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(name, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	gotLines, wantLines := strings.Split(got, "\n"), strings.Split(string(want), "\n")
	command := ""
	for i, line := range gotLines {
		if strings.HasPrefix(line, "$ ") {
			command = line
		}
		if i >= len(wantLines) || line != wantLines[i] {
			t.Fatalf("%s differs from line %d on, at\n%s\nprinted:\n%s\nwant:\n%s\n`go test ./integration -run %s -update` writes it anew",
				name, i+1, command, line, strings.Join(wantLines[min(i, len(wantLines)):min(i+1, len(wantLines))], "\n"), t.Name())
		}
	}
	if len(wantLines) > len(gotLines) {
		t.Errorf("%s has more: %s", name, wantLines[len(gotLines)])
	}
}

// Every command that looks prints what it printed before, as a table and as JSON. One that is added
// joins by itself.
func TestCLI_EveryCommandThatLooksPrintsWhatItDid(t *testing.T) {
	t.Parallel()
	database, ids := cliWorld(t)
	var lines [][]string
	for _, name := range asksDatabase(t, func(flags []string) bool { return slices.Contains(flags, "output") && !isOrder(flags) }) {
		var more []string
		switch name {
		case "enqueue":
			continue // It is among the orders.
		case "doctor":
			more = []string{"--check", "schema_version", "--check", "dead_keys"} // What others find depends on the server.
		}
		lines = append(lines, cliLine(name, ids, more...), cliLine(name, ids, append(more, "-o", "json")...))
	}
	wantTranscript(t, "testdata/cli_looks.golden", transcript(runMany(t, database.URL, lines), ids))
}

// cliOrders are command lines that change something, in an order in which each finds what it needs.
var cliOrders = []string{
	"queues pause default --reason slow", "queues resume default",
	"queues set default --max-attempts 9", "queues set default --max-attempts 5 -o json",
	"jobs cancel WAITING --reason wrong", "jobs cancel READY -o json", "jobs cancel READY",
	"jobs redrive WAITING", "jobs redrive READY -o json --max-attempts 3",
	"jobs release RUNNING", "jobs release RUNNING -o json",
	"jobs purge DEAD", "jobs purge DEAD --dry-run", "jobs purge DEAD --yes", "jobs purge DEAD --yes -o json",
	"jobs cancel WAITING READY --yes -o json",
	"dead redrive --kind note", "dead redrive --kind note --dry-run -o json", "dead redrive --kind note --yes --log-format text",
	"dead redrive --kind note --yes -o json",
	"jobs cancel WAITING READY --yes",
	"dead purge --kind note --dry-run", "dead purge --kind note --yes -o json --log-format text", "dead purge --all --yes",
	"workers drain w1", "workers drain w1",
	"workers evict w1 --dry-run", "workers evict w1 --yes", "workers evict w1 --yes -o json",
	"enqueue note --key order:7 --once twice", "enqueue note --key order:7 --once twice -o json", "enqueue note --key order:7 -o json",
}

func TestCLI_EveryOrderPrintsWhatItDid(t *testing.T) {
	t.Parallel()
	database, ids := cliWorld(t)
	var ran []*process
	for _, line := range cliOrders {
		words := strings.Fields(line)
		for i, word := range words {
			if id := ids[word]; id != "" {
				words[i] = id
			}
		}
		ran = append(ran, runMany(t, database.URL, [][]string{words})...)
	}
	wantTranscript(t, "testdata/cli_orders.golden", transcript(ran, ids))
	for _, name := range asksDatabase(t, isOrder) {
		if !slices.ContainsFunc(cliOrders, func(line string) bool { return strings.HasPrefix(line, name+" ") }) {
			t.Errorf("%s is not among the orders", name)
		}
	}
}
