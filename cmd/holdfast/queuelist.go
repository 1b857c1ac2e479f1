package main

import (
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/urfave/cli/v2"

	"github.com/holdfast-pg/holdfast/domain"
)

func listQueuesCommand() *cli.Command {
	return &cli.Command{
		Name:   "list",
		Usage:  "list the queues and what waits in them, runs and has died",
		Flags:  append([]cli.Flag{outputFlag()}, readFlags()...),
		Action: withArgs(0, 0, listQueues),
	}
}

func showQueueCommand() *cli.Command {
	return &cli.Command{
		Name:      "show",
		Usage:     "print what waits in a queue, runs and has died, and its settings",
		ArgsUsage: "NAME",
		Flags:     append([]cli.Flag{outputFlag()}, readFlags()...),
		Action:    withArgs(1, 1, showQueue),
	}
}

// loadedQueue is a queue with its settings and its jobs.
type loadedQueue struct {
	queueItem

	Load domain.QueueLoad `json:"load"`
}

func listQueues(c *cli.Context) error {
	return withReplica(c, func(pool *pgxpool.Pool) error {
		settings, err := domain.ListQueues(c.Context, pool, listLimit)
		if err != nil {
			return err
		}
		noteLimit(c, len(settings), listLimit, "queues")
		queues, err := loadQueues(c, pool, settings...)
		if err != nil {
			return err
		}
		if err := printItems(c, queues, loadColumns()...); err != nil {
			return err
		}
		noteBounds(c, queues)
		return nil
	})
}

func showQueue(c *cli.Context) error {
	return withReplica(c, func(pool *pgxpool.Pool) error {
		settings, err := domain.FindQueue(c.Context, pool, c.Args().First())
		if err != nil {
			return err
		}
		queues, err := loadQueues(c, pool, settings)
		if err != nil {
			return err
		}
		queue := queues[0]
		if err := printRecord(c, queue, append(loadFacts(queue.Load), queueFacts(queue.queueItem)[1:]...)...); err != nil {
			return err
		}
		noteBounds(c, queues)
		return nil
	})
}

func loadQueues(c *cli.Context, pool *pgxpool.Pool, settings ...domain.QueueSettings) ([]loadedQueue, error) {
	names := make([]string, len(settings))
	for i, queue := range settings {
		names[i] = queue.Name
	}
	loads, err := domain.QueueLoads(c.Context, pool, names...)
	if err != nil {
		return nil, err
	}
	queues := make([]loadedQueue, len(settings))
	for i, queue := range settings {
		queues[i] = loadedQueue{queueItem: newQueueItem(queue), Load: loads[i]}
	}
	return queues, nil
}

func loadColumns() []column[loadedQueue] {
	return []column[loadedQueue]{
		{"NAME", func(q loadedQueue) string { return q.Name }},
		{"", func(q loadedQueue) string { return queueMarks(q.queueItem) }},
		{"OLDEST", func(q loadedQueue) string { return oldest(q.Load) }},
		{"READY", func(q loadedQueue) string { return q.Load.Ready.String() }},
		{"SCHEDULED", func(q loadedQueue) string { return q.Load.Scheduled.String() }},
		{"RETRYING", func(q loadedQueue) string { return q.Load.Retrying.String() }},
		{"PROCESSING", func(q loadedQueue) string { return q.Load.Processing.String() }},
		{"PAST LEASE", func(q loadedQueue) string { return q.Load.Expired.String() }},
		{"DEAD", func(q loadedQueue) string { return q.Load.Dead().String() }},
		{"IN/S", func(q loadedQueue) string { return rate(q.Load.Arrivals.PerSecond) }},
		{"OUT/S", func(q loadedQueue) string { return rate(q.Load.Completions.PerSecond) }},
	}
}

// queueMarks says what is not as with most queues.
func queueMarks(queue queueItem) string {
	var marks []string
	if queue.Paused {
		marks = append(marks, "paused")
	}
	if queue.Ordered {
		marks = append(marks, "ordered")
	}
	return strings.Join(marks, " ")
}

func loadFacts(load domain.QueueLoad) []fact {
	in, out := load.Arrivals, load.Completions
	return []fact{
		{"queue", load.Queue},
		{"oldest due", oldest(load)},
		{"ready", load.Ready},
		{"scheduled", load.Scheduled},
		{"retrying", load.Retrying},
		{"processing", load.Processing},
		{"past their lease", load.Expired},
		{"failed", load.Failed},
		{"dead-lettered", load.DeadLetter},
		{"completed, kept", load.Completed},
		{"came in", fmt.Sprintf("%s/s: %d within %s, %d of them completed", rate(in.PerSecond), in.Jobs, age(in.SpanSeconds), in.Completed)},
		{"were completed", fmt.Sprintf("%s/s: %d within %s", rate(out.PerSecond), out.Jobs, age(out.SpanSeconds))},
	}
}

func queueFacts(queue queueItem) []fact {
	return []fact{
		{"queue", queue.Name},
		{"paused", yesNo(queue.Paused)},
		{"ordered", yesNo(queue.Ordered)},
		{"max attempts", queue.MaxAttempts},
		{"retention mode", queue.RetentionMode},
		{"keep for", queue.KeepFor},
		{"retention", queue.Retention},
		{"dedupe window", queue.DedupeWindow},
		{"ring", yesNo(queue.Ring)},
	}
}

// oldest is how long the oldest due job has been due.
func oldest(load domain.QueueLoad) string {
	if load.OldestAgeSeconds == nil {
		return "-"
	}
	return age(*load.OldestAgeSeconds)
}

func rate(perSecond float64) string {
	switch {
	case perSecond == 0:
		return "0"
	case perSecond < 10:
		return fmt.Sprintf("%.2f", perSecond)
	}
	return fmt.Sprintf("%.0f", perSecond)
}

// noteBounds says what a plus sign means, where there is one.
func noteBounds(c *cli.Context, queues []loadedQueue) {
	for _, queue := range queues {
		for _, fact := range loadFacts(queue.Load) {
			if count, isCount := fact.value.(domain.Count); isCount && count.More {
				fmt.Fprintln(c.App.ErrWriter, "+: there are more; counting stops at 10000, and at 4000 ordered jobs, claims or kept jobs")
				return
			}
		}
	}
}
