package protocol

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// limit is more states than any exploration here has.
const limit = 1_000_000

var (
	pool     = Bounds{Jobs: 2, Keepers: 1, MaxAttempts: [maxJobs]int8{2, 1}, Patience: 1}
	lane     = Bounds{Jobs: 2, Keepers: 1, MaxAttempts: [maxJobs]int8{2, 1}, Patience: 1, Lane: true, Releases: 1}
	again    = Bounds{Jobs: 1, Keepers: 1, MaxAttempts: [maxJobs]int8{1}, Patience: 1, Releases: 1, Redrives: 1}
	depart   = Bounds{Jobs: 1, Keepers: 1, MaxAttempts: [maxJobs]int8{2}, Patience: 1, Releases: 1, Departs: true}
	ordered  = Bounds{Jobs: 1, Keepers: 1, MaxAttempts: [maxJobs]int8{1}, Patience: 1, Redrives: 1, Orders: 2}
	failover = Bounds{Jobs: 1, Keepers: 1, MaxAttempts: [maxJobs]int8{2}, Patience: 1, Releases: 1, Failovers: 1}
)

func TestProtocol_NoOrderOfStepsBreaksAPromise(t *testing.T) {
	t.Parallel()
	var taken [len(kinds)][len(stages)]int
	for _, world := range []struct {
		name   string
		bounds Bounds
		states int // At least: fewer show too little.
	}{
		{"two jobs, three claims", pool, 100_000},
		{"a lane", lane, 100_000},
		{"a lane that is redriven", Bounds{Jobs: 2, Keepers: 1, MaxAttempts: [maxJobs]int8{1, 1}, Patience: 1, Lane: true, Redrives: 1}, 50_000},
		{"a lane, and a worker that departs", Bounds{Jobs: 2, Keepers: 1, MaxAttempts: [maxJobs]int8{1, 1}, Patience: 1, Lane: true, Departs: true}, 50_000},
		{"a worker that departs", depart, 50_000},
		{"two housekeepers", Bounds{Jobs: 1, Keepers: 2, MaxAttempts: [maxJobs]int8{2}, Patience: 1, Redrives: 1}, 50_000},
		{"statements that outlive a lease", Bounds{Jobs: 1, Keepers: 1, MaxAttempts: [maxJobs]int8{2}, Patience: 3}, 10_000},
		{"a person who cancels, releases and purges", ordered, 10_000},
		{"a lane, and a person", Bounds{Jobs: 2, Keepers: 1, MaxAttempts: [maxJobs]int8{1, 1}, Patience: 1, Lane: true, Orders: 1}, 50_000},
		{"a failover", failover, 10_000},
	} {
		start := time.Now()
		report, err := Explore(world.bounds, limit)
		if err != nil {
			t.Fatalf("%s: %v", world.name, err)
		}
		t.Logf("%s: %d states, %d transitions, %s", world.name, report.States, report.Transitions, time.Since(start).Round(time.Millisecond))
		if report.Violation != nil {
			t.Errorf("%s: %s", world.name, report.Violation)
		} else if report.States < world.states {
			t.Errorf("%s: %d states, want %d at least", world.name, report.States, world.states)
		}
		for kind, stages := range report.Steps {
			for stage, times := range stages {
				taken[kind][stage] += times
			}
		}
	}
	checkTaken(t, taken)
}

// checkTaken looks for steps that nobody ever took: a rule about those shows nothing.
func checkTaken(t *testing.T, taken [len(kinds)][len(stages)]int) {
	t.Helper()
	for kind := claiming; kind <= ticking; kind++ {
		want := []stage{commits}
		switch kind {
		case claiming:
			want = append(want, sees, skips, locks, draws)
		case claimingLane: // Whoever has the bucket has the waiting jobs to itself.
			want = append(want, sees, locks, draws)
		case lockingLane:
			want = []stage{locks}
		case reclaiming:
			want = append(want, sees, skips, locks)
		case renewing, completing, retrying, failing, releasing:
			want = append(want, sees, skips, locks, refused)
		default:
		}
		for _, stage := range want {
			if taken[kind][stage] == 0 {
				t.Errorf("the step %q was never taken", step{kind: kind, stage: stage, job: -1})
			}
		}
	}
}

