package integration

import (
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/holdfast-pg/holdfast/domain"
	"github.com/holdfast-pg/holdfast/integration/pgtest"
)

// ringCache is how long workers in these tests go by what they know of each other.
const ringCache = time.Second

// startOwner starts a worker that claims from its own buckets only: that every job is done
// shows that every bucket has an owner, and who did it shows which.
func startOwner(t *testing.T, database *pgtest.Database, name string) *workerRun {
	t.Helper()
	config := quick()
	config.RingCache = ringCache
	return startLiar(t, database, name, &liar{ownOnly: true}, config, completing())
}

func TestRing_JobsOfAKeyMeetInOneWorkerAsOthersComeAndGo(t *testing.T) {
	t.Parallel()
	database := pgtest.New(t)
	for _, name := range []string{"a", "b", "c"} {
		startOwner(t, database, name)
	}
	untilShared(t, database, 3)
	first := ownersOfKeys(t, database)

	// One more takes a quarter, from all, and leaves the rest where it is.
	fourth := startOwner(t, database, "d")
	untilShared(t, database, 4)
	second := ownersOfKeys(t, database)
	wantQuarterMoved(t, first, second, func(_, to string) bool { return to == "d-1" })

	// What it leaves behind goes to the others.
	fourth.drain()
	untilShared(t, database, 3)
	third := ownersOfKeys(t, database)
	wantQuarterMoved(t, second, third, func(from, _ string) bool { return from == "d-1" })
}

// untilShared waits until so many workers share the buckets, each by one and the same list.
func untilShared(t *testing.T, database *pgtest.Database, workers int) {
	t.Helper()
	pgtest.Eventually(t, 5*ringCache, fmt.Sprintf("%d workers share the buckets", workers), func() bool {
		return pgtest.Value[bool](t, database, `
			SELECT count(*) = $1 AND min(buckets) > 0 AND sum(buckets) = 1024
			FROM (SELECT (metadata->>'buckets')::integer AS buckets FROM holdfast.workers WHERE status = 'alive') AS said`, workers)
	})
}

// ringKeys is how many keys are tried.
const ringKeys = 400

// ownersOfKeys runs some jobs of each key and returns which worker did them.
func ownersOfKeys(t *testing.T, database *pgtest.Database) (owners [ringKeys]string) {
	t.Helper()
	const jobs = 3
	database.Exec(t, "DELETE FROM holdfast.inbox_archive")
	for range jobs {
		set := make([]domain.NewJob, ringKeys)
		for key := range set {
			set[key] = domain.NewJob{Args: note{Text: "hello"}, Options: []domain.EnqueueOption{domain.Key(strconv.Itoa(key))}}
		}
		if _, err := domain.EnqueueMany(t.Context(), database.Pool, set...); err != nil {
			t.Fatal(err)
		}
	}
	untilCompleted(t, database, jobs*ringKeys)
	for _, line := range pgtest.Values[[]string](t, database, `
		SELECT ARRAY[partition_key, min(finished_by), count(DISTINCT finished_by)::text]
		FROM holdfast.inbox_archive GROUP BY partition_key`) {
		var key int
		if _, err := fmt.Sscan(line[0], &key); err != nil {
			t.Fatal(err)
		}
		if line[2] != "1" {
			t.Errorf("jobs of key %d ran in %s workers", key, line[2])
		}
		owners[key] = line[1]
	}
	return owners
}

// wantQuarterMoved checks that about a quarter of the keys have moved from or to the worker
// that came or went, and few others.
func wantQuarterMoved(t *testing.T, before, after [ringKeys]string, expected func(from, to string) bool) {
	t.Helper()
	moved, others := 0, 0
	for key := range before {
		switch from, to := before[key], after[key]; {
		case expected(from, to):
			moved++
		case from != to:
			others++
		}
	}
	if moved < ringKeys/8 || moved > ringKeys*3/8 || others > ringKeys/10 {
		t.Errorf("%d of %d keys moved with the worker, and %d others", moved, ringKeys, others)
	}
}
