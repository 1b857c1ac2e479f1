package main

import (
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/urfave/cli/v2"
)

func testApp() *cli.App {
	return newApp(strings.NewReader(""), io.Discard, io.Discard)
}

func TestNormalise_PutsFlagsBetweenCommandAndArguments(t *testing.T) {
	for _, test := range []struct{ name, given, want string }{
		{"nothing", "", ""},
		{"command alone", "version", "version"},
		{"already in order", "enqueue --key k kind {}", "enqueue --key k -- kind {}"},
		{"flags after arguments", "enqueue kind {} --key k", "enqueue --key k -- kind {}"},
		{"flags between arguments", "enqueue kind --key k {}", "enqueue --key k -- kind {}"},
		{"flags before the command", "--key k enqueue kind", "enqueue --key k -- kind"},
		{"flags between command and subcommand", "jobs -o json show ID", "jobs show -o json -- ID"},
		{"value behind an equals sign", "enqueue kind --key=k {}", "enqueue --key=k -- kind {}"},
		{"short flag behind an equals sign", "version -o=json", "version -o=json"},
		{"one dash", "enqueue kind -key k", "enqueue -key k -- kind"},
		{"switch takes no value", "migrate --yes down --all", "migrate down --yes --all"},
		{"switch before an argument", "migrate sql --down more", "migrate sql --down -- more"},
		{"value that looks like a flag", "enqueue kind --max-attempts -5", "enqueue --max-attempts -5 -- kind"},
		{"value that looks like a separator", "enqueue --key -- kind", "enqueue --key -- -- kind"},
		{"value that looks like help", "enqueue --key --help kind", "enqueue --key --help -- kind"},
		{"negative number behind the separator", "enqueue kind -- -5", "enqueue -- kind -5"},
		{"flag behind the separator", "enqueue -- kind --key", "enqueue -- kind --key"},
		{"second separator", "enqueue kind -- --", "enqueue -- kind --"},
		{"payload from stdin", "enqueue kind -", "enqueue -- kind -"},
		{"payload from a file", "enqueue kind @file", "enqueue -- kind @file"},
		{"repeated flags stay in order", "enqueue --header a=1 kind --header b=2", "enqueue --header a=1 --header b=2 -- kind"},
		{"switch with a value", "queues set mail --ordered=false --keep-for 2d", "queues set --ordered=false --keep-for 2d -- mail"},
		{"help", "enqueue kind --help", "enqueue --help"},
		{"short help", "-h jobs show", "jobs show --help"},
		{"help as a command", "help jobs show", "jobs show --help"},
		{"help in a command's place", "jobs help show", "jobs show --help"},
		{"help as a kind", "enqueue help", "enqueue -- help"},
		{"unknown flag is left to the parser", "enqueue kind --nosuch", "enqueue --nosuch -- kind"},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, err := normalise(testApp(), strings.Fields(test.given))
			if err != nil || !slices.Equal(got, strings.Fields(test.want)) {
				t.Errorf("%s: got %v %v, want %s", test.given, got, err, test.want)
			}
		})
	}
}

func TestNormalise_KeepsEmptyArguments(t *testing.T) {
	got, err := normalise(testApp(), []string{"enqueue", "kind", "", "--key", ""})
	if want := []string{"enqueue", "--key", "", "--", "kind", ""}; err != nil || !slices.Equal(got, want) {
		t.Errorf("got %q %v, want %q", got, err, want)
	}
}

// A flag can stand before its command only if its name takes a value in all commands or in
// none.
func TestNormalise_FlagNameMeansTheSameInEveryCommand(t *testing.T) {
	app := testApp()
	takesValue := valueFlags(app.Commands)
	eachCommand(app, func(path []string, command *cli.Command) {
		for _, flag := range command.Flags {
			_, isSwitch := flag.(*cli.BoolFlag)
			for _, name := range flag.Names() {
				if takesValue[name] == isSwitch {
					t.Errorf("--%s of %s takes a value in one command and none in another", name, strings.Join(path, " "))
				}
			}
		}
	})
}

