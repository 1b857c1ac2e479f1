package integration

import (
	"testing"

	dbbench "github.com/holdfast-pg/holdfast/db/bench"
	"github.com/holdfast-pg/holdfast/integration/pgtest"
)

func TestBench_TransactionThatStaysOpenShowsInTheFigures(t *testing.T) {
	t.Parallel()
	d := isolate(t, "bench", "pinned", "renew", "--size", "small", "--jobs", "200", "--duration", "3s", "-o", "json")
	d.start(t).ends(t, 0)
	trials := benchFigures(t, d)
	for _, name := range []string{"pinned clean", "pinned pinned"} {
		wantFigure(t, trials[name], "jobs", 1_000, 2_000)
		wantFigure(t, trials[name], "claim p50", 0.001, 60_000)
		wantFigure(t, trials[name], "handled of those offered", 0.1, 100)
	}
	clean, pinned := trials["renew clean"], trials["renew pinned"]
	for _, figures := range []map[string]float64{clean, pinned} {
		wantFigure(t, figures, "rounds", 1, 100)
		wantFigure(t, figures, "log", 50, 10_000)
	}
	// Without the pin a version that is dead makes place on its page for the next one.
	if clean["heap-only updates"] <= pinned["heap-only updates"] {
		t.Errorf("%v %% of the renewals are heap-only, and %v %% while a transaction stays open", clean["heap-only updates"], pinned["heap-only updates"])
	}
	d.leavesNothing(t)
}

func TestBench_OrderIsComparedWithNone(t *testing.T) {
	t.Parallel()
	d := isolate(t, "bench", "ordered", "--size", "small", "--jobs", "200", "-o", "json")
	d.start(t).ends(t, 0)
	trials := benchFigures(t, d)
	for _, traffic := range []string{"zipf", "hot key"} {
		figures := trials["ordered "+traffic+", ordered"]
		wantFigure(t, figures, "jobs", 200, 200)
		wantFigure(t, figures, "jobs out of order", 0, 0)
		wantFigure(t, figures, "rate to no order", 0.0001, 10)
		wantFigure(t, figures, "rate off the hot key", 1, 1e6)
	}
	d.leavesNothing(t)
}

func TestBench_JobOutOfOrderIsCounted(t *testing.T) {
	t.Parallel()
	database := pgtest.New(t)
	archive := func(seq int, key string, generation, second int) {
		database.Exec(t, `INSERT INTO holdfast.inbox_archive (id, seq, lease_generation, available_at, created_at, completed_at,
				partition_bucket, attempts, max_attempts, ordered, queue, kind, partition_key, payload)
			VALUES (holdfast.new_job_id(0), $1, $2, now(), now(), now() + $3 * interval '1 second', 0, 1, 5, true, 'default', 'bench', $4, '{}')`,
			seq, generation, second, key)
	}
	want := func(jobs int64, when string) {
		t.Helper()
		if got, err := dbbench.New().CountOutOfOrder(t.Context(), database.Pool); err != nil || got != jobs {
			t.Errorf("%d jobs are out of order %s (%v), want %d", got, when, err, jobs)
		}
	}
	archive(1, "a", 10, 1)
	archive(2, "b", 9, 0) // Another key: it owes nothing to the first.
	archive(3, "a", 11, 1)
	want(0, "in two lanes that keep theirs")
	archive(4, "a", 8, 2)
	want(1, "after a claim that came too early")
	archive(5, "b", 12, -1)
	want(2, "after a completion that came too early")
	archive(6, "b", 11, 1)
	want(3, "after a claim that came before the last one only")
}
