package integration

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	pathpkg "path"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/holdfast-pg/holdfast"

// arrows say which of our folders a folder may import. The way down is
// cmd → app → worker → domain → gen, and only domain reaches a statement, so that no code
// passes by the fence. "." is holdfast.go. What lies below a folder without a line of its
// own follows that folder's.
var arrows = map[string]struct{ code, tests []string }{
	"gen":          {},
	"queries":      {},
	"domain":       {code: []string{"gen", "queries"}, tests: []string{"domain/model", "integration/pgtest"}},
	"domain/model": {code: []string{"domain"}, tests: []string{"worker"}},
	"worker":       {code: []string{"domain"}, tests: []string{"domain/model"}},
	".":            {code: []string{"domain", "worker"}, tests: []string{"integration/pgtest"}},
	"telemetry":    {code: []string{"domain", "worker"}, tests: []string{"domain/model"}},
	"relay":        {code: []string{".", "domain", "worker"}, tests: []string{"domain/model", "relay/http", "relay/nats"}}, // Its example publishes and receives.
	// Each with the client of its broker, so that a program links one and not the others.
	"relay/http":  {code: []string{"relay"}},
	"relay/inbox": {code: []string{"relay", "domain"}, tests: []string{"integration/pgtest"}},
	"relay/kafka": {code: []string{"relay"}},
	"relay/nats":  {code: []string{"relay"}},
	"db":          {tests: []string{"integration/pgtest"}},
	"db/embedded": {},
	"db/bench":    {},
	"db/demo":     {},
	"app": {
		code:  []string{".", "domain", "domain/model", "worker", "telemetry", "relay", "relay/http", "relay/inbox", "db", "db/embedded", "db/bench", "db/demo"},
		tests: []string{"integration/pgtest"},
	},
	"cmd":          {code: []string{".", "domain", "worker", "app", "db", "relay", "relay/http", "relay/inbox", "relay/kafka", "relay/nats"}, tests: []string{"integration/pgtest"}},
	"holdfasttest": {code: []string{".", "domain", "worker", "db", "db/embedded", "internal/testdb"}, tests: []string{"integration/pgtest"}},
	// What holdfasttest and integration/pgtest share.
	"internal/testdb": {code: []string{"db"}},
	"integration": {code: []string{
		".", "gen", "domain", "domain/model", "worker", "telemetry", "app", "db", "db/embedded", "db/bench", "db/demo", "holdfasttest", "internal/testdb",
		"relay", "relay/inbox", "relay/nats",
	}},
}

// guests say which of our folders may import a package of somebody else's.
var guests = map[string][]string{
	"github.com/jackc/pgx/v5":                    {"gen", "domain", ".", "db", "db/embedded", "db/bench", "db/demo", "app", "cmd", "relay", "relay/inbox", "holdfasttest", "internal/testdb", "integration"},
	"github.com/nats-io":                         {"relay/nats", "relay", "cmd", "integration"}, // relay's example.
	"github.com/nats-io/nats-server/v2":          {"relay/nats", "integration"},                 // Their tests.
	"github.com/twmb/franz-go":                   {"relay/kafka", "cmd"},
	"github.com/twmb/franz-go/pkg/kfake":         {"relay/kafka"}, // Its tests.
	"github.com/pressly/goose/v3":                {"db", "app", "cmd", "integration"},
	"github.com/fergusstrange/embedded-postgres": {"db/embedded"},
	"github.com/lib/pq":                          {},
	"github.com/urfave/cli/v2":                   {"cmd", "integration"},
	"github.com/lmittmann/tint":                  {"app"},
	"github.com/HdrHistogram/hdrhistogram-go":    {"app"},
	"github.com/shirou/gopsutil/v4":              {"app"},
	"go.opentelemetry.io/otel":                   {"telemetry", "app", "integration"},
	"go.opentelemetry.io/otel/sdk":               {"telemetry", "app", "integration"}, // Its tests; what it links is checked below.
	"go.opentelemetry.io/otel/exporters":         {"app"},
	"github.com/prometheus":                      {"app"},
	"github.com/testcontainers":                  {"integration"},
	"github.com/anishathalye/porcupine":          {"integration"},
	"database/sql":                               {"gen", "domain", "db", "integration"}, // FromSQL.
}

