package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/urfave/cli/v2"

	"github.com/holdfast-pg/holdfast/domain"
)

func workersEvictCommand() *cli.Command {
	return &cli.Command{
		Name:      "evict",
		Usage:     "mark a worker dead and take its jobs from it, where it cannot be drained",
		ArgsUsage: "ID",
		Flags:     slices.Concat(operatorFlags(), consentFlags(), []cli.Flag{outputFlag()}, databaseFlags()),
		Action:    withArgs(1, 1, evictWorker),
	}
}

// eviction is what became of a worker, or is about to.
type eviction struct {
	Worker   string `json:"worker"`
	Status   string `json:"status"` // Before; "unknown" when housekeeping has forgotten it.
	Held     int64  `json:"held"`   // Jobs that it held before.
	Released int    `json:"released"`
	Left     int    `json:"left"` // Jobs that it holds still: their rows were locked.
}

func evictWorker(c *cli.Context) error {
	by, err := operator(c)
	if err != nil {
		return err
	}
	return withDatabase(c, func(pool *pgxpool.Pool) error {
		found, err := examineWorker(c, pool, c.Args().First())
		if err != nil {
			return err
		}
		if c.Bool("dry-run") {
			return printEviction(c, found)
		}
		if err := consent(c, "evict "+found.Worker); err != nil {
			return err
		}
		found.Released, found.Left, err = by.Evict(c.Context, pool, found.Worker)
		if err != nil {
			if found.Released > 0 {
				fmt.Fprintf(c.App.ErrWriter, "%s released; run the command again for the rest\n", jobs(found.Released))
			}
			return err
		}
		if err := printEviction(c, found); err != nil {
			return err
		}
		if found.Left > 0 {
			return fmt.Errorf("%s still held: locked, perhaps by their handlers' transactions; run the command again, or wait until their leases end", jobs(found.Left))
		}
		return nil
	})
}

// examineWorker shows on stderr who is about to be evicted.
func examineWorker(c *cli.Context, pool *pgxpool.Pool, id string) (eviction, error) {
	workers, err := domain.ListWorkers(c.Context, pool, true, listLimit)
	if err != nil {
		return eviction{}, err
	}
	held, err := domain.HeldJobs(c.Context, pool, id)
	if err != nil {
		return eviction{}, err
	}
	found := eviction{Worker: id, Status: "unknown", Held: held}
	at := slices.IndexFunc(workers, func(worker domain.WorkerRecord) bool { return worker.ID == id })
	switch {
	case at >= 0:
		worker := workers[at]
		found.Status = string(worker.Status)
		fmt.Fprintf(c.App.ErrWriter, "to evict: %s, %s, of %s, last seen %s\n", id, worker.Status, strings.Join(worker.Queues, " "), ago(worker.Silence))
	case held == 0:
		return found, fmt.Errorf("no worker with the id %q is known, and none holds a job: `holdfast workers list --all` shows those of the last day", id)
	default:
		fmt.Fprintf(c.App.ErrWriter, "to evict: %s, of which nothing is known but its claims\n", id)
	}
	fmt.Fprintf(c.App.ErrWriter, "it holds %s: others may start them at once, beside handlers that still run\nif it lives, it learns of it at its next heartbeat, gives up what it does and joins under another id; to end it, drain it or stop its process\n", jobs(held))
	return found, nil
}

func printEviction(c *cli.Context, done eviction) error {
	if c.String(flagOutput) != formatTable {
		return printJSON(c, done)
	}
	if c.Bool("dry-run") {
		return nil
	}
	_, err := fmt.Fprintf(c.App.Writer, "%s is evicted: %s released\n", done.Worker, jobs(done.Released))
	return err
}
