// Command holdfast runs, feeds and inspects durable work in Postgres.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"syscall"

	"github.com/urfave/cli/v2"
	// Where the system has no certificates, as in an image of this program alone.
	_ "golang.org/x/crypto/x509roots/fallback"
)

func main() {
	ctx, cancel := context.WithCancel(context.Background())
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		<-signals
		// The first signal ends the work in good order. The default holds again before
		// anything can be seen of that, so that a second one ends the process at once.
		signal.Stop(signals)
		cancel()
	}()
	os.Exit(run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}

// run executes one command line and returns its exit code.
func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	app := newApp(stdin, stdout, stderr)
	var err error
	if n := len(args); n > 0 && args[n-1] == completionFlag {
		args = offerCompletion(app, args)
	} else {
		args, err = normalise(app, args)
	}
	if err == nil {
		err = app.RunContext(ctx, append([]string{app.Name}, args...))
	}
	code := exitCode(ctx, err)
	switch {
	case code == exitInterrupted:
		fmt.Fprintln(stderr, "holdfast: interrupted")
	case err != nil:
		fmt.Fprintln(stderr, "holdfast: "+err.Error())
	}
	return code
}

func newApp(stdin io.Reader, stdout, stderr io.Writer) *cli.App {
	app := &cli.App{
		Name:      "holdfast",
		Usage:     "durable work in the Postgres you already have",
		UsageText: "holdfast COMMAND [options]",
		Description: "`holdfast demo`, `holdfast simulate` and `holdfast bench` need no database. For all else name one with\n" +
			"--database-url, or in $HOLDFAST_DATABASE_URL or $DATABASE_URL, and run `holdfast migrate up` first.\n" +
			"`holdfast COMMAND --help` says more.\n\n" +
			"Exit codes: 0 done, 1 failed, 2 usage error (also: no database given), 3 findings of a check,\n" +
			"4 the database cannot be reached, 130 interrupted.",
		Reader:    stdin,
		Writer:    stdout,
		ErrWriter: stderr,
		// A comma is part of a header's value or of a queue's name.
		DisableSliceFlagSeparator: true,
		HideHelpCommand:           true,
		HideVersion:               true,
		ExitErrHandler:            func(*cli.Context, error) {},
		OnUsageError:              asUsageError,
		Commands: []*cli.Command{
			demoCommand(),
			demoReceiptCommand(),
			demoLabelCommand(),
			simulateCommand(),
			benchCommand(),
			benchWorkerCommand(),
			migrateCommand(),
			enqueueCommand(),
			workCommand(),
			relayCommand(),
			statusCommand(),
			topCommand(),
			jobsCommand(),
			deadCommand(),
			eventsCommand(),
			queuesCommand(),
			workersCommand(),
			leasesCommand(),
			keysCommand(),
			ringCommand(),
			rolesCommand(),
			doctorCommand(),
			tuneCommand(),
			healthCommand(),
			envCommand(),
			completionCommand(),
			versionCommand(),
		},
	}
	complete(app.Name, app.Commands)
	return app
}

// complete gives all commands what each of them has. Without HideHelpCommand a job of the
// kind "help" could not be enqueued.
func complete(path string, commands []*cli.Command) {
	for _, command := range commands {
		name := path + " " + command.Name
		command.HideHelpCommand = true
		command.OnUsageError = asUsageError
		if hasFlag(command, flagOutput) && command.Before == nil {
			command.Before = checkOutput
		}
		switch {
		case len(command.Subcommands) > 0 && command.Action != nil:
			command.UsageText = name + " [COMMAND] [options]"
		case len(command.Subcommands) > 0:
			command.UsageText = name + " COMMAND [options]"
		case command.ArgsUsage != "":
			command.UsageText = name + " " + command.ArgsUsage + " [options]"
		default:
			command.UsageText = name + " [options]"
		}
		complete(name, command.Subcommands)
	}
}

func hasFlag(command *cli.Command, name string) bool {
	return slices.ContainsFunc(command.Flags, func(flag cli.Flag) bool { return slices.Contains(flag.Names(), name) })
}
