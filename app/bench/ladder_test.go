package bench

import "testing"

// A claim that begins at an empty bucket would cost more than those it is compared with.
func TestRung_ClaimsBeginWhereTheLastOneEnded(t *testing.T) {
	t.Parallel()
	for _, size := range []Size{SizeSmall, SizeFull} {
		for _, r := range rungs(Options{Size: size}) {
			if r.ready.jobs == 0 {
				continue
			}
			for claimed := 0; claimed < r.claims*ladderBatch; claimed += ladderBatch {
				each := max(1, min(ladderQuota, (r.ready.jobs+r.more.jobs)/r.ready.buckets))
				if start := r.start(claimed); start < 0 || start >= r.buckets || r.buckets > 8 && start < claimed/each%r.buckets {
					t.Errorf("%s: after %d jobs a claim begins at bucket %d of %d", r.name, claimed, start, r.buckets)
				}
			}
			if r.ready.jobs < r.claims*ladderBatch && !r.owned {
				t.Errorf("%s: %d jobs for %d claims", r.name, r.ready.jobs, r.claims)
			}
		}
	}
}

func TestPercentile_IsTheNearestRank(t *testing.T) {
	t.Parallel()
	hundred := make([]float64, 100)
	for i := range hundred {
		hundred[i] = float64(i + 1)
	}
	for percent, want := range map[int]float64{1: 1, 50: 50, 99: 99, 100: 100} {
		if got := percentile(hundred, percent); got != want {
			t.Errorf("percentile %d of 1 to 100 is %g", percent, got)
		}
	}
	if got := percentile([]float64{7}, 99); got != 7 {
		t.Errorf("%g of 7 alone", got)
	}
}
