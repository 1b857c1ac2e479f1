package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
)

// Statements stand in gen as constants. A build for each mutant of one would take most of the
// time, so they share a test binary, in which every statement passes through a function that
// makes the change its environment asks for.
const (
	nameVariable = "HOLDFAST_MUTANT_STATEMENT"
	oldVariable  = "HOLDFAST_MUTANT_OLD"
	newVariable  = "HOLDFAST_MUTANT_NEW"

	planted = `package gen

import (
	"os"
	"strings"
)

func planted(name, sql string) string {
	if name == os.Getenv("` + nameVariable + `") {
		return strings.Replace(sql, os.Getenv("` + oldVariable + `"), os.Getenv("` + newVariable + `"), 1)
	}
	return sql
}
`
)

var statement = regexp.MustCompile("(?m)^const (\\w+) = (`[^`]*`)$")

// statementOf returns the name of the statement that holds the text that a mutant replaces; "" when
// it is not in one.
func statementOf(m mutant, source string) string {
	if filepath.Dir(m.file) != "gen" {
		return ""
	}
	for _, match := range statement.FindAllStringSubmatch(source, -1) {
		if strings.Contains(match[2], m.old) {
			return match[1]
		}
	}
	return ""
}

// shared is a test binary that any mutant of a statement can be planted in.
type shared struct {
	binary string
	said   string // By the compiler, when there is none.
	err    error
}

// oncePerFolder returns a function that returns the binary of a folder, and builds it when it is
// first asked for.
func (n nursery) oncePerFolder(ctx context.Context, mutants []mutant) func(folder string) shared {
	plot := filepath.Join(n.temp, "statements")
	overlay, err := n.openStatements(plot)
	folders := map[string]func() shared{}
	for place, m := range mutants {
		folders[m.folder] = sync.OnceValue(func() shared {
			if err != nil {
				return shared{err: err}
			}
			binary := filepath.Join(plot, fmt.Sprintf("%d.test", place))
			said, err := n.build(ctx, m.folder, overlay, binary)
			return shared{binary, said, err}
		})
	}
	return func(folder string) shared { return folders[folder]() }
}

// openStatements writes the copies of gen's files in which statements can be changed, and the
// file that tells the build of them.
func (n nursery) openStatements(plot string) (overlay string, err error) {
	files, err := filepath.Glob(filepath.Join(n.root, "gen", "*.sql.go"))
	if err != nil {
		return "", err
	}
	copies := map[string]string{filepath.Join(n.root, "gen", "planted.go"): planted}
	for _, file := range files {
		source, err := os.ReadFile(file)
		if err != nil {
			return "", err
		}
		copies[file] = statement.ReplaceAllString(string(source), `var $1 = planted("$1", $2)`)
	}
	return writeOverlay(plot, copies)
}

// writeOverlay writes copies, by the files that they stand for, and returns the file that tells
// a build to take them.
func writeOverlay(plot string, copies map[string]string) (string, error) {
	if err := os.MkdirAll(plot, 0o700); err != nil {
		return "", err
	}
	replace := map[string]string{}
	for original, text := range copies {
		replace[original] = filepath.Join(plot, filepath.Base(original))
		if err := os.WriteFile(replace[original], []byte(text), 0o600); err != nil {
			return "", err
		}
	}
	plan, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", fmt.Errorf("write the overlay: %w", err)
	}
	overlay := filepath.Join(plot, "overlay.json")
	return overlay, os.WriteFile(overlay, plan, 0o600)
}
