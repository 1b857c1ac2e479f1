// Command peers measures Holdfast beside River, Graphile Worker and a bare loop of its own
// statements, on one Postgres server, in turns.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/holdfast-pg/holdfast"
)

const (
	retentionArchive = holdfast.RetentionArchive
	retentionDrop    = holdfast.RetentionDrop
)

func main() {
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:])
	cancel()
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "bench-peers: "+err.Error())
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	if len(args) > 1 && args[0] == workerCommand {
		return runWorker(ctx, args[1:], os.Stdin, os.Stdout)
	}
	o, err := parseOptions(args)
	if err != nil {
		return err
	}
	result, err := compare(ctx, o, os.Stderr)
	if err != nil {
		return err
	}
	if o.output == "json" {
		return result.writeJSON(os.Stdout)
	}
	return result.writeText(os.Stdout)
}

type options struct {
	scenarios   []string
	systems     []string // Beginnings of names.
	jobs        int
	duration    time.Duration
	rounds      int
	concurrency int
	databaseURL string
	graphile    string
	output      string
}

func parseOptions(args []string) (options, error) {
	var o options
	var scenarios, systems string
	flags := flag.NewFlagSet("bench-peers", flag.ContinueOnError)
	flags.StringVar(&scenarios, "scenario", drain+","+steady, "`scenarios`: drain (all jobs wait before work begins), steady (jobs are added meanwhile)")
	flags.StringVar(&systems, "systems", "", "only systems whose names begin with these `names`, such as river,bare (default: all)")
	flags.IntVar(&o.jobs, "jobs", 200_000, "jobs of drain")
	flags.DurationVar(&o.duration, "duration", time.Minute, "how long steady lasts")
	flags.IntVar(&o.rounds, "rounds", 3, "turns of each system in each scenario")
	flags.IntVar(&o.concurrency, "concurrency", 64, "handlers of Holdfast at once")
	flags.StringVar(&o.databaseURL, "database-url", "", "`URL` of a server to use in place of a private one; a database holdfast_bench_peers comes and goes there")
	flags.StringVar(&o.graphile, "graphile", "tools/peers/graphile", "`folder` of worker.mjs, after npm ci")
	flags.StringVar(&o.output, "o", "text", "text or json")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	o.scenarios, o.systems = strings.Split(scenarios, ","), strings.Split(systems, ",")
	for _, scenario := range o.scenarios {
		if scenario != drain && scenario != steady {
			return o, fmt.Errorf("--scenario %q: write drain, steady or drain,steady", scenario)
		}
	}
	switch {
	case flags.NArg() > 0:
		return o, fmt.Errorf("%q is not an option", flags.Arg(0))
	case o.output != "text" && o.output != "json":
		return o, fmt.Errorf("-o %q: write text or json", o.output)
	case o.jobs < 1 || o.rounds < 1 || o.concurrency < 1 || o.duration <= 0:
		return o, errors.New("--jobs, --rounds, --concurrency and --duration must be positive")
	}
	return o, nil
}

// compare lets all systems take turns. The first that fails ends the run: a table that lacks
// a system, or shows what it did before it failed, would be read as a comparison.
func compare(ctx context.Context, o options, progress io.Writer) (result *report, err error) {
	result = &report{Machine: describeMachine(), Method: method(o), Notes: []string{}}
	on, err := findServer(ctx, o.databaseURL, progress)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, on.stop()) }()
	if result.Server, err = on.describe(ctx); err != nil {
		return nil, fmt.Errorf("ask the server for its settings: %w", err)
	}
	systems := chosenSystems(o)
	if len(systems) == 0 {
		return nil, fmt.Errorf("--systems %q: no name begins like this", strings.Join(o.systems, ","))
	}
	versions := map[string]string{}
	for _, scenario := range o.scenarios {
		samples, err := takeTurns(ctx, o, on, systems, scenario, progress)
		if err != nil {
			return nil, err
		}
		for name, each := range samples {
			versions[name] = each[0].versions
		}
		result.Scenarios = append(result.Scenarios, newRows(scenario, systems, samples))
	}
	for _, each := range systems {
		result.Systems = append(result.Systems, systemFacts{Name: each.Name(), Versions: versions[each.Name()], Settings: each.Settings()})
	}
	result.addNotes()
	return result, nil
}

func allSystems(o options) []system {
	return []system{
		riverSystem{},
		graphileSystem{folder: o.graphile},
		bareSystem{inbox{retentionArchive}},
		bareSystem{inbox{retentionDrop}},
		holdfastSystem{inbox{retentionArchive}, o.concurrency},
		holdfastSystem{inbox{retentionDrop}, o.concurrency},
	}
}

// chosenSystems returns the systems of which a name in the options is the beginning.
func chosenSystems(o options) []system {
	return slices.DeleteFunc(allSystems(o), func(each system) bool {
		return !slices.ContainsFunc(o.systems, func(start string) bool { return strings.HasPrefix(each.Name(), start) })
	})
}

// takeTurns runs every system once a round. Each round begins with the next one, so that none
// is always first, or always follows the same one from a cold start.
func takeTurns(ctx context.Context, o options, on *server, systems []system, scenario string, progress io.Writer) (map[string][]sample, error) {
	samples := map[string][]sample{}
	for round := range o.rounds {
		first := round % len(systems)
		for _, each := range slices.Concat(systems[first:], systems[:first]) {
			taken, err := measure(ctx, o, on, each, scenario)
			if err != nil {
				return nil, fmt.Errorf("%s: %s: %w", scenario, each.Name(), err)
			}
			fmt.Fprintf(progress, "%s, round %d of %d, %s: %.0f jobs/s\n", scenario, round+1, o.rounds, each.Name(), taken.Rate)
			samples[each.Name()] = append(samples[each.Name()], taken)
		}
	}
	return samples, nil
}

// method says how the numbers come about.
func method(o options) []string {
	return []string{
		fmt.Sprintf("rounds of each scenario: %d; in each every system has a turn, beginning with the next one", o.rounds),
		"a turn: CHECKPOINT, fresh database, schema, first jobs, ANALYZE; the worker, a process of its own, connects and waits for the word to begin",
		fmt.Sprintf("jobs: no-op, %d bytes of JSON, added %d in a call", payloadSize, addBatch),
		fmt.Sprintf("drain: %d jobs wait; from that word until the table shows all of them as done", o.jobs),
		fmt.Sprintf("steady: %d jobs wait; for %s this program adds more whenever fewer wait; jobs that the table shows as done at the end", backlog, o.duration),
		"rates are jobs found done in the table, by count(*), asked the more often the nearer the end",
		"× are ratios of medians; × bare: to the bare loop that archives for systems that keep a job's row, to the one that drops for those that delete it",
		"WAL: all that the server wrote in the turn's measured time, by jobs done; in steady with the adding",
	}
}
