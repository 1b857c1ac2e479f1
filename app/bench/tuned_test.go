package bench

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/holdfast-pg/holdfast/app/tune"
)

func TestTimes_HaveTheMedianAndTheTailOfTheWorkload(t *testing.T) {
	t.Parallel()
	for _, shape := range tune.Shapes() {
		scale, known := scales[shape.Name]
		if !known || scale.small == 0 || scale.full == 0 {
			t.Fatalf("there is no scale for %s", shape.Name)
		}
		handlers := newTimes(shape.Workload, scale.faster)
		var drawn []time.Duration
		for n := range int64(10_000) {
			drawn = append(drawn, handlers.nth(n))
		}
		slices.Sort(drawn)
		for quantile, want := range map[int]tune.Seconds{50: shape.Workload.P50, 99: shape.Workload.P99} {
			got := drawn[quantile*len(drawn)/100-1]
			if scaled := float64(want) / scale.faster; math.Abs(float64(got)-scaled) > scaled/20 {
				t.Errorf("%s: the %d. percentile is %s, want %s", shape.Name, quantile, got, time.Duration(scaled))
			}
		}
	}
}
