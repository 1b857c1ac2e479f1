package simulate

import (
	"bytes"
	"os"
	"strings"
	"testing"
)

// The document shows what the program prints; with -update, it is made to.
func TestDocs_ShowThePages(t *testing.T) {
	const path = "../../docs/simulate.md"
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	document := string(text)
	shown := 0
	for _, preset := range Names() {
		if !strings.Contains(document, "`"+preset+"`") {
			t.Errorf("%s does not name %s", path, preset)
		}
		before, block, found := strings.Cut(document, "```console\n$ holdfast simulate --preset "+preset+"\n")
		if !found {
			continue
		}
		shown++
		page, after, _ := strings.Cut(block, "```\n")
		want := defaultPage(t, preset)
		if *update {
			document = before + "```console\n$ holdfast simulate --preset " + preset + "\n" + want + "```\n" + after
		} else if page != want {
			t.Errorf("%s shows another %s; go test ./app/simulate -update writes it", path, preset)
		}
	}
	if shown != 2 {
		t.Errorf("%s shows %d pages, want 2", path, shown)
	}
	if *update {
		if err := os.WriteFile(path, []byte(document), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// The command line's document shows some rows of a page.
func TestDocs_CommandLineShowsRowsOfThePage(t *testing.T) {
	document, err := os.ReadFile("../../docs/cli.md")
	if err != nil {
		t.Fatal(err)
	}
	_, block, found := strings.Cut(string(document), "```console\n$ holdfast simulate --preset pause\n")
	if !found {
		t.Fatal("docs/cli.md shows no pause")
	}
	rows, _, _ := strings.Cut(block, "```\n")
	page := defaultPage(t, "pause")
	for row := range strings.Lines(rows) {
		if row != "…\n" && !strings.Contains(page, row) {
			t.Errorf("the page has no row %q", row)
		}
	}
}

// defaultPage is what a preset prints with its default seed.
func defaultPage(t *testing.T, preset string) string {
	t.Helper()
	var out bytes.Buffer
	Print(&out, played(t, preset, 1), nil)
	return out.String()
}
