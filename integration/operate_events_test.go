package integration

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-pg/holdfast/domain"
	"github.com/holdfast-pg/holdfast/integration/pgtest"
)

func TestOperate_EveryOrderLeavesAnEventOfWhatItChanged(t *testing.T) {
	t.Parallel()
	database := pgtest.New(t)
	queue := database.Queue(t)
	join(t, queue, "w1")
	twice := func(order func() error) { // The second time it changes nothing.
		t.Helper()
		wantError(t, order(), nil)
		wantError(t, order(), nil)
	}
	dead := enqueue(t, database, domain.Key("a"), domain.MaxAttempts(1))
	mustSettle(t, queue, claimOne(t, queue, "w1"), domain.Outcome{Verdict: domain.Retry}, domain.StatusDeadLetter)
	twice(func() error { _, err := anna.Redrive(t.Context(), database.Pool, 0, dead); return err })
	job := claimOne(t, queue, "w1")
	twice(func() error { _, err := anna.Release(t.Context(), database.Pool, job.Claim); return err })
	claimOne(t, queue, "w1")
	twice(func() error { _, err := anna.Cancel(t.Context(), database.Pool, dead); return err })
	twice(func() error { _, err := anna.Purge(t.Context(), database.Pool, dead); return err })
	twice(func() error { return anna.PauseQueue(t.Context(), database.Pool, domain.DefaultQueue) })
	twice(func() error { return anna.ResumeQueue(t.Context(), database.Pool, domain.DefaultQueue) })
	twice(func() error {
		_, err := anna.SetQueue(t.Context(), database.Pool, domain.DefaultQueue, domain.QueueChange{MaxAttempts: new(9), Ring: new(false)})
		return err
	})
	brief := domain.By{Actor: "bo"}
	twice(func() error {
		_, err := brief.SetQueue(t.Context(), database.Pool, "mail", domain.QueueChange{})
		return err
	})
	wantError(t, brief.Drain(t.Context(), database.Pool, "w1"), nil)
	wantError(t, brief.Drain(t.Context(), database.Pool, "w1"), domain.ErrWorkerUnknown)
	_, _, err := brief.Evict(t.Context(), database.Pool, "w1")
	wantError(t, err, nil)
	want := []string{
		"redriven default note a by anna@ops-1 the order is void",
		"released default note a attempt 1 with its token w1 by anna@ops-1 the order is void",
		"cancelled default note a attempt 1 with its token w1 by anna@ops-1 the order is void",
		"purged default note a by anna@ops-1 the order is void",
		"queue_paused default by anna@ops-1 the order is void",
		"queue_resumed default by anna@ops-1 the order is void",
		"queue_changed default by anna@ops-1 max attempts 5 to 9, ring true to false: the order is void",
		"queue_changed mail by bo created",
		"worker_drained w1 by bo",
		"worker_evicted w1 by bo",
	}
	if got := orders(t, database); !slices.Equal(got, want) {
		t.Errorf("the events are\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestOperate_WorkersOwnDrainIsNobodysOrder(t *testing.T) {
	t.Parallel()
	database := pgtest.New(t)
	queue := database.Queue(t)
	join(t, queue, "w1")
	wantError(t, queue.Drain(t.Context(), "w1"), nil)
	if events := pgtest.Value[int64](t, database, "SELECT count(*) FROM holdfast.events"); events != 0 {
		t.Errorf("there are %d events", events)
	}
}

func TestOperate_OrderWithoutANameIsThatOfTheProgram(t *testing.T) {
	t.Parallel()
	database := pgtest.New(t)
	wantError(t, domain.PauseQueue(t.Context(), database.Pool, domain.DefaultQueue), nil)
	if got, want := orders(t, database), []string{"queue_paused default by " + domain.ThisProgram().Actor}; !slices.Equal(got, want) {
		t.Errorf("the events are %q, want %q", got, want)
	}
}

func TestOperate_ActorAndReasonAreBoundedAndClean(t *testing.T) {
	t.Parallel()
	database := pgtest.New(t)
	for field, by := range map[string]domain.By{
		"actor":  {Actor: "", Reason: "why"},
		"reason": {Actor: "anna", Reason: strings.Repeat("ä", 1001)},
	} {
		var invalid *domain.InvalidError
		if err := by.PauseQueue(t.Context(), database.Pool, domain.DefaultQueue); !errors.As(err, &invalid) || invalid.Field != field {
			t.Errorf("%+v: %v", by, err)
		}
	}
	by := domain.By{Actor: strings.Repeat("ä", 200), Reason: strings.Repeat("😀", 999) + "\x00\xff"}
	id := enqueue(t, database)
	cancelled, err := by.Cancel(t.Context(), database.Pool, id)
	wantChanged(t, cancelled, err, id)
	if text := *find(t, database, id).LastError; !strings.HasSuffix(text, "😀\uFFFD") || strings.Contains(text, "\x00") {
		t.Errorf("the error ends with %q", text[len(text)-20:])
	}
}
