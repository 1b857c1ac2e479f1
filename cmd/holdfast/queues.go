package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/urfave/cli/v2"

	"github.com/holdfast-pg/holdfast/domain"
)

func queuesCommand() *cli.Command {
	return &cli.Command{
		Name:  "queues",
		Usage: "look at queues, set, pause and resume them",
		Subcommands: []*cli.Command{
			listQueuesCommand(),
			showQueueCommand(),
			{
				Name:      "set",
				Usage:     "change settings of a queue, which is created if it does not exist, and print them all",
				ArgsUsage: "NAME",
				Description: "A setting that is not given stays as it is. Workers that run need no restart.\n\n" +
					"Example:\n" +
					"  holdfast queues set payments --ordered=true --retention 30d",
				Flags: append([]cli.Flag{
					&cli.BoolFlag{Name: "ordered", Usage: "run the jobs of one key one at a time, in order, or with =false do not; fixed while the queue has jobs", DisableDefaultText: true},
					&cli.IntFlag{Name: "max-attempts", Usage: "`N` attempts at most for jobs whose enqueue says nothing else", DefaultText: "unchanged"},
					&cli.StringFlag{Name: "retention-mode", Usage: "what becomes of a completed job: `MODE` is archive, keep or drop", DefaultText: "unchanged"},
					&cli.StringFlag{Name: "keep-for", Usage: "`DURATION` that mode keep leaves a completed job in the inbox, such as 36h or 2d", DefaultText: "unchanged"},
					&cli.StringFlag{Name: "retention", Usage: "`DURATION` for which a completed job can be found at least, such as 30d", DefaultText: "unchanged"},
					&cli.StringFlag{Name: "dedupe-window", Usage: "`DURATION` for which an idempotency key stays taken, such as 7d", DefaultText: "unchanged"},
					&cli.BoolFlag{Name: "ring", Usage: "let an enqueue wake a worker, or with =false do not", DisableDefaultText: true},
					outputFlag(),
				}, append(operatorFlags(), databaseFlags()...)...),
				Action: withArgs(1, 1, setQueue),
			},
			{
				Name:      "pause",
				Usage:     "stop claims from a queue; what is claimed runs on",
				ArgsUsage: "NAME",
				Flags:     append(operatorFlags(), databaseFlags()...),
				Action:    withArgs(1, 1, pauseQueue),
			},
			{
				Name:      "resume",
				Usage:     "let the jobs of a paused queue be claimed again",
				ArgsUsage: "NAME",
				Flags:     append(operatorFlags(), databaseFlags()...),
				Action:    withArgs(1, 1, resumeQueue),
			},
		},
	}
}

func setQueue(c *cli.Context) error {
	change, err := queueChange(c)
	if err != nil {
		return err
	}
	by, err := operator(c)
	if err != nil {
		return err
	}
	return withDatabase(c, func(pool *pgxpool.Pool) error {
		settings, err := by.SetQueue(c.Context, pool, c.Args().First(), change)
		if err != nil {
			return err
		}
		queue := newQueueItem(settings)
		return printRecord(c, queue, queueFacts(queue)...)
	})
}

// queueChange reads the flags that are given.
func queueChange(c *cli.Context) (change domain.QueueChange, err error) {
	if c.IsSet("ordered") {
		change.Ordered = new(c.Bool("ordered"))
	}
	if c.IsSet("max-attempts") {
		change.MaxAttempts = new(c.Int("max-attempts"))
	}
	if c.IsSet("retention-mode") {
		change.RetentionMode = new(domain.RetentionMode(c.String("retention-mode")))
	}
	if c.IsSet("ring") {
		change.Ring = new(c.Bool("ring"))
	}
	for name, setting := range map[string]**time.Duration{
		"keep-for": &change.KeepFor, "retention": &change.Retention, "dedupe-window": &change.DedupeWindow,
	} {
		if !c.IsSet(name) {
			continue
		}
		duration, err := parseDuration(c.String(name))
		if err != nil {
			return change, usage("--%s %q is no duration, such as 36h, 90m or 7d", name, c.String(name))
		}
		*setting = &duration
	}
	return change, nil
}

// parseDuration reads a Go duration that may begin with whole days, such as 7d or 1d12h.
func parseDuration(text string) (time.Duration, error) {
	const day, mostDays = 24 * time.Hour, 100_000
	count, rest, hasDays := strings.Cut(text, "d")
	if !hasDays {
		return time.ParseDuration(text)
	}
	days, err := strconv.ParseUint(count, 10, 64)
	if err != nil || days > mostDays {
		return 0, fmt.Errorf("%q are not 0 to %d days", count, mostDays)
	}
	if rest == "" {
		return time.Duration(days) * day, nil
	}
	part, err := time.ParseDuration(rest)
	if err != nil || part < 0 || part >= day {
		return 0, fmt.Errorf("%q is not less than a day", rest)
	}
	return time.Duration(days)*day + part, nil
}

// formatDuration writes what parseDuration reads.
func formatDuration(d time.Duration) string {
	const day = 24 * time.Hour
	if d >= day && d%day == 0 {
		return fmt.Sprintf("%dd", d/day)
	}
	return d.String()
}

// queueItem is a queue with durations that the flags understand.
type queueItem struct {
	Name          string               `json:"name"`
	Paused        bool                 `json:"paused"`
	Ordered       bool                 `json:"ordered"`
	MaxAttempts   int                  `json:"max_attempts"`
	RetentionMode domain.RetentionMode `json:"retention_mode"`
	KeepFor       string               `json:"keep_for"`
	Retention     string               `json:"retention"`
	DedupeWindow  string               `json:"dedupe_window"`
	Ring          bool                 `json:"ring"`
}

func newQueueItem(queue domain.QueueSettings) queueItem {
	return queueItem{
		Name: queue.Name, Paused: queue.Paused, Ordered: queue.Ordered, MaxAttempts: queue.MaxAttempts, RetentionMode: queue.RetentionMode,
		KeepFor: formatDuration(queue.KeepFor), Retention: formatDuration(queue.Retention), DedupeWindow: formatDuration(queue.DedupeWindow), Ring: queue.Ring,
	}
}

func pauseQueue(c *cli.Context) error {
	return operateQueue(c, func(by domain.By) queueOrder { return by.PauseQueue }, "is paused: nothing is claimed from it, what is claimed runs on")
}

func resumeQueue(c *cli.Context) error {
	return operateQueue(c, func(by domain.By) queueOrder { return by.ResumeQueue }, "is resumed: its jobs are claimed again")
}

// queueOrder is what a person orders of a queue.
type queueOrder func(ctx context.Context, db domain.DBTX, name string) error

// operateQueue does something to the queue that is named, and says what became of it.
func operateQueue(c *cli.Context, order func(by domain.By) queueOrder, done string) error {
	by, err := operator(c)
	if err != nil {
		return err
	}
	return withDatabase(c, func(pool *pgxpool.Pool) error {
		name := c.Args().First()
		if err := order(by)(c.Context, pool, name); err != nil {
			return err
		}
		fmt.Fprintln(c.App.Writer, name, done)
		return nil
	})
}
