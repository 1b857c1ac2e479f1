package simulate

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The document shows what the program prints.
func TestDocs_ShowThePages(t *testing.T) {
	document, err := os.ReadFile("../../docs/simulate.md")
	if err != nil {
		t.Fatal(err)
	}
	shown := 0
	for _, preset := range Names() {
		want, err := os.ReadFile(filepath.Join("testdata", preset+".txt"))
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(document), "```console\n$ holdfast simulate --preset "+preset+"\n") {
			shown++
			if !strings.Contains(string(document), "--preset "+preset+"\n"+string(want)+"```\n") {
				t.Errorf("docs/simulate.md shows another %s than testdata", preset)
			}
		}
		if !strings.Contains(string(document), "`"+preset+"`") {
			t.Errorf("docs/simulate.md does not name %s", preset)
		}
	}
	if shown != 2 {
		t.Errorf("docs/simulate.md shows %d pages, want 2", shown)
	}
}
