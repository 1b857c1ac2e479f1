package simulate

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"
)

// No test here is parallel: a simulation takes the only processor of the program.

var (
	update = flag.Bool("update", false, "write testdata/*.txt and docs/simulate.md anew")
	seeds  = flag.Int64("seeds", 10, "how many seeds of each preset are played")
)

func played(t *testing.T, preset string, seed int64) Report {
	t.Helper()
	report, err := Run(t.Context(), preset, seed)
	if err != nil {
		t.Fatalf("%s, seed %d: %v", preset, seed, err)
	}
	return report
}

// page is a report as people and programs see it.
func page(t *testing.T, report Report) string {
	t.Helper()
	var out bytes.Buffer
	Print(&out, report, nil)
	document, err := json.Marshal(report)
	if err != nil {
		t.Fatal(err)
	}
	return out.String() + string(document)
}

func TestSimulate_LeavesNoGoroutine(t *testing.T) {
	before := runtime.NumGoroutine()
	for _, preset := range Names() {
		played(t, preset, 3)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	for runtime.NumGoroutine() > before {
		if ctx.Err() != nil {
			t.Fatalf("%d goroutines before, %d after", before, runtime.NumGoroutine())
		}
		runtime.Gosched()
	}
}

func TestSimulate_StopsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Run(ctx, "crash", 1); err == nil || ctx.Err() == nil {
		t.Errorf("the error is %v", err)
	}
}

// Whatever the seed chooses, the promises hold, what is shown is there to be seen, and the same
// seed gives the same pages.
func TestSimulate_HoldsForEverySeedAndTwiceTheSame(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	for i, preset := range Names() {
		t.Run(preset, func(t *testing.T) {
			pages := map[string]bool{}
			for seed := int64(i) * *seeds; seed < int64(i+1)**seeds; seed++ { // Each preset its own.
				runtime.GOMAXPROCS(1)
				report := played(t, preset, seed)
				first := page(t, report)
				runtime.GOMAXPROCS(8)
				if second := page(t, played(t, preset, seed)); second != first {
					t.Fatalf("seed %d:\n%s\nand then\n%s", seed, first, second)
				}
				pages[first] = true
				for telling, scene := range report.Scenes {
					for what, holds := range demands(preset, telling, scene.Counts) {
						if !holds {
							t.Errorf("%s, seed %d: %s: %+v", scene.Name, seed, what, scene.Counts)
						}
					}
				}
			}
			if len(pages) < int(*seeds) {
				t.Errorf("%d seeds make %d pages: the seed chooses too little", *seeds, len(pages))
			}
		})
	}
}

// demands are what the counts of the i-th scene of a preset must show, whatever its seed.
func demands(preset string, i int, counts Counts) map[string]bool {
	all := map[string]bool{
		"every job is done once": counts.Enqueued > 0 && counts.Done == counts.Enqueued,
		"every run is counted":   counts.Runs == counts.Done+counts.Reclaimed,
		"somebody waited":        counts.Waits != nil,
	}
	switch preset {
	case "two-workers":
		all["order"] = (counts.OutOfOrder > 0) == (i == 0) && (counts.Overlaps > 0) == (i == 0)
		all["duplicates"] = counts.Duplicates == counts.Enqueued && counts.Repeated == 0
	case "crash":
		all["mark"] = counts.Reclaimed > 0 && (counts.Repeated > 0) == (i == 0)
	case "pause":
		all["fence"] = counts.LostUpdates == 1-i && counts.WritesRefused == i && counts.ResultsRefused == 1 && counts.Overlaps == 1
	case "rebalance":
		all["ring"] = counts.Repeated == 0 && counts.Moved > buckets/8 && counts.Moved < buckets/3
	case "hot-key":
		all["waits"] = counts.Overlaps == 0 && (counts.HotWaits.P50 > 0.5) == (i == 0) && counts.OtherWaits.P50 < 0.1
	}
	return all
}

func TestPrint_FitsThePageAndEndsWithOneSentence(t *testing.T) {
	for _, preset := range Names() {
		for seed := range int64(3) {
			report := played(t, preset, seed)
			var out bytes.Buffer
			Print(&out, report, nil)
			for line := range strings.Lines(out.String()) {
				if n := len([]rune(strings.TrimRight(line, "\n"))); n > width {
					t.Errorf("%s, seed %d: %d columns: %s", preset, seed, n, line)
				}
			}
			if !strings.HasSuffix(report.Lesson, ".") || strings.Contains(report.Lesson, ". ") {
				t.Errorf("%s: no sentence: %s", preset, report.Lesson)
			}
			if !strings.HasSuffix(strings.ReplaceAll(out.String(), "\n", " "), " "+report.Lesson+" ") {
				t.Errorf("%s does not end with what it teaches:\n%s", preset, out.String())
			}
		}
	}
}

func TestGolden_PageOfEachPreset(t *testing.T) {
	for _, preset := range Names() {
		path, got := filepath.Join("testdata", preset+".txt"), defaultPage(t, preset)
		if *update {
			if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if got != string(want) {
			t.Errorf("%s: other than %s; if it is meant so, go test ./app/simulate -update:\n%s", preset, path, got)
		}
	}
}

func TestStep_EndsWhenSomebodyHasSeenEnough(t *testing.T) {
	report := played(t, "crash", 1)
	var all, some bytes.Buffer
	Print(&all, report, nil)
	rows := 0
	Print(&some, report, func() bool { rows++; return rows <= 3 })
	if rows != 4 || !strings.HasPrefix(all.String(), some.String()) || strings.Count(some.String(), " s  ") != 3 {
		t.Errorf("%d rows:\n%s", rows, some.String())
	}
}

func TestRun_UnknownPresetNamesThose(t *testing.T) {
	_, err := Run(t.Context(), "nosuch", 1)
	if want := `preset "nosuch" is none of two-workers, crash, pause, rebalance, hot-key`; err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
}
