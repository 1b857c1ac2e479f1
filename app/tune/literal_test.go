package tune_test

import (
	"encoding/json"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/holdfast-pg/holdfast/app/tune"
)

// The literal is checked as the compiler would: with the types of the package that it names.
func TestLiteral_Compiles(t *testing.T) {
	t.Parallel()
	checker := newChecker(t)
	rapid.Check(t, func(t *rapid.T) {
		w := drawWorkload(t)
		literal := tune.Recommend(w).GoLiteral(w)
		if _, err := parser.ParseExpr(literal); err != nil {
			t.Fatalf("%v in\n%s", err, literal)
		}
		if err := checker.check(literal); err != nil {
			t.Fatalf("%v in\n%s", err, literal)
		}
	})
	if err := checker.check(`holdfast.Config{Concurrency: 5 * time.Second, Slots: 3}`); err == nil {
		t.Error("anything compiles")
	}
}

// A worker that is configured by the literal works as one that is configured by all that is
// recommended: what the literal leaves out follows from it.
func TestLiteral_LeavesOutOnlyWhatFollows(t *testing.T) {
	t.Parallel()
	fields := map[string]tune.Workload{
		"":                             with(shapes["fast"], func(w *tune.Workload) { w.Rate = 2000 }),
		"Concurrency ClaimBatch":       with(shapes["fast"], func(w *tune.Workload) { w.Payload = 200_000 }),
		"Concurrency":                  shapes["http"],
		"Affinity Lease DrainDeadline": shapes["reports"],
		"Affinity Buckets Connections": with(shapes["fast"], func(w *tune.Workload) {
			w.Workers, w.Connections, w.P50, w.P99 = 120, 600, seconds(3*time.Second), seconds(3*time.Second)
			w.Rate = 10
		}),
	}
	for want, w := range fields {
		var named []string
		for line := range strings.Lines(tune.Recommend(w).GoLiteral(w)) {
			if name, _, is := strings.Cut(strings.TrimSpace(line), ":"); is && !strings.HasPrefix(line, "holdfast") {
				named = append(named, name)
			}
		}
		if got := strings.Join(named, " "); got != want {
			t.Errorf("the literal has %q, want %q", got, want)
		}
	}
}

func with(w tune.Workload, change func(w *tune.Workload)) tune.Workload {
	change(&w)
	return w
}

// checker type-checks with the packages that the build has made.
type checker struct {
	imports types.Importer
	fset    *token.FileSet
}

func newChecker(t *testing.T) *checker {
	t.Helper()
	list := exec.CommandContext(t.Context(), "go", "list", "-export", "-deps", "-json=ImportPath,Export", "github.com/holdfast-pg/holdfast", "time")
	out, err := list.Output()
	if err != nil {
		t.Fatal(err)
	}
	exports := map[string]string{}
	for decoder := json.NewDecoder(strings.NewReader(string(out))); decoder.More(); {
		var built struct{ ImportPath, Export string }
		if err := decoder.Decode(&built); err != nil {
			t.Fatal(err)
		}
		exports[built.ImportPath] = built.Export
	}
	fset := token.NewFileSet()
	return &checker{fset: fset, imports: importer.ForCompiler(fset, "gc", func(path string) (io.ReadCloser, error) { return os.Open(exports[path]) })}
}

func (c *checker) check(literal string) error {
	program := fmt.Sprintf("package user\nimport (\"time\"; \"github.com/holdfast-pg/holdfast\")\nvar _ time.Duration\nvar _ = %s\n", literal)
	file, err := parser.ParseFile(c.fset, "user.go", program, 0)
	if err != nil {
		return err
	}
	config := types.Config{Importer: c.imports}
	_, err = config.Check("user", c.fset, []*ast.File{file}, nil)
	return err
}
