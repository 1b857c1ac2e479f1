package worker

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"math"
	"slices"
)

// virtualNodes is how many points a worker has on the circle. More make the stretches between
// them more even, and the ring dearer to build.
const virtualNodes = 128

// Ring says which worker owns which bucket: consistent hashing with bounded loads, after
// Mirrokni, Thorup and Zadimoghaddam, "Consistent Hashing with Bounded Loads", SODA 2018,
// https://arxiv.org/abs/1608.01350, with a load factor of 1.25. It follows from the set of
// workers and the bucket count alone, so that workers that see the same set agree without
// talking. Ownership is a hint: every promise holds when two rings differ.
//
// The zero value has no workers, and nobody owns anything.
type Ring struct {
	workers []string // Ascending, each once.
	owners  []int    // The owner of each bucket, as an index of workers.
}

// NewRing distributes the buckets 0 … bucketCount-1 over the workers, whose order and
// duplicates do not matter. No worker owns more than 1.25 times the mean, rounded up.
//
// The buckets lie evenly spaced on a circle of hashes; each goes clockwise to the first
// worker with room. Three things keep small what a join or a leave moves between the others:
//
//   - The rooms add up to 1.25 times the buckets, so that a worker that joins takes its room
//     from a few of the others. With 1.25 times the mean rounded up for each, all of them
//     lose a place at once wherever that number falls: the 99th worker moves 2.5 times its
//     share of 1,024 buckets.
//   - A bucket stays with the first worker on its way when that one has room for it beside
//     its other firsts; only then do the rest walk on. In one pass, buckets that walk push
//     out others, and those walk in turn.
//   - The nearest buckets stay. A worker that joins comes between a bucket and its first
//     worker the likelier the farther they are apart, so that it mostly takes buckets whose
//     leaving makes no room that another would move into.
//
// With 1,024 buckets, a join or a leave moves on average 1.0 times the share (bucketCount /
// workers) at 10 workers, 1.2 times at 50 and 1.5 times at 100.
func NewRing(workers []string, bucketCount int) Ring {
	members := slices.Compact(slices.Sorted(slices.Values(workers)))
	if len(members) == 0 {
		return Ring{}
	}
	circle := newCircle(members)
	room := rooms(len(members), bucketCount)
	owners := make([]int, bucketCount)
	var walks []way
	for _, way := range circle.ways(bucketCount) {
		worker := circle.worker(way.first)
		if room[worker] == 0 {
			walks = append(walks, way)
			continue
		}
		room[worker]--
		owners[way.bucket] = worker
	}
	for _, way := range walks {
		at := way.first
		for room[circle.worker(at)] == 0 {
			at = (at + 1) % len(circle)
		}
		room[circle.worker(at)]--
		owners[way.bucket] = circle.worker(at)
	}
	return Ring{members, owners}
}

// Owned returns the buckets of a worker, ascending; nil when it has none or is not a member.
func (r Ring) Owned(worker string) []int {
	index, member := slices.BinarySearch(r.workers, worker)
	if !member {
		return nil
	}
	var buckets []int
	for bucket, owner := range r.owners {
		if owner == index {
			buckets = append(buckets, bucket)
		}
	}
	return buckets
}

// Owner returns the worker that owns a bucket; "" when there is no worker or no such bucket.
func (r Ring) Owner(bucket int) string {
	if bucket < 0 || bucket >= len(r.owners) {
		return ""
	}
	return r.workers[r.owners[bucket]]
}

// rooms returns how many buckets each worker may own: 1.25 times the bucket count in all,
// rounded up, and no worker more than one above another. In whole numbers, which come out
// alike on every machine.
func rooms(workers, bucketCount int) []int {
	total := (5*bucketCount + 3) / 4
	room := make([]int, workers)
	for worker := range room {
		room[worker] = total / workers
		if worker < total%workers {
			room[worker]++
		}
	}
	return room
}

// circle holds the points of all workers, ascending. A point is a hash whose low workerBits
// give way to the index of its worker: whole numbers sort three times as fast as structs.
type circle []uint64

// workerBits are enough for a million workers.
const workerBits = 20

// newCircle hashes each worker's id to its points, four of each SHA-256. Frozen: while two
// releases run side by side, their rings must agree.
func newCircle(workers []string) circle {
	points := make(circle, 0, len(workers)*virtualNodes)
	for worker, id := range workers {
		for part := range byte(virtualNodes / 4) {
			sum := sha256.Sum256(append([]byte(id), part))
			for hash := range slices.Chunk(sum[:], 8) {
				points = append(points, binary.BigEndian.Uint64(hash)>>workerBits<<workerBits|uint64(worker))
			}
		}
	}
	slices.Sort(points)
	return points
}

// worker returns the index of the worker of a point.
func (c circle) worker(point int) int {
	return int(c[point] & (1<<workerBits - 1))
}

// way leads a bucket to the first point clockwise of it.
type way struct {
	bucket   int
	first    int
	distance uint64
}

// ways returns the way of each bucket, the shortest first.
func (c circle) ways(bucketCount int) []way {
	ways := make([]way, bucketCount)
	for bucket := range ways {
		position := math.MaxUint64 / uint64(bucketCount) * uint64(bucket)
		first, _ := slices.BinarySearch(c, position)
		first %= len(c)
		ways[bucket] = way{bucket, first, c[first] - position} // Past the top it goes on at 0.
	}
	slices.SortFunc(ways, func(a, b way) int {
		return cmp.Or(cmp.Compare(a.distance, b.distance), cmp.Compare(a.bucket, b.bucket))
	})
	return ways
}