func TestProtocol_PlantedFaultsAreFound(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name   string
		fault  Fault
		bounds Bounds
		broken Promise
		steps  int // Of the shortest way there.
	}{
		{"a claim updates what it read without a lock", ClaimWithoutRecheck, pool, OneHolder, 8},
		{"tokens are drawn before the lock", TokenBeforeLock, again, TokensOnlyGrow, 11},
		{"tokens count the claims of a job", TokenPerJob, pool, TokensOnlyGrow, 7},
		{"tokens of a job begin again after a redrive", TokenPerJob, again, TokensOnlyGrow, 12},
		{"a lane is guarded by NOT EXISTS in the claim's snapshot", LaneGuardInSnapshot, lane, InOrder, 9},
		{"a claim takes several jobs of a lane", LaneTakesSeveral, lane, InOrder, 8},
		{"a bucket is locked by the statement that chooses", LaneLockWithChoice, lane, InOrder, 12},
		{"a settlement compares the worker only", SettleByWorker, again, Fenced, 14},
		{"a renewal does not ask whether the lease has ended", RenewsEnded, again, EndedStaysEnded, 9},
		{"a completed job keeps its holder", SettleKeepsHolder, pool, ObservedCompleteOnce, 10},
		{"a heartbeat sets the worker alive", BeatRevives, depart, RevivesNobody, 2},
		{"a reclaim updates what it read without a lock", ReclaimByID, again, NeverTakenEarly, 17},
		{"a reclaim forgets the maximum", ReclaimForgetsMaximum, again, AttemptsAreBounded, 15},
		{"a reclaim leaves jobs at their last attempt", ReclaimLeavesLastAttempt, depart, Kept, 13},
		{"the epoch is not raised after a failover", EpochNotRaised, failover, TokensOnlyGrow, 9},
		{"a worker leaves beside a claim of its own", LeaveBesideClaim, depart, LeavesNothingBehind, 8},
		{"a claim that a person releases keeps its holder", ReleaseKeepsHolder, ordered, Fenced, 8},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			test.bounds.Fault = test.fault
			report, err := Explore(test.bounds, limit)
			if err != nil || report.Violation == nil {
				t.Fatalf("%d states, and no promise is broken: %v", report.States, err)
			}
			t.Log(report.Violation)
			if report.Violation.Promise != test.broken || len(report.Violation.Path) != test.steps {
				t.Errorf("in %d steps, want %q in %d", len(report.Violation.Path), test.broken, test.steps)
			}
		})
	}
}

// modelled are the files of which every statement has a step.
var modelled = []string{"claim.sql", "lane.sql", "renew.sql", "complete.sql", "retry.sql", "reclaim.sql", "drain.sql", "operate.sql"}

func TestProtocol_EveryStepStandsForAStatement(t *testing.T) {
	t.Parallel()
	var named []string
	for _, kind := range kinds {
		named = append(named, strings.Fields(kind.statements)...)
	}
	written := map[string]string{} // To its file.
	for _, file := range glob(t, "queries/*.sql") {
		for _, match := range regexp.MustCompile(`(?m)^-- name: (\w+) `).FindAllStringSubmatch(read(t, file), -1) {
			written[match[1]] = filepath.Base(file)
		}
	}
	for _, name := range named {
		if written[name] == "" {
			t.Errorf("no statement is called %s", name)
		}
	}
	for name, file := range written {
		if slices.Contains(modelled, file) && !slices.Contains(named, name) {
			t.Errorf("%s in queries/%s has no step", name, file)
		}
	}
}

func TestProtocol_BrokenPromisesAreReportedInTheWordsOfTheDocs(t *testing.T) {
	t.Parallel()
	var text strings.Builder
	text.WriteString(read(t, filepath.Join(root, "docs/guarantees.md")))
	for _, file := range glob(t, "queries/*.sql") {
		text.WriteString(strings.ReplaceAll(read(t, file), "\n-- ", " "))
	}
	words := strings.Join(strings.Fields(text.String()), " ")
	for promise := OneHolder; promise <= Kept; promise++ {
		if !strings.Contains(words, promise.String()) {
			t.Errorf("nobody promises %q", promise)
		}
	}
}

// root is the folder of the module.
const root = "../../.."

func glob(t *testing.T, pattern string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(root, pattern))
	if err != nil || len(files) == 0 {
		t.Fatalf("no files are called %s: %v", pattern, err)
	}
	return files
}

func read(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
