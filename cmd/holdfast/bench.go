package main

import (
	"fmt"
	"os"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/holdfast-pg/holdfast/app/bench"
)

func benchCommand() *cli.Command {
	names, about := bench.Names()
	var list strings.Builder
	for i, name := range names {
		fmt.Fprintf(&list, "\n  %-9s %s", name, about[i])
	}
	return &cli.Command{
		Name:      "bench",
		Usage:     "measure how fast jobs are worked off on this machine, and at what cost",
		ArgsUsage: "[SCENARIO...]",
		Description: "Starts a private Postgres with the durability of production, makes a database for each trial, runs\n" +
			"workers in processes of their own, and counts. Nothing is left behind. A scenario is printed when it\n" +
			"is complete, and not at all unless every job was completed exactly once and the server did not\n" +
			"restart. Environment variables that name a database are ignored.\n\n" +
			"Scenarios; without any, all of them run:" + list.String(),
		Flags: []cli.Flag{
			&cli.StringFlag{Name: flagDatabaseURL, Usage: "the `URL` of a database whose server is measured in place of a private one; the bench makes databases of its own beside it, and drops them"},
			&cli.StringFlag{Name: "size", Usage: "`SIZE` of what is chosen below: small, to see that it works, or full, to measure", Value: string(bench.SizeFull)},
			&cli.IntFlag{Name: "jobs", Usage: "`N` jobs to work off, where a scenario works off a number", DefaultText: "of the scenario"},
			&cli.DurationFlag{Name: "duration", Usage: "`DURATION` of scenarios that run for a time", DefaultText: "of the scenario"},
			&cli.IntFlag{Name: "payload", Usage: "`BYTES` of a job's payload", Value: 128},
			&cli.IntFlag{Name: "concurrency", Usage: "`N` handlers at once in a worker", Value: 64},
			&cli.Float64Flag{Name: "share", Usage: "`SHARE` of the greatest rate for steady to offer, such as 0.7", DefaultText: "all that is taken"},
			&cli.IntFlag{Name: "repeat", Usage: "`N` runs of each trial; their medians are printed", Value: 1},
			&cli.Int64Flag{Name: "seed", Usage: "`NUMBER` that chooses keys and payloads", Value: 1},
			outputFlag(),
		},
		Action: withArgs(0, 100, runBench),
	}
}

func runBench(c *cli.Context) error {
	given := []string{"payload", "concurrency", "repeat"}
	for _, name := range []string{"jobs", "duration"} { // Without them, 0 stands for the scenario's choice.
		if c.IsSet(name) {
			given = append(given, name)
		}
	}
	if err := checkPositive(c, given...); err != nil {
		return err
	}
	options := bench.Options{
		Scenarios:   c.Args().Slice(),
		DatabaseURL: c.String(flagDatabaseURL),
		Size:        bench.Size(c.String("size")),
		Seed:        c.Int64("seed"),
		Jobs:        c.Int("jobs"),
		Duration:    c.Duration("duration"),
		Payload:     c.Int("payload"),
		Concurrency: c.Int("concurrency"),
		Share:       c.Float64("share"),
		Repeat:      c.Int("repeat"),
		Version:     buildVersion(),
		Out:         c.App.Writer,
		Progress:    c.App.ErrWriter,
	}
	if c.String(flagOutput) != formatTable {
		options.Print = func(report bench.Report) error { return printJSON(c, report) }
	}
	if err := options.Check(); err != nil {
		return err
	}
	program, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find this program, to run it as a worker: %w", err)
	}
	options.Program = program
	if options.DatabaseURL == "" {
		if err := forgetDatabase(); err != nil {
			return err
		}
	}
	return bench.Run(c.Context, options)
}

// benchWorkerCommand is a worker of the bench, which tells it all else over stdin.
func benchWorkerCommand() *cli.Command {
	return &cli.Command{
		Name:   "bench-worker",
		Hidden: true,
		Action: withArgs(0, 0, func(c *cli.Context) error {
			return bench.RunWorker(c.Context, c.App.Reader, c.App.Writer)
		}),
	}
}
