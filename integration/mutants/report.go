package main

import (
	"fmt"
	"path/filepath"
	"strings"
)

// line tells of one result.
func line(r result, verbose bool) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%-16s %s", r.verdict, r.name)
	if r.verdict == caughtBy {
		fmt.Fprintf(&b, ": %s", r.test)
	}
	fmt.Fprintf(&b, " (%.1f s)\n", r.took.Seconds())
	if verbose || r.verdict != caughtBy {
		fmt.Fprintf(&b, "    %s in %s\n", r.test, r.folder)
		for text := range strings.Lines(essence(r.detail)) {
			b.WriteString("    " + strings.TrimRight(text, "\n") + "\n")
		}
	}
	return b.String()
}

// essence keeps the first lines of a text that say something: a worker's log is long.
func essence(detail string) string {
	const most = 12
	var lines []string
	for text := range strings.Lines(detail) {
		switch bare := strings.TrimSpace(text); {
		case bare == "", strings.HasPrefix(bare, "=== "), strings.HasPrefix(bare, "pgtest: "), strings.HasPrefix(bare, "time="):
		case len(lines) == most:
			return strings.Join(append(lines, "…\n"), "")
		default:
			lines = append(lines, text)
		}
	}
	return strings.Join(lines, "")
}

// tableHead begins the table of docs/planted-bugs.md.
const tableHead = "| Planted bug | Promise | Caught by | Where |\n| --- | --- | --- | --- |\n"

// markdown returns the table of mutants. Those of -short have a star.
func markdown(mutants []mutant) string {
	var b strings.Builder
	b.WriteString(tableHead)
	for _, m := range mutants {
		star := ""
		if m.short {
			star = " *"
		}
		fmt.Fprintf(&b, "| %s%s | %s | `%s` | %s |\n", m.name, star, m.promise, m.test, rung(m.folder))
	}
	return b.String()
}

// rung names the rung of the ladder on which a test stands, by its folder.
func rung(folder string) string {
	if folder == inJudge {
		return "the judge by itself"
	}
	switch first, _, _ := strings.Cut(filepath.ToSlash(folder), "/"); first {
	case "domain":
		return "a rule by itself"
	case "worker":
		return "the worker in virtual time"
	default:
		return "Postgres"
	}
}
