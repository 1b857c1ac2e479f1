package worker

import (
	"maps"
	"testing"
	"time"

	"github.com/holdfast-pg/holdfast/domain"
)

// A floor may rise over no job that a claim has left lying, and rises also where there was none.
func TestSaw_WhatAClaimHasSeen(t *testing.T) {
	t.Parallel()
	claimedAt := time.Date(2000, 1, 1, 12, 0, 0, 0, time.UTC)
	job := func(bucket int, waited time.Duration) domain.ClaimedJob {
		return domain.ClaimedJob{Claim: domain.Claim{Bucket: bucket}, AvailableAt: claimedAt.Add(-waited), Waited: waited}
	}
	never := time.Time{}
	for _, test := range []struct {
		name  string
		batch int
		jobs  []domain.ClaimedJob
		want  []time.Time // Of the buckets 0, 1 and 2; the last is not asked for.
	}{
		{"nothing: the queue may be paused", 8, nil, nil},
		{"both are empty now", 8, []domain.ClaimedJob{job(0, time.Second)}, []time.Time{claimedAt, claimedAt, never}},
		{"one gave its quota", 8, []domain.ClaimedJob{job(0, 3*time.Second), job(0, time.Second)}, []time.Time{claimedAt.Add(-time.Second), claimedAt, never}},
		{"the batch is full", 1, []domain.ClaimedJob{job(0, time.Second)}, []time.Time{claimedAt.Add(-time.Second), never, never}},
	} {
		w := &watch{}
		w.saw(domain.ClaimRequest{Buckets: []int{0, 1}, Batch: test.batch}, test.jobs, 3, claimedAt)
		if len(w.seen) != len(test.want) {
			t.Fatalf("%s: seen %v, want %v", test.name, w.seen, test.want)
		}
		for bucket, want := range test.want {
			if !w.seen[bucket].Equal(want) {
				t.Errorf("%s: bucket %d was seen up to %s, want %s", test.name, bucket, w.seen[bucket], want)
			}
		}
	}
}

func TestFloors_EachBucketHasTheWideSlackInItsTurnAndTheDeepOnesSeldom(t *testing.T) {
	t.Parallel()
	seen := time.Date(2000, 1, 1, 12, 0, 0, 0, time.UTC)
	w := &watch{seen: make([]time.Time, 3)}
	for bucket := range w.seen {
		w.seen[bucket] = seen
	}
	times := map[time.Duration]int{}
	for range deepestShare {
		for _, floor := range w.floorsOf([]int{0, 2}, false) {
			times[seen.Sub(floor)]++
		}
		w.turnTo([]domain.ClaimRequest{{Buckets: []int{0, 2}, Batch: 1}}, []claimed{{}}, false)
	}
	want := map[time.Duration]int{
		deepestSlack: 2,
		deepSlack:    2 * (deepestShare/deepShare - 1),
		wideSlack:    2 * (deepestShare/wideShare - deepestShare/deepShare),
		narrowSlack:  2 * (deepestShare - deepestShare/wideShare),
	}
	if !maps.Equal(times, want) {
		t.Errorf("in 512 claims of two buckets: %v, want %v", times, want)
	}
}
