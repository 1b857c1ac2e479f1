package main

import (
	"strings"

	"github.com/urfave/cli/v2"
)

// normalise puts a command line into the only order that the flag parser understands:
// command, its subcommand, all flags, then the positional arguments behind "--". Without it
// a flag after a positional argument would be taken for one more argument, and a flag before
// the command would be unknown. "help COMMAND" is "COMMAND --help". An unknown command is a
// usage error.
func normalise(app *cli.App, args []string) ([]string, error) {
	takesValue := valueFlags(app.Commands)
	commands := app.Commands
	var path, flags, positionals []string
	help := false
	for i := 0; i < len(args); i++ {
		arg := args[i]
		switch {
		case arg == "--":
			positionals = append(positionals, args[i+1:]...)
			i = len(args)
		case arg == "--help" || arg == "-h":
			help = true
		case len(arg) > 1 && strings.HasPrefix(arg, "-"):
			flags = append(flags, arg)
			if !takesValue[strings.TrimLeft(arg, "-")] {
				continue
			}
			rest := args[i+1:]
			if len(rest) == 0 {
				return nil, usage("%s needs a value; try `%s --help`", arg, commandName(app, path))
			}
			flags = append(flags, rest[0])
			i++
		case len(commands) > 0 && arg == "help":
			help = true
		case len(commands) > 0:
			command := findCommand(commands, arg)
			if command == nil {
				return nil, unknownCommand(app, path, arg)
			}
			path = append(path, arg)
			commands = command.Subcommands
		default:
			positionals = append(positionals, arg)
		}
	}
	if help {
		return append(path, "--help"), nil
	}
	if len(commands) > 0 && len(positionals) > 0 {
		return nil, unknownCommand(app, path, positionals[0])
	}
	ordered := append(path, flags...)
	if len(positionals) > 0 {
		ordered = append(append(ordered, "--"), positionals...)
	}
	return ordered, nil
}

func unknownCommand(app *cli.App, path []string, name string) error {
	known := commandName(app, path)
	return usage("unknown command %q; try `%s --help`", known+" "+name, known)
}

func commandName(app *cli.App, path []string) string {
	return strings.Join(append([]string{app.Name}, path...), " ")
}

func findCommand(commands []*cli.Command, name string) *cli.Command {
	for _, command := range commands {
		if command.HasName(name) {
			return command
		}
	}
	return nil
}

// valueFlags collects the names of all flags that take a value. A name means the same in
// every command, so that a flag can stand before its command.
func valueFlags(commands []*cli.Command) map[string]bool {
	names := map[string]bool{}
	for _, command := range commands {
		for _, flag := range command.Flags {
			if _, isSwitch := flag.(*cli.BoolFlag); !isSwitch {
				for _, name := range flag.Names() {
					names[name] = true
				}
			}
		}
		for name := range valueFlags(command.Subcommands) {
			names[name] = true
		}
	}
	return names
}

// withArgs is the action of a command that takes between least and most arguments.
func withArgs(least, most int, action cli.ActionFunc) cli.ActionFunc {
	return func(c *cli.Context) error {
		switch n := c.NArg(); {
		case n > most && most == 0:
			return usage("`%s` takes no arguments, it got %q", c.Command.HelpName, c.Args().First())
		case n < least || n > most:
			return usage("usage: %s %s", c.Command.HelpName, c.Command.ArgsUsage)
		}
		return action(c)
	}
}