// strangers are what a program that only imports the library must not link.
var strangers = []string{
	"github.com/lib/pq", "github.com/fergusstrange/embedded-postgres", "github.com/pressly/goose/v3",
	"github.com/urfave/cli", "github.com/lmittmann/tint", "github.com/HdrHistogram/hdrhistogram-go", "github.com/shirou/gopsutil", "github.com/testcontainers", "github.com/anishathalye/porcupine", "testing",
	"go.opentelemetry.io/otel", "github.com/prometheus", module + "/telemetry",
	"github.com/nats-io", "github.com/twmb/franz-go", module + "/relay",
	module + "/db", module + "/app", module + "/holdfasttest", module + "/internal/testdb",
}

// listed is what `go list -json` tells of a package.
type listed struct {
	ImportPath   string
	Imports      []string
	TestImports  []string
	XTestImports []string
}

func TestArrows_ImportsGoOneWay(t *testing.T) {
	t.Parallel()
	graph := goList(t, "./...")
	for _, folder := range []string{".", "gen", "domain", "worker", "telemetry", "db", "db/embedded", "app", "cmd/holdfast", "holdfasttest", "relay", "relay/nats"} {
		if !slices.ContainsFunc(graph, func(p listed) bool { return folderOf(p.ImportPath) == folder }) {
			t.Errorf("there is no package in %s", folder)
		}
	}
	for _, wrong := range wrongImports(graph) {
		t.Error(wrong)
	}
}

func TestArrows_LibraryLinksNoStrangers(t *testing.T) {
	t.Parallel()
	for _, folder := range []string{".", "./worker", "./domain"} {
		for _, wrong := range links(t, folder, strangers) {
			t.Error(wrong)
		}
	}
	for _, wrong := range links(t, "./db", []string{module + "/db/embedded", "github.com/lib/pq", "github.com/fergusstrange/embedded-postgres", "testing"}) {
		t.Error(wrong)
	}
	// Whoever measures chooses where to.
	for _, wrong := range links(t, "./telemetry", []string{"go.opentelemetry.io/otel/sdk", "go.opentelemetry.io/otel/exporters", "github.com/prometheus", module + "/app"}) {
		t.Error(wrong)
	}
	// A relay links the client of its own broker.
	brokers := map[string]string{"relay/nats": "github.com/nats-io", "relay/kafka": "github.com/twmb/franz-go"}
	for _, folder := range []string{"relay", "relay/http", "relay/inbox", "relay/nats", "relay/kafka", "app"} {
		for owner, broker := range brokers {
			if owner == folder {
				continue
			}
			for _, wrong := range links(t, "./"+folder, []string{broker}) {
				t.Error(wrong)
			}
		}
	}
	for _, wrong := range links(t, "./cmd/holdfast", []string{"github.com/nats-io/nats-server", "github.com/twmb/franz-go/pkg/kfake"}) {
		t.Error(wrong)
	}
	for _, wrong := range links(t, "./holdfasttest", []string{"github.com/testcontainers", "github.com/moby", "github.com/urfave/cli", module + "/app", module + "/integration"}) {
		t.Error(wrong)
	}
}

