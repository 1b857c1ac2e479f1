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

func TestFloors_EachBucketHasTheWiderSlacksInItsTurn(t *testing.T) {
	t.Parallel()
	const claims, apart = 5000, 20 * time.Millisecond // In 100 s.
	start := time.Date(2000, 1, 1, 12, 0, 0, 0, time.UTC)
	job := domain.ClaimedJob{Claim: domain.Claim{Bucket: 2}, AvailableAt: start}
	request := domain.ClaimRequest{Buckets: []int{0, 2}, Batch: 8}
	w := &watch{}
	w.saw(request, []domain.ClaimedJob{job}, 3, start)
	times := map[time.Duration]int{}
	for i := range claims {
		now := start.Add(time.Duration(i+1) * apart)
		for _, floor := range w.floorsOf(request.Buckets, false, now) {
			times[start.Sub(floor)]++
		}
		w.saw(request, []domain.ClaimedJob{job}, 3, now)
	}
	want := map[time.Duration]int{
		50 * time.Second:       2 * 5,
		5 * time.Second:        2 * (50 - 5),
		500 * time.Millisecond: 2 * (500 - 50),
		50 * time.Millisecond:  2 * (claims - 500),
	}
	if !maps.Equal(times, want) {
		t.Errorf("in %d claims of two buckets: %v, want %v", claims, times, want)
	}
}

// A bucket that was asked for and not reached, because the batch was full, keeps its turn.
func TestFloors_TurnIsOfTheBucketsThatWereReached(t *testing.T) {
	t.Parallel()
	start := time.Date(2000, 1, 1, 12, 0, 0, 0, time.UTC)
	job := domain.ClaimedJob{Claim: domain.Claim{Bucket: 0}, AvailableAt: start}
	w := &watch{}
	w.saw(domain.ClaimRequest{Buckets: []int{0, 1}, Batch: 8}, []domain.ClaimedJob{job}, 2, start)
	later := start.Add(time.Minute)
	w.saw(domain.ClaimRequest{Buckets: []int{0, 1}, Batch: 1}, []domain.ClaimedJob{job}, 2, later)
	floors := w.floorsOf([]int{0, 1}, false, later)
	if got, want := start.Sub(floors[0]), narrowSlack; got != want {
		t.Errorf("the slack of the bucket that filled the batch is %s, want %s", got, want)
	}
	if got, want := start.Sub(floors[1]), 50*time.Second; got != want {
		t.Errorf("the slack of the bucket that was not reached is %s, want %s", got, want)
	}
}
