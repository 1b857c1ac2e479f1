package main

import "testing"

func TestAge_IsTwoUnitsAtMost(t *testing.T) {
	for seconds, want := range map[float64]string{
		0: "0ms", 0.0419: "41ms", 1.25: "1.2s", 59: "59.0s", 61: "1m01s", 3_599: "59m59s", 3_600: "1h00m", 86_399: "23h59m", 86_400: "1d00h", 9e6: "104d04h",
	} {
		if got := age(seconds); got != want {
			t.Errorf("%g s are %s, want %s", seconds, got, want)
		}
	}
}

func TestRate_HasAsManyDigitsAsItNeeds(t *testing.T) {
	for perSecond, want := range map[float64]string{0: "0", 0.125: "0.12", 3.2: "3.20", 118.4: "118"} {
		if got := rate(perSecond); got != want {
			t.Errorf("%g is %s, want %s", perSecond, got, want)
		}
	}
}

func TestShortened_CutsBetweenCharactersAndKeepsToOneLine(t *testing.T) {
	for text, want := range map[string]string{"äöü": "äöü", "äöüß": "äöü…", "a\nb": "a b"} {
		if got := shortened(text, 3); got != want {
			t.Errorf("%q is %q, want %q", text, got, want)
		}
	}
}
