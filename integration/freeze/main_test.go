package main

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"
)

// What sqlc writes today is understood, so that it can be frozen tomorrow.
func TestFreeze_UnderstandsTheCodeOfToday(t *testing.T) {
	t.Parallel()
	statements, err := readStatements(files(t, "../../gen/*.go"))
	if err != nil {
		t.Fatal(err)
	}
	written := 0
	name, parameter, comment := regexp.MustCompile(`(?m)^-- name: `), regexp.MustCompile(`\$\d+`), regexp.MustCompile(`--[^\n]*`)
	for _, text := range files(t, "../../queries/*.sql") {
		written += len(name.FindAllString(text, -1))
	}
	if len(statements) != written {
		t.Errorf("%d statements are found of %d in queries/", len(statements), written)
	}
	for _, statement := range statements {
		used := map[string]bool{}
		for _, line := range statement.SQL {
			for _, dollar := range parameter.FindAllString(comment.ReplaceAllString(line, ""), -1) {
				used[dollar] = true
			}
		}
		if len(used) != len(statement.Parameters) {
			t.Errorf("%s has the parameters %v and uses %v", statement.Name, statement.Parameters, used)
		}
	}
}

func TestFreeze_ParametersAndResultsHaveNamesAndTypes(t *testing.T) {
	t.Parallel()
	statements, err := readStatements([]string{`package gen
const find = "-- name: Find :many\nSELECT 1\n"
type FindParams struct { ID pgtype.UUID; Names []string }
type FindRow struct { At *time.Time }
func (q *Queries) Find(ctx context.Context, db DBTX, arg FindParams) ([]FindRow, error) {
	rows, err := db.Query(ctx, find, arg.ID, arg.Names)
	for rows.Next() { var i FindRow; if err := rows.Scan(&i.At); err != nil { return nil, err } }
	return nil, err
}`})
	if err != nil || len(statements) != 1 {
		t.Fatal(statements, err)
	}
	found := statements[0]
	if len(found.Parameters) != 2 || found.Parameters[0] != "ID pgtype.UUID" || found.Parameters[1] != "Names []string" || len(found.Results) != 1 || found.Results[0] != "At *time.Time" {
		t.Errorf("found %+v", found)
	}
}

func files(t *testing.T, pattern string) []string {
	t.Helper()
	names, err := filepath.Glob(pattern)
	if err != nil || len(names) == 0 {
		t.Fatalf("%s: %d files (error %v)", pattern, len(names), err)
	}
	texts := make([]string, len(names))
	for i, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		texts[i] = string(text)
	}
	return texts
}
