package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/urfave/cli/v2"

	"github.com/holdfast-pg/holdfast/domain"
)

// mostNamed is how many jobs a command line can name.
const mostNamed = domain.MaxWalkBatch

// jobsOperateCommands are what a person does to jobs by their ids.
func jobsOperateCommands() []*cli.Command {
	flags := func(more ...cli.Flag) []cli.Flag {
		return slices.Concat(more, operatorFlags(), consentFlags(), []cli.Flag{outputFlag()}, databaseFlags())
	}
	maxAttempts := &cli.IntFlag{Name: "max-attempts", Usage: "`N` attempts at most from now on", DefaultText: "unchanged"}
	return []*cli.Command{
		{
			Name: "cancel", Usage: "end jobs that wait or run: they are failed", ArgsUsage: "ID...",
			Flags: flags(), Action: withArgs(1, mostNamed, cancelJobs),
		},
		{
			Name: "release", Usage: "take jobs that run from their workers, so that others can start them at once", ArgsUsage: "ID...",
			Flags: flags(), Action: withArgs(1, mostNamed, releaseJobs),
		},
		{
			Name: "redrive", Usage: "put failed and dead-lettered jobs back", ArgsUsage: "ID...",
			Flags: flags(maxAttempts), Action: withArgs(1, mostNamed, redriveJobs),
		},
		{
			Name: "purge", Usage: "delete failed and dead-lettered jobs for good", ArgsUsage: "ID...",
			Flags: flags(), Action: withArgs(1, mostNamed, purgeJobs),
		},
	}
}

// operation is a deed on jobs that a person named.
type operation struct {
	deed

	fits func(domain.Operand) bool
	run  func(ctx context.Context, pool *pgxpool.Pool, by domain.By, chosen []domain.Operand) ([]domain.JobID, error)
}

func cancelJobs(c *cli.Context) error {
	return operate(c, operation{cancelling, isUnfinished, func(ctx context.Context, pool *pgxpool.Pool, by domain.By, chosen []domain.Operand) ([]domain.JobID, error) {
		return by.Cancel(ctx, pool, idsOf(chosen)...)
	}})
}

func releaseJobs(c *cli.Context) error {
	return operate(c, operation{releasing, isHeld, func(ctx context.Context, pool *pgxpool.Pool, by domain.By, chosen []domain.Operand) ([]domain.JobID, error) {
		claims := make([]domain.Claim, len(chosen))
		for i, job := range chosen {
			claims[i] = job.Claim
		}
		return by.Release(ctx, pool, claims...)
	}})
}

func redriveJobs(c *cli.Context) error {
	maxAttempts, err := maxAttemptsFlag(c)
	if err != nil {
		return err
	}
	return operate(c, operation{redriving, isDead, func(ctx context.Context, pool *pgxpool.Pool, by domain.By, chosen []domain.Operand) ([]domain.JobID, error) {
		return by.Redrive(ctx, pool, maxAttempts, idsOf(chosen)...)
	}})
}

func purgeJobs(c *cli.Context) error {
	return operate(c, operation{purging, isDead, func(ctx context.Context, pool *pgxpool.Pool, by domain.By, chosen []domain.Operand) ([]domain.JobID, error) {
		return by.Purge(ctx, pool, idsOf(chosen)...)
	}})
}

// maxAttemptsFlag is 0 when the flag is not given.
func maxAttemptsFlag(c *cli.Context) (int, error) {
	if !c.IsSet("max-attempts") {
		return 0, nil
	}
	return c.Int("max-attempts"), checkPositive(c, "max-attempts")
}

func isDead(job domain.Operand) bool {
	return job.Status == domain.StatusFailed || job.Status == domain.StatusDeadLetter
}

func isHeld(job domain.Operand) bool { return job.Status == domain.StatusProcessing }

func isUnfinished(job domain.Operand) bool {
	return job.Status == domain.StatusPending || job.Status == domain.StatusProcessing
}

func idsOf(chosen []domain.Operand) []domain.JobID {
	ids := make([]domain.JobID, len(chosen))
	for i, job := range chosen {
		ids[i] = job.ID
	}
	return ids
}

// operate shows, asks, does and reports. One job that is named is not asked about, unless
// nothing would be left of it.
func operate(c *cli.Context, op operation) error {
	ids, err := parseIDs(c.Args().Slice())
	if err != nil {
		return err
	}
	by, err := operator(c)
	if err != nil {
		return err
	}
	return withDatabase(c, func(pool *pgxpool.Pool) error {
		found, err := domain.Examine(c.Context, pool, ids...)
		if err != nil {
			return err
		}
		chosen := slices.DeleteFunc(slices.Clone(found), func(job domain.Operand) bool { return !op.fits(job) })
		if len(chosen) > 1 || len(chosen) == 1 && (op.verb == purging.verb || c.Bool("dry-run")) {
			if goOn, err := weigh(c, pool, op.deed, chosen); err != nil || !goOn {
				return err
			}
		}
		done, err := perform(c.Context, pool, by, op, chosen)
		if err != nil {
			return err
		}
		return report(c, pool, op, ids, done)
	})
}

