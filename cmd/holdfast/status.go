package main

import (
	"fmt"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/urfave/cli/v2"

	"github.com/holdfast-pg/holdfast/app/support"
	"github.com/holdfast-pg/holdfast/domain"
)

func statusCommand() *cli.Command {
	return &cli.Command{
		Name:   "status",
		Usage:  "print whether all is well, or else the bottleneck and the first move",
		Flags:  append([]cli.Flag{outputFlag()}, readFlags()...),
		Action: withArgs(0, 0, showStatus),
	}
}

func showStatus(c *cli.Context) error {
	return withReplica(c, func(pool *pgxpool.Pool) error {
		status, err := support.ReadStatus(c.Context, pool)
		if err != nil {
			return err
		}
		if c.String(flagOutput) != formatTable {
			return printJSON(c, status)
		}
		return printStatus(c, status)
	})
}

func printStatus(c *cli.Context, status support.Status) error {
	facts := []fact{{"verdict", status.Verdict}, {"do", status.Do}}
	for i, finding := range status.Findings {
		if i > 0 {
			facts = append(facts, fact{"also", finding.Means}, fact{"do", finding.Do})
		}
		facts = append(facts, fact{"seen", finding.Seen})
	}
	all := status.Workers
	facts = append(facts, fact{"workers", fmt.Sprintf("%d live, %d draining, %d not seen; %d jobs in flight, %d slots",
		all.Live, all.Draining, all.Silent, all.InFlight, all.Concurrency)})
	if err := printRecord(c, status, facts...); err != nil {
		return err
	}
	fmt.Fprintln(c.App.Writer)
	err := printItems(c, status.Queues,
		column[domain.QueueLoad]{"QUEUE", func(q domain.QueueLoad) string { return q.Queue }},
		column[domain.QueueLoad]{"READY", func(q domain.QueueLoad) string { return q.Ready.String() }},
		column[domain.QueueLoad]{"OLDEST", oldest},
		column[domain.QueueLoad]{"RETRYING", func(q domain.QueueLoad) string { return q.Retrying.String() }},
		column[domain.QueueLoad]{"SCHEDULED", func(q domain.QueueLoad) string { return q.Scheduled.String() }},
		column[domain.QueueLoad]{"PROCESSING", func(q domain.QueueLoad) string { return q.Processing.String() }},
		column[domain.QueueLoad]{"DEAD", func(q domain.QueueLoad) string { return q.Dead().String() }},
	)
	if err == nil && status.MoreQueues {
		fmt.Fprintf(c.App.ErrWriter, "only the first %d queues are looked at\n", len(status.Queues))
	}
	return err
}
