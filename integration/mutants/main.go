// Mutants plants known bugs in the product, one at a time, and demands that the test named
// for each goes red: a suite is worth what it catches. `make mutants` runs it.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

func main() {
	if err := run(os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
		os.Exit(1)
	}
}

// run does what the arguments say. It returns nil only if every mutant was caught.
func run(arguments []string, out io.Writer) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	flags := flag.NewFlagSet("mutants", flag.ContinueOnError)
	only := flags.String("only", "", "plant the bugs whose name holds this text")
	short := flags.Bool("short", false, "plant the few that are quick, each against another promise")
	table := flags.Bool("table", false, "print the table of all bugs in Markdown, and plant none")
	verbose := flags.Bool("v", false, "print what the test says of each bug")
	atOnce := flags.Int("at-once", 2, "how many bugs are in the works at once")
	switch err := flags.Parse(arguments); {
	case errors.Is(err, flag.ErrHelp):
		return nil
	case err != nil:
		return err
	case flags.NArg() > 0:
		return fmt.Errorf("%q is no option: see -help", flags.Arg(0))
	}
	if *table {
		fmt.Fprint(out, markdown(mutants()))
		return nil
	}
	chosen := choose(mutants(), *only, *short)
	if len(chosen) == 0 {
		return fmt.Errorf("no bug is called anything with %q", *only)
	}
	root, err := moduleRoot(ctx)
	if err != nil {
		return err
	}
	temp, err := os.MkdirTemp("", "mutants-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(temp) }()

	began := time.Now()
	nursery, caught := nursery{root: root, temp: temp, limit: time.Minute}, 0
	nursery.plantAll(ctx, chosen, max(1, *atOnce), func(r result) {
		if r.verdict == caughtBy {
			caught++
		}
		fmt.Fprint(out, line(r, *verbose))
	})
	if err := ctx.Err(); err != nil {
		return err
	}
	fmt.Fprintf(out, "%d of %d planted bugs were caught, in %.0f s\n", caught, len(chosen), time.Since(began).Seconds())
	if caught < len(chosen) {
		return errors.New("a planted bug that is not caught means a promise that no test holds, or a text that must follow the code: see integration/mutants")
	}
	return nil
}

func choose(all []mutant, only string, short bool) []mutant {
	return slices.DeleteFunc(all, func(m mutant) bool {
		return !strings.Contains(m.name, only) || short && !m.short
	})
}

// moduleRoot returns the folder of the go.mod around the working directory.
func moduleRoot(ctx context.Context) (string, error) {
	file, err := exec.CommandContext(ctx, "go", "env", "GOMOD").Output()
	if err != nil {
		return "", fmt.Errorf("look for go.mod: %w", err)
	}
	return filepath.Dir(strings.TrimSpace(string(file))), nil
}
