package integration

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/holdfast-pg/holdfast/domain"
	"github.com/holdfast-pg/holdfast/gen"
	"github.com/holdfast-pg/holdfast/integration/pgtest"
)

func TestQueries_GeneratedCodeHasEachOfThem(t *testing.T) {
	t.Parallel()
	written, err := writtenQueries()
	if err != nil {
		t.Fatal(err)
	}
	generated, err := generatedQueries()
	if err != nil {
		t.Fatal(err)
	}
	if got := slices.Sorted(maps.Keys(generated)); !slices.Equal(written, got) {
		t.Errorf("queries/ has %v\ngen/ has %v\nrun `make generate`", written, got)
	}
}

func TestQueries_ReadmeListsEachWithItsCaller(t *testing.T) {
	t.Parallel()
	readme, err := os.ReadFile("../queries/README.md")
	if err != nil {
		t.Fatal(err)
	}
	row := regexp.MustCompile("(?m)^\\|.*\\| `([A-Z]\\w+)` \\|.*\\| `([a-z/.]+)` \\|$")
	var listed []string
	for _, match := range row.FindAllSubmatch(readme, -1) {
		name, caller := string(match[1]), string(match[2])
		listed = append(listed, name)
		code, err := os.ReadFile("../" + caller)
		if err != nil {
			t.Error(err)
		} else if !strings.Contains(string(code), "."+name+"(") {
			t.Errorf("%s does not call %s", caller, name)
		}
	}
	written, err := writtenQueries()
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(listed)
	if !slices.Equal(written, listed) {
		t.Errorf("queries/ has   %v\nREADME.md has %v", written, listed)
	}
}

