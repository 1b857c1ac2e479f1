package main

import (
	"encoding/json"
	"testing"
)

func TestWorkers_FactsAreWhatIsThereInAFixedOrder(t *testing.T) {
	for metadata, want := range map[string]string{
		`{}`: "",
		`{"host": "vm", "version": "v0.1.0", "concurrency": 8}`:                                                     "version=v0.1.0 host=vm concurrency=8",
		`{"version": "", "affinity": 0.25, "wake": "polling", "claim_p99_ms": 4, "claim_p50_ms": 1.5, "pid": null}`: "affinity=0.25 wake=polling claim_p50_ms=1.5 claim_p99_ms=4",
		`{"zone": "b", "about": {"a": 1}, "in_flight": 3}`:                                                          `in_flight=3 about={"a": 1} zone=b`,
		`{"host": "two\nlines\tand a tab"}`:                                                                         "host=two lines and a tab",
		`[1, 2]`:                                                                                                    "[1, 2]",
	} {
		if got := facts(json.RawMessage(metadata)); got != want {
			t.Errorf("%s is printed as %q, want %q", metadata, got, want)
		}
	}
}
