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
	facts = append(facts, fact{"workers", workforce(status.Workers)})
	if err := printRecord(c, status, facts...); err != nil {
		return err
	}
	fmt.Fprintln(c.App.Writer)
	err := printItems(c, status.Queues, statusColumns()...)
	if err == nil && status.MoreQueues {
		fmt.Fprintf(c.App.ErrWriter, "only the first %d queues are looked at\n", len(status.Queues))
	}
	return err
}

func workforce(all support.Workforce) string {
	return fmt.Sprintf("%d live, %d draining, %d not seen; %d jobs in flight, %d slots", all.Live, all.Draining, all.Silent, all.InFlight, all.Concurrency)
}

func statusColumns() []column[domain.QueueLoad] {
	return []column[domain.QueueLoad]{
		{"QUEUE", func(q domain.QueueLoad) string { return q.Queue }},
		{"READY", func(q domain.QueueLoad) string { return q.Ready.String() }},
		{"OLDEST", oldest},
		{"RETRYING", func(q domain.QueueLoad) string { return q.Retrying.String() }},
		{"SCHEDULED", func(q domain.QueueLoad) string { return q.Scheduled.String() }},
		{"PROCESSING", func(q domain.QueueLoad) string { return q.Processing.String() }},
		{"DEAD", func(q domain.QueueLoad) string { return q.Dead().String() }},
		{"IN/S", func(q domain.QueueLoad) string { return rate(q.Arrivals.PerSecond) }},
		{"OUT/S", func(q domain.QueueLoad) string { return rate(q.Completions.PerSecond) }},
	}
}
