package main

import (
	"encoding/json"
	"flag"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/holdfast-pg/holdfast/app/tune"
)

// shapes are the workloads that docs/tuning.md goes through.
var shapes = map[string]string{
	"fast":    "tune --rate 5000 --p50 2ms --p99 10ms --cores 4",
	"http":    "tune --rate 100 --p50 300ms --p99 5s --payload 1024 --workers 2 --cores 2",
	"reports": "tune --rate 0.05 --p50 2m --p99 15m --workers 3 --cores 4 --held-connections 1",
}

var slowCalls = strings.Fields(shapes["http"])

var update = flag.Bool("update", false, "write the golden files anew")

func TestTune_AdviceForThreeShapesIsAsItWas(t *testing.T) {
	for name, line := range shapes {
		for _, format := range []string{"table", "go", "env"} {
			got := execute(t, append(strings.Fields(line), "-o", format)...)
			if got.code != exitDone || got.stderr != "" {
				t.Errorf("%s: %+v", line, got)
			}
			path := "testdata/tune-" + name + "." + format + ".txt"
			if *update {
				if err := os.WriteFile(path, []byte(got.stdout), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if got.stdout != string(want) {
				t.Errorf("%s is not what holdfast %s prints (go test ./cmd/holdfast -update writes it anew):\n%s", path, line, got.stdout)
			}
		}
	}
}

// advised runs `holdfast tune` and returns its report.
func advised(t *testing.T, args ...string) tune.Report {
	t.Helper()
	got := execute(t, append(args, "-o", "json")...)
	var report tune.Report
	if err := json.Unmarshal([]byte(got.stdout), &report); err != nil || got.stderr != "" {
		t.Fatalf("%v: %+v", err, got)
	}
	return report
}

func TestTune_CommandLinesOfTheShapesAreThoseThatTheBenchMeasures(t *testing.T) {
	for _, shape := range tune.Shapes() {
		if got := advised(t, strings.Fields(shapes[shape.Name])...).Workload; got != shape.Workload {
			t.Errorf("%s describes %+v, want %+v", shapes[shape.Name], got, shape.Workload)
		}
	}
}

func TestTune_TableAndDocumentSayTheSame(t *testing.T) {
	table, report := execute(t, slowCalls...), advised(t, slowCalls...)
	if table.code != exitDone || table.stderr != "" {
		t.Fatalf("%+v", table)
	}
	printed := oneLine(table.stdout)
	for _, setting := range report.Settings {
		line := strings.Join([]string{setting.Setting, setting.Current, setting.From, recommended(setting), setting.Rule}, " ")
		if !strings.Contains(printed, line) || !strings.Contains(printed, setting.Setting+" "+setting.Watch) {
			t.Errorf("%q is not in\n%s", line, table.stdout)
		}
	}
	if len(report.Conflicts) != 1 || !strings.Contains(table.stdout, "conflict: Concurrency, rate: "+report.Conflicts[0].What+"\n") {
		t.Errorf("%+v, and\n%s", report.Conflicts, table.stdout)
	}
	lines := execute(t, append(slowCalls, "-o", "jsonl")...)
	if !strings.HasPrefix(lines.stdout, `{"workload":{"rate":100,"p50_seconds":0.3,"p99_seconds":5,`) || strings.Count(lines.stdout, "\n") != 1 {
		t.Errorf("%+v", lines)
	}
}

// What -o env prints is understood by the flags of work, and is then how the settings stand.
func TestTune_EnvironmentIsTakenByTheCommandsThatReadIt(t *testing.T) {
	reports := []string{"tune", "--rate", "0.05", "--p50", "2m", "--p99", "15m", "--workers", "3", "--cores", "4", "--held-connections", "1", "--max-connections", "40", "--max-concurrency", "20"}
	for _, line := range [][]string{slowCalls, reports} {
		got := execute(t, append(line, "-o", "env")...)
		assignment := regexp.MustCompile(`(?m)^(HOLDFAST_[A-Z_]+)=(.+)$`)
		found := assignment.FindAllStringSubmatch(got.stdout, -1)
		if got.code != exitDone || got.stderr != "" || len(found) == 0 {
			t.Fatalf("%+v", got)
		}
		for _, match := range found {
			t.Setenv(match[1], match[2])
		}
		taken := advised(t, line...)
		for _, setting := range taken.Settings {
			if variable := variableOf(setting.Setting); setting.Of == "worker" && setting.Current != setting.Recommended {
				t.Errorf("%s is %s from %s (variable %q), want %s", setting.Setting, setting.Current, setting.From, variable, setting.Recommended)
			}
		}
		for _, match := range found {
			if !strings.Contains(execute(t, "env").stdout, match[2]+" ") || !strings.Contains(execute(t, "work", "--help").stdout, "[$"+match[1]+"]") {
				t.Errorf("%s is no variable of work", match[0])
			}
			t.Setenv(match[1], "")
		}
	}
}

func TestTune_EnvironmentNamesWhatWorkDoesNotTake(t *testing.T) {
	got := execute(t, "tune", "--rate", "10", "--p50", "1s", "--p99", "1s", "--workers", "200", "--max-connections", "3000", "-o", "env")
	const want = "# Buckets: 10 × 200 processes = 2000 at least; 1024 suit most\n# `holdfast work` has no setting for it; Buckets=2048 in Go.\n"
	if got.code != exitDone || got.stdout != want {
		t.Errorf("%+v", got)
	}
}

func TestTune_VariableThatIsNoNumberIsRefused(t *testing.T) {
	t.Setenv("HOLDFAST_CONCURRENCY", "many")
	for _, line := range [][]string{slowCalls, {"work", "--exec", "true", "--database-url", "postgres://127.0.0.1:1/none"}} {
		execute(t, line...).refused(t, "HOLDFAST_CONCURRENCY", "many")
	}
}

func TestTune_CurrentValuesComeFromFlagThenEnvironmentThenDefault(t *testing.T) {
	t.Setenv("HOLDFAST_LEASE", "20s")
	t.Setenv("HOLDFAST_AFFINITY", "")
	t.Setenv("HOLDFAST_CONCURRENCY", "12")
	want := map[string][2]string{
		"Lease": {"20s", "environment: HOLDFAST_LEASE"}, "Concurrency": {"9", "flag"}, "Affinity": {"ring", "default"},
		"Connections": {"7", "default"}, "LeaseMargin": {"2s", "default"},
	}
	for _, setting := range advised(t, append(slowCalls, "--concurrency", "9")...).Settings {
		if expected, checked := want[setting.Setting]; checked && expected != [2]string{setting.Current, setting.From} {
			t.Errorf("%s is %s from %s, want %v", setting.Setting, setting.Current, setting.From, expected)
		}
		delete(want, setting.Setting)
	}
	if len(want) > 0 {
		t.Errorf("not printed: %v", want)
	}
}

func TestTune_ImpossibleWorkIsAFindingAndPrintsNoConfiguration(t *testing.T) {
	impossible := []string{"tune", "--rate", "10000", "--p50", "300ms", "--p99", "5s", "--workers", "2", "--cores", "2"}
	const missing = "missing: 10,000/s × 623ms on average = 6,235 handlers at once, but 2 processes × 256 slots = 512: 5723 slots are missing"
	if got := execute(t, impossible...); got.code != exitFindings || !strings.Contains(got.stdout, missing) || got.stderr != "holdfast: 1 finding\n" {
		t.Errorf("%+v", got)
	}
	for _, format := range []string{"go", "env"} {
		if got := execute(t, append(impossible, "-o", format)...); got.code != exitFindings || got.stdout != "" || !strings.HasPrefix(got.stderr, missing) {
			t.Errorf("%+v", got)
		}
	}
}