func TestUsage_UnknownCommandsNameTheHelp(t *testing.T) {
	for line, help := range map[string]string{
		"nosuch":               "`holdfast --help`",
		"-- nosuch":            "`holdfast --help`",
		"--key k nosuch":       "`holdfast --help`",
		"migrate nosuch":       "`holdfast migrate --help`",
		"jobs nosuch":          "`holdfast jobs --help`",
		"jobs -- nosuch":       "`holdfast jobs --help`",
		"jobs -o json nosuch":  "`holdfast jobs --help`",
		"migrate nosuch --yes": "`holdfast migrate --help`",
	} {
		t.Run(line, func(t *testing.T) {
			execute(t, strings.Fields(line)...).refused(t, "unknown command", "nosuch", help)
		})
	}
}

func TestUsage_UnknownFlagsNameTheHelp(t *testing.T) {
	execute(t, "--nosuch").refused(t, "unknown flag --nosuch", "`holdfast --help`")
	execute(t, "migrate", "--nosuch").refused(t, "unknown flag --nosuch", "`holdfast migrate --help`")
	eachCommand(testApp(), func(path []string, command *cli.Command) {
		if len(command.Subcommands) == 0 {
			execute(t, append(path, "--nosuch")...).refused(t, "unknown flag --nosuch", "`holdfast "+strings.Join(path, " ")+" --help`")
		}
	})
}

func TestUsage_FlagWithoutItsValueIsNotGivenTheNextWord(t *testing.T) {
	execute(t, "enqueue", "kind", "--key").refused(t, "--key needs a value", "`holdfast enqueue --help`")
	execute(t, "-o").refused(t, "-o needs a value", "`holdfast --help`")
}

func TestUsage_WrongNumberOfArgumentsNamesTheForm(t *testing.T) {
	for line, words := range map[string]string{
		"enqueue":           "usage: holdfast enqueue KIND [JSON | @FILE | -]",
		"enqueue kind {} x": "usage: holdfast enqueue KIND [JSON | @FILE | -]",
		"jobs show":         "usage: holdfast jobs show ID",
		"jobs show a b":     "usage: holdfast jobs show ID",
		"bench-worker x":    "`holdfast bench-worker` takes no arguments",
		"demo x":            "`holdfast demo` takes no arguments",
		"migrate up x":      "`holdfast migrate up` takes no arguments",
		"migrate down x":    "`holdfast migrate down` takes no arguments",
		"migrate status x":  "`holdfast migrate status` takes no arguments",
		"migrate sql x":     "`holdfast migrate sql` takes no arguments",
		"version x":         "`holdfast version` takes no arguments",
		"queues list x":     "`holdfast queues list` takes no arguments",
		"queues set":        "usage: holdfast queues set NAME",
		"queues pause":      "usage: holdfast queues pause NAME",
		"queues resume a b": "usage: holdfast queues resume NAME",
		"workers list x":    "`holdfast workers list` takes no arguments",
		"workers drain":     "usage: holdfast workers drain ID",
		"keys hot x":        "`holdfast keys hot` takes no arguments",
		"doctor x":          "`holdfast doctor` takes no arguments",
		"health live x":     "`holdfast health live` takes no arguments",
		"health ready x":    "`holdfast health ready` takes no arguments",
		"env x":             "`holdfast env` takes no arguments",
		"completion":        "usage: holdfast completion bash|zsh|fish|powershell",
		"completion tcsh":   `shell "tcsh" is none of bash, zsh, fish, powershell`,
		"work --exec a x":   "`holdfast work` takes no arguments",
	} {
		t.Run(line, func(t *testing.T) {
			execute(t, strings.Fields(line)...).refused(t, words)
		})
	}
}

// eachCommand calls visit for every command, its subcommands after it, with the words that
// name it.
func eachCommand(app *cli.App, visit func(path []string, command *cli.Command)) {
	var walk func(path []string, commands []*cli.Command)
	walk = func(path []string, commands []*cli.Command) {
		for _, command := range commands {
			here := append(slices.Clone(path), command.Name)
			visit(here, command)
			walk(here, command.Subcommands)
		}
	}
	walk(nil, app.Commands)
}
