package main

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/urfave/cli/v2"

	"github.com/holdfast-pg/holdfast/app/doctor"
)

func doctorCommand() *cli.Command {
	return &cli.Command{
		Name:  "doctor",
		Usage: "tell whether the database is fit for holdfast",
		Description: "Prints what it finds, why that matters, and the SQL or the flag that mends it. It changes nothing.\n" +
			"Run it as the role of the workers: settings and rights are a role's. Exit code 3: there are findings.",
		Flags: append([]cli.Flag{
			&cli.StringSliceFlag{Name: "check", Usage: "a `CHECK` to run; may be repeated; without it, all"},
			directURLFlag(),
			&cli.DurationFlag{Name: "held-for", Usage: "`DURATION` that a transaction may hold vacuum back", Value: 5 * time.Minute},
			outputFlag(),
		}, databaseFlags()...),
		Action: withArgs(0, 0, examine),
	}
}

func examine(c *cli.Context) error {
	if err := checkPositive(c, "held-for"); err != nil {
		return err
	}
	for _, id := range c.StringSlice("check") {
		if known := doctor.Checks(); !slices.Contains(known, id) {
			return usage("--check %q is none of %s", id, strings.Join(known, ", "))
		}
	}
	options := doctor.Options{Checks: c.StringSlice("check"), DirectURL: c.String(flagDirectURL), HeldFor: c.Duration("held-for")}
	return withAnyDatabase(c, func(pool *pgxpool.Pool) error {
		report, err := doctor.Examine(c.Context, pool, options)
		if err != nil {
			return err
		}
		if err := printReport(c, report); err != nil {
			return err
		}
		if n := len(report.Findings); n > 0 {
			return &findingsError{count: n}
		}
		return nil
	})
}

// printReport prints the report: as lines, a finding each.
func printReport(c *cli.Context, report doctor.Report) error {
	switch c.String(flagOutput) {
	case formatJSON:
		return printJSON(c, report)
	case formatLines:
		return printItems(c, report.Findings)
	}
	for _, finding := range report.Findings {
		fmt.Fprintf(c.App.Writer, "%s: %s: %s\n", finding.Severity, finding.Check, oneLine(finding.What))
		fmt.Fprintf(c.App.Writer, "  why  %s\n", finding.Why)
		fmt.Fprintf(c.App.Writer, "  fix  %s\n\n", strings.ReplaceAll(finding.Fix, "\n", "\n       "))
	}
	if len(report.Findings) == 0 {
		fmt.Fprint(c.App.Writer, "no findings\n\n")
	}
	return printItems(c, report.Checks,
		column[doctor.Result]{"CHECK", func(r doctor.Result) string { return r.Check }},
		column[doctor.Result]{"RESULT", checkResult},
		column[doctor.Result]{"EXAMINES", func(r doctor.Result) string { return r.Examines }},
	)
}

func checkResult(r doctor.Result) string {
	switch {
	case r.Skipped != "":
		return "skipped: " + r.Skipped
	case r.Findings > 0:
		return fmt.Sprintf("%d found", r.Findings)
	default:
		return "well"
	}
}
