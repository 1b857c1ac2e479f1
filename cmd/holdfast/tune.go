package main

import (
	"fmt"
	"runtime"
	"slices"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/urfave/cli/v2"

	"github.com/holdfast-pg/holdfast/app/tune"
	"github.com/holdfast-pg/holdfast/domain"
	"github.com/holdfast-pg/holdfast/worker"
)

// The formats that only tune prints.
const (
	formatGo  = "go"
	formatEnv = "env"
)

func tuneCommand() *cli.Command {
	return &cli.Command{
		Name:  "tune",
		Usage: "work out which settings suit a workload, and say why",
		Description: "Describe the work with flags, or let --measure read it from the database: the rate at which jobs come,\n" +
			"what live workers say of their handlers, and the settings as they stand. A flag wins over what is\n" +
			"measured. Nothing is changed. The flags of `work` say how the settings stand.\n\n" +
			"Exit code 3: no setting makes the work possible; what is missing is printed, and by how much.\n\n" +
			"Example:\n" +
			"  holdfast tune --rate 100 --p50 300ms --p99 5s --workers 2",
		Flags:  slices.Concat(workloadFlags(), workFlags(), databaseFlags()),
		Before: func(c *cli.Context) error { return checkFormat(c, formatGo, formatEnv) },
		Action: withArgs(0, 0, tuneWork),
	}
}

func workloadFlags() []cli.Flag {
	return []cli.Flag{
		&cli.Float64Flag{Name: "rate", Usage: "`N` jobs enqueued in a second", DefaultText: "needed, or --measure"},
		&cli.DurationFlag{Name: "p50", Usage: "`DURATION` of the median handler", DefaultText: "needed, or --measure"},
		&cli.DurationFlag{Name: "p99", Usage: "`DURATION` that 99 in 100 handlers do not exceed", DefaultText: "needed, or --measure"},
		&cli.IntFlag{Name: "workers", Usage: "`N` worker processes", Value: 1},
		&cli.IntFlag{Name: "cores", Usage: "`N` cores that each of them has", DefaultText: "those of this machine"},
		&cli.BoolFlag{Name: "compute", Usage: "handlers use the processor; without it, they wait for most of their time"},
		&cli.IntFlag{Name: "held-connections", Usage: "`N` connections that a handler holds while it runs; 1 for HandleTx", Value: 0},
		&cli.IntFlag{Name: "max-connections", Usage: "`N` connections that the server, or a pooler, has for the workers", Value: tune.DefaultConnections},
		&cli.IntFlag{Name: "max-concurrency", Usage: "`N` handlers at once that a process bears", Value: tune.DefaultMostSlots},
		&cli.IntFlag{Name: "payload", Usage: "`BYTES` of a payload", Value: tune.DefaultPayload},
		&cli.BoolFlag{Name: "ordered", Usage: "jobs of one key run one at a time, in order"},
		&cli.Float64Flag{Name: "hot-key", Usage: "`SHARE` of the jobs that have the busiest key, such as 0.4", Value: 0},
		&cli.DurationFlag{Name: "measure", Usage: "`DURATION` for which to look at the queue, such as 60s", DefaultText: "not at all"},
		&cli.StringFlag{Name: "queue", Usage: "the `QUEUE` to measure", Value: domain.DefaultQueue},
		&cli.StringFlag{Name: flagOutput, Aliases: []string{"o"}, Usage: "`FORMAT`: table, json or jsonl, go (a holdfast.Config) or env (variables for work)", Value: formatTable},
	}
}

func tuneWork(c *cli.Context) error {
	workload, current, err := describeWork(c)
	if err != nil {
		return err
	}
	if err := workload.Check(); err != nil {
		return err
	}
	recommended := tune.Recommend(workload)
	switch c.String(flagOutput) {
	case formatGo, formatEnv:
		return printConfiguration(c, workload, recommended)
	}
	report := tune.Advise(workload, current)
	if c.String(flagOutput) != formatTable {
		err = printJSON(c, report)
	} else {
		err = printAdvice(c, report)
	}
	if n := len(report.Lacks); err == nil && n > 0 {
		return &findingsError{count: n}
	}
	return err
}

// describeWork puts together what is measured and what the flags say.
func describeWork(c *cli.Context) (w tune.Workload, current tune.Current, err error) {
	measures := c.IsSet("measure")
	described := c.IsSet("rate") && c.IsSet("p50") && c.IsSet("p99")
	if !measures && !described {
		return w, current, usage("--rate, --p50 and --p99 describe the work; or --measure DURATION reads them from the database")
	}
	w = workloadOf(c)
	config, err := workConfig(c)
	if err != nil {
		return w, current, err
	}
	current = tune.Current{Values: tune.Defaults(w.Cores), From: map[string]string{}}
	if measures {
		if w, current, err = measureWork(c, w); err != nil {
			return w, current, err
		}
	}
	applyGiven(c, config, &current)
	return w, current, nil
}

func workloadOf(c *cli.Context) tune.Workload {
	cores := c.Int("cores")
	if !c.IsSet("cores") {
		cores = runtime.NumCPU()
	}
	return tune.Workload{
		Rate: c.Float64("rate"), P50: tune.Seconds(c.Duration("p50")), P99: tune.Seconds(c.Duration("p99")),
		Compute: c.Bool("compute"), Held: c.Int("held-connections"), Payload: c.Int("payload"),
		Ordered: c.Bool("ordered"), HotShare: c.Float64("hot-key"),
		Workers: c.Int("workers"), Cores: cores, MostSlots: c.Int("max-concurrency"), Connections: c.Int("max-connections"),
	}
}

// measureWork fills in what no flag gives.
func measureWork(c *cli.Context, w tune.Workload) (tune.Workload, tune.Current, error) {
	if err := checkPositive(c, "measure"); err != nil {
		return w, tune.Current{}, err
	}
	var measured tune.Measured
	err := withDatabase(c, func(pool *pgxpool.Pool) (err error) {
		fmt.Fprintf(c.App.ErrWriter, "looking at queue %s for %s\n", c.String("queue"), c.Duration("measure"))
		measured, err = tune.Measure(c.Context, pool, c.String("queue"), c.Duration("measure"), w.Cores)
		return err
	})
	if err != nil {
		return w, tune.Current{}, err
	}
	given := tune.Given{
		Rate: c.IsSet("rate"), P50: c.IsSet("p50"), P99: c.IsSet("p99"), Workers: c.IsSet("workers"),
		Ordered: c.IsSet("ordered"), HotShare: c.IsSet("hot-key"), Connections: c.IsSet("max-connections"),
	}
	w, err = measured.Fill(w, given)
	return w, measured.Current, err
}

// applyGiven lets flags and environment say how settings stand.
func applyGiven(c *cli.Context, config worker.Config, current *tune.Current) {
	for _, setting := range workSettings {
		if source := setting.source(c); source != "" {
			current.Set(setting.field, config, source)
		}
	}
}
