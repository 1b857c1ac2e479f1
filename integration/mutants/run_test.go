package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// garden is a module with a function, two statements, and their tests.
var garden = map[string]string{
	"gen/one.sql.go": "package gen\n\nconst one = `\nSELECT 1\n`\n\nfunc One() string { return one }\n",
	"gen/two.sql.go": "package gen\n\nconst two = `\nSELECT 1\n`\n\nfunc Two() string { return two }\n\nfunc Three() int { return 3 }\n",
	"go.mod":         "module garden\n\ngo 1.26\n",
	"plain.go":       "package garden\n\nfunc Sum(a, b int) int { return a + b }\n\nfunc Sums(a, b int) int { return Sum(a, b) }\n",
	"plain_test.go": `package garden

import (
	"os"
	"testing"

	"garden/gen"
)

func TestOne(t *testing.T) {
	if gen.One() != "\nSELECT 1\n" {
		t.Error("the statement is wrong")
	}
}

func TestTwo(t *testing.T) {
	if gen.Two() != "\nSELECT 1\n" || gen.Three() != 3 {
		t.Error("the statement is wrong")
	}
}

func TestSum(t *testing.T) {
	if Sum(1, 2) != 3 {
		t.Error("the sum is wrong")
	}
}

func TestSubs(t *testing.T) {
	t.Run("one", func(t *testing.T) {
		if Sum(1, 2) != 3 {
			t.Error("the sum is wrong")
		}
	})
}

func TestInBackground(t *testing.T) {
	done := make(chan int)
	go func() { done <- Sum(1, 2) }()
	<-done
}

func TestNothing(*testing.T) {}

func TestSkipped(t *testing.T) { t.Skip() }

func TestBroken(t *testing.T) { t.Error("it fails without any mutant") }

func TestMain(m *testing.M) {
	if Sum(7, 7) > 14 {
		os.Exit(1)
	}
	os.Exit(m.Run())
}
`,
}

func TestPlant_EachIsReportedAsWhatItIs(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	if err := os.Mkdir(filepath.Join(root, "gen"), 0o700); err != nil {
		t.Fatal(err)
	}
	for name, text := range garden {
		if err := os.WriteFile(filepath.Join(root, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cases := []struct{ name, old, new, test, want string }{
		{"a statement", "SELECT 1", "SELECT 2", "TestOne", caughtBy},
		{"another statement", "SELECT 1", "SELECT 2", "TestTwo", survived},
		{"beside a statement", "return 3", "return 4", "TestTwo", caughtBy},
		{"wrong", "a + b", "a - b", "TestSum", caughtBy},
		{"wrong, in a subtest", "a + b", "a - b", "TestSubs/one", caughtBy},
		{"dies in another goroutine", "return a + b", `if a == 1 { panic("dead") }; return a + b`, "TestInBackground", caughtBy},
		{"nobody looks", "a + b", "a - b", "TestNothing", survived},
		{"harmless", "a + b", "b + a", "TestSum", survived},
		{"never ends", "return a + b", "for a == 1 {}; return a + b", "TestSum", tookTooLong},
		{"not there", "a * b", "a - b", "TestSum", doesNotFit},
		{"there twice", "int) int", "int) (sum int)", "TestSum", doesNotFit},
		{"no change", "a + b", "a + b", "TestSum", doesNotFit},
		{"no Go", "a + b", "a +", "TestSum", doesNotCompile},
		{"no such test", "a + b", "a - b", "TestNone", controlFailed},
		{"skipped test", "a + b", "a - b", "TestSkipped", controlFailed},
		{"broken test", "a + b", "a - b", "TestBroken", controlFailed},
		{"ends before any test", "return a + b", "if a == 7 { return 15 }; return a + b", "TestSum", didNotRun},
	}
	bugs := make([]mutant, len(cases))
	want := map[string]string{}
	for i, c := range cases {
		bugs[i] = mutant{name: c.name, file: "plain.go", old: c.old, new: c.new, folder: ".", test: c.test}
		switch c.old {
		case "SELECT 1":
			bugs[i].file = "gen/one.sql.go"
		case "return 3":
			bugs[i].file = "gen/two.sql.go"
		}
		want[c.name] = c.want
	}
	nursery := nursery{root: root, temp: t.TempDir(), limit: 2 * time.Second}
	nursery.plantAll(t.Context(), bugs, 2, func(r result) {
		if r.verdict != want[r.name] {
			t.Errorf("%q is reported as %s, want %s:\n%s", r.name, r.verdict, want[r.name], r.detail)
		}
		delete(want, r.name)
	})
	for name := range want {
		t.Errorf("%q was not reported", name)
	}
	for name, text := range garden {
		if after, err := os.ReadFile(filepath.Join(root, name)); err != nil || string(after) != text {
			t.Errorf("%s was changed (error %v)", name, err)
		}
	}
}

// Output that does not name the test says nothing about it.
func TestJudge_OnlyTheNamedTestCounts(t *testing.T) {
	t.Parallel()
	run, other := event{Action: "run", Test: "TestA"}, event{Action: "run", Test: "TestB"}
	death := event{Action: "output", Output: "panic: dead\n"}
	exit := event{Action: "exit", Output: "exit status 2"}
	for name, test := range map[string]struct {
		events []event
		want   string
	}{
		"it fails":                      {[]event{run, {Action: "fail", Test: "TestA"}, exit}, caughtBy},
		"it passes":                     {[]event{run, {Action: "pass", Test: "TestA"}}, survived},
		"it passes, and another fails":  {[]event{run, {Action: "pass", Test: "TestA"}, {Action: "fail", Test: "TestB"}, exit}, survived},
		"only another fails":            {[]event{other, {Action: "fail", Test: "TestB"}, exit}, didNotRun},
		"only the package fails":        {[]event{{Action: "fail"}, exit}, didNotRun},
		"the binary dies while it runs": {[]event{run, death, exit}, caughtBy},
		"the binary dies before it":     {[]event{death, exit}, didNotRun},
		"the binary dies after it":      {[]event{run, {Action: "pass", Test: "TestA"}, death, exit}, survived},
		"it ends without a word":        {[]event{run, exit}, didNotRun},
		"it is skipped":                 {[]event{run, {Action: "skip", Test: "TestA"}}, didNotRun},
		"nothing ran":                   {[]event{{Action: "output", Output: "testing: warning: no tests to run\n"}, {Action: "pass"}}, didNotRun},
		"it took too long":              {[]event{run, {Action: "output", Output: "panic: test timed out after 1m0s\n"}, exit}, tookTooLong},
	} {
		if got, _ := judge(test.events, "TestA"); got != test.want {
			t.Errorf("%s: %s, want %s", name, got, test.want)
		}
	}
}

func TestLine_NamesTheTestAndSaysMoreOfWhatWasNotCaught(t *testing.T) {
	t.Parallel()
	r := result{mutant: mutant{name: "a wrong sum", test: "TestSum", folder: "garden"}, verdict: caughtBy, detail: "the sum is wrong", took: 1500 * time.Millisecond}
	if got, want := line(r, false), "caught           a wrong sum: TestSum (1.5 s)\n"; got != want {
		t.Errorf("says %q, want %q", got, want)
	}
	r.verdict = survived
	if got := line(r, false); !strings.HasPrefix(got, "SURVIVED         a wrong sum (1.5 s)\n") || !strings.Contains(got, "    the sum is wrong\n") {
		t.Errorf("says %q", got)
	}
}
