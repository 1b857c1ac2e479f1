package main

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/urfave/cli/v2"

	"github.com/holdfast-pg/holdfast/app/support"
	"github.com/holdfast-pg/holdfast/domain"
)

func ringCommand() *cli.Command {
	flags := func(more ...cli.Flag) []cli.Flag {
		queue := &cli.StringFlag{Name: "queue", Usage: "the `QUEUE`", Value: domain.DefaultQueue}
		return append(append([]cli.Flag{queue}, more...), append([]cli.Flag{outputFlag()}, readFlags()...)...)
	}
	return &cli.Command{
		Name:  "ring",
		Usage: "look at who owns which buckets",
		Subcommands: []*cli.Command{
			{
				Name:   "show",
				Usage:  "print how the buckets of a queue are shared, and who disagrees",
				Flags:  flags(),
				Action: withArgs(0, 0, showRing),
			},
			{
				Name:      "lookup",
				Usage:     "print the bucket of a partition key, and who owns it",
				ArgsUsage: "KEY",
				Flags:     flags(),
				Action:    withArgs(1, 1, lookupKey),
			},
			{
				Name:  "what-if",
				Usage: "print how many buckets would move if there were other workers",
				Flags: flags(
					&cli.IntFlag{Name: "workers", Usage: "there were `N` workers", DefaultText: "none"},
					&cli.BoolFlag{Name: "join", Usage: "one more worker joined", DisableDefaultText: true},
					&cli.StringFlag{Name: "leave", Usage: "the worker of this `ID` left"},
				),
				Action: withArgs(0, 0, supposeWorkers),
			},
		},
	}
}

func showRing(c *cli.Context) error {
	return withReplica(c, func(pool *pgxpool.Pool) error {
		ring, err := support.FindRing(c.Context, pool, c.String("queue"))
		if err != nil {
			return err
		}
		if c.String(flagOutput) != formatTable {
			return printJSON(c, ring)
		}
		return printRing(c, ring)
	})
}

func printRing(c *cli.Context, ring support.Ring) error {
	err := printRecord(c, ring,
		fact{"queue", ring.Queue},
		fact{"buckets", ring.Buckets},
		fact{"without owner", ring.Unowned},
		fact{"workers", len(ring.Workers)},
		fact{"owned", fmt.Sprintf("%d to %d, %.1f on average", ring.Least, ring.Most, ring.Mean)},
		fact{"imbalance", fmt.Sprintf("%.2f", ring.Imbalance)},
		fact{"disagree", ring.Disagree},
	)
	if err != nil {
		return err
	}
	if len(ring.Workers) == 0 {
		fmt.Fprintf(c.App.ErrWriter, "no live worker serves queue %s: nobody claims from it\n", ring.Queue)
		return nil
	}
	fmt.Fprintln(c.App.Writer)
	err = printItems(c, ring.Workers,
		column[support.RingWorker]{"WORKER", func(w support.RingWorker) string { return w.ID }},
		column[support.RingWorker]{"AFFINITY", func(w support.RingWorker) string { return string(w.Affinity) }},
		column[support.RingWorker]{"OWNED", func(w support.RingWorker) string { return strconv.Itoa(w.Owned) }},
		column[support.RingWorker]{"IN ALL QUEUES", func(w support.RingWorker) string { return strconv.Itoa(w.OwnedInAll) }},
		column[support.RingWorker]{"SAYS", says},
		column[support.RingWorker]{"LAST SEEN", func(w support.RingWorker) string { return ago(seconds(w.SilenceSeconds)) }},
	)
	if err == nil && ring.Disagree > 0 {
		fmt.Fprintln(c.App.ErrWriter, "a worker that disagrees goes by other workers than are registered as live: for some seconds after one came or went that is normal; if it lasts, look in its log for \"cannot see the other workers\"")
	}
	return err
}

// says is how many buckets a worker counts itself.
func says(w support.RingWorker) string {
	switch {
	case w.Says == nil:
		return "nothing yet"
	case !w.Agrees:
		return fmt.Sprintf("%d, disagrees", *w.Says)
	default:
		return strconv.Itoa(*w.Says)
	}
}

func lookupKey(c *cli.Context) error {
	return withReplica(c, func(pool *pgxpool.Pool) error {
		place, err := support.Lookup(c.Context, pool, c.String("queue"), c.Args().First())
		if err != nil {
			return err
		}
		return printRecord(c, place,
			fact{"queue", place.Queue},
			fact{"key", place.Key},
			fact{"bucket", fmt.Sprintf("%d of %d", place.Bucket, place.Buckets)},
			fact{"claimed by", claimers(place)},
		)
	})
}

// claimers are the workers that claim the jobs of a key.
func claimers(place support.Place) string {
	anyone := strings.Join(place.Anyone, ", ")
	switch {
	case place.Workers == 0:
		return "nobody: no live worker serves the queue"
	case place.Owner == nil:
		return anyone + ", which claim from every bucket"
	case len(place.Anyone) > 0:
		return fmt.Sprintf("%s, its owner; also by %s, which claim from every bucket", *place.Owner, anyone)
	default:
		return *place.Owner + ", its owner; by others what has waited for 2s"
	}
}

func supposeWorkers(c *cli.Context) error {
	given := 0
	for _, name := range []string{"workers", "join", "leave"} {
		if c.IsSet(name) {
			given++
		}
	}
	if given != 1 {
		return usage("say what to suppose: one of --workers N, --join and --leave ID")
	}
	if c.IsSet("leave") && c.String("leave") == "" {
		return usage("--leave is empty")
	}
	change := support.Change{Workers: c.Int("workers"), Join: c.Bool("join"), Leave: c.String("leave")}
	if c.IsSet("workers") {
		if err := checkPositive(c, "workers"); err != nil {
			return err
		}
	}
	return withReplica(c, func(pool *pgxpool.Pool) error {
		answer, err := support.Suppose(c.Context, pool, c.String("queue"), change)
		if err != nil {
			return err
		}
		return printRecord(c, answer,
			fact{"queue", answer.Queue},
			fact{"workers", fmt.Sprintf("%d, then %d", answer.Workers, answer.Then)},
			fact{"moved", fmt.Sprintf("%d of %d buckets, %.1f %%", answer.Moved, answer.Buckets, 100*answer.Share)},
			fact{"owned then", fmt.Sprintf("%d to %d, %.1f on average", answer.Least, answer.Most, answer.Mean)},
		)
	})
}

// seconds is the duration that a report gives as a number.
func seconds(number float64) time.Duration {
	return time.Duration(number * float64(time.Second))
}
