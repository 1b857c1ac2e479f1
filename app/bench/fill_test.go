package bench

import (
	"testing"

	"github.com/holdfast-pg/holdfast/domain"
)

func TestKeysOf_EachBucketHasAKeyOfItsOwn(t *testing.T) {
	t.Parallel()
	for _, n := range []int{1, 8, bucketCount} {
		keys, buckets := keysOf(n)
		for i, key := range keys {
			if int(buckets[i]) != i || domain.BucketOf(key, bucketCount) != i {
				t.Errorf("of %d keys, %q is given for bucket %d, place %d", n, key, buckets[i], i)
			}
		}
	}
}
