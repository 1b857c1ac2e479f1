package simulate

import (
	"fmt"
	"strings"
	"time"

	"github.com/holdfast-pg/holdfast/domain"
	"github.com/holdfast-pg/holdfast/domain/model"
	"github.com/holdfast-pg/holdfast/worker"
)

const (
	hotTenant = "tenant:123"
	hotJobs   = 28 // Every other one is the hot key's.
	hotShards = 4
)

// hotKey shows one ordered key that half of the traffic has.
func hotKey() Preset {
	return Preset{
		Name:  "hot-key",
		About: "half of the jobs of an ordered queue have one key, and 4 arrive a second",
		scenes: []scene{
			{"one key", func(s *stage) { hotKeySet(s, func() string { return hotTenant }) }, hotKeySum},
			{"four shards", func(s *stage) { hotKeySet(s, domain.Shard(hotTenant, hotShards).Next) }, hotKeySum},
		},
		lesson: func(scenes []Scene) string {
			one, shards := scenes[0].Counts, scenes[1].Counts
			return fmt.Sprintf("The jobs of one ordered key run one at a time however many workers there are: half of them waited %.3f s or more, those of other keys %.3f s, and %.3f s once the key was split into %d shards, each with an order of its own.",
				one.HotWaits.P50, one.OtherWaits.P50, shards.HotWaits.P50, hotShards)
		},
	}
}

func hotKeySet(s *stage, hot func() string) {
	s.show(EventJoined, EventStarted)
	s.tellWaits = true
	setOrdered(s, true)
	s.handle("sync_order", func(r *run) error {
		r.work(r.between(700*time.Millisecond, 900*time.Millisecond))
		return nil
	})
	s.start("w1", ordinary(4, worker.AffinityRing))
	s.start("w2", ordinary(4, worker.AffinityRing))
	for i := range int64(hotJobs) {
		s.after(10*time.Second+time.Duration(i)*250*time.Millisecond+s.between("job", i, 0, 100*time.Millisecond), func() {
			if i%2 == 0 {
				s.enqueue(model.NewJob{Kind: "sync_order", Key: hot()})
			} else {
				s.enqueue(model.NewJob{Kind: "sync_order", Key: fmt.Sprintf("tenant:%d", 200+i)})
			}
		})
	}
}

func hotKeySum(s *stage) []string {
	isHot := func(key string) bool { return strings.HasPrefix(key, hotTenant) }
	s.counts.HotWaits = s.waitsOf(isHot)
	s.counts.OtherWaits = s.waitsOf(func(key string) bool { return !isHot(key) })
	return nil
}
