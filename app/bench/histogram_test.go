package bench

import (
	"encoding/json"
	"math"
	"testing"
	"time"
)

func TestHistogram_MergedAfterItsWayThroughJSONHasThePercentilesOfBoth(t *testing.T) {
	t.Parallel()
	total := newHistogram()
	for _, from := range []int{0, 500} {
		part := newHistogram()
		for i := range 500 {
			part.record(time.Duration(from+i+1) * time.Millisecond)
		}
		encoded, err := json.Marshal(workReport{Wait: part})
		if err != nil {
			t.Fatal(err)
		}
		var sent workReport
		if err := json.Unmarshal(encoded, &sent); err != nil {
			t.Fatal(err)
		}
		total.merge(sent.Wait)
	}
	for i, want := range []float64{500, 950, 990, 1000} {
		if got := total.figures("wait")[i]; math.Abs(got.Value-want) > want/500 || got.Unit != "ms" {
			t.Errorf("%+v, want %v ms", got, want)
		}
	}
}

func TestHistogram_TakesWhatIsOutOfBoundsForTheBound(t *testing.T) {
	t.Parallel()
	h := newHistogram()
	h.record(-time.Second) // By a clock that was set back.
	h.record(100 * time.Hour)
	if n := h.counts.TotalCount(); n != 2 {
		t.Errorf("%d were counted, want 2", n)
	}
}

func TestHistogram_OfNothingHasNoFigures(t *testing.T) {
	t.Parallel()
	if got := newHistogram().figures("wait"); got != nil {
		t.Errorf("%v", got)
	}
}
