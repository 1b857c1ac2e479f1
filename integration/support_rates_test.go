package integration

import (
	"testing"
	"time"

	"github.com/holdfast-pg/holdfast/domain"
	"github.com/holdfast-pg/holdfast/integration/pgtest"
)

// fillToday archives so many jobs of a queue, completed one after the other up to this moment over
// the time given. A page holds some thirty.
func fillToday(t *testing.T, database *pgtest.Database, queue string, jobs int, over string) {
	t.Helper()
	database.Exec(t, `
		INSERT INTO holdfast.inbox_archive (
			id, seq, lease_generation, available_at, created_at, completed_at, partition_bucket,
			attempts, max_attempts, ordered, queue, kind, partition_key, payload
		)
		SELECT holdfast.new_job_id(1), i, i, now(), now(), now() - $3::text::interval * ($2::integer - i) / $2::integer, 1, 1, 5, false, $1, 'note', 'key ' || i, '{}'
		FROM generate_series(1, $2::integer) AS i`, queue, jobs, over)
}

// sinceMidnight is how many seconds of the last minute are of this UTC day, by the database's clock.
func sinceMidnight(t *testing.T, database *pgtest.Database) float64 {
	t.Helper()
	return pgtest.Value[float64](t, database, "SELECT least(60, extract(epoch FROM now() - date_trunc('day', now(), 'UTC')))::float8")
}

func TestSupport_CompletionsOfTheLastMinuteAreCountedByQueue(t *testing.T) {
	t.Parallel()
	database := pgtest.New(t)
	span := sinceMidnight(t, database)
	keep := domain.RetentionKeep
	for queue, change := range map[string]domain.QueueChange{"kept": {RetentionMode: &keep}, domain.DefaultQueue: {}} {
		if _, err := domain.SetQueue(t.Context(), database.Pool, queue, change); err != nil {
			t.Fatal(err)
		}
	}
	queue := database.Queue(t)
	for _, name := range []string{"kept", domain.DefaultQueue, domain.DefaultQueue} {
		enqueue(t, database, domain.OnQueue(name))
		mustSettle(t, queue, claimFrom(t, queue, name), domain.Outcome{}, domain.StatusCompleted)
	}
	// Completed earlier, both ways.
	fillToday(t, database, domain.DefaultQueue, 5, "0")
	database.Exec(t, "UPDATE holdfast.inbox_archive SET completed_at = completed_at - interval '61 seconds' WHERE kind = 'note' AND partition_key = 'key 1'")
	for name, want := range map[string]int64{"kept": 1, domain.DefaultQueue: 6} {
		if got := load(t, database, name).Completions; got.Jobs != want || got.SpanSeconds < span || got.SpanSeconds > 60 || got.PerSecond != float64(want)/got.SpanSeconds {
			t.Errorf("%s: %+v, want %d", name, got, want)
		}
	}
	if got := load(t, database, "nowhere").Completions; got != (domain.Completions{}) {
		t.Errorf("%+v", got)
	}
}

// Of many it looks at the last ones, and says what time they cover.
func TestSupport_CompletionsAreASampleOfTheLatest(t *testing.T) {
	t.Parallel()
	database := pgtest.New(t)
	fillToday(t, database, domain.DefaultQueue, 40_000, "40 seconds")
	least := min(5_000, int64(900*sinceMidnight(t, database)))
	got := load(t, database, domain.DefaultQueue).Completions
	if got.Jobs < least || got.Jobs > 30_000 || got.SpanSeconds > 35 || got.PerSecond < 800 || got.PerSecond > 1_100 {
		t.Errorf("of 1,000 a second: %+v", got)
	}
}

func TestSupport_CountersGrowWithEnqueuesAndClaims(t *testing.T) {
	t.Parallel()
	database := pgtest.New(t)
	read := func() domain.Counters {
		t.Helper()
		counters, err := domain.ReadCounters(t.Context(), database.Pool)
		if err != nil || !counters.Known {
			t.Fatalf("%+v, %v", counters, err)
		}
		return counters
	}
	before := read()
	enqueueNotes(t, database, 3)
	claim(t, database.Queue(t), "w1", 2)
	after := read()
	if after.Enqueued-before.Enqueued != 3 || after.Claimed-before.Claimed != 2 || !after.ReadAt.After(before.ReadAt) {
		t.Errorf("%+v, then %+v", before, after)
	}
	after.ReadAt = before.ReadAt.Add(2 * time.Second)
	if enqueued, claimed, known := after.Since(before); !known || enqueued != 1.5 || claimed != 1 {
		t.Errorf("%v enqueued and %v claimed a second, %v", enqueued, claimed, known)
	}
	if _, _, known := before.Since(after); known {
		t.Error("sequences that began anew make a rate")
	}
}

// claimFrom claims the one job that is due in a queue.
func claimFrom(t *testing.T, queue *domain.Queue, name string) domain.ClaimedJob {
	t.Helper()
	jobs, err := queue.Claim(t.Context(), domain.ClaimRequest{WorkerID: "w1", Queue: name, Buckets: everyBucket(), Quota: 1, Batch: 1, Lease: lease})
	if err != nil || len(jobs) != 1 {
		t.Fatalf("claimed %v, error %v", jobs, err)
	}
	return jobs[0]
}
