package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/holdfast-pg/holdfast/domain"
)

func workersCommand() *cli.Command {
	return &cli.Command{
		Name:  "workers",
		Usage: "look at workers and drain them",
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
			{
				Name:      "drain",
				Usage:     "tell a worker to stop claiming, finish what it holds and leave",
				ArgsUsage: "ID",
				Flags:     databaseFlags(),
				Action:    withArgs(1, 1, drainWorker),
			},
		},
	}
}

func listWorkers(c *cli.Context) error {
	asJSON, err := wantsJSON(c)
	if err != nil {
		return err
	}
	pool, err := connect(c)
	if err != nil {
		return err
	}
	defer pool.Close()
	workers, err := domain.ListWorkers(c.Context, pool, c.Bool("all"), listLimit)
	if err != nil {
		return err
	}
	noteLimit(c, len(workers), "workers")
	if asJSON {
		return printJSON(c, map[string]any{"items": workers})
	}
	table := tabwriter.NewWriter(c.App.Writer, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "ID\tSTATUS\tQUEUES\tSINCE\tLAST SEEN\tSAYS OF ITSELF")
	for _, worker := range workers {
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\n", worker.ID, worker.Status, strings.Join(worker.Queues, " "),
			worker.StartedAt.Local().Format(time.DateTime), formatDuration(worker.Silence.Round(time.Second))+" ago", facts(worker.Metadata))
	}
	return table.Flush()
}

// metadataKeys are the keys that a worker's metadata may have, in the order to print them.
var metadataKeys = []string{
	"version", "host", "pid", "concurrency", "in_flight", "buckets", "affinity", "wake",
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

// oneLine keeps a text within its cell of a table.
func oneLine(text string) string {
	return strings.Join(strings.Fields(text), " ")
}

func drainWorker(c *cli.Context) error {
	pool, err := connect(c)
	if err != nil {
		return err
	}
	defer pool.Close()
	id := c.Args().First()
	err = domain.Drain(c.Context, pool, id)
	if errors.Is(err, domain.ErrWorkerUnknown) {
		return fmt.Errorf("no worker with the id %q is alive: `holdfast workers list --all` shows those that drain or died", id)
	}
	if err != nil {
		return err
	}
	fmt.Fprintf(c.App.Writer, "%s is told to drain: from its next heartbeat on it claims no more, finishes what it holds and leaves\n", id)
	return nil
}
