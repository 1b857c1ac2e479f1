package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/holdfast-pg/holdfast/app/simulate"
)

// completionFlag is the last word of a line that a shell's script sends to learn how the word
// before it can go on.
const completionFlag = "--generate-bash-completion"

func completionCommand() *cli.Command {
	return &cli.Command{
		Name:      "completion",
		Usage:     "print a script that completes commands and flags in a shell",
		ArgsUsage: "bash|zsh|fish|powershell",
		Description: "Load it in the shell's own start file:\n" +
			"  bash        source <(holdfast completion bash)\n" +
			"  zsh         source <(holdfast completion zsh)\n" +
			"  fish        holdfast completion fish | source\n" +
			"  powershell  holdfast completion powershell | Out-String | Invoke-Expression",
		Action: withArgs(1, 1, func(c *cli.Context) error {
			script, known := completionScripts[c.Args().First()]
			if !known {
				return usage("shell %q is none of %s", c.Args().First(), strings.Join(shells, ", "))
			}
			fmt.Fprint(c.App.Writer, script)
			return nil
		}),
	}
}

// flagValues are the words that can stand behind a flag, where they are few.
var flagValues = map[string][]string{
	flagOutput:       {formatTable, formatJSON, formatLines},
	flagLogLevel:     {"debug", "info", "warn", "error"},
	flagLogFormat:    {"auto", "text", "json"},
	"affinity":       {"ring", "none"},
	"retention-mode": {"archive", "keep", "drop"},
	"by":             {"error", "key"},
	"preset":         simulate.Names(),
}

// unfinished is a command line whose last word is to be completed.
type unfinished struct {
	path     []string // The commands on it.
	previous string   // The word before the last.
	word     string
	closed   bool // Behind "--" there are only arguments.
}

// valuesOf are the words that can stand behind a flag of the command.
func (u unfinished) valuesOf(flag cli.Flag) []string {
	values := flagValues[flag.Names()[0]]
	if flag.Names()[0] == flagOutput && slices.Equal(u.path, []string{"tune"}) {
		values = append(slices.Clone(values), formatGo, formatEnv)
	}
	return values
}

// parseUnfinished reads what a shell's script sends. The bash of most systems makes three words
// of --output=json, and some versions of PowerShell pass an empty word as two quotes only.
func parseUnfinished(app *cli.App, words []string) unfinished {
	words = slices.Clone(words)
	if n := len(words); n > 0 && words[n-1] == "=" {
		words[n-1] = ""
	}
	words = slices.DeleteFunc(words, func(word string) bool { return word == "=" })
	var line unfinished
	if n := len(words); n > 0 {
		line.word, words = strings.Trim(words[n-1], `"`), words[:n-1]
	}
	takesValue := valueFlags(app.Commands)
	commands := app.Commands
	for i := 0; i < len(words); i++ {
		line.previous = words[i]
		switch command := findCommand(commands, words[i]); {
		case words[i] == "--":
			return unfinished{path: line.path, closed: true}
		case isFlag(words[i]) && takesValue[strings.TrimLeft(words[i], "-")] && i+1 < len(words):
			i++
			line.previous = ""
		case !isFlag(words[i]) && command != nil:
			line.path = append(line.path, words[i])
			commands = command.Subcommands
		}
	}
	return line
}

func isFlag(word string) bool { return len(word) > 1 && strings.HasPrefix(word, "-") }

// suggest returns what completes the last word for a command.
func (u unfinished) suggest(flags []cli.Flag, subcommands []*cli.Command) []string {
	var all []string
	if u.closed {
		return nil
	}
	if flag := findFlag(flags, u.previous); flag != nil && takesAValue(flag) {
		all = u.valuesOf(flag)
	} else if name, _, hasValue := strings.Cut(u.word, "="); hasValue && isFlag(name) {
		if flag := findFlag(flags, name); flag != nil {
			for _, value := range u.valuesOf(flag) {
				all = append(all, name+"="+value)
			}
		}
	} else if strings.HasPrefix(u.word, "-") {
		for _, flag := range flags {
			all = append(all, "--"+flag.Names()[0])
		}
	} else {
		for _, command := range subcommands {
			if !command.Hidden {
				all = append(all, command.Name)
			}
		}
		if slices.Equal(u.path, []string{"completion"}) {
			all = shells
		}
	}
	return slices.DeleteFunc(slices.Clone(all), func(word string) bool { return !strings.HasPrefix(word, u.word) })
}

func findFlag(flags []cli.Flag, word string) cli.Flag {
	for _, flag := range flags {
		if isFlag(word) && slices.Contains(flag.Names(), strings.TrimLeft(word, "-")) {
			return flag
		}
	}
	return nil
}

func takesAValue(flag cli.Flag) bool {
	_, isSwitch := flag.(*cli.BoolFlag)
	return !isSwitch
}

// offerCompletion makes the app answer a line that ends in completionFlag, through the command
// line library: it finds the command and calls what is set here.
func offerCompletion(app *cli.App, args []string) []string {
	line := parseUnfinished(app, args[:len(args)-1])
	answer := func(flags []cli.Flag, subcommands []*cli.Command) cli.BashCompleteFunc {
		return func(c *cli.Context) {
			for _, word := range line.suggest(flags, subcommands) {
				fmt.Fprintln(c.App.Writer, word)
			}
		}
	}
	app.EnableBashCompletion = true
	app.BashComplete = answer(nil, app.Commands)
	var set func(commands []*cli.Command)
	set = func(commands []*cli.Command) {
		for _, command := range commands {
			command.BashComplete = answer(command.Flags, command.Subcommands)
			set(command.Subcommands)
		}
	}
	set(app.Commands)
	return append(line.path, completionFlag)
}
