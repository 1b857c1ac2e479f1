package main

import (
	"fmt"
	"text/tabwriter"

	"github.com/urfave/cli/v2"

	"github.com/holdfast-pg/holdfast/domain"
)

func keysCommand() *cli.Command {
	return &cli.Command{
		Name:  "keys",
		Usage: "look at partition keys",
		Subcommands: []*cli.Command{{
			Name:  "hot",
			Usage: "print which keys the jobs at the head of a queue belong to",
			Flags: append([]cli.Flag{
				&cli.StringFlag{Name: "queue", Usage: "the `QUEUE`", Value: domain.DefaultQueue},
				&cli.IntFlag{Name: "limit", Usage: "`N` keys at most", Value: 10},
				outputFlag(),
			}, databaseFlags()...),
			Action: withArgs(0, 0, hotKeys),
		}},
	}
}

func hotKeys(c *cli.Context) error {
	asJSON, err := wantsJSON(c)
	if err != nil {
		return err
	}
	if err := checkPositive(c, "limit"); err != nil {
		return err
	}
	pool, err := connect(c)
	if err != nil {
		return err
	}
	defer pool.Close()
	queue := c.String("queue")
	if _, err := domain.FindQueue(c.Context, pool, queue); err != nil {
		return err
	}
	sample, err := domain.HotKeys(c.Context, pool, queue, min(c.Int("limit"), listLimit))
	if err != nil {
		return err
	}
	if asJSON {
		return printKeysJSON(c, queue, sample)
	}
	table := tabwriter.NewWriter(c.App.Writer, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "KEY\tJOBS SEEN\tSHARE")
	for _, key := range sample.Keys {
		fmt.Fprintf(table, "%s\t%d\t%.1f %%\n", oneLine(key.Key), key.Jobs, 100*key.Share)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	explainSample(c, queue, sample)
	return nil
}

func explainSample(c *cli.Context, queue string, sample domain.KeySample) {
	if sample.Jobs == 0 {
		fmt.Fprintf(c.App.ErrWriter, "nothing waits in queue %s\n", queue)
		return
	}
	fmt.Fprintf(c.App.ErrWriter, "a sample: %d jobs at the head of queue %s, whatever stands behind them\n"+
		"a key that keeps a large share holds its jobs in one place: spread them over several with holdfast.Shard\n", sample.Jobs, queue)
}

func printKeysJSON(c *cli.Context, queue string, sample domain.KeySample) error {
	type item struct {
		Key   string  `json:"key"`
		Jobs  int64   `json:"jobs"`
		Share float64 `json:"share"`
	}
	items := make([]item, len(sample.Keys))
	for i, key := range sample.Keys {
		items[i] = item(key)
	}
	return printJSON(c, struct {
		Queue string `json:"queue"`
		Jobs  int64  `json:"jobs"`
		Items []item `json:"items"`
	}{queue, sample.Jobs, items})
}
