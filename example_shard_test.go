package holdfast_test

import (
	"fmt"

	"github.com/holdfast-pg/holdfast"
)

// A tenant too busy for one lane is split: what belongs together shares a sub-key, and the
// rest takes turns.
func ExampleShard() {
	shards := holdfast.Shard("tenant:123", 8)
	fmt.Println(shards.For("order:9182"), shards.For("order:9182"), shards.For("order:9183"))
	fmt.Println(shards.Next(), shards.Next())

	_ = holdfast.Key(shards.For("order:9182")) // An option of holdfast.Enqueue.
	// Output:
	// tenant:123#shard-7 tenant:123#shard-7 tenant:123#shard-0
	// tenant:123#shard-0 tenant:123#shard-1
}
