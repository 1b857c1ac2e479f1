package main

import (
	"fmt"
	"strconv"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/urfave/cli/v2"

	"github.com/holdfast-pg/holdfast/domain"
)

func deadCommand() *cli.Command {
	return &cli.Command{
		Name:  "dead",
		Usage: "look at failed and dead-lettered jobs, put them back or delete them",
		Subcommands: append([]*cli.Command{
			deadGroupsCommand(),
			deadListCommand(),
			deadKeysCommand(),
		}, deadOperateCommands()...),
	}
}

func deadGroupsCommand() *cli.Command {
	return &cli.Command{
		Name:  "groups",
		Usage: "group the newest dead jobs of a queue by what killed them, or by key",
		Flags: append([]cli.Flag{
			queueFlag(),
			&cli.StringFlag{Name: "by", Usage: "group by `WHAT`: error or key", Value: "error"},
			limitFlag("groups"),
			outputFlag(),
		}, readFlags()...),
		Action: withArgs(0, 0, deadGroups),
	}
}

func deadListCommand() *cli.Command {
	return &cli.Command{
		Name:  "list",
		Usage: "list dead jobs of a queue, newest first",
		Flags: append([]cli.Flag{
			queueFlag(),
			&cli.StringFlag{Name: "kind", Usage: "jobs of this `KIND` only"},
			&cli.StringFlag{Name: "key", Usage: "jobs of this partition `KEY` only"},
			&cli.StringFlag{Name: "error", Usage: "jobs with the error `FINGERPRINT` of `dead groups` only"},
			limitFlag("jobs"),
			afterFlag(),
			outputFlag(),
		}, readFlags()...),
		Action: withArgs(0, 0, listDead),
	}
}

func listDead(c *cli.Context) error {
	columns := append(jobColumns()[:6],
		column[domain.ListedJob]{"ERROR", func(j domain.ListedJob) string { return j.Fingerprint }},
		column[domain.ListedJob]{"LAST ERROR", func(j domain.ListedJob) string { return shortened(j.LastError, shownError) }},
	)
	return withPage(c, func(pool *pgxpool.Pool, filter domain.JobFilter) (domain.JobPage, error) {
		return domain.ListDeadJobs(c.Context, pool, filter)
	}, columns...)
}

func deadGroups(c *cli.Context) error {
	by := c.String("by")
	if by != "error" && by != "key" {
		return usage("--by %q is none of error, key", by)
	}
	if err := checkPositive(c, "limit"); err != nil {
		return err
	}
	return withReplica(c, func(pool *pgxpool.Pool) error {
		queue, limit := c.String("queue"), min(c.Int("limit"), listLimit)
		if _, err := domain.FindQueue(c.Context, pool, queue); err != nil {
			return err
		}
		if by == "key" {
			groups, err := domain.DeadLettersPerKey(c.Context, pool, queue, limit)
			if err != nil {
				return err
			}
			return printGroups(c, groups,
				column[domain.KeyDeadLetters]{"KEY", func(g domain.KeyDeadLetters) string { return g.PartitionKey }},
				column[domain.KeyDeadLetters]{"JOBS", func(g domain.KeyDeadLetters) string { return strconv.FormatInt(g.Jobs, 10) }},
				column[domain.KeyDeadLetters]{"FIRST", func(g domain.KeyDeadLetters) string { return moment(g.FirstAt) }},
				column[domain.KeyDeadLetters]{"LAST", func(g domain.KeyDeadLetters) string { return moment(g.LastAt) }},
				column[domain.KeyDeadLetters]{"LAST ERROR", func(g domain.KeyDeadLetters) string { return shortened(g.SampleError, shownError) }},
			)
		}
		groups, err := domain.DeadByError(c.Context, pool, queue, limit)
		if err != nil {
			return err
		}
		return printGroups(c, groups, groupColumns()...)
	})
}

func groupColumns() []column[domain.ErrorGroup] {
	return []column[domain.ErrorGroup]{
		{"KIND", func(g domain.ErrorGroup) string { return g.Kind }},
		{"ERROR", func(g domain.ErrorGroup) string { return g.Fingerprint }},
		{"JOBS", func(g domain.ErrorGroup) string { return strconv.FormatInt(g.Jobs, 10) }},
		{"FIRST", func(g domain.ErrorGroup) string { return moment(g.FirstAt) }},
		{"LAST", func(g domain.ErrorGroup) string { return moment(g.LastAt) }},
		{"WHAT THEY SAY", func(g domain.ErrorGroup) string { return shortened(g.Pattern, shownError) }},
	}
}

func printGroups[Group any](c *cli.Context, groups domain.DeadGroups[Group], columns ...column[Group]) error {
	if c.String(flagOutput) == formatJSON {
		return printJSON(c, groups)
	}
	if err := printItems(c, groups.Items, columns...); err != nil {
		return err
	}
	switch {
	case groups.Looked == 0:
		fmt.Fprintf(c.App.ErrWriter, "no job of queue %s is dead\n", groups.Queue)
	case groups.More:
		fmt.Fprintf(c.App.ErrWriter, "the newest %d dead jobs of queue %s; there may be more that died earlier\n", groups.Looked, groups.Queue)
	}
	return nil
}
