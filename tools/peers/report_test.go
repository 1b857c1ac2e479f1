package main

import (
	"slices"
	"strings"
	"testing"
)

func TestNewRows_ComparesWithTheBareLoopThatEndsJobsTheSameWay(t *testing.T) {
	t.Parallel()
	systems, samples := drainOf(map[string]float64{
		"river": 100, "graphile worker": 50, "bare loop archive": 250, "bare loop drop": 500, "holdfast archive": 200, "holdfast drop": 300,
	})
	rows := newRows(drain, systems, samples).Rows
	for _, want := range []row{
		{System: "graphile worker", OfRiver: 0.5, OfGraphile: 1, OfBare: 0.1},
		{System: "holdfast archive", OfRiver: 2, OfGraphile: 4, OfBare: 0.8},
		{System: "holdfast drop", OfRiver: 3, OfGraphile: 6, OfBare: 0.6},
	} {
		at := slices.IndexFunc(rows, func(r row) bool { return r.System == want.System })
		got := rows[at]
		if got.OfRiver != want.OfRiver || got.OfGraphile != want.OfGraphile || got.OfBare != want.OfBare {
			t.Errorf("%s: × River %v, × Graphile %v, × bare %v, want %v, %v, %v",
				want.System, got.OfRiver, got.OfGraphile, got.OfBare, want.OfRiver, want.OfGraphile, want.OfBare)
		}
	}
}

func TestAddNotes_SaysWhenTheMachineIsNotComparable(t *testing.T) {
	t.Parallel()
	for bare, noted := range map[float64]bool{210: true, 220: false, 290: false, 300: true} {
		systems, samples := drainOf(map[string]float64{"river": 100, "bare loop archive": bare})
		result := report{Scenarios: []scenarioRows{newRows(drain, systems, samples)}}
		result.addNotes()
		if got := slices.ContainsFunc(result.Notes, func(note string) bool { return strings.Contains(note, "not comparable") }); got != noted {
			t.Errorf("bare loop at %.2f × River: noted is %t, want %t", bare/100, got, noted)
		}
	}
}

func TestMedian_OfAnEvenNumberIsTheMeanOfTheMiddle(t *testing.T) {
	t.Parallel()
	if got := median([]sample{{Rate: 9}, {Rate: 1}, {Rate: 4}, {Rate: 2}}, rateOf); got != 3 {
		t.Errorf("the median is %v, want 3", got)
	}
}

// drainOf returns the systems with a rate, and their samples.
func drainOf(rates map[string]float64) (systems []system, samples map[string][]sample) {
	samples = map[string][]sample{}
	for _, each := range allSystems(options{}) {
		if rate, has := rates[each.Name()]; has {
			systems = append(systems, each)
			samples[each.Name()] = []sample{{Rate: rate}}
		}
	}
	return systems, samples
}
