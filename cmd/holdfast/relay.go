package main

import (
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/urfave/cli/v2"

	"github.com/holdfast-pg/holdfast/app"
	"github.com/holdfast-pg/holdfast/app/support"
	"github.com/holdfast-pg/holdfast/domain"
	"github.com/holdfast-pg/holdfast/relay"
	"github.com/holdfast-pg/holdfast/worker"
)

const flagTo = "to"

func relayCommand() *cli.Command {
	return &cli.Command{
		Name:  "relay",
		Usage: "publish the jobs of a queue to a broker, a service or another database",
		Description: "Every job of the queue becomes a CloudEvent under its own id, at least once, those of a key in order if the\n" +
			"queue is ordered. While the destination is away nothing is claimed. What it refuses for good is failed, in\n" +
			"its words. Runs until Ctrl-C or SIGTERM, as `holdfast work` does.\n\n" +
			"Destinations:\n" + destinationHelp() + "\n\n" +
			"Example:\n" +
			"  holdfast relay --queue outbox --to nats://broker:4222/orders.{kind}",
		Flags: append([]cli.Flag{
			&cli.StringFlag{Name: "queue", Usage: "the `QUEUE` to publish"},
			toFlag(),
			&cli.IntFlag{Name: "batch", Usage: "`N` messages published at once, at most", Value: 256},
			&cli.DurationFlag{Name: "timeout", Usage: "`DURATION` that a batch may take", Value: 10 * time.Second},
			sourceFlag(),
			&cli.DurationFlag{Name: "lease", Usage: "`DURATION` that a dead relay keeps its jobs", Value: 90 * time.Second},
			&cli.DurationFlag{Name: "drain-deadline", Usage: "`DURATION` that a stopping relay waits for answers", Value: 25 * time.Second},
			&cli.StringFlag{Name: "listen", Usage: "the `ADDRESS` on which to serve /metrics, /livez and /readyz, such as 127.0.0.1:9464; off by default"},
			directURLFlag(),
			databaseFlag(),
		}, logFlags()...),
		Action:      withArgs(0, 0, runRelay),
		Subcommands: []*cli.Command{relayStatusCommand(), relayReplayCommand()},
	}
}

func toFlag() cli.Flag {
	return &cli.StringFlag{Name: flagTo, Usage: "the destination's `URL`; else $" + envRelayTo}
}

func sourceFlag() cli.Flag {
	return &cli.StringFlag{Name: "source", Usage: "the source of the CloudEvents, a `URI` reference", DefaultText: "/holdfast/QUEUE"}
}

func runRelay(c *cli.Context) error {
	if err := checkRelay(c); err != nil {
		return err
	}
	url, err := app.DatabaseURL(c.String(flagDatabaseURL))
	if err != nil {
		return err
	}
	config, err := relayConfig(c)
	if err != nil {
		return err
	}
	publisher, err := openDestination(c)
	if err != nil {
		return err
	}
	return app.Relay(c.Context, url, c.String("listen"), config, publisher)
}

func checkRelay(c *cli.Context) error {
	if c.String("queue") == "" {
		return usage("--queue QUEUE is missing: the outbox to publish")
	}
	if address := c.String("listen"); c.IsSet("listen") {
		if _, _, err := net.SplitHostPort(address); err != nil {
			return usage("--listen %q is not HOST:PORT, such as 127.0.0.1:9464", address)
		}
	}
	if err := checkPositive(c, "batch", "timeout", "lease", "drain-deadline"); err != nil {
		return err
	}
	_, err := chosenDestination(c)
	return err
}

func relayConfig(c *cli.Context) (relay.Config, error) {
	config, err := publishConfig(c)
	if err != nil {
		return config, err
	}
	config.Worker.Lease = c.Duration("lease")
	config.Worker.DrainDeadline = c.Duration("drain-deadline")
	config.Worker.DirectURL = c.String(flagDirectURL)
	config.Worker.Version = buildVersion()
	if err := config.Validate(); err != nil {
		return config, usage("%s", strings.ReplaceAll(err.Error(), "\n", "; "))
	}
	return config, nil
}

// publishConfig is what a relay and a replay, which runs no worker, have in common.
func publishConfig(c *cli.Context) (relay.Config, error) {
	log, err := newLogger(c)
	if err != nil {
		return relay.Config{}, err
	}
	destination, err := chosenDestination(c)
	if err != nil {
		return relay.Config{}, err
	}
	return relay.Config{
		Queue:       c.String("queue"),
		Destination: destination.masked,
		Source:      c.String("source"),
		Batch:       c.Int("batch"),
		Timeout:     c.Duration("timeout"),
		Worker:      worker.Config{Logger: log},
	}, nil
}

