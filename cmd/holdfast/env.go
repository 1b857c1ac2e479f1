package main

import (
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/holdfast-pg/holdfast/app"
)

func envCommand() *cli.Command {
	return &cli.Command{
		Name:  "env",
		Usage: "print every setting, how it stands and where that comes from",
		Description: "A flag wins over the environment, and that over the default; there is no configuration file. Flags given\n" +
			"here are taken as another command would take them. Secrets are masked, and nothing is connected to.",
		Flags:  append([]cli.Flag{outputFlag()}, databaseFlags()...),
		Action: withArgs(0, 0, printSettings),
	}
}

// variables are the environment variables that stand for a flag, first one first.
var variables = map[string][]string{
	flagDatabaseURL: {app.EnvDatabaseURL, app.EnvGenericDatabaseURL},
	flagReadURL:     {app.EnvReadURL},
	flagTo:          {envRelayTo},
}

// driverVariables fill in what an address leaves out: the driver reads them as libpq does.
var driverVariables = []string{
	"PGHOST", "PGPORT", "PGDATABASE", "PGUSER", "PGPASSWORD", "PGPASSFILE", "PGSERVICE", "PGSERVICEFILE", "PGAPPNAME", "PGCONNECT_TIMEOUT", "PGTARGETSESSIONATTRS",
	"PGSSLMODE", "PGSSLNEGOTIATION", "PGSSLCERT", "PGSSLKEY", "PGSSLROOTCERT", "PGSSLSNI", "PGSSLPASSWORD", "PGTZ", "PGOPTIONS", "PGMINPROTOCOLVERSION", "PGMAXPROTOCOLVERSION",
}

// The places that a value comes from.
const (
	fromFlag        = "flag"
	fromEnvironment = "environment"
	fromDefault     = "default"
)

// settingItem is a setting, as JSON shows it.
type settingItem struct {
	Setting   string   `json:"setting"`   // The flag, or a variable that has none.
	Variables []string `json:"variables"` // That stand for it.
	Value     string   `json:"value"`
	Source    string   `json:"source"` // flag, default, or environment and the variable's name.
	Default   string   `json:"default"`
	Commands  []string `json:"commands"` // That read it.
}

func printSettings(c *cli.Context) error {
	return printItems(c, settings(c),
		column[settingItem]{"SETTING", func(s settingItem) string { return s.Setting }},
		column[settingItem]{"VALUE", func(s settingItem) string { return orNone(s.Value) }},
		column[settingItem]{"FROM", func(s settingItem) string { return s.Source }},
		column[settingItem]{"DEFAULT", func(s settingItem) string { return orNone(s.Default) }},
		column[settingItem]{"VARIABLES", func(s settingItem) string { return orNone(strings.Join(s.Variables, ", ")) }},
		column[settingItem]{"READ BY", readBy},
	)
}

// readBy names the commands, where they are few.
func readBy(s settingItem) string {
	if len(s.Commands) > 3 {
		return fmt.Sprintf("%d commands", len(s.Commands))
	}
	return strings.Join(s.Commands, ", ")
}

func orNone(text string) string {
	if text == "" {
		return "-"
	}
	return text
}

// settings are the flags of all commands, in the order of their names, and the variables that
// stand for none. A flag that has other defaults in other commands is there once for each.
func settings(c *cli.Context) []settingItem {
	var items []settingItem
	eachFlag(c.App.Commands, "", func(command string, flag cli.Flag) {
		item := newSetting(c, flag)
		same := slices.IndexFunc(items, func(other settingItem) bool {
			return other.Setting == item.Setting && other.Default == item.Default && slices.Equal(other.Variables, item.Variables)
		})
		if same < 0 {
			items = append(items, item)
			same = len(items) - 1
		}
		items[same].Commands = append(items[same].Commands, command)
	})
	slices.SortStableFunc(items, func(a, b settingItem) int { return strings.Compare(a.Setting, b.Setting) })
	return append(items, unnamedSettings()...)
}

// eachFlag visits the flags of the commands that the help shows.
func eachFlag(commands []*cli.Command, path string, visit func(command string, flag cli.Flag)) {
	for _, command := range commands {
		if command.Hidden {
			continue
		}
		name := strings.TrimPrefix(path+" "+command.Name, " ")
		for _, flag := range command.Flags {
			if !slices.Contains(flag.Names(), "help") {
				visit(name, flag)
			}
		}
		eachFlag(command.Subcommands, name, visit)
	}
}

// newSetting resolves one: flag, else environment, else default.
func newSetting(c *cli.Context, flag cli.Flag) settingItem {
	name := flag.Names()[0]
	item := settingItem{Setting: "--" + name, Variables: variablesOf(flag), Source: fromDefault, Default: flagDefault(flag)}
	if item.Variables == nil {
		item.Variables = []string{}
	}
	item.Value = item.Default
	for _, variable := range slices.Backward(item.Variables) {
		if value := os.Getenv(variable); value != "" {
			item.Value, item.Source = value, fromEnvironment+": "+variable
		}
	}
	// An empty address is as good as none.
	if c.IsSet(name) && (c.String(name) != "" || len(item.Variables) == 0) {
		item.Value, item.Source = flagValue(c, name), fromFlag
	}
	switch {
	case item.Value == "":
	case strings.HasSuffix(name, "-url"):
		item.Value = app.MaskURL(item.Value)
	case name == flagTo:
		item.Value = maskDestination(item.Value)
	}
	return item
}

// variablesOf are the variables that stand for a flag: a worker's settings carry their own, because
// other commands have flags of the same name.
func variablesOf(flag cli.Flag) []string {
	if own, has := flag.(cli.DocGenerationFlag); has && len(own.GetEnvVars()) > 0 {
		return own.GetEnvVars()
	}
	return variables[flag.Names()[0]]
}

func flagValue(c *cli.Context, name string) string {
	for _, flag := range c.Command.Flags {
		if slices.Contains(flag.Names(), name) {
			if duration, is := flag.(*cli.DurationFlag); is {
				return c.Duration(duration.Name).String()
			}
		}
	}
	return c.String(name)
}

// flagDefault is the value that a flag has when it is not given.
func flagDefault(flag cli.Flag) string {
	switch flag := flag.(type) {
	case *cli.StringFlag:
		return flag.Value
	case *cli.DurationFlag:
		return flag.Value.String()
	case *cli.StringSliceFlag:
		if flag.Value == nil {
			return ""
		}
		return strings.Join(flag.Value.Value(), ", ")
	case *cli.BoolFlag:
		if flag.Value {
			return "true"
		}
		return "false"
	case cli.DocGenerationFlag:
		return strings.Trim(flag.GetValue(), `"`)
	default:
		return ""
	}
}

// unnamedSettings are the variables that are set and stand for no flag.
func unnamedSettings() []settingItem {
	var items []settingItem
	for _, name := range append([]string{"NO_COLOR"}, driverVariables...) {
		value := os.Getenv(name)
		if value == "" {
			continue
		}
		if strings.Contains(name, "PASSWORD") {
			value = app.Masked
		}
		commands := []string{"all that ask the database"}
		if name == "NO_COLOR" {
			commands = []string{"demo", "top", "all that log"}
		}
		items = append(items, settingItem{Setting: name, Variables: []string{name}, Value: value, Source: fromEnvironment + ": " + name, Commands: commands})
	}
	return items
}
