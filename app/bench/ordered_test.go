package bench

import (
	"math/rand/v2"
	"slices"
	"testing"
)

func TestKeys_SameSeedDrawsTheSame(t *testing.T) {
	t.Parallel()
	for name, draw := range map[string]func(seed int64) func(*rand.Rand) uint64{"zipf": zipfKeys, "hot": halfHot} {
		keys := func(seed int64) (drawn []uint64) {
			source := newJobSource(seed, 128)
			source.draw = draw(seed)
			for range 1000 {
				drawn = append(drawn, source.draw(source.random))
			}
			return drawn
		}
		if !slices.Equal(keys(1), keys(1)) || slices.Equal(keys(1), keys(2)) {
			t.Errorf("%s: the keys do not follow the seed", name)
		}
	}
}

func TestKeys_HotKeyIsTheBusiest(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		draw        func(*rand.Rand) uint64
		least, most int // Of 10,000.
	}{
		"zipf": {zipfKeys(1), 1_000, 2_500},
		"hot":  {halfHot(1), 4_800, 5_200},
	} {
		random := rand.New(rand.NewPCG(1, 0))
		counts := map[uint64]int{}
		for range 10_000 {
			counts[test.draw(random)]++
		}
		hot := counts[hotKey]
		for key, count := range counts {
			if key >= orderedKeys || key != hotKey && count >= hot {
				t.Errorf("%s: key %d has %d jobs, the hot one %d", name, key, count, hot)
			}
		}
		if hot < test.least || hot > test.most {
			t.Errorf("%s: the hot key has %d of 10,000 jobs", name, hot)
		}
	}
}
