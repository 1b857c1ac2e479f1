package main

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/urfave/cli/v2"

	"github.com/holdfast-pg/holdfast/domain"
)

func eventsCommand() *cli.Command {
	return &cli.Command{
		Name:  "events",
		Usage: "read what was unusual: failures, lost leases, what people did",
		Subcommands: []*cli.Command{{
			Name:  "list",
			Usage: "list events, the latest first",
			Description: "A job that is claimed and completed leaves no event. Events are kept for 30 days. Each call looks at 10,000 of\n" +
				"them, however few are asked for, and says how to go on.\n\n" +
				"Example:\n" +
				"  holdfast events list --event dead_lettered --since 1h",
			Flags: append([]cli.Flag{
				&cli.StringFlag{Name: "queue", Usage: "only those of the queue `NAME`"},
				&cli.StringFlag{Name: "event", Usage: "only those of one `KIND`: " + eventNames()},
				&cli.StringFlag{Name: "since", Usage: "only those of the latest `DURATION`, such as 90m or 2d"},
				&cli.Int64Flag{Name: "before", Usage: "only those before the event with this `ID`", DefaultText: "from the latest on"},
				&cli.IntFlag{Name: "limit", Usage: "list `N` events at most", Value: 50},
				outputFlag(),
			}, databaseFlags()...),
			Action: withArgs(0, 0, listEvents),
		}},
	}
}

func listEvents(c *cli.Context) error {
	filter, err := eventFilter(c)
	if err != nil {
		return err
	}
	return withDatabase(c, func(pool *pgxpool.Pool) error {
		page, err := domain.ListEvents(c.Context, pool, filter)
		if err != nil {
			return err
		}
		if filter.Queue != "" && len(page.Events) == 0 {
			if _, err := domain.FindQueue(c.Context, pool, filter.Queue); err != nil {
				return err
			}
		}
		noteNextEvents(c, page)
		columns := slices.Insert(eventColumns(), 2,
			column[domain.Event]{"QUEUE", func(e domain.Event) string { return orDash(e.Queue) }},
			column[domain.Event]{"JOB", func(e domain.Event) string { return orDash(e.JobID) }},
		)
		columns = slices.Insert(columns, 0, column[domain.Event]{"ID", func(e domain.Event) string { return strconv.FormatInt(e.ID, 10) }})
		return printItems(c, page.Events, columns...)
	})
}

func eventFilter(c *cli.Context) (domain.EventFilter, error) {
	filter := domain.EventFilter{
		Queue: c.String("queue"), Kind: domain.EventKind(c.String("event")), Before: c.Int64("before"), Limit: c.Int("limit"),
	}
	if filter.Kind != "" && !filter.Kind.Valid() {
		return filter, usage("--event %q is none of %s", filter.Kind, eventNames())
	}
	if c.IsSet("since") {
		within, err := parseDuration(c.String("since"))
		if err != nil || within <= 0 {
			return filter, usage("--since %q is no duration, such as 36h, 90m or 7d", c.String("since"))
		}
		filter.Within = within
	}
	if filter.Before < 0 {
		return filter, usage("--before must be the id of an event, it is %d", filter.Before)
	}
	return filter, checkPositive(c, "limit")
}

func eventNames() string {
	kinds := domain.EventKinds()
	names := make([]string, len(kinds))
	for i, kind := range kinds {
		names[i] = string(kind)
	}
	return strings.Join(names, ", ")
}

// noteNextEvents says where the list goes on, and how far it was searched.
func noteNextEvents(c *cli.Context, page domain.EventPage) {
	switch {
	case page.Next == 0:
	case page.LookedBackTo != nil:
		fmt.Fprintf(c.App.ErrWriter, "searched 10,000 events, back to %s: --before %d goes on\n", moment(*page.LookedBackTo), page.Next)
	default:
		fmt.Fprintf(c.App.ErrWriter, "only the latest %d events are listed: --before %d goes on\n", len(page.Events), page.Next)
	}
}

// eventColumns are those that the story of a job has too.
func eventColumns() []column[domain.Event] {
	return []column[domain.Event]{
		{"TIME", func(e domain.Event) string { return moment(e.At) }},
		{"EVENT", func(e domain.Event) string { return string(e.Kind) }},
		{"GENERATION", func(e domain.Event) string { return orDash(e.Generation) }},
		{"ATTEMPT", func(e domain.Event) string { return orDash(e.Attempt) }},
		{"WORKER", func(e domain.Event) string { return orDash(e.WorkerID) }},
		{"BY", func(e domain.Event) string { return orDash(e.Actor) }},
		{"DETAIL", func(e domain.Event) string { return shortened(orDash(e.Detail), shownDetail) }},
	}
}

// shownDetail is how much of a detail a person still reads; -o json prints all of it.
const shownDetail = 160

// printStory prints what is known of a job, and then a line for each event.
func printStory(c *cli.Context, story domain.JobStory) error {
	if len(story.Events) == listLimit {
		fmt.Fprintf(c.App.ErrWriter, "only the latest %d events of the job are listed\n", listLimit)
	}
	facts := storyFacts(story)
	if len(story.Events) == 0 {
		facts = append(facts, fact{"events", "none: nothing unusual happened to it in the last 30 days"})
	}
	if err := printRecord(c, story, facts...); err != nil || len(story.Events) == 0 || c.String(flagOutput) != formatTable {
		return err
	}
	fmt.Fprintln(c.App.Writer)
	return printItems(c, story.Events, eventColumns()...)
}

// storyFacts are those of the job, or what its events still tell of it.
func storyFacts(story domain.JobStory) []fact {
	if !story.Gone {
		return jobFacts(*story.JobRecord)
	}
	facts := []fact{
		{"id", story.ID},
		{"status", "gone: it was purged or dropped, or its retention has passed; its events are left"},
	}
	latest := story.Events[len(story.Events)-1]
	for _, known := range []struct {
		name string
		text *string
	}{{"queue", latest.Queue}, {"kind", latest.JobKind}, {"key", latest.PartitionKey}} {
		if known.text != nil {
			facts = append(facts, fact{known.name, *known.text})
		}
	}
	return facts
}
