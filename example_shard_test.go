package holdfast_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/holdfast-pg/holdfast"
	"github.com/holdfast-pg/holdfast/integration/pgtest"
)

// begin
// Shards of a tenant that is too busy for one lane. Jobs of one order stay in one shard.
var tenant = holdfast.Shard("tenant:123", 8)

// EnqueueForOrder keeps the jobs of an order in their order, and lets eight orders run at once.
func EnqueueForOrder(ctx context.Context, tx pgx.Tx, order string) error {
	_, err := holdfast.Enqueue(ctx, tx, SendReceipt{Email: "ada@example.com"}, holdfast.Key(tenant.For(order)))
	return err
}

// end

func TestShard_JobsOfASubKeyShareALane(t *testing.T) {
	t.Parallel()
	database := pgtest.New(t)
	err := pgx.BeginFunc(t.Context(), database.Pool, func(tx pgx.Tx) error {
		for _, order := range []string{"order:9182", "order:9183", "order:9182"} {
			if err := EnqueueForOrder(t.Context(), tx, order); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	keys := pgtest.Values[string](t, database, "SELECT partition_key FROM holdfast.inbox ORDER BY seq")
	if fmt.Sprint(keys) != "[tenant:123#shard-7 tenant:123#shard-0 tenant:123#shard-7]" {
		t.Errorf("lanes %v", keys)
	}
}

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
