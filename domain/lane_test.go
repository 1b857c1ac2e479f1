package domain

import (
	"errors"
	"slices"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
)

func TestBucketWalk_LastKeyIsTheOneFurthestAroundTheRing(t *testing.T) {
	t.Parallel()
	cases := []struct {
		after   string
		visited []string
		last    string
	}{
		{"", []string{"b", "c", "a"}, "c"},
		{"m", []string{"n", "z", "p"}, "z"},
		{"m", []string{"z", "a", "n"}, "a"},
		{"m", []string{"a", "m", "z"}, "m"},
		{"m", []string{"m"}, "m"},
	}
	for _, c := range cases {
		for range 3 {
			walk := bucketWalk{after: c.after}
			for _, key := range c.visited {
				walk.visit(key, true)
			}
			if walk.last != c.last {
				t.Errorf("a walk from %q over %q came to %q last, want %q", c.after, c.visited, walk.last, c.last)
			}
			c.visited = append(c.visited[1:], c.visited[0]) // The rows come in any order.
		}
	}
}

func TestLaneCursors_KeepThoseThatWereCutOff(t *testing.T) {
	t.Parallel()
	var cursors laneCursors
	buckets := []int32{1, 2, 3, 4}
	walks := cursors.begin("mail", buckets)
	walks[0].visit("a", true) // Came around.
	walks[1].visit("b", true)
	walks[1].visit("c", true) // The quota.
	walks[2].visit("d", false)
	cursors.end("mail", walks, 2)
	if got := afterKeys(cursors.begin("mail", buckets)); !slices.Equal(got, []string{"", "c", "d", ""}) {
		t.Errorf("the next walks begin after %q", got)
	}
	if got := afterKeys(cursors.begin("bills", buckets)); !slices.Equal(got, []string{"", "", "", ""}) {
		t.Errorf("those of another queue begin after %q", got)
	}
	walks = cursors.begin("mail", buckets)
	walks[1].visit("a", true) // Came around; nothing is known of the third.
	cursors.end("mail", walks, 2)
	if got := afterKeys(cursors.begin("mail", buckets)); !slices.Equal(got, []string{"", "", "d", ""}) || len(cursors.after) != 1 {
		t.Errorf("after one came around the next walks begin after %q", got)
	}
}

func TestExplainLanes_SaysWhatTheUniqueIndexPrevented(t *testing.T) {
	t.Parallel()
	err := explainLanes(&pgconn.PgError{Code: "23505", ConstraintName: "inbox_lane_processing_idx"})
	if !errors.Is(err, errLaneTaken) {
		t.Errorf("the error is %v", err)
	}
	if err := explainLanes(&pgconn.PgError{Code: "23505", ConstraintName: "another"}); errors.Is(err, errLaneTaken) {
		t.Errorf("the error of another index is %v", err)
	}
}
