package main

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/urfave/cli/v2"

	"github.com/holdfast-pg/holdfast/domain"
)

// buildVersion is the module's version, or the commit when built from a checkout.
func buildVersion() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	if info.Main.Version != "" && info.Main.Version != "(devel)" {
		return info.Main.Version
	}
	for _, setting := range info.Settings {
		if setting.Key == "vcs.revision" {
			return setting.Value
		}
	}
	return "development"
}

func versionCommand() *cli.Command {
	return &cli.Command{
		Name:  "version",
		Usage: "print the version of this program and of the schema it needs",
		Flags: []cli.Flag{outputFlag()},
		Action: withArgs(0, 0, func(c *cli.Context) error {
			if c.String(flagOutput) != formatTable {
				return printJSON(c, map[string]any{"version": buildVersion(), "schema": domain.SchemaVersion, "go": runtime.Version()})
			}
			fmt.Fprintf(c.App.Writer, "holdfast %s, schema %d, %s\n", buildVersion(), domain.SchemaVersion, runtime.Version())
			return nil
		}),
	}
}
