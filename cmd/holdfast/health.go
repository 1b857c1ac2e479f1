package main

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/urfave/cli/v2"

	"github.com/holdfast-pg/holdfast/app"
	"github.com/holdfast-pg/holdfast/domain"
)

func healthCommand() *cli.Command {
	return &cli.Command{
		Name:  "health",
		Usage: "answer a probe with an exit code, in an image without a shell",
		Subcommands: []*cli.Command{
			{
				Name:  "live",
				Usage: "ask a worker's own probe whether the process is alive",
				Flags: []cli.Flag{
					&cli.StringFlag{Name: "address", Usage: "the `URL` that `holdfast work --listen` serves", Value: "http://127.0.0.1:9464"},
					&cli.DurationFlag{Name: "timeout", Usage: "`DURATION` to wait for the answer", Value: 5 * time.Second},
					outputFlag(),
				},
				Action: withArgs(0, 0, healthLive),
			},
			{
				Name:  "ready",
				Usage: "ask the database whether it answers, has the schema, and on request whether a worker lives",
				Flags: append([]cli.Flag{
					&cli.StringFlag{Name: "worker", Usage: "the `ID` of a worker that must be alive"},
					&cli.BoolFlag{Name: "host", Usage: "a worker on this host must be alive", DisableDefaultText: true},
					outputFlag(),
				}, databaseFlags()...),
				Action: withArgs(0, 0, healthReady),
			},
		},
	}
}

func healthLive(c *cli.Context) error {
	if err := checkPositive(c, "timeout"); err != nil {
		return err
	}
	address := c.String("address")
	answer, err := app.ProbeLive(c.Context, address, c.Duration("timeout"))
	if err != nil {
		return err
	}
	return printRecord(c, answer, fact{"address", answer.Address}, fact{"answer", strings.TrimSpace(string(answer.Body))})
}

// readiness is what `health ready` has found, as JSON shows it.
type readiness struct {
	Schema         int      `json:"schema"`
	Worker         string   `json:"worker,omitempty"`
	SilenceSeconds *float64 `json:"silence_seconds,omitempty"`
}

func healthReady(c *cli.Context) error {
	if c.IsSet("worker") && c.String("worker") == "" {
		return usage("--worker is empty")
	}
	return withAnyDatabase(c, func(pool *pgxpool.Pool) error {
		meta, err := domain.ReadMeta(c.Context, pool)
		if err != nil {
			return err
		}
		found := readiness{Schema: meta.SchemaVersion}
		facts := []fact{{"schema", meta.SchemaVersion}}
		if c.Bool("host") || c.IsSet("worker") {
			worker, err := liveWorker(c, pool)
			if err != nil {
				return err
			}
			seconds := worker.Silence.Seconds()
			found.Worker, found.SilenceSeconds = worker.ID, &seconds
			facts = append(facts, fact{"worker", worker.ID}, fact{"last seen", ago(worker.Silence)})
		}
		return printRecord(c, found, facts...)
	})
}

// liveWorker finds the worker that the flags ask for.
func liveWorker(c *cli.Context, pool *pgxpool.Pool) (domain.LiveWorker, error) {
	host, where := "", ""
	if c.Bool("host") {
		name, err := os.Hostname()
		if err != nil {
			return domain.LiveWorker{}, fmt.Errorf("find this host's name: %w", err)
		}
		host, where = name, " on host "+name
	}
	worker, err := domain.FindLiveWorker(c.Context, pool, c.String("worker"), host)
	if errors.Is(err, domain.ErrWorkerUnknown) {
		who := "worker"
		if id := c.String("worker"); id != "" {
			who = fmt.Sprintf("worker with the id %q", id)
		}
		return worker, fmt.Errorf("no %s is alive%s: `holdfast workers list --all` shows those that drain or died", who, where)
	}
	return worker, err
}
