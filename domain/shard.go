package domain

import (
	"strconv"
	"sync/atomic"
)

// Shards are the partition keys into which a hot one was split. They are safe for concurrent use.
type Shards struct {
	key  string
	n    int
	next atomic.Uint64
}

// Shard splits a hot partition key into n keys, key#shard-0 … key#shard-(n-1), so that its
// jobs spread over n buckets and, on an ordered queue, over n lanes. An n below 1 counts as 1.
// A shard is a partition key like any other: with its suffix it has at most 200 characters.
//
// Jobs of one shard keep their order on an ordered queue; jobs of different shards have none.
// Another n moves sub-keys to other shards, so that the order across the change is lost:
// where it matters, let the old shards drain before producers change n.
func Shard(key string, n int) *Shards {
	return &Shards{key: key, n: max(n, 1)}
}

// For returns the shard of a sub-key: always the same one, in every process and release. Its
// number is BucketOf(subKey, n), which SQL knows as holdfast.bucket_of.
func (s *Shards) For(subKey string) string {
	return s.shard(BucketOf(subKey, s.n))
}

// Next returns the shards in turn, from the first one on, for jobs whose order does not matter.
func (s *Shards) Next() string {
	turn := s.next.Add(1) - 1
	return s.shard(int(turn % uint64(s.n)))
}

func (s *Shards) shard(number int) string {
	return s.key + "#shard-" + strconv.Itoa(number)
}
