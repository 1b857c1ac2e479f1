package main

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/urfave/cli/v2"
)

var (
	quotedCommand = regexp.MustCompile("(?m)(?:`holdfast ([^`]+)`|^    holdfast ([^#\n]+)|command: holdfast (.+)$)")
	label         = regexp.MustCompile(`\{\{[^}]*\}\}`)
	quotedWord    = regexp.MustCompile(`"[^"]*"`)
)

// Whoever follows the runbook or an alert at two in the morning must find that its commands exist.
func TestRunbook_CommandsExistWithTheirFlags(t *testing.T) {
	commands := 0
	for _, file := range []string{"../../docs/runbook.md", "../../docs/transport.md", "../../deploy/prometheus/alerts.yaml"} {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, match := range quotedCommand.FindAllStringSubmatch(string(text), -1) {
			line := quotedWord.ReplaceAllString(label.ReplaceAllString(match[1]+match[2]+match[3], "mail"), "text")
			commands++
			if problem := wrongCommand(testApp(), strings.Fields(line)); problem != "" {
				t.Errorf("%s: holdfast %s: %s", file, line, problem)
			}
		}
	}
	if commands < 40 {
		t.Errorf("only %d commands were found", commands)
	}
}

// wrongCommand says what is wrong with a command line, "" if nothing is.
func wrongCommand(app *cli.App, words []string) string {
	known := app.Commands
	var command *cli.Command
	for len(words) > 0 && len(known) > 0 {
		if command = findCommand(known, words[0]); command == nil {
			return "there is no command " + words[0]
		}
		known, words = command.Subcommands, words[1:]
	}
	if command == nil || len(known) > 0 {
		return "no command is named"
	}
	for _, word := range words {
		name, isFlag := strings.CutPrefix(word, "--")
		if isFlag && !slices.ContainsFunc(command.Flags, func(flag cli.Flag) bool { return slices.Contains(flag.Names(), name) }) {
			return "it has no flag " + word
		}
	}
	return ""
}