// The rules themselves bite.
func TestArrows_WrongImportsAreFound(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name  string
		graph listed
		want  string // Part of the one complaint; "" when all is well.
	}{
		{"domain calls gen", listed{ImportPath: module + "/domain", Imports: []string{"fmt", module + "/gen", "github.com/jackc/pgx/v5/pgtype"}}, ""},
		{"root imports worker", listed{ImportPath: module, Imports: []string{module + "/domain", module + "/worker"}}, ""},
		{"cmd links its flags", listed{ImportPath: module + "/cmd/holdfast", Imports: []string{module + "/app", "github.com/urfave/cli/v2"}}, ""},
		{"a test of its own package", listed{ImportPath: module + "/worker", XTestImports: []string{module + "/worker", module + "/domain/model"}}, ""},
		{"worker reaches a statement", listed{ImportPath: module + "/worker", Imports: []string{module + "/gen"}}, "worker imports gen"},
		{"app reaches a statement", listed{ImportPath: module + "/app/health", Imports: []string{module + "/gen"}}, "app/health imports gen"},
		{"worker sees a transaction", listed{ImportPath: module + "/worker", Imports: []string{"github.com/jackc/pgx/v5"}}, "worker imports github.com/jackc/pgx/v5"},
		{"a test of worker sees one", listed{ImportPath: module + "/worker", TestImports: []string{"github.com/jackc/pgx/v5/pgxpool"}}, "test of worker imports github.com/jackc/pgx/v5/pgxpool"},
		{"worker runs on the model", listed{ImportPath: module + "/worker", Imports: []string{module + "/domain/model"}}, "worker imports domain/model"},
		{"domain looks up", listed{ImportPath: module + "/domain", Imports: []string{module + "/worker"}}, "domain imports worker"},
		{"domain migrates", listed{ImportPath: module + "/domain", Imports: []string{module + "/db"}}, "domain imports db"},
		{"the library migrates", listed{ImportPath: module, Imports: []string{module + "/db"}}, ". imports db"},
		{"db looks up", listed{ImportPath: module + "/db", Imports: []string{module + "/domain"}}, "db imports domain"},
		{"db starts a server", listed{ImportPath: module + "/db", Imports: []string{module + "/db/embedded"}}, "db imports db/embedded"},
		{"cmd starts a server", listed{ImportPath: module + "/cmd/holdfast", Imports: []string{module + "/db/embedded"}}, "cmd/holdfast imports db/embedded"},
		{"app parses flags", listed{ImportPath: module + "/app", Imports: []string{"github.com/urfave/cli/v2"}}, "app imports github.com/urfave/cli/v2"},
		{"cmd colours logs", listed{ImportPath: module + "/cmd/holdfast", Imports: []string{"github.com/lmittmann/tint"}}, "cmd/holdfast imports github.com/lmittmann/tint"},
		{"app runs containers", listed{ImportPath: module + "/app", TestImports: []string{"github.com/testcontainers/testcontainers-go"}}, "test of app imports github.com/testcontainers/testcontainers-go"},
		{"the library tests itself", listed{ImportPath: module, Imports: []string{module + "/holdfasttest"}}, ". imports holdfasttest"},
		{"app has test helpers", listed{ImportPath: module + "/app", Imports: []string{module + "/internal/testdb"}}, "app imports internal/testdb"},
		{"holdfasttest reaches a statement", listed{ImportPath: module + "/holdfasttest", Imports: []string{module + "/gen"}}, "holdfasttest imports gen"},
		{"holdfasttest runs containers", listed{ImportPath: module + "/holdfasttest", Imports: []string{"github.com/testcontainers/testcontainers-go"}}, "holdfasttest imports github.com/testcontainers/testcontainers-go"},
		{"worker measures itself", listed{ImportPath: module + "/worker", Imports: []string{"go.opentelemetry.io/otel/metric"}}, "worker imports go.opentelemetry.io/otel/metric"},
		{"telemetry exports", listed{ImportPath: module + "/telemetry", Imports: []string{"go.opentelemetry.io/otel/exporters/prometheus"}}, "telemetry imports go.opentelemetry.io/otel/exporters/prometheus"},
		{"the library is observed by itself", listed{ImportPath: module, Imports: []string{module + "/telemetry"}}, ". imports telemetry"},
		{"anybody uses pq", listed{ImportPath: module + "/db", Imports: []string{"github.com/lib/pq"}}, "db imports github.com/lib/pq"},
		{"the library publishes", listed{ImportPath: module, Imports: []string{module + "/relay"}}, ". imports relay"},
		{"a relay links a broker", listed{ImportPath: module + "/relay", Imports: []string{module + "/relay/nats"}}, "relay imports relay/nats"},
		{"app links a broker", listed{ImportPath: module + "/app", Imports: []string{"github.com/nats-io/nats.go"}}, "app imports github.com/nats-io/nats.go"},
		{"NATS runs in the command", listed{ImportPath: module + "/cmd/holdfast", Imports: []string{"github.com/nats-io/nats-server/v2/server"}}, "cmd/holdfast imports github.com/nats-io/nats-server/v2/server"},
		{"a folder nobody thought of", listed{ImportPath: module + "/util"}, "util has no line in arrows"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			wrong := wrongImports([]listed{test.graph})
			switch {
			case test.want == "" && len(wrong) > 0:
				t.Errorf("complains: %v", wrong)
			case test.want != "" && (len(wrong) != 1 || !strings.Contains(wrong[0], test.want)):
				t.Errorf("says %v, want one complaint with %q", wrong, test.want)
			}
		})
	}
}

