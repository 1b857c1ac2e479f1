package worker

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"

	"pgregory.net/rapid"
)

// defaultBuckets is the bucket count that a database has unless it was made with another.
const defaultBuckets = 1024

var (
	someWorkers = rapid.SliceOfNDistinct(rapid.String(), 1, 200, rapid.ID)
	someBuckets = rapid.OneOf(rapid.Just(defaultBuckets), rapid.IntRange(1, 2*defaultBuckets))
)

func TestRing_EveryBucketHasOneOwnerWhoIsAMember(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		workers, bucketCount := someWorkers.Draw(t, "workers"), someBuckets.Draw(t, "buckets")
		r := NewRing(workers, bucketCount)
		owners := make(map[int]string)
		for _, worker := range workers {
			buckets := r.Owned(worker)
			if !slices.IsSorted(buckets) {
				t.Fatalf("the buckets of %q are not ascending: %v", worker, buckets)
			}
			for _, bucket := range buckets {
				if other, taken := owners[bucket]; taken {
					t.Fatalf("bucket %d belongs to %q and to %q", bucket, other, worker)
				}
				owners[bucket] = worker
			}
		}
		for bucket := range bucketCount {
			if worker, found := owners[bucket]; !found || r.Owner(bucket) != worker {
				t.Fatalf("bucket %d belongs to %q (%t) by owned, to %q by owner", bucket, worker, found, r.Owner(bucket))
			}
		}
		if len(owners) != bucketCount {
			t.Fatalf("%d buckets are owned, of %d", len(owners), bucketCount)
		}
	})
}

func TestRing_NobodyOwnsMoreThanTheBound(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		workers, bucketCount := someWorkers.Draw(t, "workers"), someBuckets.Draw(t, "buckets")
		r := NewRing(workers, bucketCount)
		bound := (5*bucketCount + 4*len(workers) - 1) / (4 * len(workers)) // 1.25 times the mean, rounded up.
		for _, worker := range workers {
			if owned := len(r.Owned(worker)); owned > bound {
				t.Fatalf("%q owns %d of %d buckets, more than %d", worker, owned, bucketCount, bound)
			}
		}
	})
}

func TestRing_OrderAndDuplicatesDoNotMatter(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		workers, bucketCount := someWorkers.Draw(t, "workers"), someBuckets.Draw(t, "buckets")
		again := rapid.SliceOf(rapid.SampledFrom(workers)).Draw(t, "duplicates")
		shuffled := rapid.Permutation(slices.Concat(workers, again)).Draw(t, "shuffled")
		given := slices.Clone(shuffled)
		one, other := NewRing(workers, bucketCount), NewRing(shuffled, bucketCount)
		for bucket := range bucketCount {
			if one.Owner(bucket) != other.Owner(bucket) {
				t.Fatalf("bucket %d belongs to %q or to %q", bucket, one.Owner(bucket), other.Owner(bucket))
			}
		}
		if !slices.Equal(shuffled, given) {
			t.Fatal("the caller's slice was changed")
		}
	})
}

func TestRing_JoinsAndLeavesMoveLittle(t *testing.T) {
	t.Parallel()
	const most, limit = 100, 1.5
	random := rand.New(rand.NewPCG(1, 8))
	sum := 0.0
	for count := 2; count <= most; count++ {
		sum += movedShare(random, count)
	}
	ratio := sum / (most - 1)
	t.Logf("on the way from 1 to %d workers a join moves %.2f times the share", most, ratio)
	if ratio > limit {
		t.Errorf("on the way from 1 to %d workers a join moves %.2f times the share, more than %.1f", most, ratio, limit)
	}
}

// 80, 86, 92 and 99 are where 1.25 times the mean, rounded up, falls by one.
func TestRing_NoSizeMovesMuchMore(t *testing.T) {
	t.Parallel()
	const rounds = 40
	for count, limit := range map[int]float64{2: 1.1, 5: 1.1, 10: 1.1, 50: 1.3, 80: 1.6, 86: 1.6, 92: 1.6, 99: 1.6, 100: 1.6} {
		t.Run(strconv.Itoa(count), func(t *testing.T) {
			t.Parallel()
			random := rand.New(rand.NewPCG(uint64(count), 8))
			sum := 0.0
			for range rounds {
				sum += movedShare(random, count)
			}
			t.Logf("a join to or a leave from %d workers moves %.2f times the share", count, sum/rounds)
			if sum/rounds > limit {
				t.Errorf("a join to or a leave from %d workers moves %.2f times the share, more than %.1f", count, sum/rounds, limit)
			}
		})
	}
}

// movedShare returns how many buckets change hands when one of count workers leaves, in shares
// of one worker. A ring follows from the set alone: the join of that worker moves as many.
func movedShare(random *rand.Rand, count int) float64 {
	workers := make([]string, count)
	for i := range workers {
		workers[i] = fmt.Sprintf("host-%d:%d:%016x", i, random.IntN(1<<15), random.Uint64())
	}
	before := NewRing(workers, defaultBuckets)
	leaver := random.IntN(count)
	after := NewRing(slices.Delete(workers, leaver, leaver+1), defaultBuckets)
	moved := 0
	for bucket := range defaultBuckets {
		if before.Owner(bucket) != after.Owner(bucket) {
			moved++
		}
	}
	return float64(moved) / (defaultBuckets / float64(count))
}

func TestRing_NobodyOwnsAnythingWithoutWorkers(t *testing.T) {
	t.Parallel()
	for name, r := range map[string]Ring{"none": NewRing(nil, defaultBuckets), "the zero value": {}} {
		if got := r.Owner(0); got != "" {
			t.Errorf("%s: bucket 0 belongs to %q", name, got)
		}
		if got := r.Owned("a"); got != nil {
			t.Errorf("%s: a owns %v", name, got)
		}
	}
}

func TestRing_StrangersOwnNothing(t *testing.T) {
	t.Parallel()
	r := NewRing([]string{"a", "b"}, 4)
	for _, stranger := range []string{"", "aa", "c"} {
		if got := r.Owned(stranger); got != nil {
			t.Errorf("%q, a stranger, owns %v", stranger, got)
		}
	}
	for _, bucket := range []int{-1, 4} {
		if got := r.Owner(bucket); got != "" {
			t.Errorf("bucket %d, which is not, belongs to %q", bucket, got)
		}
	}
}

// Releases that run side by side must agree. Not every bucket here has room at its first worker.
func TestRing_IsFrozen(t *testing.T) {
	t.Parallel()
	r := NewRing([]string{"a", "b", "c", "d", "e"}, 16)
	for worker, want := range map[string][]int{
		"a": {2, 4, 9, 14},
		"b": {13, 15},
		"c": {0, 3, 6, 8},
		"d": {5, 10, 11, 12},
		"e": {1, 7},
	} {
		if got := r.Owned(worker); !slices.Equal(got, want) {
			t.Errorf("%s owns %v, want %v", worker, got, want)
		}
	}
}

func BenchmarkRing(b *testing.B) {
	workers := make([]string, 200)
	for i := range workers {
		workers[i] = fmt.Sprintf("host-%d:1:%016x", i, i)
	}
	for b.Loop() {
		NewRing(workers, defaultBuckets)
	}
}
