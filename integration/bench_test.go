package integration

import (
	"encoding/json"
	"net/url"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/holdfast-pg/holdfast"
	"github.com/holdfast-pg/holdfast/app/bench"
	"github.com/holdfast-pg/holdfast/integration/pgtest"
)

// benchFigures reads the report and returns the figures of each trial by name.
func benchFigures(t *testing.T, d *demonstration) map[string]map[string]float64 {
	t.Helper()
	var report bench.Report
	if err := json.Unmarshal([]byte(d.stdout.String()), &report); err != nil {
		t.Fatalf("%v:\n%s", err, d.stdout.String())
	}
	if report.Machine.Cores == 0 || report.Machine.Memory == 0 || len(report.Server.Settings) < 12 || !strings.HasPrefix(report.Server.Version, "PostgreSQL ") {
		t.Errorf("machine and server: %+v", report)
	}
	for _, setting := range report.Server.Settings {
		if slices.Contains([]string{"fsync", "synchronous_commit", "full_page_writes"}, setting.Name) && setting.Value != "on" && strings.HasPrefix(report.Server.Source, "private") {
			t.Errorf("%s is %s: commits are not durable", setting.Name, setting.Value)
		}
	}
	trials := map[string]map[string]float64{}
	for _, result := range report.Results {
		figures := map[string]float64{}
		for _, figure := range result.Figures {
			figures[figure.Name] = figure.Value
		}
		trials[result.Scenario+" "+result.Trial] = figures
	}
	return trials
}

// wantFigure checks that a figure is there and between two bounds.
func wantFigure(t *testing.T, figures map[string]float64, name string, least, most float64) {
	t.Helper()
	if value, found := figures[name]; !found || value < least || value > most {
		t.Errorf("%s is %v (found: %v), want %v to %v", name, value, found, least, most)
	}
}

// benchDatabases counts the databases that a bench made on a server.
func benchDatabases(t *testing.T, database *pgtest.Database) int64 {
	t.Helper()
	return pgtest.Value[int64](t, database, "SELECT count(*) FROM pg_database WHERE datname LIKE 'holdfast\\_bench\\_%'")
}

// underway waits until producers and a worker are at work in a bench's database.
func underway(t *testing.T, database *pgtest.Database) {
	t.Helper()
	pgtest.Eventually(t, patience, "a worker of the bench is at work", func() bool {
		return pgtest.Value[int64](t, database, "SELECT count(*) FROM pg_stat_activity WHERE datname LIKE 'holdfast\\_bench\\_%' AND query LIKE '%name: ClaimJobs %'") > 0
	})
}

func TestBench_DrainCountsEveryJobOnceAndLeavesNothingBehind(t *testing.T) {
	t.Parallel()
	d := isolate(t, "bench", "drain", "--size", "small", "-o", "json")
	d.start(t).ends(t, 0)
	trials := benchFigures(t, d)
	if len(trials) != 2 {
		t.Errorf("%d trials, want 2", len(trials))
	}
	for _, name := range []string{"drain archive", "drain drop"} {
		figures := trials[name]
		wantFigure(t, figures, "jobs", 5000, 5000)
		wantFigure(t, figures, "rate", 50, 1e6)
		wantFigure(t, figures, "log", 300, 20_000)
		wantFigure(t, figures, "commits", 0.001, 3)
		wantFigure(t, figures, "round trips", 0.001, 3)
		wantFigure(t, figures, "peak memory", 1, 500)
		wantFigure(t, figures, "processor", 0.01, 60)
	}
	if got := d.stderr.String(); strings.Contains(got, "canary") {
		t.Errorf("stderr:\n%s", got)
	}
	d.leavesNothing(t)
}

func TestBench_SteadyOffersAShareOnAServerOfSomebodyElse(t *testing.T) {
	t.Parallel()
	database, _ := pgtest.Alone(t)
	database.Exec(t, "CREATE ROLE visitor LOGIN CREATEDB PASSWORD 'visitor'") // Which may neither see much nor order a checkpoint.
	address, err := url.Parse(database.DirectURL)
	if err != nil {
		t.Fatal(err)
	}
	address.User = url.UserPassword("visitor", "visitor")
	refused := isolate(t, "bench", "--database-url", address.String()).start(t).ends(t, 2)
	wantOutput(t, &refused.stderr, "may hold jobs that this role must not see")

	database.Exec(t, "CREATE DATABASE visited")
	address.Path = "/visited"
	d := isolate(t, "bench", "steady", "drain", "--size", "small", "--jobs", "1000", "--share", "0.3", "--duration", "2s", "-o", "json",
		"--database-url", address.String())
	d.start(t).ends(t, 0)
	trials := benchFigures(t, d)
	wantFigure(t, trials["drain archive"], "jobs", 1000, 1000)
	figures := trials["steady at 30 %"]
	wantFigure(t, figures, "offered", 0.3*figures["greatest rate"]*0.999, 0.3*figures["greatest rate"]*1.001)
	// In two seconds and the tick that was under way at their end.
	wantFigure(t, figures, "jobs", figures["offered"], figures["offered"]*2.5)
	for _, name := range []string{"completion p50", "completion p99", "pickup p50", "pickup max"} {
		wantFigure(t, figures, name, 0.001, 60_000)
	}
	d.leavesNothing(t)
	if left := benchDatabases(t, database); left != 0 {
		t.Errorf("%d databases are left", left)
	}
}