// wrongImports returns a sentence for each import in our packages that no arrow allows.
func wrongImports(graph []listed) []string {
	var wrong []string
	for _, each := range graph {
		from := folderOf(each.ImportPath)
		rules, known := arrows[lineOf(from)]
		if !known {
			wrong = append(wrong, from+" has no line in arrows")
			continue
		}
		for _, path := range each.Imports {
			if !allowed(from, path, rules.code) {
				wrong = append(wrong, from+" imports "+folderOf(path))
			}
		}
		for _, path := range slices.Concat(each.TestImports, each.XTestImports) {
			if !allowed(from, path, slices.Concat(rules.code, rules.tests)) {
				wrong = append(wrong, "a test of "+from+" imports "+folderOf(path))
			}
		}
	}
	return wrong
}

func allowed(from, path string, ours []string) bool {
	if path == module || within(path, module) {
		to := folderOf(path)
		// A folder may import what lies below it under the same line.
		return slices.Contains(ours, to) || lineOf(to) == lineOf(from) || slices.Contains(ours, lineOf(to))
	}
	for path := path; path != "."; path = pathpkg.Dir(path) { // The nearest line holds.
		if hosts, known := guests[path]; known {
			return slices.Contains(hosts, lineOf(from))
		}
	}
	return true
}

// lineOf returns the folder whose line in arrows holds for a folder: the folder itself or
// the nearest one above it.
func lineOf(folder string) string {
	for {
		if _, known := arrows[folder]; known || !strings.Contains(folder, "/") {
			return folder
		}
		folder = folder[:strings.LastIndex(folder, "/")]
	}
}

// folderOf returns the folder of one of our packages, "." for the root; other paths as they are.
func folderOf(path string) string {
	if path == module {
		return "."
	}
	return strings.TrimPrefix(path, module+"/")
}

func within(path, parent string) bool {
	return strings.HasPrefix(path, parent+"/")
}

// links returns a sentence for each of the unwanted packages that a program with this one
// links.
func links(t *testing.T, folder string, unwanted []string) []string {
	t.Helper()
	var wrong []string
	for _, each := range goList(t, "-deps", folder) {
		if slices.ContainsFunc(unwanted, func(path string) bool { return each.ImportPath == path || within(each.ImportPath, path) }) {
			wrong = append(wrong, fmt.Sprintf("a program that imports %s links %s", folder, each.ImportPath))
		}
	}
	return wrong
}

func goList(t *testing.T, arguments ...string) []listed {
	t.Helper()
	command := exec.CommandContext(t.Context(), "go", append([]string{"list", "-json=ImportPath,Imports,TestImports,XTestImports"}, arguments...)...)
	command.Dir = ".."
	output, err := command.Output()
	if err != nil {
		var failed *exec.ExitError
		if errors.As(err, &failed) {
			t.Fatalf("%s: %v\n%s", command, err, failed.Stderr)
		}
		t.Fatal(err)
	}
	var packages []listed
	for decoder := json.NewDecoder(strings.NewReader(string(output))); ; {
		var next listed
		if err := decoder.Decode(&next); errors.Is(err, io.EOF) {
			return packages
		} else if err != nil {
			t.Fatal(err)
		}
		packages = append(packages, next)
	}
}