// sqlc leaves some parameters in the text unreplaced, and resolves names that Postgres does
// not: only a server can tell.
func TestQueries_EveryOnePrepares(t *testing.T) {
	t.Parallel()
	generated, err := generatedQueries()
	if err != nil {
		t.Fatal(err)
	}
	conn := pgtest.New(t).Conn(t)
	for _, name := range slices.Sorted(maps.Keys(generated)) {
		if _, err := conn.Prepare(t.Context(), name, generated[name]); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

var modes = []pgx.QueryExecMode{
	pgx.QueryExecModeCacheStatement,
	pgx.QueryExecModeCacheDescribe,
	pgx.QueryExecModeDescribeExec,
	pgx.QueryExecModeExec,
	pgx.QueryExecModeSimpleProtocol,
}

// Callers bring connections of their own, behind poolers of their own: a statement whose
// arguments Postgres understands in one of pgx's modes must run in all of them.
func TestQueries_EveryOneRunsInEveryModeOfPgx(t *testing.T) {
	t.Parallel()
	for _, mode := range modes {
		t.Run(mode.String(), func(t *testing.T) {
			t.Parallel()
			config := pgtest.New(t).Config()
			config.DefaultQueryExecMode = mode
			config.Tracer = nil // These runs prove nothing about what a query does: see everyQueryRan.
			conn, err := pgx.ConnectConfig(t.Context(), config)
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close(context.Background())
			queries := reflect.ValueOf(gen.New())
			for i := range queries.NumMethod() {
				if err := runOnce(t.Context(), conn, queries.Method(i)); err != nil {
					t.Errorf("%s: %v", queries.Type().Method(i).Name, err)
				}
			}
		})
	}
}

// What callers run on connections of their own means the same in each mode.
func TestQueries_CallersGetTheSameAnswersInEveryMode(t *testing.T) {
	t.Parallel()
	for _, mode := range modes {
		t.Run(mode.String(), func(t *testing.T) {
			t.Parallel()
			config := pgtest.New(t).Config()
			config.DefaultQueryExecMode = mode
			conn, err := pgx.ConnectConfig(t.Context(), config)
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close(context.Background())
			checkCallersStatements(t, conn)
		})
	}
}

func checkCallersStatements(t *testing.T, conn *pgx.Conn) {
	t.Helper()
	args := domain.RawArgs{JobKind: "k", Payload: []byte(`{"text": "ä \\ ' 😀", "number": 1.50}`)}
	at := time.Date(2100, 1, 2, 3, 4, 5, 678000000, time.UTC)
	options := []domain.EnqueueOption{
		domain.Once(`key \ ' ä`), domain.At(at), domain.Headers(map[string]string{"a": `\"b`}), domain.MaxAttempts(3), domain.OnQueue("other"),
	}
	one, err := domain.Enqueue(t.Context(), conn, args, options...)
	if err != nil {
		t.Fatal(err)
	}
	many, err := domain.EnqueueMany(t.Context(), conn, domain.NewJob{Args: args, Options: options}, domain.NewJob{Args: args})
	if err != nil {
		t.Fatal(err)
	}
	if !many[0].Duplicate || many[0].ID != one.ID || many[1].Duplicate {
		t.Errorf("the set gives %+v after %s", many, one.ID)
	}
	job, err := domain.FindJob(t.Context(), conn, one.ID)
	if err != nil {
		t.Fatal(err)
	}
	if !sameJSON(job.Payload, args.Payload) {
		t.Errorf("the payload is %s, want %s", job.Payload, args.Payload)
	}
	if !sameJSON(job.Headers, json.RawMessage(`{"a": "\\\"b"}`)) || !job.AvailableAt.Equal(at) || job.MaxAttempts != 3 || *job.IdempotencyKey != `key \ ' ä` {
		t.Errorf("the job is %+v with headers %s", job, job.Headers)
	}
	if job, err := domain.FindJob(t.Context(), conn, many[1].ID); err != nil || job.Headers != nil || job.IdempotencyKey != nil {
		t.Errorf("without options the job is %+v, %v", job, err)
	}
	for _, want := range []bool{true, false} {
		if first, err := domain.MarkHandled(t.Context(), conn, one.ID, "effect"); err != nil || first != want {
			t.Errorf("MarkHandled = %t, %v, want %t", first, err, want)
		}
	}
	for generation, want := range map[int64]error{1 << 42: nil, 1<<42 - 1: domain.ErrFenced} {
		_ = domain.Guard(t.Context(), conn, "resource", domain.Claim{Generation: 1 << 42})
		if err := domain.Guard(t.Context(), conn, "resource", domain.Claim{Generation: generation}); !errors.Is(err, want) {
			t.Errorf("Guard with %d says %v, want %v", generation, err, want)
		}
	}
}

func sameJSON(a, b json.RawMessage) bool {
	var left, right any
	return json.Unmarshal(a, &left) == nil && json.Unmarshal(b, &right) == nil && reflect.DeepEqual(left, right)
}

// runOnce calls a generated method with arguments made up by their types, in a transaction
// that is rolled back. No rows is a fine answer.
func runOnce(ctx context.Context, conn *pgx.Conn, method reflect.Value) error {
	tx, err := conn.Begin(ctx)
	if err != nil {
		return err
	}
	defer tx.Rollback(ctx)
	arguments := []reflect.Value{reflect.ValueOf(ctx), reflect.ValueOf(tx)}
	for i := 2; i < method.Type().NumIn(); i++ {
		argument := reflect.New(method.Type().In(i)).Elem()
		if err := makeUp(argument); err != nil {
			return err
		}
		arguments = append(arguments, argument)
	}
	results := method.Call(arguments)
	err, _ = results[len(results)-1].Interface().(error)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil
	}
	return err
}

// makeUp sets an argument, or each field of a struct of arguments, to a value that every
// query accepts. Arrays get two elements, as those of one set must be of one length.
func makeUp(value reflect.Value) error {
	switch value.Interface().(type) {
	case pgtype.UUID:
		value.Set(reflect.ValueOf(pgtype.UUID{Bytes: [16]byte{15: 7}, Valid: true}))
	case json.RawMessage:
		value.Set(reflect.ValueOf(json.RawMessage(`{"a": "b"}`)))
	case time.Time:
		value.Set(reflect.ValueOf(time.Now()))
	case time.Duration:
		value.Set(reflect.ValueOf(90 * time.Second))
	case string:
		value.SetString("default") // Also the name of a queue that exists.
	case gen.RetentionMode:
		value.Set(reflect.ValueOf(gen.HoldfastRetentionModeKeep))
	case int32, int64:
		value.SetInt(7)
	case bool:
		value.SetBool(true)
	default:
		return makeUpParts(value)
	}
	return nil
}

func makeUpParts(value reflect.Value) error {
	switch value.Kind() {
	case reflect.Pointer:
		value.Set(reflect.New(value.Type().Elem()))
		return makeUp(value.Elem())
	case reflect.Slice:
		value.Set(reflect.MakeSlice(value.Type(), 2, 2))
		err := errors.Join(makeUp(value.Index(0)), makeUp(value.Index(1)))
		if _, long := value.Index(1).Interface().(int64); long {
			value.Index(1).SetInt(8) // Two jobs of a set draw two ids.
		}
		return err
	case reflect.Struct:
		for i := range value.NumField() {
			if err := makeUp(value.Field(i)); err != nil {
				return fmt.Errorf("%s: %w", value.Type().Field(i).Name, err)
			}
		}
		return nil
	default:
		return fmt.Errorf("no value is known for an argument of type %s: add one to makeUp", value.Type())
	}
}

// everyQueryRan is a check of the run as a whole: some test has run each query, through the
// code that calls it.
func everyQueryRan() error {
	names, err := writtenQueries()
	if err != nil {
		return err
	}
	ran := pgtest.Executed()
	untested := slices.DeleteFunc(names, func(name string) bool { return ran[name] > 0 })
	if len(untested) > 0 {
		return fmt.Errorf("no test of this package runs these queries: %s", strings.Join(untested, ", "))
	}
	return nil
}

var nameLine = regexp.MustCompile(`(?m)^-- name: (\w+) :`)

// writtenQueries are the names of all queries in queries/*.sql, sorted.
func writtenQueries() ([]string, error) {
	files, err := filepath.Glob("../queries/*.sql")
	if err != nil {
		return nil, err
	}
	var names []string
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		for _, match := range nameLine.FindAllSubmatch(text, -1) {
			names = append(names, string(match[1]))
		}
	}
	if len(names) == 0 {
		return nil, errors.New("there are no queries in queries/")
	}
	slices.Sort(names)
	return names, nil
}

// generatedQueries are the texts that the generated code sends, by name.
func generatedQueries() (map[string]string, error) {
	files, err := filepath.Glob("../gen/*.sql.go")
	if err != nil {
		return nil, err
	}
	texts := map[string]string{}
	for _, file := range files {
		tree, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		for node := range ast.Preorder(tree) {
			literal, ok := node.(*ast.BasicLit)
			if !ok || literal.Kind != token.STRING {
				continue
			}
			text, err := strconv.Unquote(literal.Value)
			if err != nil {
				return nil, err
			}
			if match := nameLine.FindStringSubmatch(text); match != nil {
				texts[match[1]] = text
			}
		}
	}
	return texts, nil
}
