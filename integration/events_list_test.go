package integration

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-pg/holdfast/domain"
	"github.com/holdfast-pg/holdfast/domain/plans"
	"github.com/holdfast-pg/holdfast/integration/pgtest"
)

func TestEvents_ListFindsWhatIsAskedFor(t *testing.T) {
	t.Parallel()
	database := pgtest.New(t)
	database.Exec(t, `INSERT INTO holdfast.events (event, queue, at, detail)
		SELECT (CASE WHEN i % 2 = 0 THEN 'retried' ELSE 'failed' END)::holdfast.event_kind, CASE WHEN i <= 3 THEN 'mail' ELSE 'bulk' END, now() - interval '1 hour' * (7 - i), i
		FROM generate_series(1, 6) AS i`)
	for name, test := range map[string]struct {
		filter domain.EventFilter
		want   string
		more   bool
	}{
		"all":             {domain.EventFilter{Limit: 10}, "6 5 4 3 2 1", false},
		"as many":         {domain.EventFilter{Limit: 2}, "6 5", true},
		"a queue":         {domain.EventFilter{Limit: 10, Queue: "mail"}, "3 2 1", false},
		"a kind":          {domain.EventFilter{Limit: 10, Kind: domain.EventFailed}, "5 3 1", false},
		"the latest time": {domain.EventFilter{Limit: 10, Within: 150 * time.Minute}, "6 5", false},
		"all of it":       {domain.EventFilter{Limit: 10, Queue: "mail", Kind: domain.EventRetried, Within: 24 * time.Hour}, "2", false},
		"nothing":         {domain.EventFilter{Limit: 10, Queue: "nowhere"}, "", false},
	} {
		page, err := domain.ListEvents(t.Context(), database.Pool, test.filter)
		if err != nil {
			t.Fatal(err)
		}
		if got := detailsOf(page.Events); got != test.want || (page.Next != 0) != test.more || page.LookedBackTo != nil {
			t.Errorf("%s: %q, next %d, want %q", name, got, page.Next, test.want)
		}
	}
	first, _ := domain.ListEvents(t.Context(), database.Pool, domain.EventFilter{Limit: 4})
	second, err := domain.ListEvents(t.Context(), database.Pool, domain.EventFilter{Limit: 4, Before: first.Next})
	if got := detailsOf(first.Events) + " " + detailsOf(second.Events); err != nil || got != "6 5 4 3 2 1" || second.Next != 0 {
		t.Errorf("two pages are %q, then %d; error %v", got, second.Next, err)
	}
}

func detailsOf(events []domain.Event) string {
	details := make([]string, len(events))
	for i, event := range events {
		details[i] = text(event.Detail)
	}
	return strings.Join(details, " ")
}

// A list for which little is asked says how far it looked, and goes on from there.
func TestEvents_ListLooksAtSoManyAtATime(t *testing.T) {
	t.Parallel()
	database := pgtest.New(t)
	database.Exec(t, `INSERT INTO holdfast.events (event, queue, detail)
		SELECT 'retried', CASE WHEN i = 1 THEN 'mail' ELSE 'bulk' END, i FROM generate_series(1, 10001) AS i`)
	filter := domain.EventFilter{Queue: "mail", Limit: 10}
	page, err := domain.ListEvents(t.Context(), database.Pool, filter)
	if err != nil || len(page.Events) != 0 || page.Next == 0 || page.LookedBackTo == nil {
		t.Fatalf("the list looked at all: %+v, error %v", page, err)
	}
	filter.Within = time.Hour
	database.Exec(t, "UPDATE holdfast.events SET at = now() - interval '1 day' WHERE detail = '9000'")
	if recent, err := domain.ListEvents(t.Context(), database.Pool, filter); err != nil || len(recent.Events) != 0 || recent.Next != 0 {
		t.Errorf("it goes on beyond the hour that is asked for: %+v, error %v", recent, err)
	}
	filter.Within, filter.Before = 0, page.Next
	page, err = domain.ListEvents(t.Context(), database.Pool, filter)
	if err != nil || detailsOf(page.Events) != "1" || page.Next != 0 {
		t.Errorf("it went on with %+v, error %v", page, err)
	}
}

// What a person reads costs little, whatever is asked for, whatever the statistics say.
func TestEvents_ReadsAreBounded(t *testing.T) {
	t.Parallel()
	const most = 5_000 // Shared buffers.
	database := pgtest.New(t)
	database.Exec(t, `INSERT INTO holdfast.events (job_id, event, queue, detail)
		SELECT CASE WHEN i % 2 = 0 THEN '01900000-0000-7000-8000-000000000007' ELSE gen_random_uuid() END, 'retried', 'bulk', repeat('x', 1000)
		FROM generate_series(1, 60000) AS i`)
	conn := database.Conn(t)
	reads := []plans.Statement{
		eventRead("ListJobEvents", func(ctx context.Context, db domain.DBTX) error {
			_, err := domain.JobEvents(ctx, db, domain.JobID{1, 0x90, 6: 0x70, 8: 0x80, 15: 7}, 1000)
			return err
		}),
		eventRead("ListEvents", func(ctx context.Context, db domain.DBTX) error {
			_, err := domain.ListEvents(ctx, db, domain.EventFilter{Queue: "nowhere", Limit: 50})
			return err
		}),
	}
	for _, statistics := range planStatistics {
		tx := statistics.pretend(t, conn)
		for _, read := range reads {
			took, err := plans.Measure(t.Context(), tx, read, 1)
			if err != nil || took.Buffers > most {
				t.Errorf("%s with statistics %s takes %d buffers, error %v", read.Name, statistics.name, took.Buffers, err)
			}
			t.Logf("%s with statistics %s: %d buffers, %s", read.Name, statistics.name, took.Buffers, took.Execution)
		}
		if err := tx.Rollback(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}

func eventRead(name string, call func(ctx context.Context, db domain.DBTX) error) plans.Statement {
	return plans.Statement{Name: name, Sent: plans.Cached, Call: func(ctx context.Context, db domain.DBTX, _ int) error { return call(ctx, db) }}
}
