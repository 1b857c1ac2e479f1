package main

import (
	"os"
	"strings"
	"testing"

	"github.com/urfave/cli/v2"
)

// sections returns the text under each heading of docs/cli.md that names a command, up to
// the next one.
func sections(t *testing.T) map[string]string {
	t.Helper()
	document, err := os.ReadFile("../../docs/cli.md")
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]string{}
	name := ""
	for line := range strings.Lines(string(document)) {
		if heading, isHeading := strings.CutPrefix(strings.TrimLeft(line, "#"), " holdfast "); isHeading && line[0] == '#' {
			name = strings.TrimSpace(heading)
		} else if strings.HasPrefix(line, "## ") {
			name = ""
		}
		found[name] += line
	}
	return found
}

// defaultText is the default that the help prints for a flag, without its quotes; "" for none.
func defaultText(flag cli.Flag) string {
	_, text, _ := strings.Cut(flag.String(), "(default: ")
	text, _, _ = strings.Cut(text, ")")
	return strings.Trim(text, `"`)
}

func TestDocs_EveryCommandHasASectionWithItsFlagsAndDefaults(t *testing.T) {
	documented := sections(t)
	eachCommand(testApp(), func(path []string, command *cli.Command) {
		name := strings.Join(path, " ")
		text, found := documented[name]
		delete(documented, name)
		if command.Hidden {
			return
		}
		if !found {
			t.Errorf("docs/cli.md has no section %q", "holdfast "+name)
			return
		}
		if len(command.Subcommands) == 0 && !strings.Contains(text, "$ holdfast "+name) {
			t.Errorf("docs/cli.md shows no example of holdfast %s", name)
		}
		for _, flag := range command.Flags {
			row := flagRow(text, flag.Names()[0])
			if row == "" {
				t.Errorf("docs/cli.md does not list --%s of holdfast %s", flag.Names()[0], name)
			} else if value := defaultText(flag); value != "" && !strings.Contains(row, "| "+value+" |") && !strings.Contains(row, "as of `migrate up`") {
				t.Errorf("docs/cli.md does not name the default %q of --%s of holdfast %s", value, flag.Names()[0], name)
			}
		}
	})
	delete(documented, "")
	for name := range documented {
		t.Errorf("docs/cli.md describes holdfast %s, which does not exist", name)
	}
}

// flagRow is the line of a section's table that has the flag in its first column.
func flagRow(section, name string) string {
	for line := range strings.Lines(section) {
		column, _, isRow := strings.Cut(strings.TrimPrefix(line, "| "), " | ")
		if isRow && (strings.Contains(column, "`--"+name+"`") || strings.Contains(column, "`--"+name+" ")) {
			return line
		}
	}
	return ""
}

func TestDocs_FlagsThatAreListedExist(t *testing.T) {
	documented := sections(t)
	eachCommand(testApp(), func(path []string, command *cli.Command) {
		name := strings.Join(path, " ")
		known := map[string]bool{}
		for _, flag := range command.Flags {
			for _, alias := range flag.Names() {
				known[alias] = true
			}
		}
		for line := range strings.Lines(documented[name]) {
			column, _, _ := strings.Cut(strings.TrimPrefix(line, "| "), " | ")
			for _, word := range strings.Split(column, "`") {
				flag, isFlag := strings.CutPrefix(word, "--")
				flag, _, _ = strings.Cut(flag, " ")
				if isFlag && strings.HasPrefix(line, "| `--") && !known[flag] {
					t.Errorf("docs/cli.md lists --%s of holdfast %s, which does not exist", flag, name)
				}
			}
		}
	})
}

func TestDocs_ExitCodesAreListed(t *testing.T) {
	text := sections(t)[""]
	for _, row := range []string{"| 0 | done", "| 1 | failed", "| 2 | the command line is wrong", "| 3 | a check", "| 4 | the database cannot be reached", "| 130 | interrupted"} {
		if !strings.Contains(text, row) {
			t.Errorf("docs/cli.md lacks the row %q", row)
		}
	}
}
