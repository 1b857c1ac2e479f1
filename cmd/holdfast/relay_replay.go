package main

import (
	"fmt"
	"text/tabwriter"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/urfave/cli/v2"

	"github.com/holdfast-pg/holdfast/domain"
	"github.com/holdfast-pg/holdfast/relay"
)

// replayPreview is what a replay is about to publish.
type replayPreview struct {
	Jobs       int                   `json:"jobs"`
	JobsCapped bool                  `json:"jobs_capped"` // There are more.
	Sample     []domain.PublishedJob `json:"sample"`
}

func replay(c *cli.Context) error {
	filter, err := replayFilter(c)
	if err != nil {
		return err
	}
	config, err := publishConfig(c)
	if err != nil {
		return err
	}
	return withDatabase(c, func(pool *pgxpool.Pool) error {
		preview, err := previewReplay(c, pool, filter)
		if err != nil {
			return err
		}
		if err := printReplayPreview(c, config.Destination, preview); err != nil {
			return err
		}
		if c.Bool("dry-run") || preview.Jobs == 0 {
			if c.String(flagOutput) != formatTable {
				return printJSON(c, preview)
			}
			return nil
		}
		if err := consent(c, fmt.Sprintf("publish %s again", howMany(domain.Preview{Jobs: preview.Jobs, JobsCapped: preview.JobsCapped}))); err != nil {
			return err
		}
		return replayAll(c, pool, filter, config)
	})
}

// replayAll publishes, and says how far it came, whatever ended it.
func replayAll(c *cli.Context, pool *pgxpool.Pool, filter domain.PublishedFilter, config relay.Config) (err error) {
	publisher, err := openDestination(c)
	if err != nil {
		return err
	}
	defer func() {
		if closing := publisher.Close(); err == nil && closing != nil {
			err = fmt.Errorf("close the destination: %w", closing)
		}
	}()
	done, err := relay.Replay(c.Context, pool, filter, publisher, config, func(done relay.Replayed) {
		config.Worker.Logger.Info("published", "messages", done.Published, "refused", done.Refused, "seq", done.LastSeq)
	})
	if c.String(flagOutput) != formatTable {
		if printErr := printJSON(c, done); err == nil {
			err = printErr
		}
		return err
	}
	fmt.Fprintf(c.App.Writer, "published %s again, %d refused\n", jobs(done.Published), done.Refused)
	return err
}

// previewReplay counts what a filter finds, up to a bound.
func previewReplay(c *cli.Context, pool *pgxpool.Pool, filter domain.PublishedFilter) (replayPreview, error) {
	const shown = 5
	preview := replayPreview{Sample: []domain.PublishedJob{}}
	err := domain.WalkPublished(c.Context, pool, filter, false, func(jobs []domain.PublishedJob) (bool, error) {
		for _, job := range jobs {
			if preview.Jobs == domain.PreviewCount {
				preview.JobsCapped = true
				return false, nil
			}
			if preview.Jobs++; len(preview.Sample) < shown {
				preview.Sample = append(preview.Sample, job)
			}
		}
		return true, nil
	})
	return preview, err
}

// printReplayPreview says on stderr what is about to happen.
func printReplayPreview(c *cli.Context, destination string, preview replayPreview) error {
	out := c.App.ErrWriter
	fmt.Fprintf(out, "to publish again: %s to %s\n", howMany(domain.Preview{Jobs: preview.Jobs, JobsCapped: preview.JobsCapped}), destination)
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "  ID\tKIND\tKEY\tENQUEUED")
	for _, job := range preview.Sample {
		fmt.Fprintf(table, "  %s\t%s\t%s\t%s\n", job.ID, oneLine(job.Kind), oneLine(job.PartitionKey), moment(job.CreatedAt))
	}
	if preview.Jobs > len(preview.Sample) {
		fmt.Fprintln(table, "  …")
	}
	if err := table.Flush(); err != nil {
		return err
	}
	fmt.Fprintln(out, "they keep their ids: a receiver that remembers one drops its message; others take it as a new one, behind those of its key that it has")
	return nil
}
