package main

import (
	"fmt"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/urfave/cli/v2"

	"github.com/holdfast-pg/holdfast/domain"
)

func showKeyCommand() *cli.Command {
	return &cli.Command{
		Name:      "show",
		Usage:     "print the jobs of a key that are not completed, in their order, and its bucket",
		ArgsUsage: "KEY",
		Flags:     append([]cli.Flag{queueFlag(), limitFlag("jobs"), outputFlag()}, readFlags()...),
		Action:    withArgs(1, 1, showKey),
	}
}

func showKey(c *cli.Context) error {
	if err := checkPositive(c, "limit"); err != nil {
		return err
	}
	return withReplica(c, func(pool *pgxpool.Pool) error {
		queue, limit := c.String("queue"), min(c.Int("limit"), listLimit)
		if _, err := domain.FindQueue(c.Context, pool, queue); err != nil {
			return err
		}
		key, err := domain.FindKey(c.Context, pool, queue, c.Args().First(), limit)
		if err != nil {
			return err
		}
		if c.String(flagOutput) == formatTable {
			fmt.Fprintf(c.App.Writer, "key %s of queue %s, bucket %d\n\n", key.Key, key.Queue, key.Bucket)
		} else {
			return printJSON(c, key)
		}
		noteLimit(c, len(key.Jobs), limit, "jobs of the key")
		columns := jobColumns()
		return printItems(c, key.Jobs, append(columns[:4], columns[5:]...)...)
	})
}
