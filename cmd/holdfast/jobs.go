package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/urfave/cli/v2"

	"github.com/holdfast-pg/holdfast/domain"
)

func jobsCommand() *cli.Command {
	return &cli.Command{
		Name:  "jobs",
		Usage: "look at jobs, cancel, release, redrive and purge them",
		Subcommands: append([]*cli.Command{
			{
				Name:      "show",
				Usage:     "print everything that is known of a job, and its story",
				ArgsUsage: "ID",
				Flags:     append([]cli.Flag{outputFlag()}, databaseFlags()...),
				Action:    withArgs(1, 1, showJob),
			},
			explainCommand(),
			listJobsCommand(),
		}, jobsOperateCommands()...),
	}
}

func showJob(c *cli.Context) error {
	id, err := domain.ParseJobID(c.Args().First())
	if err != nil {
		return err
	}
	return withDatabase(c, func(pool *pgxpool.Pool) error {
		story, err := domain.FindJobStory(c.Context, pool, id, listLimit)
		if err != nil {
			return err
		}
		return printStory(c, story)
	})
}

// jobFacts leave out what the job does not have.
func jobFacts(job domain.JobRecord) []fact {
	var facts []fact
	add := func(name string, value any) { facts = append(facts, fact{name, value}) }
	addTime := func(name string, at *time.Time) {
		if at != nil {
			add(name, moment(*at))
		}
	}
	addText := func(name string, text *string) {
		if text != nil {
			add(name, *text)
		}
	}
	status := string(job.Status)
	if job.Archived {
		status += ", archived"
	}
	add("id", job.ID)
	add("status", status)
	add("queue", job.Queue)
	add("kind", job.Kind)
	add("key", job.PartitionKey)
	add("bucket", job.Bucket)
	addText("once", job.IdempotencyKey)
	add("attempts", fmt.Sprintf("%d of %d", job.Attempts, job.MaxAttempts))
	add("generation", job.Generation)
	addTime("created", &job.CreatedAt)
	addTime("available", &job.AvailableAt)
	addText("claimed by", job.ClaimedBy)
	addTime("claimed", job.ClaimedAt)
	addTime("lease ends", job.LeaseExpiresAt)
	addTime("finished", job.FinishedAt)
	addText("finished by", job.FinishedBy)
	addText("last error", job.LastError)
	if job.Headers != nil {
		add("headers", compact(job.Headers))
	}
	add("payload", compact(job.Payload))
	return facts
}

func compact(document json.RawMessage) string {
	const most = 2000
	if len(document) > most {
		return fmt.Sprintf("%s … (%d bytes; -o json prints all)", strings.ToValidUTF8(string(document[:most]), ""), len(document))
	}
	return string(document)
}
