package integration

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/holdfast-pg/holdfast/integration/pgtest"
)

// demonstration is a demo, or a bench, with a program and a temporary directory of its own, so
// that what it leaves behind can be told from anybody else's.
type demonstration struct {
	*process
	dir string
}

// demonstrate prepares a demo. Nothing but the private server may be where the environment
// points.
func demonstrate(t *testing.T, flags ...string) *demonstration {
	t.Helper()
	return isolate(t, append([]string{"demo"}, flags...)...)
}

// isolate prepares any command line so.
func isolate(t *testing.T, args ...string) *demonstration {
	t.Helper()
	d := &demonstration{dir: openFolder(t)}
	d.process = newProcess(t, "postgres://canary:canary@nowhere.invalid/canary", args...)
	d.command.Path = filepath.Join(d.dir, "holdfast")
	d.command.Args[0] = d.command.Path
	if err := os.Link(programPath(t), d.command.Path); err != nil {
		t.Fatal(err)
	}
	d.command.Env = append(d.command.Env, "TMPDIR="+filepath.Join(d.dir, "tmp"), "DATABASE_URL=postgres://nowhere.invalid/canary")
	return d
}

// openFolder makes a folder with a "tmp" in it that is like /tmp: the account that runs a
// server for root makes its own folder there.
func openFolder(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "holdfast-demo-") //nolint:usetesting // Those of t.TempDir are closed to other users.
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	for name, mode := range map[string]os.FileMode{dir: 0o755, filepath.Join(dir, "tmp"): 0o777 | os.ModeSticky} {
		if err := os.MkdirAll(name, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(name, mode); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// leavesNothing waits until no process of the demo and no file of its server is left.
func (d *demonstration) leavesNothing(t *testing.T) {
	t.Helper()
	pgtest.Eventually(t, patience, "no process of it is left", func() bool {
		return len(processesOf(t, d.dir)) == 0
	})
	defer func() {
		if left, _ := filepath.Glob(filepath.Join(d.dir, "tmp", "*", "*")); t.Failed() {
			t.Logf("left behind: %v", left)
		}
	}()
	pgtest.Eventually(t, patience, "the server's folder is gone", func() bool {
		left, err := os.ReadDir(filepath.Join(d.dir, "tmp"))
		return err == nil && len(left) == 0
	})
}

// reaches waits until the demo has told something, or without words until it makes the
// server's data.
func (d *demonstration) reaches(t *testing.T, words string) {
	t.Helper()
	if words != "" {
		d.says(t, words)
		return
	}
	pgtest.Eventually(t, patience, "initdb is at work", func() bool {
		made, _ := filepath.Glob(filepath.Join(d.dir, "tmp", "*", "data", "PG_VERSION"))
		return len(made) > 0
	})
}

// processesOf lists the processes whose command line names the folder: the demo, its workers
// and their handlers by the program, the server by its data.
func processesOf(t *testing.T, dir string) []string {
	t.Helper()
	table, err := exec.CommandContext(t.Context(), "ps", "-A", "-o", "pid=,args=").Output()
	if err != nil {
		t.Fatalf("ps: %v", err)
	}
	var found []string
	for line := range strings.Lines(string(table)) {
		if strings.Contains(line, dir) {
			found = append(found, strings.TrimSpace(line))
		}
	}
	return found
}

// verdict is a row of the demo's table.
type verdict struct {
	expected, found int
	word            string
}

var tableRow = regexp.MustCompile(`(?m)^  (\S.*?) +(\d+) +(\d+)  (ok|differs)$`)

func (d *demonstration) table(t *testing.T) map[string]verdict {
	t.Helper()
	rows := map[string]verdict{}
	for _, match := range tableRow.FindAllStringSubmatch(d.stdout.String(), -1) {
		expected, _ := strconv.Atoi(match[2])
		found, _ := strconv.Atoi(match[3])
		rows[match[1]] = verdict{expected, found, match[4]}
	}
	if len(rows) != 11 {
		t.Fatalf("the demo's table has %d rows, want 11; stdout:\n%s\nstderr:\n%s", len(rows), d.stdout.String(), d.stderr.String())
	}
	return rows
}

// wantTable checks that every row of the table holds, but for those named.
func (d *demonstration) wantTable(t *testing.T, differ ...string) {
	t.Helper()
	broken := map[string]bool{}
	for _, name := range differ {
		broken[name] = true
	}
	for name, row := range d.table(t) {
		if (row.expected != row.found) != broken[name] || (row.word == "differs") != broken[name] {
			t.Errorf("%s: %+v", name, row)
		}
	}
	if t.Failed() {
		t.Log(d.stdout.String())
	}
}

var (
	pausedLine = regexp.MustCompile(`(w\d) holds order:9500 under token …(\d+) and is paused`)
	againLine  = regexp.MustCompile(`(w\d) runs order:9500 again under token …(\d+)`)
	wokenLine  = regexp.MustCompile(`(w\d) wakes \(SIGCONT\), knows nothing of that, and prints 1 Elm Street under token …(\d+)`)
)

// wantPause checks that the demo tells who held which token: the worker that wakes has the
// lower one, and another worker ran the job again.
func wantPause(t *testing.T, d *demonstration) {
	t.Helper()
	story := d.stdout.String()
	paused, again, woken := pausedLine.FindStringSubmatch(story), againLine.FindStringSubmatch(story), wokenLine.FindStringSubmatch(story)
	if paused == nil || again == nil || woken == nil {
		t.Fatalf("the pause is not told:\n%s", story)
	}
	if paused[1] == again[1] || paused[2] >= again[2] || woken[1] != paused[1] || woken[2] != paused[2] {
		t.Errorf("%q\n%q\n%q", paused[0], again[0], woken[0])
	}
}

func TestDemo_TableHoldsThroughTwoCrashesAndAPause(t *testing.T) {
	t.Parallel()
	d := demonstrate(t)
	d.command.Env = append(d.command.Env, "PGSERVICE=nosuch", "PGOPTIONS=-c nosuch=1", "PGSSLMODE=verify-full")
	d.start(t).ends(t, 0)
	d.wantTable(t)
	wantOutput(t, &d.stdout, "private to this demo", "order:9182 and is killed before", "in the middle of sending the receipt of order:9377",
		"runs order:9182 again and finds the mark", "Every receipt was sent, and only once, and the label is right",
		"the write is refused: order:9500 has seen token", "the completion is refused too")
	wantPause(t, d)
	if got := d.stdout.String() + d.stderr.String(); strings.Contains(got, "canary") || d.stderr.String() != "" {
		t.Errorf("printed:\n%s", got)
	}
	d.leavesNothing(t)
}

func TestDemo_WithoutTheMarkAReceiptIsSentTwice(t *testing.T) {
	t.Parallel()
	d := demonstrate(t, "--without-mark")
	d.start(t).ends(t, 1)
	d.wantTable(t, "receipts sent", "receipts sent again")
	if again := d.table(t)["receipts sent again"].found; again < 1 || !strings.Contains(d.stdout.String(), "runs order:9182 again and sends a second receipt") {
		t.Errorf("%d receipts were sent again:\n%s", again, d.stdout.String())
	}
	wantOutput(t, &d.stderr, "holdfast: the demo found other numbers than it expected: 2 of 11 rows differ")
	d.leavesNothing(t)
}

func TestDemo_WithoutTheFenceAnOlderRunOverwritesTheLabel(t *testing.T) {
	t.Parallel()
	d := demonstrate(t, "--without-fence")
	d.start(t).ends(t, 1)
	d.wantTable(t, "stale writes refused", "labels up to date")
	wantOutput(t, &d.stdout, "1 Elm Street overwrites 2 Oak Avenue", "the completion is refused all the same")
	wantOutput(t, &d.stderr, "holdfast: the demo found other numbers than it expected: 2 of 11 rows differ")
	wantPause(t, d)
	d.leavesNothing(t)
}

func TestDemo_RunsOnADatabaseOfSomebodyElse(t *testing.T) {
	t.Parallel()
	database := pgtest.Empty(t)
	d := demonstrate(t, "--database-url", database.URL)
	d.start(t).ends(t, 0)
	d.wantTable(t)
	d.leavesNothing(t)
	if pgtest.Value[bool](t, database, "SELECT to_regnamespace('holdfast_demo') IS NOT NULL") {
		t.Error("the demo's tables are left")
	}
	if strings.Contains(d.stdout.String(), "private") {
		t.Errorf("the demo started a server:\n%s", d.stdout.String())
	}
}

func TestDemo_EndedInTheMiddleLeavesNothingBehind(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name, after string // "": as soon as initdb is at work.
		code        int
		end         func(pid int) error
	}{
		{"killed during initdb", "", -1, func(pid int) error { return syscall.Kill(pid, syscall.SIGKILL) }},
		{"killed while a worker is paused", "(SIGSTOP)", -1, func(pid int) error { return syscall.Kill(pid, syscall.SIGKILL) }},
		{"killed after the first crash", " held ", -1, func(pid int) error { return syscall.Kill(pid, syscall.SIGKILL) }},
		{"Ctrl-C as it begins", "holdfast demo: ", 130, func(pid int) error { return syscall.Kill(-pid, syscall.SIGINT) }},
		{"Ctrl-C while a worker is paused", "(SIGSTOP)", 130, func(pid int) error { return syscall.Kill(-pid, syscall.SIGINT) }},
		{"Ctrl-C after the first crash", " held ", 130, func(pid int) error { return syscall.Kill(-pid, syscall.SIGINT) }},
		{"SIGTERM after the first crash", " held ", 130, func(pid int) error { return syscall.Kill(pid, syscall.SIGTERM) }},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			d := demonstrate(t)
			d.start(t)
			d.reaches(t, test.after)
			if len(processesOf(t, d.dir)) == 0 {
				t.Fatal("no process of the demo is found while it runs")
			}
			if err := test.end(d.command.Process.Pid); err != nil {
				t.Fatal(err)
			}
			d.ends(t, test.code)
			d.leavesNothing(t)
			if test.code == 130 && d.stderr.String() != "holdfast: interrupted\n" {
				t.Errorf("stderr:\n%s", d.stderr.String())
			}
		})
	}
}

func TestDemo_CtrlCOnADatabaseOfSomebodyElseRemovesTheDemosTables(t *testing.T) {
	t.Parallel()
	database := pgtest.Empty(t)
	d := demonstrate(t, "--database-url", database.URL)
	d.start(t).says(t, "orders placed").signal(t, interrupt)
	d.ends(t, 130)
	d.leavesNothing(t)
	if pgtest.Value[bool](t, database, "SELECT to_regnamespace('holdfast_demo') IS NOT NULL") {
		t.Error("the demo's tables are left")
	}
}
