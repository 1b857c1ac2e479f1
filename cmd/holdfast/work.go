package main

import (
	"net"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/holdfast-pg/holdfast"
	"github.com/holdfast-pg/holdfast/app"
	"github.com/holdfast-pg/holdfast/domain"
	"github.com/holdfast-pg/holdfast/worker"
)

func workCommand() *cli.Command {
	return &cli.Command{
		Name:  "work",
		Usage: "run a program for every job",
		Description: "The program gets the payload on stdin and the job's facts in HOLDFAST_JOB_ID, _QUEUE, _KIND, _KEY,\n" +
			"_ATTEMPT, _MAX_ATTEMPTS, _FENCE and _WORKER_ID. Exit code 0 completes the job, 65 fails it for good,\n" +
			"75 and every other code retry it. The end of stderr becomes the job's last error.\n\n" +
			"Runs until Ctrl-C or SIGTERM, then lets programs finish and gives back what it still holds; a second\n" +
			"signal stops them at once. A database that cannot be reached is waited for.\n\n" +
			"Example:\n" +
			"  holdfast work --kind send_receipt --exec ./send-receipt --concurrency 4",
		Flags: slices.Concat([]cli.Flag{
			&cli.StringFlag{Name: "exec", Usage: "the shell `COMMAND` to run"},
			&cli.StringSliceFlag{Name: "queue", Usage: "a `QUEUE` to serve; may be repeated", Value: cli.NewStringSlice(domain.DefaultQueue)},
			&cli.StringSliceFlag{Name: "kind", Usage: "a `KIND` to run; may be repeated; without it, every kind"},
		}, workFlags(), []cli.Flag{
			&cli.StringFlag{Name: "listen", Usage: "the `ADDRESS` on which to serve /metrics, /livez and /readyz, such as 127.0.0.1:9464; off by default"},
			directURLFlag(),
			databaseFlag(),
		}, logFlags()),
		Action: withArgs(0, 0, work),
	}
}

func work(c *cli.Context) error {
	if err := checkWork(c); err != nil {
		return err
	}
	url, err := app.DatabaseURL(c.String(flagDatabaseURL))
	if err != nil {
		return err
	}
	log, err := newLogger(c)
	if err != nil {
		return err
	}
	config, err := workConfig(c)
	if err != nil {
		return err
	}
	config.Queues, config.DirectURL = c.StringSlice("queue"), c.String(flagDirectURL)
	config.Version, config.Logger = buildVersion(), log
	if err := config.Validate(); err != nil {
		return usage("%s", strings.ReplaceAll(err.Error(), "\n", "; "))
	}
	return app.Work(c.Context, url, c.String("listen"), config, execHandlers(c)...)
}

// checkWork refuses what a shell makes of a variable that is not set: an empty command
// would complete every job, and an empty kind would stand for all.
func checkWork(c *cli.Context) error {
	if strings.TrimSpace(c.String("exec")) == "" {
		return usage("--exec COMMAND is missing: the program to run for every job")
	}
	for _, name := range []string{"queue", "kind"} {
		if slices.Contains(c.StringSlice(name), "") {
			return usage("--%s is empty", name)
		}
	}
	if address := c.String("listen"); c.IsSet("listen") {
		if _, _, err := net.SplitHostPort(address); err != nil {
			return usage("--listen %q is not HOST:PORT, such as 127.0.0.1:9464", address)
		}
	}
	_, err := workConfig(c)
	return err
}

// execHandlers makes the program the handler of every kind named, or of all.
func execHandlers(c *cli.Context) []holdfast.Handler {
	program := app.Exec{Command: c.String("exec"), Stdout: c.App.Writer, Stderr: c.App.ErrWriter}
	kinds := slices.Compact(slices.Sorted(slices.Values(c.StringSlice("kind"))))
	if len(kinds) == 0 {
		return []holdfast.Handler{worker.HandleRest(program.Run)}
	}
	var handlers []holdfast.Handler
	for _, kind := range kinds {
		handlers = append(handlers, worker.HandleKind(kind, program.Run))
	}
	return handlers
}