func parseIDs(args []string) ([]domain.JobID, error) {
	var ids []domain.JobID
	for _, arg := range args {
		id, err := domain.ParseJobID(arg)
		if err != nil {
			return nil, err
		}
		if !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	return ids, nil
}

// weigh shows what is about to happen, and tells whether to go on.
func weigh(c *cli.Context, pool *pgxpool.Pool, d deed, chosen []domain.Operand) (goOn bool, err error) {
	preview, err := domain.PreviewJobs(c.Context, pool, chosen)
	if err != nil {
		return false, err
	}
	return showAndAsk(c, d, preview)
}

func showAndAsk(c *cli.Context, d deed, preview domain.Preview) (goOn bool, err error) {
	if err := printPreview(c, d, preview); err != nil {
		return false, err
	}
	if c.Bool("dry-run") {
		if c.String(flagOutput) != formatTable {
			return false, printJSON(c, preview)
		}
		return false, nil
	}
	return true, consent(c, d.question(preview))
}

// What performing does about jobs that are locked: for a moment by a claim or a renewal, for
// long by a handler's transaction.
const (
	lockedTries = 5
	lockedPause = 100 * time.Millisecond
)

// perform does it, and returns the jobs that were changed. Each statement runs to its end: an
// interrupted one would leave nobody knowing what became of it.
func perform(ctx context.Context, pool *pgxpool.Pool, by domain.By, op operation, chosen []domain.Operand) ([]domain.JobID, error) {
	var all []domain.JobID
	for try := range lockedTries {
		if len(chosen) == 0 {
			break
		}
		if try > 0 && pause(ctx, lockedPause) != nil {
			break // What is done is still to be told.
		}
		call, cancel := unhurried(ctx)
		done, err := op.run(call, pool, by, chosen)
		cancel()
		if err != nil {
			return all, err
		}
		all = append(all, done...)
		chosen = slices.DeleteFunc(chosen, func(job domain.Operand) bool { return slices.Contains(done, job.ID) })
	}
	return all, nil
}

// unhurried is a context that Ctrl-C does not end.
func unhurried(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), 30*time.Second)
}

func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// operated is what became of the jobs that were named.
type operated struct {
	Operation string    `json:"operation"`
	Asked     int       `json:"asked"`
	Done      int       `json:"done"`
	Left      []leftJob `json:"left"`
}

// leftJob is a job that was left alone.
type leftJob struct {
	ID  domain.JobID `json:"id"`
	Why string       `json:"why"`
}

// report says how many jobs were changed, and why each other was not. It is an error that there
// is one.
func report(c *cli.Context, pool *pgxpool.Pool, op operation, ids, done []domain.JobID) error {
	result := operated{Operation: op.verb, Asked: len(ids), Done: len(done), Left: []leftJob{}}
	rest := slices.DeleteFunc(slices.Clone(ids), func(id domain.JobID) bool { return slices.Contains(done, id) })
	if len(rest) > 0 {
		call, cancel := unhurried(c.Context)
		defer cancel()
		found, err := domain.Examine(call, pool, rest...)
		if err != nil {
			return err
		}
		for _, id := range rest {
			result.Left = append(result.Left, leftJob{id, whyLeft(op, found, id)})
		}
	}
	if c.String(flagOutput) != formatTable {
		if err := printJSON(c, result); err != nil {
			return err
		}
	} else {
		fmt.Fprintf(c.App.Writer, "%s %d of %s\n", op.done, result.Done, jobs(result.Asked))
	}
	for _, left := range result.Left {
		fmt.Fprintf(c.App.ErrWriter, "not %s: %s: %s\n", op.done, left.ID, left.Why)
	}
	if len(rest) > 0 {
		return fmt.Errorf("%s of %d not %s", jobs(len(rest)), len(ids), op.done)
	}
	return nil
}

func whyLeft(op operation, found []domain.Operand, id domain.JobID) string {
	at := slices.IndexFunc(found, func(job domain.Operand) bool { return job.ID == id })
	switch {
	case at < 0:
		return domain.ErrNotFound.Error()
	case op.fits(found[at]):
		return fmt.Sprintf("it is %s, and is locked or changed at this moment, perhaps by its handler's transaction: try again", found[at].Status)
	default:
		return fmt.Sprintf("it is %s", found[at].Status)
	}
}
