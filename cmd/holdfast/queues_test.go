package main

import (
	"testing"
	"time"
)

func TestDuration_DaysAreUnderstoodAndWritten(t *testing.T) {
	const day = 24 * time.Hour
	for text, want := range map[string]time.Duration{
		"7d": 7 * day, "1d12h": 36 * time.Hour, "2d30m": 2*day + 30*time.Minute, "0d": 0, "90m": 90 * time.Minute, "100000d": 100_000 * day, "-1s": -time.Second,
	} {
		got, err := parseDuration(text)
		if err != nil || got != want {
			t.Errorf("%s: %s, %v", text, got, err)
		}
		if again, err := parseDuration(formatDuration(want)); err != nil || again != want {
			t.Errorf("%s is written as %s, which reads as %s, %v", want, formatDuration(want), again, err)
		}
	}
	for text, want := range map[string]string{"168h": "7d", "36h": "36h0m0s", "90s": "1m30s", "0s": "0s"} {
		if got, err := parseDuration(text); err != nil || formatDuration(got) != want {
			t.Errorf("%s is written as %s, want %s; %v", text, formatDuration(got), want, err)
		}
	}
	for _, text := range []string{"", "d", "7", "7 d", "-7d", "1.5d", "d7", "1d24h", "1d-1h", "1d1d", "100001d", "99999999999999999999d", "soon"} {
		if got, err := parseDuration(text); err == nil {
			t.Errorf("%q was taken for %s", text, got)
		}
	}
}
