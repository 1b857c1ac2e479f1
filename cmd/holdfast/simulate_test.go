package main

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"strings"
	"testing"

	"github.com/urfave/cli/v2"

	"github.com/holdfast-pg/holdfast/app/simulate"
)

func TestSimulate_BadValuesAreRefused(t *testing.T) {
	for _, test := range []struct {
		name  string
		args  []string
		words string
	}{
		{"no preset", []string{"simulate"}, "--preset PRESET is missing: one of two-workers, crash, pause, rebalance, hot-key"},
		{"preset", []string{"simulate", "--preset", "nosuch"}, `--preset "nosuch" is none of two-workers, crash, pause, rebalance, hot-key`},
		{"seed", []string{"simulate", "--preset", "crash", "--seed", "x"}, `"x" for flag -seed`},
		{"steps without a terminal", []string{"simulate", "--preset", "crash", "--step"}, "stdin is no terminal: leave it out"},
		{"steps of a document", []string{"simulate", "--preset", "crash", "--step", "-o", "json"}, "--step walks through a table"},
		{"output of simulate", []string{"simulate", "--preset", "crash", "-o", "xml"}, `--output "xml" is none of table, json, jsonl`},
	} {
		t.Run(test.name, func(t *testing.T) { execute(t, test.args...).refused(t, test.words) })
	}
}

func TestSimulate_PrintsThePageOfThePreset(t *testing.T) {
	for _, preset := range simulate.Names() {
		want, err := os.ReadFile("../../app/simulate/testdata/" + preset + ".txt")
		if err != nil {
			t.Fatal(err)
		}
		if got := execute(t, "simulate", "--preset", preset); got.code != exitDone || got.stderr != "" || got.stdout != string(want) {
			t.Errorf("%s: %+v", preset, got)
		}
	}
}

func TestSimulate_JSONIsTheReport(t *testing.T) {
	report, err := simulate.Run(t.Context(), "pause", 5)
	if err != nil {
		t.Fatal(err)
	}
	var want bytes.Buffer
	encoder := json.NewEncoder(&want)
	encoder.SetIndent("", "  ")
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(report); err != nil {
		t.Fatal(err)
	}
	if got := execute(t, "simulate", "--preset=pause", "--seed=5", "-o", "json"); got.code != exitDone || got.stdout != want.String() {
		t.Errorf("%+v, want %s", got, want.String())
	}
}

func TestSimulate_LinesAreEventsThenCountsThenTheLesson(t *testing.T) {
	got := execute(t, "simulate", "--preset", "pause", "-o", "jsonl")
	lines := strings.Split(strings.TrimSpace(got.stdout), "\n")
	report, err := simulate.Run(t.Context(), "pause", 1)
	if err != nil {
		t.Fatal(err)
	}
	if want := len(report.Scenes[0].Events) + len(report.Scenes[1].Events) + 3; got.code != exitDone || len(lines) != want {
		t.Fatalf("%d lines, want %d: %+v", len(lines), want, got)
	}
	for at, want := range map[int]string{
		0:                                 `{"scene":"without the fence","at_seconds":0.003535,"event":"joined","worker":"w1","text":"w1 joins","lanes":[{"worker":"w1","state":"working","running":0,"buckets":0}]}`,
		len(report.Scenes[0].Events):      `{"scene":"without the fence","outcome":["order:9500 goes to 2 Oak Avenue, and its label says 1 Elm Street"],"counts":{"enqueued":1,`,
		len(lines) - 1:                    `{"preset":"pause","seed":1,"lesson":"A process that was paused `,
		len(report.Scenes[0].Events) + 14: `{"scene":"with the fence",`,
	} {
		if !strings.HasPrefix(lines[at], want) {
			t.Errorf("line %d: %s, want %s", at, lines[at], want)
		}
	}
}

func TestSimulate_StepWaitsForEnterAndEndsWithTheInput(t *testing.T) {
	report, err := simulate.Run(t.Context(), "crash", 1)
	if err != nil {
		t.Fatal(err)
	}
	var stdout, stderr bytes.Buffer
	set := flag.NewFlagSet("", flag.ContinueOnError)
	set.String(flagOutput, formatTable, "")
	c := cli.NewContext(&cli.App{Reader: strings.NewReader("\n\n\n"), Writer: &stdout, ErrWriter: &stderr}, set, nil)
	c.Context = t.Context()
	if err := printSimulation(c, report, true); err != nil {
		t.Fatal(err)
	}
	if rows := strings.Count(stdout.String(), " s  "); rows != 3 || !strings.Contains(stderr.String(), "Enter") {
		t.Errorf("%d rows:\n%s%s", rows, stdout.String(), stderr.String())
	}
}
