package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/urfave/cli/v2"

	"github.com/holdfast-pg/holdfast/domain"
)

func workersCommand() *cli.Command {
	return &cli.Command{
		Name:  "workers",
		Usage: "look at workers, drain and evict them",
		Subcommands: []*cli.Command{
			{
				Name:  "list",
				Usage: "list the workers, where they are in their life and what they say of themselves",
				Flags: append([]cli.Flag{
					&cli.BoolFlag{Name: "all", Usage: "list those too that died within the last day", DisableDefaultText: true},
					outputFlag(),
				}, databaseFlags()...),
				Action: withArgs(0, 0, listWorkers),
			},
			showWorkerCommand(),
			{
				Name:      "drain",
				Usage:     "tell a worker to stop claiming, finish what it holds and leave",
				ArgsUsage: "ID",
				Flags:     append(operatorFlags(), databaseFlags()...),
				Action:    withArgs(1, 1, drainWorker),
			},
			workersEvictCommand(),
		},
	}
}

func listWorkers(c *cli.Context) error {
	return withDatabase(c, func(pool *pgxpool.Pool) error {
		workers, err := domain.ListWorkers(c.Context, pool, c.Bool("all"), listLimit)
		if err != nil {
			return err
		}
		noteLimit(c, len(workers), listLimit, "workers")
		return printItems(c, workers,
			column[domain.WorkerRecord]{"ID", func(w domain.WorkerRecord) string { return w.ID }},
			column[domain.WorkerRecord]{"STATUS", func(w domain.WorkerRecord) string { return string(w.Status) }},
			column[domain.WorkerRecord]{"QUEUES", func(w domain.WorkerRecord) string { return strings.Join(w.Queues, " ") }},
			column[domain.WorkerRecord]{"SINCE", func(w domain.WorkerRecord) string { return w.StartedAt.Local().Format(time.DateTime) }},
			column[domain.WorkerRecord]{"LAST SEEN", func(w domain.WorkerRecord) string { return ago(w.Silence) }},
			column[domain.WorkerRecord]{"SAYS OF ITSELF", func(w domain.WorkerRecord) string { return facts(w.Metadata) }},
		)
	})
}

// metadataKeys are the keys that a worker's metadata may have, in the order to print them.
var metadataKeys = []string{
	"version", "host", "pid", "kinds", "concurrency", "connections", "lease_seconds", "worker_ttl_seconds", "housekeeping_seconds", "in_flight", "buckets", "affinity", "wake",
	"claim_p50_ms", "claim_p99_ms", "wait_p50_ms", "wait_p99_ms", "handle_p50_ms", "handle_p99_ms",
}

// facts prints what is there of a worker's metadata: the known keys in their order, then
// those of a version that says more.
func facts(metadata json.RawMessage) string {
	var values map[string]json.RawMessage
	if json.Unmarshal(metadata, &values) != nil {
		return oneLine(string(metadata))
	}
	keys := append(slices.Clone(metadataKeys), slices.Sorted(maps.Keys(values))...)
	var printed []string
	for _, key := range keys {
		value, there := values[key]
		if !there {
			continue
		}
		delete(values, key) // Known keys stand in the list twice.
		if fact := oneLine(plain(value)); fact != "" {
			printed = append(printed, oneLine(key)+"="+fact)
		}
	}
	return strings.Join(printed, " ")
}

// plain is a JSON value without the quotes of a string; "" for null.
func plain(value json.RawMessage) string {
	if bytes.Equal(value, []byte("null")) {
		return ""
	}
	var text string
	if json.Unmarshal(value, &text) == nil {
		return text
	}
	return string(value)
}

func drainWorker(c *cli.Context) error {
	by, err := operator(c)
	if err != nil {
		return err
	}
	return withDatabase(c, func(pool *pgxpool.Pool) error {
		id := c.Args().First()
		err := by.Drain(c.Context, pool, id)
		if errors.Is(err, domain.ErrWorkerUnknown) {
			return fmt.Errorf("no worker with the id %q is alive: `holdfast workers list --all` shows those that drain or died", id)
		}
		if err != nil {
			return err
		}
		fmt.Fprintf(c.App.Writer, "%s is told to drain: from its next heartbeat on it claims no more, finishes what it holds and leaves\n", id)
		return nil
	})
}
