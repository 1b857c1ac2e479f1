// Command soak shows that Holdfast keeps its promises while everything around it fails. It runs
// workers and producers as real processes on a Postgres of its own, kills and pauses them, cuts
// their connections just before and just after a commit, crashes the server, and then judges
// what everybody saw by the server's own log.
//
//	soak run --length 90s --seed 7 --dir DIR
//	soak check DIR
//
// It ends with 0 if every promise was kept and everything that it must show did happen, with 1 if not,
// and with 2 if there is nothing to judge: bad options, no server, a run that was cut short.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/holdfast-pg/holdfast/integration/soak/judge"
)

// The roles of processes that this program starts.
const (
	workerRole   = "worker"
	producerRole = "producer"
)

// memberName is the application_name of what workers and producers connect as.
const memberName = "soak-member"

func main() {
	os.Exit(execute(os.Args))
}

// execute does what the environment of a process of a run says, or else the command line.
func execute(args []string) (code int) {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	var err error
	if text, found := os.LookupEnv(ordersVariable); found {
		err = obey(ctx, text)
	} else {
		err = newApp().RunContext(ctx, args)
	}
	var broken *brokenError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &broken):
		code = 1
	default:
		code = 2
	}
	fmt.Fprintln(os.Stderr, "soak:", err)
	return code
}

// brokenError says that a run was judged, and not found good.
type brokenError struct{ reason string }

func (e *brokenError) Error() string { return e.reason }

// obey is the life of a worker or a producer.
func obey(ctx context.Context, text string) error {
	var given orders
	if err := json.Unmarshal([]byte(text), &given); err != nil {
		return err
	}
	if err := os.Setenv("PGAPPNAME", memberName); err != nil {
		return err
	}
	// The pipe ends with the program that started this one.
	ctx, end := context.WithCancel(ctx)
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		end()
	}()
	switch given.Role {
	case workerRole:
		return work(ctx, given)
	case producerRole:
		return produce(ctx, given)
	}
	return fmt.Errorf("nobody is a %q", given.Role)
}

func newApp() *cli.App {
	return &cli.App{
		Name:  "soak",
		Usage: "show that every promise holds while everything fails",
		Commands: []*cli.Command{
			{
				Name:  "run",
				Usage: "run workers and producers, do them harm, and judge what they saw",
				Flags: []cli.Flag{
					&cli.DurationFlag{Name: "length", Usage: "how long to do harm", Value: 90 * time.Second},
					&cli.Uint64Flag{Name: "seed", Usage: "what chooses jobs and faults; 0: any", Value: 0},
					&cli.StringFlag{Name: "dir", Usage: "an empty folder for the history, which is kept; none: a temporary one, kept if the run is not green"},
					&cli.IntFlag{Name: "rate", Usage: "jobs a second", Value: 350},
				},
				Action: runCommand,
			},
			{
				Name:      "check",
				Usage:     "judge a run again",
				ArgsUsage: "DIR",
				Action: func(c *cli.Context) error {
					if c.NArg() != 1 {
						return errors.New("check wants the folder of one run")
					}
					return check(c.Context, c.Args().First())
				},
			},
		},
		// Every error goes through main, which chooses the exit code.
		ExitErrHandler: func(*cli.Context, error) {},
	}
}

func runCommand(c *cli.Context) error {
	s := settings{length: c.Duration("length"), seed: c.Uint64("seed"), dir: c.String("dir"), rate: c.Int("rate"), out: os.Stderr}
	if s.length <= 0 || s.rate <= 0 || c.NArg() > 0 {
		return errors.New("run wants a length and a rate above zero, and nothing else")
	}
	if s.seed == 0 {
		s.seed = rand.Uint64N(1_000_000) + 1
	}
	if err := s.openDir(); err != nil {
		return err
	}
	if err := run(c.Context, s); err != nil {
		return err
	}
	err := check(c.Context, s.dir)
	if err == nil && c.String("dir") == "" {
		err = os.RemoveAll(s.dir) // Nobody asked for it, and there is nothing to look into.
	}
	return err
}

// openDir makes sure that the folder of the run is there and empty.
func (s *settings) openDir() (err error) {
	if s.dir == "" {
		s.dir, err = os.MkdirTemp("", "holdfast-soak-")
		return err
	}
	if s.dir, err = filepath.Abs(s.dir); err != nil {
		return err
	}
	if err := os.MkdirAll(s.dir, 0o755); err != nil {
		return err
	}
	entries, err := os.ReadDir(s.dir)
	if err == nil && len(entries) > 0 {
		err = fmt.Errorf("%s is not empty: a run is not added to another", s.dir)
	}
	return err
}

// check judges a complete run.
func check(ctx context.Context, dir string) error {
	report, err := judge.Run(ctx, dir)
	if err != nil {
		return err
	}
	if err := report.Write(os.Stdout); err != nil {
		return err
	}
	if report.Verdict != judge.Green {
		return &brokenError{fmt.Sprintf("the run is %s, not green; it is kept in %s", report.Verdict, dir)}
	}
	return nil
}
