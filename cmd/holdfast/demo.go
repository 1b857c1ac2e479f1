package main

import (
	"fmt"
	"os"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/holdfast-pg/holdfast/app/demo"
)

const (
	flagWithoutMark  = "without-mark"
	flagWithoutFence = "without-fence"
)

func demoCommand() *cli.Command {
	return &cli.Command{
		Name:  "demo",
		Usage: "watch durable work survive two crashes and a pause",
		Description: "Starts a private Postgres and five workers, kills two of them, pauses one for longer than its lease, and\n" +
			"counts what became of the work. It takes about ten seconds and leaves nothing behind. Environment\n" +
			"variables that name a database are ignored. Exit code 0: every number is as expected; 1: one differs.",
		Flags: []cli.Flag{
			&cli.StringFlag{Name: flagDatabaseURL, Usage: "the `URL` of a database to use in place of a private one; the demo migrates it and leaves its jobs there"},
			withoutMarkFlag(),
			withoutFenceFlag(),
		},
		Action: withArgs(0, 0, runDemo),
	}
}

func runDemo(c *cli.Context) error {
	program, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find this program, to run it as a worker: %w", err)
	}
	if c.String(flagDatabaseURL) == "" {
		if err := forgetDatabase(); err != nil {
			return err
		}
	}
	return demo.Run(c.Context, demo.Options{
		DatabaseURL:  c.String(flagDatabaseURL),
		WithoutMark:  c.Bool(flagWithoutMark),
		WithoutFence: c.Bool(flagWithoutFence),
		Program:      program,
		Out:          c.App.Writer,
	})
}

// forgetDatabase takes the driver's variables out of the environment: PGSERVICE, PGOPTIONS or
// PGSSLMODE would reach a private server too.
func forgetDatabase() error {
	for _, variable := range os.Environ() {
		name, _, _ := strings.Cut(variable, "=")
		if !strings.HasPrefix(name, "PG") {
			continue
		}
		if err := os.Unsetenv(name); err != nil {
			return fmt.Errorf("forget %s: %w", name, err)
		}
	}
	return nil
}

// demoReceiptCommand is the handler that the demo's workers run.
func demoReceiptCommand() *cli.Command {
	return &cli.Command{
		Name:   "demo-receipt",
		Hidden: true,
		Flags:  []cli.Flag{withoutMarkFlag()},
		Action: withArgs(0, 0, func(c *cli.Context) error {
			return demo.HandleReceipt(c.Context, c.App.Reader, c.App.Writer, c.Bool(flagWithoutMark))
		}),
	}
}

func withoutMarkFlag() cli.Flag {
	return &cli.BoolFlag{Name: flagWithoutMark, Usage: "leave the handler's mark out, and see receipts sent twice", DisableDefaultText: true}
}

// demoLabelCommand is the worker that the demo pauses.
func demoLabelCommand() *cli.Command {
	return &cli.Command{
		Name:   "demo-label",
		Hidden: true,
		Flags:  []cli.Flag{&cli.StringFlag{Name: "queue", Required: true, Usage: "the `QUEUE` of the labels"}, withoutFenceFlag()},
		Action: withArgs(0, 0, func(c *cli.Context) error {
			return demo.RunPrinter(c.Context, c.String("queue"), c.Bool(flagWithoutFence), c.App.Writer, c.App.ErrWriter)
		}),
	}
}

func withoutFenceFlag() cli.Flag {
	return &cli.BoolFlag{Name: flagWithoutFence, Usage: "leave the handler's guard out, and see a label overwritten by an older run", DisableDefaultText: true}
}
