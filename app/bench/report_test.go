package bench

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
)

func TestReport_TableHasAColumnForEachTrialAndARowForEachFigure(t *testing.T) {
	t.Parallel()
	var printed strings.Builder
	printTable(&printed, tableOf([]Result{
		{Trial: "archive", Figures: []Figure{{"jobs", "", 200_000}, {"rate", "jobs/s", 31_204.4}, {"log", "bytes/job", 1_190.2}}},
		{Trial: "drop", Figures: []Figure{{"jobs", "", 200_000}, {"rate", "jobs/s", 44_100}, {"wait p50", "ms", 0.0213}}},
	}))
	want := "" +
		"                   archive     drop\n" +
		"  jobs             200,000  200,000\n" +
		"  rate (jobs/s)     31,204   44,100\n" +
		"  log (bytes/job)    1,190\n" +
		"  wait p50 (ms)              0.0213\n"
	if printed.String() != want {
		t.Errorf("printed\n%s\nwant\n%s", printed.String(), want)
	}
}

func TestReport_NamesMachineServerAndWhatTheBenchSet(t *testing.T) {
	t.Parallel()
	report := Report{
		Version: "v0.1.0", Go: "go1.26", Size: SizeFull, Seed: 7, Repeat: 3,
		Machine: Machine{CPU: "a processor", Cores: 2, Memory: 8 << 30, OS: "linux/amd64"},
		Server:  Server{Version: "PostgreSQL 18.3", Source: "private, from PATH", Settings: []Setting{{"fsync", "on", true}, {"jit", "on", false}}},
		Results: []Result{{Scenario: "drain", Trial: "archive"}, {Scenario: "slots", Trial: "1 × 4"}},
	}
	var table bytes.Buffer
	about := scenario{name: "slots", about: "many handlers"}
	if err := errors.Join(report.printHead(&table), printScenario(&table, about, report.Results[1:])); err != nil {
		t.Fatal(err)
	}
	for _, words := range []string{
		"v0.1.0, go1.26, size full, seed 7, medians of 3", "2 cores, a processor, 8.0 GB, linux/amd64",
		"PostgreSQL 18.3, private, from PATH", "fsync=on* jit=on\n", "*: set by the bench", "\n\nslots: many handlers\n\n",
	} {
		if !strings.Contains(table.String(), words) {
			t.Errorf("the table does not say %q:\n%s", words, table.String())
		}
	}
	document, err := json.Marshal(report)
	if err != nil {
		t.Fatal(err)
	}
	var read Report
	if err := json.Unmarshal(document, &read); err != nil || read.Machine != report.Machine || len(read.Results) != 2 {
		t.Errorf("%v: %s", err, document)
	}
}

func TestMedians_AreThoseOfEachFigure(t *testing.T) {
	t.Parallel()
	run := func(rate, log float64) []Figure { return []Figure{{"rate", "jobs/s", rate}, {"log", "bytes/job", log}} }
	for name, test := range map[string]struct {
		runs      [][]Figure
		rate, log float64
	}{
		"one run":    {[][]Figure{run(5, 9)}, 5, 9},
		"an odd set": {[][]Figure{run(5, 9), run(100, 7), run(6, 8)}, 6, 8},
		"an even":    {[][]Figure{run(4, 9), run(6, 7)}, 5, 8},
	} {
		if got := medians(test.runs); !slices.Equal(got, run(test.rate, test.log)) {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func TestNumber_KeepsThreeDigits(t *testing.T) {
	t.Parallel()
	for value, want := range map[float64]string{
		0: "0", 7: "7", 0.0732: "0.0732", 1.129: "1.13", 12.34: "12.3", 123.4: "123", 999: "999", 1000: "1,000", 1234567.8: "1,234,568", -1500: "-1,500",
	} {
		if got := number(value); got != want {
			t.Errorf("%v is printed as %s, want %s", value, got, want)
		}
	}
}
