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

var (
	example   = regexp.MustCompile(`(?s)// begin\n(.*?)// end\n`)
	codeBlock = regexp.MustCompile("(?ms)^```(\\w*)\n(.*?)\n```$")
)

// Every block of Go in a document is part of an example that compiles, and every such part
// stands in a document. The examples are run by the tests beside them.
func TestDocs_CodeIsThatOfTheExamples(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("../example*_test.go")
	if err != nil {
		t.Fatal(err)
	}
	files = append(files, "../holdfasttest/example_testing_test.go", "../relay/example_outbox_test.go")
	shown := map[string]bool{}
	for _, file := range files {
		for _, match := range example.FindAllStringSubmatch(read(t, file), -1) {
			shown[strings.TrimSpace(match[1])] = false
		}
	}
	for document, others := range map[string]bool{"README.md": true, "docs/scaling.md": true, "docs/fencing.md": false, "docs/idempotency.md": false, "docs/testing.md": true, "docs/outbox.md": true} {
		blocks := codeBlock.FindAllStringSubmatch(read(t, "../"+document), -1)
		if len(blocks) == 0 {
			t.Errorf("%s shows no code", document)
		}
		for _, block := range blocks {
			language, code := block[1], block[2]
			switch _, compiles := shown[code]; {
			case compiles:
				shown[code] = true
			case language == "go" || !others:
				t.Errorf("%s shows code that is in no example:\n%s", document, code)
			}
		}
	}
	for code, isShown := range shown {
		if !isShown {
			t.Errorf("no document shows the example\n%s", code)
		}
	}
}

// A document that quotes a statement of queries/ quotes all of it, word for word.
func TestDocs_StatementsAreThoseOfQueries(t *testing.T) {
	t.Parallel()
	var queries strings.Builder
	for _, file := range glob(t, "../queries/*.sql") {
		queries.WriteString(read(t, file))
	}
	for _, document := range glob(t, "../docs/*.md") {
		for _, block := range fencedBlocks(read(t, document)) {
			if block.language == "sql" && strings.HasPrefix(block.text, "-- name: ") && !strings.Contains(queries.String(), block.text+"\n") {
				t.Errorf("%s quotes what does not stand in queries/:\n%s", document, block.text)
			}
		}
	}
}

func glob(t *testing.T, pattern string) []string {
	t.Helper()
	files, err := filepath.Glob(pattern)
	if err != nil || len(files) == 0 {
		t.Fatalf("%s finds %d files (error %v)", pattern, len(files), err)
	}
	return files
}

var (
	testName    = regexp.MustCompile(`Test[A-Z]\w+_\w+`)
	testDefined = regexp.MustCompile(`(?m)^func (Test\w+)\(`)
	anchor      = regexp.MustCompile(`docs/guarantees\.md#([a-z-]+)`)
	heading     = regexp.MustCompile(`(?m)^### (.+)$`)
)

func TestDocs_EveryTestThatADocumentNamesExists(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("*_test.go")
	if err != nil {
		t.Fatal(err)
	}
	ofExamples, err := filepath.Glob("../*_test.go")
	if err != nil {
		t.Fatal(err)
	}
	files = append(files, ofExamples...)
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
	for _, document := range append(documents, "../docs/guarantees.md", "../docs/fencing.md", "../docs/idempotency.md", "../docs/schema-evolution.md") {
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
		name := strings.NewReplacer(" ", "-", ",", "").Replace(strings.ToLower(match[1]))
		if !linked[name] {
			t.Errorf("README.md does not link the promise %q", match[1])
		}
		delete(linked, name)
	}
	for name := range linked {
		t.Errorf("README.md links the promise %q, which docs/guarantees.md does not have", name)
	}
}

var (
	soakRow = regexp.MustCompile(`(?m)^(\S[^\n]*?) {2,}(\d+) {2,}(\d+) {2,}\d`)
	section = regexp.MustCompile(`(?m)^##+ `)
)

// The report of the long soak is kept as it was printed. Each promise has its row's figures.
func TestDocs_GuaranteesHaveTheFiguresOfTheLongSoak(t *testing.T) {
	t.Parallel()
	sections := map[string]string{}
	for _, text := range section.Split(read(t, "../docs/guarantees.md"), -1) {
		name, body, _ := strings.Cut(text, "\n")
		sections[name] = body
	}
	rows := soakRow.FindAllStringSubmatch(read(t, "../docs/soak-60m.txt"), -1)
	if len(rows) < 13 {
		t.Fatalf("the report has %d promises", len(rows))
	}
	for _, row := range rows {
		want := "Long soak: " + row[2] + " of " + thousands(row[3]) + " broken."
		if text, found := sections[row[1]]; !found || !strings.Contains(text, want) {
			t.Errorf("docs/guarantees.md does not say under %q: %s", row[1], want)
		}
	}
}

// thousands writes a number as people do: 1,234,567.
func thousands(digits string) string {
	for at := len(digits) - 3; at > 0; at -= 3 {
		digits = digits[:at] + "," + digits[at:]
	}
	return digits
}

// fencedBlock is a block of code of a document.
type fencedBlock struct{ language, text string }

var fencePattern = regexp.MustCompile("(?ms)^( *)```(\\w*)\n(.*?)\n *```$")

// fencedBlocks are the blocks of a document in order, without their indentation.
func fencedBlocks(document string) []fencedBlock {
	var blocks []fencedBlock
	for _, match := range fencePattern.FindAllStringSubmatch(document, -1) {
		text := strings.ReplaceAll("\n"+match[3], "\n"+match[1], "\n")
		blocks = append(blocks, fencedBlock{match[2], strings.TrimPrefix(text, "\n")})
	}
	return blocks
}
