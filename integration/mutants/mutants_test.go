package main

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const root = "../.."

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, path))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// Whoever changes a text in which a bug is planted learns of it here, and not at night.
func TestMutants_EachFitsItsFile(t *testing.T) {
	t.Parallel()
	names := map[string]bool{}
	for _, m := range mutants() {
		if names[m.name] {
			t.Errorf("two bugs are called %q", m.name)
		}
		names[m.name] = true
		if count := strings.Count(read(t, m.file), m.old); count != 1 || m.old == m.new {
			t.Errorf("%q: its text stands %d times in %s, want once", m.name, count, m.file)
		}
	}
}

func TestMutants_NamedTestsExist(t *testing.T) {
	t.Parallel()
	sources := map[string]string{}
	for _, folder := range []string{onPostgres, inWorker, inDomain, inJudge} {
		files, err := filepath.Glob(filepath.Join(root, folder, "*_test.go"))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			sources[folder] += read(t, strings.TrimPrefix(filepath.ToSlash(file), root+"/"))
		}
	}
	for _, m := range mutants() {
		name, _, _ := strings.Cut(m.test, "/")
		if !strings.Contains(sources[m.folder], "\nfunc "+name+"(t *testing.T) {") {
			t.Errorf("%q is to be caught by %s, which is not in %s", m.name, m.test, m.folder)
		}
	}
}

var heading = regexp.MustCompile(`(?m)^###? (.+)$`)

func TestMutants_EachPromiseIsBrokenByOne(t *testing.T) {
	t.Parallel()
	_, promises, _ := strings.Cut(read(t, "docs/guarantees.md"), "\n## Promises\n")
	var known, short []string
	for _, match := range heading.FindAllStringSubmatch(promises, -1) {
		known = append(known, match[1])
	}
	broken := map[string]bool{}
	for _, m := range mutants() {
		if broken[m.promise] = true; !slices.Contains(known, m.promise) {
			t.Errorf("%q breaks %q, which is no promise", m.name, m.promise)
		}
		if m.short {
			short = append(short, m.promise)
		}
	}
	promises, _, _ = strings.Cut(promises, "\n## ")
	for _, match := range heading.FindAllStringSubmatch(promises, -1) {
		if !broken[match[1]] {
			t.Errorf("no bug breaks the promise %q", match[1])
		}
	}
	if slices.Sort(short); len(short) != 8 || len(slices.Compact(short)) != 8 {
		t.Errorf("-short plants bugs against %v, want 8 against different promises", short)
	}
}

// The table of the document is that of the program. It is not part of docs/guarantees.md, because
// tools/promises takes every test that is named there for one of ./integration.
func TestMutants_DocumentHoldsTheirTable(t *testing.T) {
	t.Parallel()
	if !strings.Contains(read(t, "docs/planted-bugs.md"), markdown(mutants())) {
		t.Error("docs/planted-bugs.md does not hold the table that `go run ./integration/mutants -table` prints")
	}
}
