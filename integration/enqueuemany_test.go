package integration

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"pgregory.net/rapid"

	"github.com/holdfast-pg/holdfast/domain"
	"github.com/holdfast-pg/holdfast/integration/pgtest"
)

// rowsInOrder are the rows of a queue's jobs as far as two enqueues of one set must agree:
// without what each draws, and with the times in hours since the enqueue.
const rowsInOrder = `
	SELECT jsonb_set(
		to_jsonb(job) - '{id,seq,created_at,available_at,idempotency_key}'::text[],
		'{wait}',
		to_jsonb(round(extract(epoch FROM job.available_at - job.created_at) / 3600))
	)::text
	FROM holdfast.inbox AS job
	WHERE job.queue <> 'other'
	ORDER BY job.seq`

// A set without idempotency keys, one job at a time, and beside a job that has a key go by
// different statements.
func TestEnqueue_EveryStatementMakesTheSameRows(t *testing.T) {
	t.Parallel()
	database := pgtest.New(t)
	for _, queue := range []string{"lanes", "stubborn"} {
		database.Exec(t, "INSERT INTO holdfast.queues (name, ordered, max_attempts) VALUES ($1, $1 = 'lanes', 9)", queue)
	}
	keys := 0
	once := func() domain.EnqueueOption {
		keys++
		return domain.Once(fmt.Sprintf("key %d", keys))
	}
	rapid.Check(t, func(rt *rapid.T) {
		set := rapid.SliceOfN(rapid.Custom(drawJob), 1, 12).Draw(rt, "set")
		rows := func(enqueue func() ([]domain.EnqueueResult, error)) []string {
			database.Exec(t, "DELETE FROM holdfast.inbox")
			results, err := enqueue()
			if err != nil {
				rt.Fatal(err)
			}
			wantLaidOut(t, rt, database, results)
			return pgtest.Values[string](t, database, rowsInOrder)
		}
		many := rows(func() ([]domain.EnqueueResult, error) { return domain.EnqueueMany(t.Context(), database.Pool, set...) })
		for name, others := range map[string][]string{
			"EnqueueJobs": rows(func() ([]domain.EnqueueResult, error) {
				withKey := domain.NewJob{Args: note{}, Options: []domain.EnqueueOption{domain.OnQueue("other"), once()}}
				return domain.EnqueueMany(t.Context(), database.Pool, slices.Concat(set, []domain.NewJob{withKey})...)
			}),
			"EnqueuePlainJob": rows(func() ([]domain.EnqueueResult, error) { return oneByOne(t, database, set) }),
			"EnqueueJob":      rows(func() ([]domain.EnqueueResult, error) { return oneByOne(t, database, set, once) }),
		} {
			if !slices.Equal(many, others) {
				rt.Fatalf("EnqueuePlainJobs makes\n%v\n%s makes\n%v", many, name, others)
			}
		}
	})
	for _, name := range []string{"EnqueuePlainJobs", "EnqueueJobs", "EnqueuePlainJob", "EnqueueJob"} {
		if database.Executed(name) == 0 {
			t.Errorf("%s has made no rows", name)
		}
	}
}

// drawJob makes up a job with a partition key and no idempotency key.
func drawJob(rt *rapid.T) domain.NewJob {
	options := []domain.EnqueueOption{
		domain.OnQueue(rapid.SampledFrom([]string{"default", "lanes", "stubborn"}).Draw(rt, "queue")),
		domain.Key(rapid.StringMatching(`[a-zä\\'"{},]{1,8}`).Draw(rt, "key")),
	}
	hours := time.Duration(rapid.IntRange(1, 48).Draw(rt, "hours")) * time.Hour
	for name, option := range map[string]domain.EnqueueOption{
		"delayed":  domain.In(hours),
		"at":       domain.At(time.Now().Add(2 * hours)),
		"past":     domain.At(time.Now().Add(-hours)),
		"attempts": domain.MaxAttempts(int(hours / time.Hour)),
		"quiet":    domain.NoRing(),
		"headers":  domain.Headers(map[string]string{"trace": `"\`}),
	} {
		if rapid.Bool().Draw(rt, name) {
			options = append(options, option)
		}
	}
	return domain.NewJob{Args: note{Text: rapid.String().Filter(storable).Draw(rt, "text")}, Options: options}
}

func storable(text string) bool { return !slices.Contains([]byte(text), 0) }

// oneByOne enqueues the jobs of a set alone, with more options made for each.
func oneByOne(t *testing.T, database *pgtest.Database, set []domain.NewJob, more ...func() domain.EnqueueOption) ([]domain.EnqueueResult, error) {
	t.Helper()
	var results []domain.EnqueueResult
	for _, job := range set {
		options := slices.Clone(job.Options)
		for _, option := range more {
			options = append(options, option())
		}
		result, err := domain.Enqueue(t.Context(), database.Pool, job.Args, options...)
		if err != nil {
			return nil, err
		}
		results = append(results, result)
	}
	return results, nil
}

// wantLaidOut checks that the ids are those of the inbox in the order of seq, and that each
// carries the database's time and its bucket.
func wantLaidOut(t *testing.T, rt *rapid.T, database *pgtest.Database, results []domain.EnqueueResult) {
	t.Helper()
	rt.Helper()
	ids := pgtest.Values[string](t, database, "SELECT id::text FROM holdfast.inbox ORDER BY seq")
	buckets := pgtest.Values[int](t, database, "SELECT partition_bucket FROM holdfast.inbox ORDER BY seq")
	if len(ids) != len(results) {
		rt.Fatalf("%d results for %d jobs", len(results), len(ids))
	}
	for i, result := range results {
		if result.ID.String() != ids[i] {
			rt.Fatalf("result %d is job %s, the inbox has %s in its place", i, result.ID, ids[i])
		}
		wantShape(rt, "enqueued", result.ID, buckets[i])
	}
}

func TestEnqueue_SetWithAnUnknownQueueAddsAllOrNothing(t *testing.T) {
	t.Parallel()
	for name, more := range map[string][]domain.EnqueueOption{
		"plain": nil,
		"keyed": {domain.Once("receipt:9182")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			database := pgtest.New(t)
			set := []domain.NewJob{
				{Args: note{Text: "first"}, Options: more},
				{Args: note{Text: "second"}, Options: []domain.EnqueueOption{domain.OnQueue("created")}},
				{Args: note{Text: "third"}},
			}
			err := pgx.BeginFunc(t.Context(), database.Pool, func(tx pgx.Tx) error {
				results, err := domain.EnqueueMany(t.Context(), tx, set...)
				if err != nil || len(results) != len(set) {
					t.Errorf("%d results, %v", len(results), err)
				}
				return errChangedMind
			})
			if !errors.Is(err, errChangedMind) {
				t.Fatal(err)
			}
			if left := pgtest.Value[int](t, database, "SELECT (SELECT count(*) FROM holdfast.inbox) + (SELECT count(*) FROM holdfast.idempotency_keys) + (SELECT count(*) FROM holdfast.queues WHERE name = 'created')"); left != 0 {
				t.Fatalf("a rollback leaves %d rows", left)
			}
			if _, err := domain.EnqueueMany(t.Context(), database.Pool, set...); err != nil {
				t.Fatal(err)
			}
			// The first attempt, which found no such queue, has added no row of its own.
			texts := pgtest.Values[string](t, database, "SELECT payload->>'text' FROM holdfast.inbox ORDER BY seq")
			if !slices.Equal(texts, []string{"first", "second", "third"}) {
				t.Fatalf("the inbox holds %q", texts)
			}
		})
	}
}
