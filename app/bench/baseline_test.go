package bench

import "testing"

func TestBaseline_RatiosAreToItsMedian(t *testing.T) {
	t.Parallel()
	var base baseline
	figures := func(value float64) []Figure { return []Figure{{"rate", "jobs/s", value}} }
	if got := base.ratio(figures(5), "rate", "to the base"); got != nil {
		t.Errorf("%v without a run of the base", got)
	}
	for _, value := range []float64{1, 10, 2} {
		base.keep(figures(value))
	}
	got := base.ratio(figures(5), "rate", "to the base")
	if len(got) != 1 || got[0] != (Figure{"to the base", "", 2.5}) {
		t.Errorf("%v, want 5 / 2", got)
	}
	if got := base.ratio(figures(5), "wait", "to the base"); got != nil {
		t.Errorf("%v of a figure that neither has", got)
	}
}
