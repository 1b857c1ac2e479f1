package main

import (
	"fmt"
	"strconv"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/urfave/cli/v2"

	"github.com/holdfast-pg/holdfast/domain"
)

func keysCommand() *cli.Command {
	return &cli.Command{
		Name:  "keys",
		Usage: "look at partition keys",
		Subcommands: []*cli.Command{
			{
				Name:  "hot",
				Usage: "print which keys the jobs at the head of a queue belong to",
				Flags: append([]cli.Flag{
					queueFlag(),
					&cli.IntFlag{Name: "limit", Usage: "`N` keys at most", Value: 10},
					outputFlag(),
				}, readFlags()...),
				Action: withArgs(0, 0, hotKeys),
			},
			showKeyCommand(),
		},
	}
}

func hotKeys(c *cli.Context) error {
	if err := checkPositive(c, "limit"); err != nil {
		return err
	}
	return withReplica(c, func(pool *pgxpool.Pool) error {
		queue := c.String("queue")
		if _, err := domain.FindQueue(c.Context, pool, queue); err != nil {
			return err
		}
		sample, err := domain.HotKeys(c.Context, pool, queue, min(c.Int("limit"), listLimit))
		if err != nil {
			return err
		}
		return printKeySample(c, sample)
	})
}

func printKeySample(c *cli.Context, sample domain.KeySample) error {
	if c.String(flagOutput) != formatTable {
		return printJSON(c, sample)
	}
	err := printItems(c, sample.Keys, keyColumns()...)
	if err != nil {
		return err
	}
	if sample.Jobs == 0 {
		fmt.Fprintf(c.App.ErrWriter, "nothing waits in queue %s\n", sample.Queue)
		return nil
	}
	fmt.Fprintf(c.App.ErrWriter, "a sample: %d jobs at the head of queue %s, whatever stands behind them\n"+
		"a key that keeps a large share holds its jobs in one place: spread them over several with holdfast.Shard\n", sample.Jobs, sample.Queue)
	return nil
}

func keyColumns() []column[domain.KeyShare] {
	return []column[domain.KeyShare]{
		{"KEY", func(k domain.KeyShare) string { return k.Key }},
		{"JOBS SEEN", func(k domain.KeyShare) string { return strconv.FormatInt(k.Jobs, 10) }},
		{"SHARE", func(k domain.KeyShare) string { return fmt.Sprintf("%.1f %%", 100*k.Share) }},
	}
}
