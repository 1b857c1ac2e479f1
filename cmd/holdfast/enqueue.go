package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/urfave/cli/v2"

	"github.com/holdfast-pg/holdfast"
	"github.com/holdfast-pg/holdfast/domain"
)

func enqueueCommand() *cli.Command {
	return &cli.Command{
		Name:      "enqueue",
		Usage:     "add a job",
		ArgsUsage: "KIND [JSON | @FILE | -]",
		Description: "KIND names the handler. The payload is the JSON given, that of a file, or that on stdin; {} without it.\n" +
			"Prints the job's id.\n\n" +
			"Examples:\n" +
			"  holdfast enqueue send_receipt '{\"order_id\": 9182}' --key order:9182 --once receipt:9182\n" +
			"  holdfast enqueue nightly_report --queue reports --in 90m\n" +
			"  jq -c .order order.json | holdfast enqueue import_order -",
		Flags: append([]cli.Flag{
			&cli.StringFlag{Name: "queue", Usage: "`QUEUE` of the job; one that does not exist is created", Value: domain.DefaultQueue},
			&cli.StringFlag{Name: "key", Usage: "`KEY` of what the job belongs to, such as order:9182: the unit of order and affinity"},
			&cli.StringFlag{Name: "once", Usage: "idempotency `KEY`: every enqueue under it is one job"},
			&cli.DurationFlag{Name: "in", Usage: "hold the job back for a `DURATION`, such as 1h30m", DefaultText: "due at once"},
			&cli.TimestampFlag{Name: "at", Usage: "hold the job back until a `TIME`, such as 2026-12-24T18:00:00Z", Layout: time.RFC3339},
			&cli.IntFlag{Name: "max-attempts", Usage: "`N` attempts at most", DefaultText: "the queue's"},
			&cli.StringSliceFlag{Name: "header", Usage: "a fact beside the payload, `NAME=VALUE`; may be repeated"},
			outputFlag(),
		}, databaseFlags()...),
		Action: withArgs(1, 2, enqueue),
	}
}

func enqueue(c *cli.Context) error {
	payload, err := readPayload(c)
	if err != nil {
		return err
	}
	options, err := enqueueOptions(c)
	if err != nil {
		return err
	}
	return withDatabase(c, func(pool *pgxpool.Pool) error {
		result, err := holdfast.Enqueue(c.Context, pool, holdfast.RawArgs{JobKind: c.Args().First(), Payload: payload}, options...)
		if err != nil {
			return err
		}
		return printEnqueued(c, result)
	})
}

func printEnqueued(c *cli.Context, result holdfast.EnqueueResult) error {
	if result.Warning != "" {
		fmt.Fprintln(c.App.ErrWriter, "warning: "+result.Warning)
	}
	if c.String(flagOutput) != formatTable {
		return printJSON(c, struct {
			ID        holdfast.JobID  `json:"id"`
			Duplicate bool            `json:"duplicate"`
			State     holdfast.Status `json:"state"`
		}{result.ID, result.Duplicate, result.State})
	}
	if result.Duplicate {
		fmt.Fprintf(c.App.Writer, "%s is that job already (%s)\n", result.ID, orUnknown(string(result.State)))
		return nil
	}
	fmt.Fprintln(c.App.Writer, result.ID)
	return nil
}

// readPayload reads the second argument: JSON, @FILE, or - for stdin; {} without it.
func readPayload(c *cli.Context) (json.RawMessage, error) {
	argument := c.Args().Get(1)
	switch {
	case c.NArg() == 1:
		return json.RawMessage("{}"), nil
	case argument == "-":
		payload, err := io.ReadAll(c.App.Reader)
		if err != nil {
			return nil, fmt.Errorf("read the payload from stdin: %w", err)
		}
		return payload, nil
	case strings.HasPrefix(argument, "@"):
		payload, err := os.ReadFile(argument[1:])
		if err != nil {
			return nil, fmt.Errorf("read the payload: %w", err)
		}
		return payload, nil
	default:
		return json.RawMessage(argument), nil
	}
}

func enqueueOptions(c *cli.Context) ([]holdfast.EnqueueOption, error) {
	options := []holdfast.EnqueueOption{holdfast.OnQueue(c.String("queue")), holdfast.In(c.Duration("in"))}
	if c.IsSet("in") && c.IsSet("at") {
		return nil, usage("--in and --at exclude each other")
	}
	if c.IsSet("key") {
		options = append(options, holdfast.Key(c.String("key")))
	}
	if c.IsSet("once") {
		options = append(options, holdfast.Once(c.String("once")))
	}
	if at := c.Timestamp("at"); at != nil {
		options = append(options, holdfast.At(*at))
	}
	if c.IsSet("max-attempts") {
		options = append(options, holdfast.MaxAttempts(c.Int("max-attempts")))
	}
	if pairs := c.StringSlice("header"); len(pairs) > 0 {
		headers := make(map[string]string, len(pairs))
		for _, pair := range pairs {
			name, value, found := strings.Cut(pair, "=")
			if !found {
				return nil, usage("--header %q is not NAME=VALUE", pair)
			}
			headers[name] = value
		}
		options = append(options, holdfast.Headers(headers))
	}
	return options, nil
}

// orUnknown names the state of a job that cannot be seen any more.
func orUnknown(state string) string {
	if state == "" {
		return "no longer to be found"
	}
	return state
}