func TestBench_DatabaseWithJobsIsRefused(t *testing.T) {
	t.Parallel()
	database := pgtest.New(t)
	if _, err := holdfast.Enqueue(t.Context(), database.Pool, holdfast.RawArgs{JobKind: "mail", Payload: json.RawMessage("{}")}); err != nil {
		t.Fatal(err)
	}
	d := isolate(t, "bench", "drain", "--size", "small", "--database-url", database.DirectURL)
	d.start(t).ends(t, 2)
	wantOutput(t, &d.stderr, "holdfast: --database-url: names the database", "which holds jobs")
	if d.stdout.String() != "" {
		t.Errorf("stdout:\n%s", d.stdout.String())
	}
}

func TestBench_RestartOfTheServerFailsWithoutANumber(t *testing.T) {
	t.Parallel()
	database, server := pgtest.Alone(t)
	d := isolate(t, "bench", "steady", "--size", "small", "--duration", "50s", "--database-url", database.DirectURL)
	d.start(t)
	underway(t, database)
	if err := server.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	d.ends(t, 1)
	wantOutput(t, &d.stderr, "holdfast: steady, all it takes: the server restarted meanwhile")
	if d.stdout.String() != "" {
		t.Errorf("stdout:\n%s", d.stdout.String())
	}
	database.Pool.Reset()
	if left := benchDatabases(t, database); left != 0 {
		t.Errorf("%d databases are left", left)
	}
	d.leavesNothing(t)
}

func TestBench_TooFewConnectionsAreASentence(t *testing.T) {
	t.Parallel()
	database, server := pgtest.Alone(t)
	database.Exec(t, "ALTER SYSTEM SET superuser_reserved_connections = 282") // Of 300.
	if err := server.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	d := isolate(t, "bench", "slots", "--size", "small", "--database-url", database.DirectURL)
	d.start(t).ends(t, 1)
	wantOutput(t, &d.stderr, "holdfast: slots, 1 × 4: the server has ", " free connections, and 21 are needed: raise max_connections")
}

func TestBench_CompleteScenarioIsPrintedWhenALaterOneFails(t *testing.T) {
	t.Parallel()
	database, server := pgtest.Alone(t)
	database.Exec(t, "ALTER SYSTEM SET superuser_reserved_connections = 250") // Of 300: enough for one worker, not for sixteen.
	if err := server.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	for format, printed := range map[string]bool{"table": true, "json": false} {
		d := isolate(t, "bench", "drain", "idle", "--size", "small", "--jobs", "100", "-o", format, "--database-url", database.DirectURL)
		d.start(t).ends(t, 1)
		wantOutput(t, &d.stderr, "holdfast: idle, notified: the server has ", " free connections, and ")
		if got := d.stdout.String(); strings.Contains(got, "drain: one worker") != printed || strings.Contains(got, "jobs") != printed || strings.Contains(got, "idle:") {
			t.Errorf("as %s:\n%s", format, got)
		}
	}
}

func TestBench_CtrlCLeavesNothingBehind(t *testing.T) {
	t.Parallel()
	database, _ := pgtest.Alone(t)
	given := isolate(t, "bench", "steady", "--size", "small", "--duration", "50s", "--database-url", database.DirectURL)
	given.start(t)
	underway(t, database)
	private := isolate(t, "bench", "steady", "--size", "small", "--duration", "50s")
	private.start(t)
	pgtest.Eventually(t, patience, "the bench has a worker", func() bool {
		return slices.ContainsFunc(processesOf(t, private.dir), func(line string) bool { return strings.HasSuffix(line, "bench-worker") })
	})
	for _, d := range []*demonstration{given, private} {
		if err := syscall.Kill(-d.command.Process.Pid, syscall.SIGINT); err != nil {
			t.Fatal(err)
		}
	}
	for _, d := range []*demonstration{given, private} {
		d.ends(t, 130)
		d.leavesNothing(t)
		if d.stdout.String() != "" || d.stderr.String() != "holdfast: interrupted\n" {
			t.Errorf("stdout:\n%s\nstderr:\n%s", d.stdout.String(), d.stderr.String())
		}
	}
	if left := benchDatabases(t, database); left != 0 {
		t.Errorf("%d databases are left", left)
	}
}
