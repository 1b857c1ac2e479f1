package main

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/urfave/cli/v2"

	"github.com/holdfast-pg/holdfast/domain"
)

// shownError is how much of an error a table shows.
const shownError = 100

func listJobsCommand() *cli.Command {
	return &cli.Command{
		Name:  "list",
		Usage: "list jobs of a queue, without their payloads",
		Description: "Without --state it lists all that is in the inbox, newest first. With it, each state has an order of its own.\n\n" +
			"Example:\n" +
			"  holdfast jobs list --queue payments --state retrying",
		Flags: append([]cli.Flag{
			queueFlag(),
			&cli.StringFlag{Name: "state", Usage: "`STATE`: " + joined(domain.States())},
			&cli.StringFlag{Name: "kind", Usage: "jobs of this `KIND` only"},
			&cli.StringFlag{Name: "key", Usage: "jobs of this partition `KEY` only"},
			limitFlag("jobs"),
			afterFlag(),
			outputFlag(),
		}, readFlags()...),
		Action: withArgs(0, 0, listJobs),
	}
}

func queueFlag() cli.Flag {
	return &cli.StringFlag{Name: "queue", Usage: "the `QUEUE`", Value: domain.DefaultQueue}
}

func limitFlag(what string) cli.Flag {
	return &cli.IntFlag{Name: "limit", Usage: "`N` " + what + " at most", Value: 50}
}

func afterFlag() cli.Flag {
	return &cli.StringFlag{Name: "after", Usage: "go on at the `CURSOR` that the page before ended with"}
}

func joined(states []domain.State) string {
	texts := make([]string, len(states))
	for i, state := range states {
		texts[i] = string(state)
	}
	return strings.Join(texts[:len(texts)-1], ", ") + " or " + texts[len(texts)-1]
}

// jobFilter reads the flags that the command has.
func jobFilter(c *cli.Context) domain.JobFilter {
	return domain.JobFilter{
		Queue: c.String("queue"), State: domain.State(c.String("state")), Kind: c.String("kind"), Key: c.String("key"),
		Fingerprint: c.String("error"), Limit: min(c.Int("limit"), listLimit), After: c.String("after"),
	}
}

func listJobs(c *cli.Context) error {
	return withPage(c, func(pool *pgxpool.Pool, filter domain.JobFilter) (domain.JobPage, error) {
		return domain.ListJobs(c.Context, pool, filter)
	}, jobColumns()...)
}

// withPage prints a page of jobs, and says how to get the next one.
func withPage(c *cli.Context, list func(*pgxpool.Pool, domain.JobFilter) (domain.JobPage, error), columns ...column[domain.ListedJob]) error {
	if err := checkPositive(c, "limit"); err != nil {
		return err
	}
	filter := jobFilter(c)
	return withReplica(c, func(pool *pgxpool.Pool) error {
		if filter.Queue != "" {
			if _, err := domain.FindQueue(c.Context, pool, filter.Queue); err != nil {
				return err
			}
		}
		page, err := list(pool, filter)
		if err != nil {
			return err
		}
		if c.String(flagOutput) == formatJSON {
			return printJSON(c, page)
		}
		if err := printItems(c, page.Items, columns...); err != nil {
			return err
		}
		notePage(c, page, filter.Limit)
		return nil
	})
}

// notePage says where the list goes on.
func notePage(c *cli.Context, page domain.JobPage, limit int) {
	switch {
	case page.Next == "" && len(page.Items) == 0:
		fmt.Fprintln(c.App.ErrWriter, "no job found")
	case page.Next == "":
	case len(page.Items) < limit:
		fmt.Fprintf(c.App.ErrWriter, "looked at %d jobs and found %d; go on with --after %s\n", page.Looked, len(page.Items), page.Next)
	default:
		fmt.Fprintf(c.App.ErrWriter, "there is more: --after %s\n", page.Next)
	}
}

func jobColumns() []column[domain.ListedJob] {
	return []column[domain.ListedJob]{
		{"ID", func(j domain.ListedJob) string { return j.ID.String() }},
		{"STATE", jobState},
		{"SINCE", jobSince},
		{"KIND", func(j domain.ListedJob) string { return j.Kind }},
		{"KEY", func(j domain.ListedJob) string { return j.PartitionKey }},
		{"ATTEMPTS", func(j domain.ListedJob) string { return fmt.Sprintf("%d of %d", j.Attempts, j.MaxAttempts) }},
		{"HELD BY", func(j domain.ListedJob) string { return orDash(j.ClaimedBy) }},
		{"LAST ERROR", func(j domain.ListedJob) string { return shortened(j.LastError, shownError) }},
	}
}

func jobState(job domain.ListedJob) string {
	if job.Expired() {
		return string(job.State) + ", past its lease"
	}
	return string(job.State)
}

// jobSince says how long a job has been in its state, or when it is due.
func jobSince(job domain.ListedJob) string {
	if job.SinceSeconds < 0 {
		return "in " + age(-job.SinceSeconds)
	}
	return age(job.SinceSeconds)
}

// age is a number of seconds as a person reads it: two units at most.
func age(seconds float64) string {
	const day = 24 * time.Hour
	d := time.Duration(seconds * float64(time.Second))
	switch {
	case d < time.Second:
		return strconv.FormatInt(d.Milliseconds(), 10) + "ms"
	case d < time.Minute:
		return fmt.Sprintf("%.1fs", d.Seconds())
	case d < time.Hour:
		return fmt.Sprintf("%dm%02ds", d/time.Minute, d%time.Minute/time.Second)
	case d < day:
		return fmt.Sprintf("%dh%02dm", d/time.Hour, d%time.Hour/time.Minute)
	}
	return fmt.Sprintf("%dd%02dh", d/day, d%day/time.Hour)
}

// orDash is a value that may be missing.
func orDash[T any](value *T) string {
	if value == nil {
		return "-"
	}
	return fmt.Sprint(*value)
}
