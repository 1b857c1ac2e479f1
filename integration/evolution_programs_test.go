package integration

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/holdfast-pg/holdfast/gen"
	"github.com/holdfast-pg/holdfast/integration/pgtest"
)

// program is an earlier program: the statements it was built with, and a session of its own.
type program struct {
	Schema     int               `json:"schema"`
	Statements []frozenStatement `json:"statements"`

	conn *pgx.Conn
}

// frozenStatement is one as integration/freeze writes it. Parameters and results are a name and
// a type of Go each.
type frozenStatement struct {
	Name       string   `json:"name"`
	Parameters []string `json:"parameters"`
	Results    []string `json:"results"`
	SQL        []string `json:"sql"`
}

func (s frozenStatement) text() string { return strings.Join(s.SQL, "\n") }

// frozenVersions are the schema versions whose statements are kept, in order.
func frozenVersions(t *testing.T) []int {
	t.Helper()
	files, err := filepath.Glob("testdata/statements/*.json")
	if err != nil {
		t.Fatal(err)
	}
	versions := make([]int, len(files))
	for i, file := range files {
		if versions[i], err = strconv.Atoi(strings.TrimSuffix(filepath.Base(file), ".json")); err != nil {
			t.Fatal(err)
		}
	}
	slices.Sort(versions)
	return versions
}

// programOf connects a program of a schema version to a database.
func programOf(t *testing.T, version int, database *pgtest.Database) *program {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("testdata/statements/%d.json", version))
	if err != nil {
		t.Fatal(err)
	}
	old := &program{}
	if err := json.Unmarshal(text, old); err != nil || old.Schema != version || len(old.Statements) < 60 {
		t.Fatalf("%d statements of version %d (error %v)", len(old.Statements), old.Schema, err)
	}
	config := database.Config()
	config.Tracer = nil // These runs prove nothing about the queries of today: see everyQueryRan.
	if old.conn, err = pgx.ConnectConfig(t.Context(), config); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = old.conn.Close(context.Background()) })
	return old
}

// runEach runs every statement once, with arguments made up by their types and in a transaction
// that is rolled back. The session keeps each prepared under its name, as a program does.
func (p *program) runEach(t *testing.T) (failed []error) {
	t.Helper()
	for _, statement := range p.Statements {
		if err := p.tryOut(t, statement); err != nil {
			failed = append(failed, fmt.Errorf("%s of version %d: %w", statement.Name, p.Schema, err))
		}
	}
	return failed
}

func (p *program) tryOut(t *testing.T, statement frozenStatement) error {
	t.Helper()
	tx, err := p.conn.Begin(t.Context())
	if err != nil {
		return err
	}
	defer tx.Rollback(t.Context())
	if _, err := tx.Prepare(t.Context(), statement.Name, statement.text()); err != nil {
		return err
	}
	arguments := make([]any, len(statement.Parameters))
	for i, parameter := range statement.Parameters {
		value, err := goValue(parameter)
		if err == nil {
			err = makeUp(value)
		}
		if err != nil {
			return err
		}
		arguments[i] = value.Interface()
	}
	rows, err := tx.Query(t.Context(), statement.Name, arguments...)
	if err != nil {
		return err
	}
	defer rows.Close()
	understood := p.understands(statement, rows)
	for rows.Next() {
	}
	return errors.Join(rows.Err(), understood)
}

// understands checks that the program can read what a statement answers, though the answer may
// have no rows: each column's type takes a value of the Go type, and gives it back.
func (p *program) understands(statement frozenStatement, rows pgx.Rows) error {
	columns := rows.FieldDescriptions()
	if len(statement.Results) > 0 && len(columns) != len(statement.Results) {
		return fmt.Errorf("it answers with %d columns, the program reads %d", len(columns), len(statement.Results))
	}
	types := p.conn.TypeMap()
	for i, result := range statement.Results {
		value, err := goValue(result)
		if err != nil {
			return err
		}
		if err := makeUpResult(value); err != nil {
			return err
		}
		format := types.FormatCodeForOID(columns[i].DataTypeOID)
		encoded, err := types.Encode(columns[i].DataTypeOID, format, value.Interface(), nil)
		if err == nil {
			err = types.Scan(columns[i].DataTypeOID, format, encoded, reflect.New(value.Type()).Interface())
		}
		if err != nil {
			return fmt.Errorf("the program cannot read column %s as %s: %w", columns[i].Name, result, err)
		}
	}
	return nil
}

func makeUpResult(value reflect.Value) error {
	switch value.Kind() {
	case reflect.String:
		value.SetString("x")
		return nil
	case reflect.Float64:
		value.SetFloat(0.5)
		return nil
	default:
		return makeUp(value)
	}
}

var goTypes = map[string]reflect.Type{
	"bool": reflect.TypeFor[bool](), "string": reflect.TypeFor[string](),
	"int32": reflect.TypeFor[int32](), "int64": reflect.TypeFor[int64](), "float64": reflect.TypeFor[float64](),
	"json.RawMessage": reflect.TypeFor[json.RawMessage](), "pgtype.UUID": reflect.TypeFor[pgtype.UUID](),
	"time.Time": reflect.TypeFor[time.Time](), "time.Duration": reflect.TypeFor[time.Duration](),
	"EventKind": reflect.TypeFor[gen.EventKind](), "InboxStatus": reflect.TypeFor[gen.InboxStatus](),
	"RetentionMode": reflect.TypeFor[gen.RetentionMode](), "WorkerStatus": reflect.TypeFor[gen.WorkerStatus](),
}

// goValue returns the zero value of a described parameter or result.
func goValue(described string) (reflect.Value, error) {
	_, name, _ := strings.Cut(described, " ")
	base := strings.TrimLeft(name, "*[]")
	found, known := goTypes[base]
	if !known {
		return reflect.Value{}, fmt.Errorf("no Go type is known for %q: add one to goTypes", described)
	}
	switch strings.TrimSuffix(name, base) {
	case "*":
		found = reflect.PointerTo(found)
	case "[]":
		found = reflect.SliceOf(found)
	}
	return reflect.New(found).Elem(), nil
}
