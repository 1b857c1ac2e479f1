package main

import (
	"fmt"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/urfave/cli/v2"

	"github.com/holdfast-pg/holdfast/domain"
)

func deadKeysCommand() *cli.Command {
	return &cli.Command{
		Name:   "keys",
		Usage:  "list dead jobs of a queue that hold their idempotency key, newest first",
		Flags:  append([]cli.Flag{queueFlag(), limitFlag("jobs"), outputFlag()}, readFlags()...),
		Action: withArgs(0, 0, listDeadKeys),
	}
}

func listDeadKeys(c *cli.Context) error {
	if err := checkPositive(c, "limit"); err != nil {
		return err
	}
	return withReplica(c, func(pool *pgxpool.Pool) error {
		queue, limit := c.String("queue"), min(c.Int("limit"), listLimit)
		if _, err := domain.FindQueue(c.Context, pool, queue); err != nil {
			return err
		}
		holders, err := domain.DeadKeyHolders(c.Context, pool, queue, limit)
		if err != nil {
			return err
		}
		err = printItems(c, holders,
			column[domain.DeadKeyHolder]{"ID", func(h domain.DeadKeyHolder) string { return h.ID.String() }},
			column[domain.DeadKeyHolder]{"STATE", func(h domain.DeadKeyHolder) string { return string(h.Status) }},
			column[domain.DeadKeyHolder]{"KIND", func(h domain.DeadKeyHolder) string { return h.Kind }},
			column[domain.DeadKeyHolder]{"KEY", func(h domain.DeadKeyHolder) string { return h.PartitionKey }},
			column[domain.DeadKeyHolder]{"ONCE", func(h domain.DeadKeyHolder) string { return h.IdempotencyKey }},
			column[domain.DeadKeyHolder]{"HELD UNTIL", func(h domain.DeadKeyHolder) string { return moment(h.ExpiresAt) }},
		)
		if err == nil && len(holders) == 0 {
			fmt.Fprintf(c.App.ErrWriter, "none of the newest failed and dead-lettered jobs of queue %s, %d each, holds its idempotency key\n", queue, domain.DeadKeysLooked)
		}
		noteLimit(c, len(holders), limit, "dead jobs")
		return err
	})
}