func relayStatusCommand() *cli.Command {
	return &cli.Command{
		Name:  "status",
		Usage: "print how far behind each outbox is, and how its destination answers",
		Description: "What relays say of themselves is as old as their last heartbeat. Example:\n" +
			"  holdfast relay status",
		Flags:  append([]cli.Flag{outputFlag()}, databaseFlags()...),
		Action: withArgs(0, 0, printRelays),
	}
}

func printRelays(c *cli.Context) error {
	return withDatabase(c, func(pool *pgxpool.Pool) error {
		relays, err := support.Relays(c.Context, pool, listLimit)
		if err != nil {
			return err
		}
		number := func(n int64) string { return strconv.FormatInt(n, 10) }
		return printItems(c, relays,
			column[support.RelayStatus]{"QUEUE", func(s support.RelayStatus) string { return s.Queue }},
			column[support.RelayStatus]{"DESTINATION", func(s support.RelayStatus) string { return s.Destination }},
			column[support.RelayStatus]{"RELAYS", relaysOf},
			column[support.RelayStatus]{"LAG", lagOf},
			column[support.RelayStatus]{"WAITING", func(s support.RelayStatus) string { return s.Waiting.String() }},
			column[support.RelayStatus]{"IN FLIGHT", func(s support.RelayStatus) string { return s.InFlight.String() }},
			column[support.RelayStatus]{"DEAD", func(s support.RelayStatus) string { return s.Dead.String() }},
			column[support.RelayStatus]{"PUBLISHED", func(s support.RelayStatus) string { return number(s.Published) }},
			column[support.RelayStatus]{"REFUSED", func(s support.RelayStatus) string { return number(s.Refused) }},
			column[support.RelayStatus]{"LAST ERROR", func(s support.RelayStatus) string { return orNone(shortened(s.LastError, 80)) }},
		)
	})
}

// relaysOf counts them, and those whose destination takes nothing.
func relaysOf(s support.RelayStatus) string {
	switch {
	case s.Relays == 0:
		return "none for " + formatDuration(time.Duration(s.SaidSeconds*float64(time.Second)).Round(time.Second))
	case s.Away > 0:
		return fmt.Sprintf("%d, %d waiting", s.Relays, s.Away)
	}
	return strconv.Itoa(s.Relays)
}

func lagOf(s support.RelayStatus) string {
	if s.LagSeconds == nil {
		return "-"
	}
	return formatDuration(time.Duration(*s.LagSeconds * float64(time.Second)).Round(time.Second))
}

func relayReplayCommand() *cli.Command {
	return &cli.Command{
		Name:  "replay",
		Usage: "publish completed jobs of a queue again",
		Description: "They are read from the archive and from what the queue keeps, and published under their own ids, those of a\n" +
			"key in order: a receiver that remembers an id drops the message. No job is changed. Example:\n" +
			"  holdfast relay replay --queue outbox --to nats://broker:4222/orders.{kind} --since 2d --dry-run",
		Flags: append([]cli.Flag{
			&cli.StringFlag{Name: "queue", Usage: "the `QUEUE` to publish"},
			toFlag(),
			&cli.StringFlag{Name: "since", Usage: "only those enqueued within the latest `DURATION`, such as 90m or 2d"},
			&cli.StringFlag{Name: "key", Usage: "only those of this partition `KEY`", DefaultText: "any"},
			&cli.IntFlag{Name: "batch", Usage: "`N` messages published at once, at most", Value: 256},
			&cli.DurationFlag{Name: "timeout", Usage: "`DURATION` that a batch may take", Value: 10 * time.Second},
			sourceFlag(),
			&cli.BoolFlag{Name: "yes", Usage: "do it without asking", DisableDefaultText: true},
			&cli.BoolFlag{Name: "dry-run", Usage: "show what would be done, and do nothing", DisableDefaultText: true},
			outputFlag(),
		}, databaseFlags()...),
		Action: withArgs(0, 0, replay),
	}
}

// replayFilter reads what is to be published again.
func replayFilter(c *cli.Context) (domain.PublishedFilter, error) {
	filter := domain.PublishedFilter{Queue: c.String("queue"), Key: c.String("key")}
	if filter.Queue == "" {
		return filter, usage("--queue QUEUE is missing: the outbox to publish")
	}
	if c.IsSet("key") && filter.Key == "" {
		return filter, usage("--key is empty")
	}
	if !c.IsSet("since") {
		return filter, usage("--since DURATION is missing: how far to go back, such as 90m or 2d")
	}
	within, err := parseDuration(c.String("since"))
	if err != nil || within <= 0 {
		return filter, usage("--since %q is no duration, such as 36h, 90m or 7d", c.String("since"))
	}
	filter.Since = within
	return filter, checkPositive(c, "batch", "timeout")
}
