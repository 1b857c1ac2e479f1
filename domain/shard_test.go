package domain

import (
	"slices"
	"strings"
	"sync"
	"testing"

	"pgregory.net/rapid"
)

// Jobs of one sub-key keep their order only while they go to one shard: none of these may change.
func TestShard_SubKeysAreFrozen(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		n            int
		subKey, want string
	}{
		{8, "", "tenant:123#shard-4"},
		{8, "order:9182", "tenant:123#shard-7"},
		{8, "customer:42", "tenant:123#shard-3"},
		{8, "ключ", "tenant:123#shard-2"},
		{12, "order:9182", "tenant:123#shard-7"},
		{12, "customer:42", "tenant:123#shard-7"},
		{1, "order:9182", "tenant:123#shard-0"},
	} {
		if got := Shard("tenant:123", test.n).For(test.subKey); got != test.want {
			t.Errorf("%q of %d goes to %s, want %s", test.subKey, test.n, got, test.want)
		}
	}
}

func TestShard_SubKeysStayInRange(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		n, subKey := rapid.IntRange(1, 64).Draw(t, "n"), rapid.String().Draw(t, "sub-key")
		shards := Shard("k", n)
		all := turns(shards, n)
		if got := shards.For(subKey); !slices.Contains(all, got) {
			t.Fatalf("%q goes to %s, which is none of %v", subKey, got, all)
		}
	})
}

func TestShard_BelowOneCountsAsOne(t *testing.T) {
	t.Parallel()
	for _, n := range []int{0, -1} {
		shards := Shard("k", n)
		for _, got := range []string{shards.For("a"), shards.For("b"), shards.Next(), shards.Next()} {
			if got != "k#shard-0" {
				t.Errorf("n = %d: %s, want k#shard-0", n, got)
			}
		}
	}
}

func TestShard_NextGoesRound(t *testing.T) {
	t.Parallel()
	want := []string{"k#shard-0", "k#shard-1", "k#shard-2", "k#shard-0"}
	if got := turns(Shard("k", 3), 4); !slices.Equal(got, want) {
		t.Errorf("the shards in turn are %v, want %v", got, want)
	}
}

func TestShard_NextIsEvenAmongConcurrentCallers(t *testing.T) {
	t.Parallel()
	const callers, rounds, n = 8, 20_000, 4
	shards := Shard("k", n)
	got := make([][]string, callers)
	start := make(chan struct{})
	var group sync.WaitGroup
	for caller := range callers {
		group.Go(func() {
			<-start
			got[caller] = turns(shards, rounds)
		})
	}
	close(start)
	group.Wait()
	all := strings.Join(slices.Concat(got...), " ") + " "
	for _, shard := range turns(Shard("k", n), n) {
		if count := strings.Count(all, shard+" "); count != callers*rounds/n {
			t.Errorf("%s had %d turns, want %d", shard, count, callers*rounds/n)
		}
	}
}

func turns(shards *Shards, count int) []string {
	got := make([]string, count)
	for i := range got {
		got[i] = shards.Next()
	}
	return got
}
