package main

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/urfave/cli/v2"

	"github.com/holdfast-pg/holdfast/app/support"
	"github.com/holdfast-pg/holdfast/domain"
)

func showWorkerCommand() *cli.Command {
	return &cli.Command{
		Name:      "show",
		Usage:     "print what a worker is, says and holds",
		ArgsUsage: "ID",
		Flags: append([]cli.Flag{
			&cli.IntFlag{Name: "limit", Usage: "`N` claims at most", Value: 20},
			outputFlag(),
		}, readFlags()...),
		Action: withArgs(1, 1, showWorker),
	}
}

func showWorker(c *cli.Context) error {
	if err := checkPositive(c, "limit"); err != nil {
		return err
	}
	return withReplica(c, func(pool *pgxpool.Pool) error {
		id := c.Args().First()
		worker, err := support.FindWorker(c.Context, pool, id, min(c.Int("limit"), listLimit))
		if errors.Is(err, domain.ErrWorkerUnknown) {
			return fmt.Errorf("no worker with the id %q is in the registry, which forgets the dead after a day: `holdfast workers list --all` shows those that are", id)
		}
		if err != nil {
			return err
		}
		if c.String(flagOutput) != formatTable {
			return printJSON(c, worker)
		}
		return printWorker(c, worker)
	})
}

func printWorker(c *cli.Context, w support.Worker) error {
	status := string(w.Status)
	if w.Status == domain.WorkerAlive && !w.Live {
		status += ", but not seen within its time to live: others count it out"
	}
	if err := printRecord(c, w,
		fact{"id", w.ID},
		fact{"status", status},
		fact{"since", moment(w.StartedAt)},
		fact{"last seen", ago(seconds(w.SilenceSeconds))},
		fact{"queues", queuesOf(w)},
		fact{"kinds", kindsOf(w)},
		fact{"says", facts(w.Says)},
		fact{"holds", w.InFlight},
	); err != nil || len(w.Claims) == 0 {
		return err
	}
	fmt.Fprintln(c.App.Writer)
	err := printItems(c, w.Claims,
		column[support.HeldClaim]{"JOB", func(h support.HeldClaim) string { return h.Job.String() }},
		column[support.HeldClaim]{"QUEUE", func(h support.HeldClaim) string { return h.Queue }},
		column[support.HeldClaim]{"KIND", func(h support.HeldClaim) string { return h.Kind }},
		column[support.HeldClaim]{"KEY", func(h support.HeldClaim) string { return h.Key }},
		column[support.HeldClaim]{"ATTEMPT", func(h support.HeldClaim) string { return fmt.Sprintf("%d of %d", h.Attempt, h.MaxAttempts) }},
		column[support.HeldClaim]{"GENERATION", func(h support.HeldClaim) string { return strconv.FormatInt(h.Generation, 10) }},
		column[support.HeldClaim]{"CLAIMED", func(h support.HeldClaim) string { return ago(seconds(h.ClaimedSeconds)) }},
		column[support.HeldClaim]{"LEASE", leaseOf},
	)
	if err == nil && int64(len(w.Claims)) < w.InFlight.Jobs {
		fmt.Fprintf(c.App.ErrWriter, "only the %d oldest of %s claims are listed: --limit lists more\n", len(w.Claims), w.InFlight)
	}
	return err
}

// queuesOf is a line for each queue that the worker serves.
func queuesOf(w support.Worker) string {
	lines := make([]string, len(w.Queues))
	for i, queue := range w.Queues {
		lines[i] = fmt.Sprintf("%s: %d of %d buckets", queue.Queue, queue.Owned, queue.Of)
	}
	return strings.Join(lines, "\n")
}

func kindsOf(w support.Worker) string {
	if len(w.Kinds) == 0 {
		return "every kind, or it does not say"
	}
	return strings.Join(w.Kinds, " ")
}

func leaseOf(h support.HeldClaim) string {
	if h.LeaseLeftSeconds < 0 {
		return "ended " + ago(seconds(-h.LeaseLeftSeconds))
	}
	return "for " + strings.TrimSuffix(ago(seconds(h.LeaseLeftSeconds)), " ago")
}
