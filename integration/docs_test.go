package integration

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestDocs_ReadmeShowsTheExampleThatCompiles(t *testing.T) {
	t.Parallel()
	_, rest, found := strings.Cut(read(t, "../example_test.go"), "// begin\n")
	program, _, ended := strings.Cut(rest, "// end\n")
	if !found || !ended {
		t.Fatal("example_test.go has no program between its marks")
	}
	if !strings.Contains(read(t, "../README.md"), "```go\n"+strings.TrimSpace(program)+"\n```") {
		t.Fatal("README.md does not show the program of example_test.go")
	}
}

var (
	testName    = regexp.MustCompile(`Test[A-Z]\w+_\w+`)
	testDefined = regexp.MustCompile(`(?m)^func (Test\w+)\(`)
	anchor      = regexp.MustCompile(`docs/guarantees\.md#([a-z-]+)`)
	heading     = regexp.MustCompile(`(?m)^### (.+)$`)
)

func TestDocs_EveryTestThatAGuaranteeNamesExists(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("*_test.go")
	if err != nil {
		t.Fatal(err)
	}
	defined := map[string]bool{}
	for _, file := range files {
		for _, match := range testDefined.FindAllStringSubmatch(read(t, file), -1) {
			defined[match[1]] = true
		}
	}
	documents, err := filepath.Glob("../docs/adr/*.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, document := range append(documents, "../docs/guarantees.md") {
		for _, name := range testName.FindAllString(read(t, document), -1) {
			if !defined[name] {
				t.Errorf("%s names %s, which does not exist", document, name)
			}
		}
	}
}

func TestDocs_ReadmeNamesThePromisesThatAreKept(t *testing.T) {
	t.Parallel()
	guarantees := read(t, "../docs/guarantees.md")
	linked := map[string]bool{}
	for _, match := range anchor.FindAllStringSubmatch(read(t, "../README.md"), -1) {
		linked[match[1]] = true
	}
	for _, match := range heading.FindAllStringSubmatch(guarantees, -1) {
		name := strings.ReplaceAll(strings.ToLower(match[1]), " ", "-")
		if !linked[name] {
			t.Errorf("README.md does not link the promise %q", match[1])
		}
		delete(linked, name)
	}
	for name := range linked {
		t.Errorf("README.md links the promise %q, which docs/guarantees.md does not have", name)
	}
}
