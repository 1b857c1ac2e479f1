package main

import (
	"os"
	"strings"
	"testing"
)

// quotation is a command line in a document, with the output that stands below it.
type quotation struct {
	line   string
	output []string
}

// quotations are those of `holdfast tune` in a document.
func quotations(t *testing.T, path string) (found []quotation) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	inside := false
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSuffix(line, "\n")
		command, is := strings.CutPrefix(line, "$ holdfast ")
		switch {
		case is:
			inside = strings.HasPrefix(command, "tune ")
			if inside {
				found = append(found, quotation{line: command})
			}
		case strings.HasPrefix(line, "```"):
			inside = false
		case inside:
			last := &found[len(found)-1]
			last.output = append(last.output, line)
		}
	}
	return found
}

// Documents show what the command prints; an ellipsis stands for lines that are left out.
func TestDocs_OutputOfTuneIsWhatItPrints(t *testing.T) {
	for path, count := range map[string]int{"../../docs/tuning.md": 7, "../../docs/cli.md": 3} {
		quoted := quotations(t, path)
		if len(quoted) != count {
			t.Errorf("%s runs holdfast tune %d times, want %d", path, len(quoted), count)
		}
		for _, each := range quoted {
			got := execute(t, strings.Fields(each.line)...)
			printed := strings.Split(strings.TrimSuffix(got.stdout+got.stderr, "\n"), "\n")
			if missing, fits := follows(printed, each.output); !fits {
				t.Errorf("%s: holdfast %s does not print, in this place,\n%s\nbut\n%s", path, each.line, missing, strings.Join(printed, "\n"))
			}
		}
	}
}

// follows tells whether the lines quoted follow one another in what was printed, and from its
// first to its last line but where there is an ellipsis; else the line that does not.
func follows(printed, quoted []string) (missing string, fits bool) {
	skips := false
	for _, line := range quoted {
		if line == "…" {
			skips = true
			continue
		}
		for skips && len(printed) > 0 && printed[0] != line {
			printed = printed[1:]
		}
		if len(printed) == 0 || printed[0] != line {
			return line, false
		}
		printed, skips = printed[1:], false
	}
	return "the end", len(printed) == 0 || skips
}

func TestDocs_QuotationThatLeavesSomethingOutSaysSo(t *testing.T) {
	printed := []string{"a", "b", "", "c"}
	for quoted, want := range map[string]bool{
		"a|b||c": true, "a|…|c": true, "…": true, "a|…": true, "a|b": false, "a|c": false, "…|b|a|…": false, "a|b||d": false,
	} {
		if _, fits := follows(printed, strings.Split(quoted, "|")); fits != want {
			t.Errorf("%s fits: %v", quoted, fits)
		}
	}
}
