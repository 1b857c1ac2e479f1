package main

import (
	"fmt"
	"reflect"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/holdfast-pg/holdfast/app/tune"
)

// printAdvice prints the settings with their rules, what to watch for, what does not go
// together, and what is missing.
func printAdvice(c *cli.Context, report tune.Report) error {
	err := printItems(c, report.Settings,
		column[tune.Setting]{"OF", func(s tune.Setting) string { return s.Of }},
		column[tune.Setting]{"SETTING", func(s tune.Setting) string { return s.Setting }},
		column[tune.Setting]{"CURRENT", func(s tune.Setting) string { return s.Current }},
		column[tune.Setting]{"FROM", func(s tune.Setting) string { return s.From }},
		column[tune.Setting]{"RECOMMENDED", recommended},
		column[tune.Setting]{"RULE", func(s tune.Setting) string { return s.Rule }},
	)
	if err != nil {
		return err
	}
	fmt.Fprint(c.App.Writer, "*: not as it is\n\n")
	err = printItems(c, report.Settings,
		column[tune.Setting]{"SETTING", func(s tune.Setting) string { return s.Setting }},
		column[tune.Setting]{"WATCH FOR", func(s tune.Setting) string { return s.Watch }},
	)
	if err != nil {
		return err
	}
	fmt.Fprintln(c.App.Writer)
	for _, conflict := range report.Conflicts {
		fmt.Fprintf(c.App.Writer, "conflict: %s: %s\n", strings.Join(conflict.Between, ", "), conflict.What)
	}
	if len(report.Conflicts) == 0 {
		fmt.Fprintln(c.App.Writer, "no conflicts between the current settings and the work")
	}
	for _, lack := range report.Lacks {
		fmt.Fprintf(c.App.Writer, "missing: %s\n  needs  %s\n", lack.What, lack.Needs)
	}
	return nil
}

func recommended(s tune.Setting) string {
	if s.Change() {
		return s.Recommended + "*"
	}
	return s.Recommended
}

// printConfiguration prints what to paste; of work that is impossible nothing, on stdout.
func printConfiguration(c *cli.Context, w tune.Workload, r tune.Recommendation) error {
	if len(r.Lacks) > 0 {
		for _, lack := range r.Lacks {
			fmt.Fprintf(c.App.ErrWriter, "missing: %s; needs %s\n", lack.What, lack.Needs)
		}
		return &findingsError{count: len(r.Lacks)}
	}
	text := r.GoLiteral(w)
	if c.String(flagOutput) == formatEnv {
		text = environment(w, r)
	}
	_, err := fmt.Fprint(c.App.Writer, text)
	return err
}

// environment is what to put into the environment of `holdfast work`, a line a variable, with the
// rule above it. A setting that `work` does not take is named in a comment.
func environment(w tune.Workload, r tune.Recommendation) string {
	changes := r.Changes(w)
	if len(changes) == 0 {
		return "# The defaults suit this work.\n"
	}
	var text strings.Builder
	for _, change := range changes {
		fmt.Fprintf(&text, "# %s: %s\n", change.Setting, change.Rule)
		value := reflect.ValueOf(r.Worker).FieldByName(change.Setting).Interface()
		if variable := variableOf(change.Setting); variable != "" {
			fmt.Fprintf(&text, "%s=%v\n", variable, value)
		} else {
			fmt.Fprintf(&text, "# `holdfast work` has no setting for it; %s=%v in Go.\n", change.Setting, value)
		}
	}
	return text.String()
}

// variableOf is the environment variable of a field of holdfast.Config; "" for none.
func variableOf(field string) string {
	for _, setting := range workSettings {
		if setting.field == field {
			return setting.variable
		}
	}
	return ""
}
