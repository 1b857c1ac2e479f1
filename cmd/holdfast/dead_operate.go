package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/schollz/progressbar/v3"
	"github.com/urfave/cli/v2"

	"github.com/holdfast-pg/holdfast/app"
	"github.com/holdfast-pg/holdfast/domain"
)

// deadOperateCommands are what a person does to dead jobs by a filter.
func deadOperateCommands() []*cli.Command {
	flags := func(more ...cli.Flag) []cli.Flag {
		return slices.Concat(deadFilterFlags(), more, walkFlags(), operatorFlags(), consentFlags(), []cli.Flag{outputFlag()}, databaseFlags())
	}
	maxAttempts := &cli.IntFlag{Name: "max-attempts", Usage: "`N` attempts at most from now on", DefaultText: "unchanged"}
	return []*cli.Command{
		{
			Name: "redrive", Usage: "put back what a filter finds, in the order of the enqueues",
			Description: "Example:\n  holdfast dead redrive --queue mail --error \"smtp 421\" --rate 50 --reason \"the provider is back\"",
			Flags:       flags(maxAttempts), Action: withArgs(0, 0, redriveDead),
		},
		{
			Name: "purge", Usage: "delete for good what a filter finds",
			Flags: flags(), Action: withArgs(0, 0, purgeDead),
		},
	}
}

func deadFilterFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "queue", Usage: "of this `QUEUE`", DefaultText: "any"},
		&cli.StringFlag{Name: "kind", Usage: "of this `KIND`", DefaultText: "any"},
		&cli.StringFlag{Name: "key", Usage: "of this partition `KEY`", DefaultText: "any"},
		&cli.StringFlag{Name: "error", Usage: "with this `TEXT` in the last error", DefaultText: "any"},
		&cli.StringFlag{Name: "older-than", Usage: "finished a `DURATION` ago or longer, such as 36h or 7d", DefaultText: "any"},
		&cli.BoolFlag{Name: "all", Usage: "all there are, where no filter is given", DisableDefaultText: true},
	}
}

func walkFlags() []cli.Flag {
	return []cli.Flag{&cli.IntFlag{Name: "rate", Usage: "`N` jobs a second at most", DefaultText: "no limit"}}
}

// deadFilter reads the filter. None at all is not taken for all, unless --all says so.
func deadFilter(c *cli.Context) (filter domain.DeadFilter, err error) {
	filter = domain.DeadFilter{Queue: c.String("queue"), Kind: c.String("kind"), Key: c.String("key"), Error: c.String("error")}
	if c.IsSet("older-than") {
		if filter.OlderThan, err = parseDuration(c.String("older-than")); err != nil || filter.OlderThan < 0 {
			return filter, usage("--older-than %q is no duration, such as 36h, 90m or 7d", c.String("older-than"))
		}
	}
	for _, name := range []string{"queue", "kind", "key", "error"} {
		if c.IsSet(name) && c.String(name) == "" {
			return filter, usage("--%s is empty", name)
		}
	}
	given := filter != domain.DeadFilter{}
	switch {
	case !given && !c.Bool("all"):
		return filter, usage("which jobs? Give a filter (--queue, --kind, --key, --error, --older-than), or --all for all of every queue")
	case given && c.Bool("all"):
		return filter, usage("--all and a filter exclude each other")
	}
	return filter, nil
}

// walkDead changes what a filter finds.
type walkDead func(ctx context.Context, pool *pgxpool.Pool, by domain.By, filter domain.DeadFilter, walk domain.Walk) (domain.Progress, error)

func redriveDead(c *cli.Context) error {
	maxAttempts, err := maxAttemptsFlag(c)
	if err != nil {
		return err
	}
	return operateDead(c, redriving, func(ctx context.Context, pool *pgxpool.Pool, by domain.By, filter domain.DeadFilter, walk domain.Walk) (domain.Progress, error) {
		return by.RedriveDead(ctx, pool, filter, maxAttempts, walk)
	})
}

func purgeDead(c *cli.Context) error {
	return operateDead(c, purging, func(ctx context.Context, pool *pgxpool.Pool, by domain.By, filter domain.DeadFilter, walk domain.Walk) (domain.Progress, error) {
		return by.PurgeDead(ctx, pool, filter, walk)
	})
}

func operateDead(c *cli.Context, d deed, change walkDead) error {
	filter, err := deadFilter(c)
	if err != nil {
		return err
	}
	if c.IsSet("rate") {
		if err := checkPositive(c, "rate"); err != nil {
			return err
		}
	}
	by, err := operator(c)
	if err != nil {
		return err
	}
	return withDatabase(c, func(pool *pgxpool.Pool) error {
		if filter.Queue != "" {
			if _, err := domain.FindQueue(c.Context, pool, filter.Queue); err != nil {
				return err
			}
		}
		preview, err := domain.PreviewDead(c.Context, pool, filter)
		if err != nil {
			return err
		}
		if preview.Jobs == 0 {
			fmt.Fprintln(c.App.ErrWriter, "no failed or dead-lettered job fits")
			return printWalked(c, d, domain.Progress{})
		}
		if goOn, err := showAndAsk(c, d, preview); err != nil || !goOn {
			return err
		}
		return walk(c, pool, by, d, filter, *preview.Until, change)
	})
}

// walk goes through what the preview has shown, and says how far it came, whatever ended it.
func walk(c *cli.Context, pool *pgxpool.Pool, by domain.By, d deed, filter domain.DeadFilter, until time.Time, change walkDead) error {
	steps := domain.Walk{Until: until, Batch: domain.MaxWalkBatch}
	rate := c.Int("rate")
	if rate > 0 {
		steps.Batch = min(rate, steps.Batch)
	}
	show, err := showProgress(c, d)
	if err != nil {
		return err
	}
	began := time.Now()
	steps.Progress = func(progress domain.Progress) error {
		show(progress)
		if rate == 0 || progress.Seen == progress.Of {
			return nil
		}
		return pause(c.Context, time.Until(began.Add(time.Duration(progress.Seen)*time.Second/time.Duration(rate))))
	}
	done, err := change(c.Context, pool, by, filter, steps)
	if printErr := printWalked(c, d, done); printErr != nil {
		return errors.Join(err, printErr)
	}
	if err != nil && done.Of > 0 {
		fmt.Fprintln(c.App.ErrWriter, "run the command again for the rest")
	}
	return err
}

// showProgress shows a line that moves on a terminal, and elsewhere logs one for each batch.
func showProgress(c *cli.Context, d deed) (func(domain.Progress), error) {
	if app.IsTerminal(c.App.ErrWriter) {
		var bar *progressbar.ProgressBar
		return func(progress domain.Progress) {
			if bar == nil {
				bar = progressbar.NewOptions(progress.Of,
					progressbar.OptionSetWriter(c.App.ErrWriter), progressbar.OptionSetDescription(d.verb), progressbar.OptionShowCount(),
					progressbar.OptionClearOnFinish())
			}
			_ = bar.Set(progress.Seen)
		}, nil
	}
	log, err := newLogger(c)
	if err != nil {
		return nil, err
	}
	return func(progress domain.Progress) {
		log.Info(d.done, "done", progress.Done, "seen", progress.Seen, "of", progress.Of)
	}, nil
}

func printWalked(c *cli.Context, d deed, done domain.Progress) error {
	if c.String(flagOutput) != formatTable {
		return printJSON(c, struct {
			Operation string `json:"operation"`
			domain.Progress
		}{d.verb, done})
	}
	_, err := fmt.Fprintf(c.App.Writer, "%s %d of %s\n", d.done, done.Done, jobs(done.Of))
	return err
}
