package integration

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/holdfast-pg/holdfast/domain"
	"github.com/holdfast-pg/holdfast/integration/pgtest"
)

// A key and those that follow from it, in one statement: their buckets are the same in SQL and
// in Go, and an id that SQL makes carries its bucket to Go.
func FuzzFunctions_BucketsAndIDsAreTheSameInSQLAndGo(f *testing.F) {
	f.Add("", uint16(1023))
	f.Add("order:9182", uint16(0))
	f.Add(`back\slash`, uint16(16383))
	f.Add("ключ 🐘\u0001", uint16(999))
	conn := pgtest.New(f).Conn(f)
	f.Fuzz(func(t *testing.T, key string, buckets uint16) {
		if !utf8.ValidString(key) || strings.ContainsRune(key, 0) {
			t.Skip("no key")
		}
		count := int(buckets)%16384 + 1
		keys := []string{key}
		for i := range 100 {
			keys = append(keys, fmt.Sprint(i, key, i*i))
		}
		rows, err := conn.Query(t.Context(), `SELECT placed.key, placed.bucket, holdfast.new_job_id(placed.bucket)::text
			FROM (SELECT key, holdfast.bucket_of(key, $2) AS bucket FROM unnest($1::text[]) AS key) AS placed`, keys, count)
		if err != nil {
			t.Fatal(err)
		}
		defer rows.Close()
		for rows.Next() {
			var key, text string
			var bucket int
			if err := rows.Scan(&key, &bucket, &text); err != nil {
				t.Fatal(err)
			}
			id, err := domain.ParseJobID(text)
			if err != nil || bucket != domain.BucketOf(key, count) || id.Bucket() != bucket || domain.NewJobID(time.Now(), bucket).Bucket() != bucket {
				t.Fatalf("key %q among %d: bucket %d in SQL, %d in Go, %d in the id %s (%v)", key, count, bucket, domain.BucketOf(key, count), id.Bucket(), text, err)
			}
		}
		if rows.Err() != nil {
			t.Fatal(rows.Err())
		}
	})
}

func FuzzFunctions_BackoffStaysInTheRangeOfGo(f *testing.F) {
	for _, attempts := range []int32{0, 1, 11, 12, 31, 1024, math.MaxInt32} {
		f.Add(attempts)
	}
	conn := pgtest.New(f).Conn(f)
	f.Fuzz(func(t *testing.T, attempts int32) {
		if attempts < 0 {
			t.Skip("a CHECK forbids it")
		}
		var least, most time.Duration
		err := conn.QueryRow(t.Context(), "SELECT min(wait), max(wait) FROM (SELECT holdfast.backoff($1) AS wait FROM generate_series(1, 50)) AS drawn", attempts).Scan(&least, &most)
		if err != nil {
			t.Fatal(err)
		}
		if low, high := domain.Backoff(int(attempts), 0), domain.Backoff(int(attempts), 1); least < low-time.Millisecond || most > high+time.Millisecond {
			t.Fatalf("after %d attempts waits of %s to %s, in Go %s to %s", attempts, least, most, low, high)
		}
	})
}
