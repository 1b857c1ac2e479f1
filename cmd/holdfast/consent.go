package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"text/tabwriter"

	"github.com/urfave/cli/v2"

	"github.com/holdfast-pg/holdfast/app"
	"github.com/holdfast-pg/holdfast/domain"
)

// consentFlags are those of every command that shows first what it is about to do.
func consentFlags() []cli.Flag {
	return []cli.Flag{
		&cli.BoolFlag{Name: "yes", Usage: "do it without asking", DisableDefaultText: true},
		&cli.BoolFlag{Name: "dry-run", Usage: "show what would be done, and do nothing", DisableDefaultText: true},
	}
}

// errDeclined says that a person looked at what was about to happen, and did not want it.
var errDeclined = errors.New("nothing was changed")

// consent asks whether to go on, on a terminal; elsewhere only --yes is an answer.
func consent(c *cli.Context, question string) error {
	if c.Bool("yes") {
		return nil
	}
	if file, isFile := c.App.Reader.(*os.File); !isFile || !app.IsTerminal(file) {
		return usage("%s? Nobody can be asked here, where stdin is no terminal: add --yes to do it, or --dry-run to only look", question)
	}
	return ask(c.Context, question, c.App.Reader, c.App.ErrWriter)
}

// ask waits for an answer, or for the end of the context.
func ask(ctx context.Context, question string, in io.Reader, out io.Writer) error {
	fmt.Fprintf(out, "%s? [y/N] ", question)
	answer := make(chan string, 1)
	go func() {
		line, _ := bufio.NewReader(in).ReadString('\n') // At the end of the input: no.
		answer <- strings.ToLower(strings.TrimSpace(line))
	}()
	select {
	case word := <-answer:
		if word == "y" || word == "yes" {
			return nil
		}
		return errDeclined
	case <-ctx.Done():
		fmt.Fprintln(out)
		return ctx.Err()
	}
}

// deed is something that a person does to jobs, in words.
type deed struct {
	verb   string // Such as "redrive".
	done   string // Such as "redriven".
	effect string // What it means for the jobs.
	order  string // What it means for the order of their keys.
}

var (
	cancelling = deed{
		"cancel", "cancelled",
		"those that wait are failed; those that run are taken from their workers: their results are refused, what their handlers did stays done",
		"the later jobs go on without them",
	}
	releasing = deed{
		"release", "released",
		"their workers lose them, and others may start them at once, beside a handler that still runs",
		"the later jobs go on waiting behind them",
	}
	redriving = deed{
		"redrive", "redriven",
		"they are due at once with all their attempts; what an earlier attempt did may happen again",
		"each goes back to its place; the later jobs wait behind it, but those that have run already stay done",
	}
	purging = deed{
		"purge", "purged",
		"they are deleted for good with their payloads, and their idempotency keys are free again",
		"the later jobs go on without them",
	}
)

// question is what is asked before it is done.
func (d deed) question(preview domain.Preview) string {
	return d.verb + " " + howMany(preview)
}

func howMany(preview domain.Preview) string {
	if preview.JobsCapped {
		return fmt.Sprintf("more than %d jobs", preview.Jobs)
	}
	return jobs(preview.Jobs)
}

// jobs counts jobs in words.
func jobs[N int | int64](n N) string {
	if n == 1 {
		return "1 job"
	}
	return fmt.Sprintf("%d jobs", n)
}

// printPreview says on stderr what is about to happen.
func printPreview(c *cli.Context, d deed, preview domain.Preview) error {
	out := c.App.ErrWriter
	fmt.Fprintf(out, "to %s: %s\n", d.verb, howMany(preview))
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "  ID\tSTATUS\tQUEUE\tKIND\tKEY")
	for _, job := range preview.Sample {
		fmt.Fprintf(table, "  %s\t%s\t%s\t%s\t%s\n", job.ID, job.Status, oneLine(job.Queue), oneLine(job.Kind), oneLine(job.PartitionKey))
	}
	if preview.Jobs > len(preview.Sample) || preview.JobsCapped {
		fmt.Fprintln(table, "  …")
	}
	if err := table.Flush(); err != nil {
		return err
	}
	fmt.Fprintln(out, d.effect)
	if preview.Ordered > 0 {
		fmt.Fprintln(out, orderRisk(d, preview))
	}
	return nil
}

// orderRisk says what becomes of the order of keys.
func orderRisk(d deed, preview domain.Preview) string {
	keys := fmt.Sprintf("%d ordered keys", preview.Keys)
	if preview.Keys == 1 {
		keys = "1 ordered key"
	}
	later := jobs(preview.Later)
	if preview.LaterCapped {
		later = "at least " + later
	}
	counted := jobs(preview.Ordered)
	if preview.JobsCapped {
		counted = fmt.Sprintf("of the first %s, %d", jobs(preview.Jobs), preview.Ordered)
	}
	verb := "are"
	if preview.Ordered == 1 {
		verb = "is"
	}
	return fmt.Sprintf("%s %s of %s, behind which %s wait or run: %s", counted, verb, keys, later, d.order)
}
