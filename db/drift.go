package db

import (
	"context"
	_ "embed" // The expected shape is a file.
	"regexp"
	"strings"

	"github.com/jackc/pgx/v5"
)

//go:embed schema.sql
var expectedSchema string

// Difference is an object of the schema that is not as the migrations leave it.
type Difference struct {
	Object   string // Such as "index inbox_claim_idx" or "column priority of table inbox".
	Expected string // Its definition by the migrations; "" when there should be none.
	Actual   string // Its definition in the database; "" when it is missing.
	Mend     string // SQL that makes it as expected; "" when a person has to decide.
}

// Drift compares the schema of a database that stands at this program's version with what the
// migrations leave: tables, columns, constraints, indexes, also such as are not valid, triggers,
// functions, types, sequences and views. Comments are not compared, and neither is whether
// autovacuum is on. It reads the catalogs only.
func Drift(ctx context.Context, conn *pgx.Conn) ([]Difference, error) {
	actual, err := Describe(ctx, conn)
	if err != nil {
		return nil, err
	}
	return differences(expectedSchema, actual), nil
}

// differences compares two descriptions, object by object.
func differences(expected, actual string) []Difference {
	want, got := objectsOf(expected), objectsOf(actual)
	var found []Difference
	for _, object := range want.order {
		if !got.hold(object.table) {
			continue // The missing table is a difference of its own.
		}
		if other := got.byName[object.name]; other.text != object.text {
			found = append(found, Difference{Object: object.name, Expected: object.text, Actual: other.text, Mend: object.mend(other)})
		}
	}
	for _, object := range got.order {
		if !want.hold(object.table) {
			continue // The table that should not be is one.
		}
		if want.byName[object.name].text == "" {
			found = append(found, Difference{Object: object.name, Actual: object.text, Mend: object.remove()})
		}
	}
	return found
}

// object is a part of a description that can differ by itself.
type object struct {
	name  string // Kind, name, and of a table's part: of which table.
	kind  string
	table string // Of a table's part, else "".
	text  string
}

type objects struct {
	order  []object
	byName map[string]object
}

// hold tells whether the table is there. No table always is.
func (o *objects) hold(table string) bool {
	return table == "" || o.byName["table "+table].text != ""
}

func (o *objects) add(kind, name, table, text string) {
	added := object{name: kind + " " + name, kind: kind, table: table, text: text}
	if table != "" {
		added.name += " of table " + table
	}
	o.order = append(o.order, added)
	o.byName[added.name] = added
}

var (
	// Objects begin with CREATE in the first column, in which bodies of functions have none.
	objectStart = regexp.MustCompile(`(?m)^(-- Not valid[^\n]*\n)?CREATE `)

	objectHead = regexp.MustCompile(`^(-- Not valid[^\n]*\n)?CREATE (UNLOGGED |UNIQUE |CONSTRAINT )*(SCHEMA|TYPE|SEQUENCE|TABLE|INDEX|VIEW|FUNCTION|TRIGGER) (?:holdfast\.)?([^\n;]+?)(?: AS ENUM \(| AS [a-z]+| \(| AS|;|)(?:\n|$)`)
	onTable    = regexp.MustCompile(`\sON holdfast\.(\w+)`)
	comment    = regexp.MustCompile(`(?m)^COMMENT ON .*(\n|$)`)
	storage    = regexp.MustCompile(`(?m)^WITH \(\n((?: .*\n)*)\)`)
)

// objectsOf takes a description apart.
func objectsOf(description string) *objects {
	found := &objects{byName: map[string]object{}}
	starts := objectStart.FindAllStringIndex(description, -1)
	for i, start := range starts {
		end := len(description)
		if i+1 < len(starts) {
			end = starts[i+1][0]
		}
		text := strings.TrimSpace(comment.ReplaceAllString(description[start[0]:end], ""))
		found.addObject(text)
	}
	return found
}

// addObject adds what a statement creates. What it does not know it calls by its first line, so
// that nothing passes unseen.
func (o *objects) addObject(text string) {
	first, _, _ := strings.Cut(text, "\n")
	head := objectHead.FindStringSubmatch(text)
	if head == nil {
		o.add("object", first, "", text)
		return
	}
	kind, name := strings.ToLower(head[3]), head[4]
	table := onTable.FindStringSubmatch(text)
	switch {
	case kind == "table":
		o.addTable(name, text)
	case kind != "index" && kind != "trigger":
		o.add(kind, name, "", text)
	case table == nil:
		o.add("object", first, "", text)
	default:
		name, _, _ = strings.Cut(name, " ") // A trigger goes on in the line of its name.
		o.add(kind, name, table[1], text)
	}
}

// addTable adds a table, each of its columns and constraints, and its storage settings.
func (o *objects) addTable(name, text string) {
	frame, lines := text, ""
	if open := strings.Index(text, " (\n"); open >= 0 && !strings.Contains(text[:open], "\n") {
		rest := text[open+len(" (\n"):]
		end := strings.Index("\n"+rest, "\n)")
		lines, frame = rest[:end], text[:open]+rest[end+1:]
	}
	settings := ""
	if parts := storage.FindStringSubmatch(frame); parts != nil {
		settings = withoutAutovacuum(parts[1])
		frame = strings.Replace(frame, "\n"+parts[0], "", 1)
	}
	o.add("table", name, "", frame)
	if settings != "" {
		o.add("storage", "settings", name, settings)
	}
	for _, line := range elements(lines) {
		if rule, isRule := strings.CutPrefix(line, "CONSTRAINT "); isRule {
			ruleName, _, _ := strings.Cut(rule, " ")
			o.add("constraint", ruleName, name, line)
			continue
		}
		column, _, _ := strings.Cut(line, " ")
		o.add("column", column, name, line)
	}
}

// elements are the columns and the constraints of a table: each ends with a line that ends
// with a comma, or with the list.
func elements(lines string) []string {
	var found []string
	element := ""
	for line := range strings.Lines(lines) {
		element += line
		if strings.HasSuffix(line, ",\n") {
			found = append(found, strings.TrimSuffix(strings.TrimSpace(element), ","))
			element = ""
		}
	}
	if last := strings.TrimSpace(element); last != "" {
		found = append(found, last)
	}
	return found
}

// withoutAutovacuum leaves out whether autovacuum is on: doctor looks at that by itself.
func withoutAutovacuum(settings string) string {
	var kept []string
	for line := range strings.Lines(settings) {
		line = strings.TrimSuffix(strings.TrimSpace(line), ",")
		if line != "" && !strings.HasPrefix(line, "autovacuum_enabled") {
			kept = append(kept, line)
		}
	}
	return strings.Join(kept, ", ")
}
