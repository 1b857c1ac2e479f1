package integration

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/holdfast-pg/holdfast/domain"
	"github.com/holdfast-pg/holdfast/integration/pgtest"
)

// psql sends a script as psql does, by psql itself where it is installed: several statements of
// plain text, each committed by itself. It returns what was selected, a row a line.
func psql(t *testing.T, database *pgtest.Database, script string) (string, error) {
	t.Helper()
	program, err := exec.LookPath("psql")
	if err != nil {
		installed, _ := filepath.Glob("/usr/lib/postgresql/*/bin/psql")
		if len(installed) == 0 {
			return simply(t, database, script)
		}
		program = slices.Max(installed)
	}
	command := exec.CommandContext(t.Context(), program, "--no-psqlrc", "--tuples-only", "--no-align", "--quiet", "--set", "ON_ERROR_STOP=1", database.DirectURL)
	var complaint bytes.Buffer
	command.Stdin, command.Stderr = strings.NewReader(script), &complaint
	said, err := command.Output()
	if err != nil {
		err = fmt.Errorf("%w: %s", err, complaint.String())
	}
	return strings.TrimSpace(string(said)), err
}

// simply does without psql: the protocol is the same.
func simply(t *testing.T, database *pgtest.Database, script string) (string, error) {
	t.Helper()
	conn, err := pgx.ConnectConfig(t.Context(), database.Config())
	if err != nil {
		return "", err
	}
	defer conn.Close(context.Background())
	results, err := conn.PgConn().Exec(t.Context(), script).ReadAll()
	var lines []string
	for _, result := range results {
		for _, row := range result.Rows {
			lines = append(lines, string(bytes.Join(row, []byte("|"))))
		}
	}
	if err != nil {
		err = fmt.Errorf("%s", strings.Replace(err.Error(), "ERROR: ", "ERROR:  ", 1))
	}
	return strings.Join(lines, "\n"), err
}

var (
	inOtherLanguages = regexp.MustCompile(`(?s)SELECT job\.job_id, job\.duplicate\s+FROM holdfast\.enqueue\(.*?\) AS job`)
	refusedInDocs    = regexp.MustCompile(`(?m)^=> (.*)\n(ERROR: .*)$`)
	argumentInDocs   = regexp.MustCompile("(?m)^\\| `(\\w+)` \\| (\\w+) \\|")
)

// Every example of docs/sql.md runs, and every refusal that it shows is one.
func TestDocs_ExamplesInSQLRun(t *testing.T) {
	t.Parallel()
	database := pgtest.New(t)
	document := read(t, "../docs/sql.md")
	role := makeRole(t, database, "web")
	languages := map[string]int{}
	for _, block := range codeBlock.FindAllStringSubmatch(document, -1) {
		language, code := block[1], block[2]
		languages[language]++
		switch language {
		case "sql":
			code = strings.ReplaceAll(strings.ReplaceAll(code, "CREATE ROLE web NOLOGIN;", ""), "TO web", "TO "+role)
			if _, err := psql(t, database, code); err != nil {
				t.Errorf("%s\n%v", code, err)
			}
		case "console":
			refusals := refusedInDocs.FindAllStringSubmatch(code, -1)
			if len(refusals) == 0 {
				t.Errorf("this shows no refusal:\n%s", code)
			}
			for _, refusal := range refusals {
				if _, err := psql(t, database, refusal[1]); err == nil || !strings.Contains(err.Error(), refusal[2]) {
					t.Errorf("%s says %v, want %s", refusal[1], err, refusal[2])
				}
			}
		default:
			wantEnqueue(t, database, language, code)
		}
	}
	if languages["sql"] < 4 || languages["console"] == 0 || languages["python"] == 0 || languages["js"] == 0 || languages["ruby"] == 0 {
		t.Errorf("the document has examples in %v", languages)
	}
	if receipts := pgtest.Value[int](t, database, "SELECT count(*) FROM holdfast.inbox WHERE kind = 'send_receipt'"); receipts != 3 {
		t.Errorf("the examples made %d receipts, want 3: one of the first key in every language", receipts)
	}
	if _, err := enqueueSQL(t.Context(), poolAs(t, database, role), "'note'"); err != nil {
		t.Errorf("the role of the document may not enqueue: %v", err)
	}
}

// wantEnqueue runs the statement of an example with its arguments, sent as text without a type.
func wantEnqueue(t *testing.T, database *pgtest.Database, language, code string) {
	t.Helper()
	statement := inOtherLanguages.FindString(code)
	if statement == "" {
		t.Errorf("no statement is found in the example in %s:\n%s", language, code)
		return
	}
	for n := 1; strings.Contains(statement, "%s"); n++ {
		statement = strings.Replace(statement, "%s", fmt.Sprint("$", n), 1)
	}
	var result domain.EnqueueResult
	err := database.Pool.QueryRow(t.Context(), statement, `{"order_id": 9182}`, "order:9182", "receipt:9182").Scan(&result.ID, &result.Duplicate)
	if err != nil || !result.Duplicate {
		t.Errorf("in %s: %+v, %v", language, result, err)
	}
}

func TestDocs_ArgumentsOfEnqueueAreThoseOfTheFunction(t *testing.T) {
	t.Parallel()
	database := pgtest.New(t)
	arguments := pgtest.Value[string](t, database, "SELECT pg_get_function_arguments('holdfast.enqueue'::regproc)")
	arguments = regexp.MustCompile(` DEFAULT [^,]+`).ReplaceAllString(strings.ReplaceAll(arguments, "timestamp with time zone", "timestamptz"), "")
	var listed []string
	for _, row := range argumentInDocs.FindAllStringSubmatch(read(t, "../docs/sql.md"), -1) {
		listed = append(listed, row[1]+" "+row[2])
	}
	if want := strings.Join(listed, ", ") + ", OUT job_id uuid, OUT duplicate boolean"; arguments != want {
		t.Errorf("the function has %s\nthe document %s", arguments, want)
	}
}

// -update writes it.
func TestDocs_TableOfRolesIsThatOfTheCode(t *testing.T) {
	t.Parallel()
	written, err := writtenQueries()
	if err != nil {
		t.Fatal(err)
	}
	var table strings.Builder
	table.WriteString("| Statement | producer | worker | operator | viewer |\n|---|---|---|---|---|\n")
	for _, name := range written {
		duties, known := domain.MayRun(name)
		if !known {
			t.Errorf("domain/duties.go does not say who may run %s", name)
		}
		table.WriteString("| `" + name + "` |")
		for _, duty := range domain.Duties() {
			mark := " |"
			if slices.Contains(duties, duty) {
				mark = " × |"
			}
			table.WriteString(mark)
		}
		table.WriteString("\n")
	}
	const path = "../docs/roles.md"
	document := read(t, path)
	if *update {
		writeTable(t, path, document, table.String())
		return
	}
	if !strings.Contains(document, table.String()) {
		t.Errorf("the table of docs/roles.md is not that of domain/duties.go: run go test -run %s ./integration -update", t.Name())
	}
}

var tableOfRoles = regexp.MustCompile(`(?m)^\| Statement \|.*\n(\|.*\n)+`)

func writeTable(t *testing.T, path, document, table string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(tableOfRoles.ReplaceAllLiteralString(document, table)), 0o600); err != nil {
		t.Fatal(err)
	}
}
