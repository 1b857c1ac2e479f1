package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/holdfast-pg/holdfast/domain"
)

func jobsCommand() *cli.Command {
	return &cli.Command{
		Name:  "jobs",
		Usage: "look at jobs",
		Subcommands: []*cli.Command{{
			Name:      "show",
			Usage:     "print everything that is known of a job",
			ArgsUsage: "ID",
			Flags:     append([]cli.Flag{outputFlag()}, databaseFlags()...),
			Action:    withArgs(1, 1, showJob),
		}},
	}
}

func showJob(c *cli.Context) error {
	asJSON, err := wantsJSON(c)
	if err != nil {
		return err
	}
	id, err := domain.ParseJobID(c.Args().First())
	if err != nil {
		return err
	}
	pool, err := connect(c)
	if err != nil {
		return err
	}
	defer pool.Close()
	job, err := domain.FindJob(c.Context, pool, id)
	if err != nil {
		return err
	}
	if asJSON {
		return printJSON(c, job)
	}
	return printJob(c, job)
}

// printJob leaves out what the job does not have.
func printJob(c *cli.Context, job domain.JobRecord) error {
	table := tabwriter.NewWriter(c.App.Writer, 0, 0, 2, ' ', 0)
	line := func(name string, value any) { fmt.Fprintf(table, "%s\t%s\n", name, inCell(fmt.Sprint(value))) }
	moment := func(name string, at *time.Time) {
		if at != nil {
			line(name, at.Local().Format("2006-01-02 15:04:05.000 MST"))
		}
	}
	text := func(name string, value *string) {
		if value != nil {
			line(name, *value)
		}
	}
	status := string(job.Status)
	if job.Archived {
		status += ", archived"
	}
	line("id", job.ID)
	line("status", status)
	line("queue", job.Queue)
	line("kind", job.Kind)
	line("key", job.PartitionKey)
	line("bucket", job.Bucket)
	text("once", job.IdempotencyKey)
	line("attempts", fmt.Sprintf("%d of %d", job.Attempts, job.MaxAttempts))
	line("generation", job.Generation)
	moment("created", &job.CreatedAt)
	moment("available", &job.AvailableAt)
	text("claimed by", job.ClaimedBy)
	moment("claimed", job.ClaimedAt)
	moment("lease ends", job.LeaseExpiresAt)
	moment("finished", job.FinishedAt)
	text("finished by", job.FinishedBy)
	text("last error", job.LastError)
	if job.Headers != nil {
		line("headers", compact(job.Headers))
	}
	line("payload", compact(job.Payload))
	return table.Flush()
}

// inCell keeps a text of several lines in the table's second column.
func inCell(text string) string {
	return strings.ReplaceAll(strings.ReplaceAll(text, "\t", "    "), "\n", "\n\t")
}

func compact(document json.RawMessage) string {
	const most = 2000
	if len(document) > most {
		return fmt.Sprintf("%s … (%d bytes; -o json prints all)", strings.ToValidUTF8(string(document[:most]), ""), len(document))
	}
	return string(document)
}
