package integration

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/holdfast-pg/holdfast/domain"
	"github.com/holdfast-pg/holdfast/integration/pgtest"
)

// A producer in SQL and one in Go must agree on the bucket of every key for ever.
func TestFunctions_BucketIsTheSameInSQLAndGo(t *testing.T) {
	t.Parallel()
	database := pgtest.New(t)
	rapid.Check(t, func(rt *rapid.T) {
		key := rapid.StringOf(rapid.Rune().Filter(func(r rune) bool { return r != 0 })).Draw(rt, "key")
		count := rapid.IntRange(1, 16384).Draw(rt, "count")
		if got, want := pgtest.Value[int](t, database, "SELECT holdfast.bucket_of($1, $2)", key, count), domain.BucketOf(key, count); got != want {
			rt.Fatalf("bucket of %q among %d: %d in SQL, %d in Go", key, count, got, want)
		}
	})
}

func TestFunctions_JobIDsHaveTheSameShapeInSQLAndGo(t *testing.T) {
	t.Parallel()
	database := pgtest.New(t)
	rapid.Check(t, func(rt *rapid.T) {
		bucket := rapid.IntRange(0, 16383).Draw(rt, "bucket")
		fromSQL, err := domain.ParseJobID(pgtest.Value[string](t, database, "SELECT holdfast.new_job_id($1)::text", bucket))
		if err != nil {
			rt.Fatal(err)
		}
		for source, id := range map[string]domain.JobID{"SQL": fromSQL, "Go": domain.NewJobID(time.Now(), bucket)} {
			wantShape(rt, source, id, bucket)
		}
	})
	ids := pgtest.Value[int64](t, database, "SELECT count(DISTINCT holdfast.new_job_id(7)) FROM generate_series(1, 20000)")
	if ids != 20000 {
		t.Fatalf("20000 draws made %d ids", ids)
	}
}

// wantShape checks that an id was made within a minute and carries the bucket.
func wantShape(rt *rapid.T, source string, id domain.JobID, bucket int) {
	rt.Helper()
	var milliseconds int64
	for _, b := range id[:6] {
		milliseconds = milliseconds<<8 | int64(b)
	}
	if age := time.Since(time.UnixMilli(milliseconds)); age < -time.Minute || age > time.Minute {
		rt.Fatalf("%s: id %s was made %s ago", source, id, age)
	}
	if id.Bucket() != bucket || id[6]>>4 != 7 || id[8]>>6 != 2 || id[14]>>6 != 0 {
		rt.Fatalf("%s: id %s for bucket %d carries %d, version %d, variant %d", source, id, bucket, id.Bucket(), id[6]>>4, id[8]>>6)
	}
}

func TestFunctions_BackoffFollowsOneRuleInSQLAndGo(t *testing.T) {
	t.Parallel()
	database := pgtest.New(t)
	for _, attempts := range []int{0, 1, 2, 5, 11, 12, 13, 31, 50, 1000, 5000} {
		least, most := domain.Backoff(attempts, 0), domain.Backoff(attempts, 1)
		outside := pgtest.Value[int64](t, database,
			"SELECT count(*) FROM (SELECT holdfast.backoff($1) AS wait FROM generate_series(1, 500)) AS drawn WHERE wait < $2 - interval '1 millisecond' OR wait > $3 + interval '1 millisecond'",
			attempts, least, most)
		if outside != 0 {
			t.Errorf("after %d attempts %d of 500 waits are outside %s to %s", attempts, outside, least, most)
		}
	}
}
