package bench

import (
	"slices"
	"testing"
	"time"
)

func TestPickups_CountFromTheReturnAndFromTheBeginningOfTheCall(t *testing.T) {
	t.Parallel()
	at := time.Unix(1_700_000_000, 0)
	calls := []call{
		{began: at, returned: at.Add(2 * time.Millisecond)},
		{began: at.Add(time.Second), returned: at.Add(time.Second + 2*time.Millisecond)},
	}
	began := map[int64]int64{
		calls[0].began.UnixNano(): at.Add(5 * time.Millisecond).UnixNano(),
		// Before the call returned.
		calls[1].began.UnixNano(): calls[1].began.Add(time.Millisecond).UnixNano(),
	}
	figures, err := pickups(calls, began)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []struct {
		name        string
		least, most float64
	}{{"from commit p50", 0.001, 0.001}, {"from commit max", 2.9, 3.1}, {"from call p50", 0.9, 1.1}, {"from call max", 4.9, 5.1}} {
		i := slices.IndexFunc(figures, func(f Figure) bool { return f.Name == want.name })
		if i < 0 || figures[i].Value < want.least || figures[i].Value > want.most {
			t.Errorf("%v, want %s from %g to %g", figures, want.name, want.least, want.most)
		}
	}
}

func TestPickups_JobThatNoHandlerTellsOfSpoilsTheRun(t *testing.T) {
	t.Parallel()
	if _, err := pickups([]call{{began: time.Unix(1, 0)}}, map[int64]int64{}); err == nil {
		t.Error("no error")
	}
}
