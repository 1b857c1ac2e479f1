package main

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/urfave/cli/v2"

	"github.com/holdfast-pg/holdfast/domain"
)

// listLimit bounds what a command lists, unless it has a flag of its own for that.
const listLimit = 1000

// The formats that a result can be printed in.
const (
	formatTable = "table"
	formatJSON  = "json"  // One document, over many lines.
	formatLines = "jsonl" // One document a line; a list is a line an item.
)

func outputFlag() cli.Flag {
	return &cli.StringFlag{Name: flagOutput, Aliases: []string{"o"}, Usage: "`FORMAT`: table, json or jsonl", Value: formatTable}
}

// checkOutput refuses a format that does not exist, before the command does anything.
func checkOutput(c *cli.Context) error { return checkFormat(c) }

// checkFormat is checkOutput for a command that has formats of its own.
func checkFormat(c *cli.Context, own ...string) error {
	known := append([]string{formatTable, formatJSON, formatLines}, own...)
	if format := c.String(flagOutput); !slices.Contains(known, format) {
		return usage("--output %q is none of %s", format, strings.Join(known, ", "))
	}
	return nil
}

// withDatabase runs a command on the database that the command line or the environment names, if
// its schema is this program's: where it is not, the error says which command mends that.
func withDatabase(c *cli.Context, action func(pool *pgxpool.Pool) error) error {
	return withAnyDatabase(c, fitting(c, action))
}

// fitting runs a command if the schema fits. A statement for another one would fail in its middle,
// for a reason that is none.
func fitting(c *cli.Context, action func(pool *pgxpool.Pool) error) func(pool *pgxpool.Pool) error {
	return func(pool *pgxpool.Pool) error {
		if _, err := domain.ReadMeta(c.Context, pool); err != nil {
			return err
		}
		return action(pool)
	}
}

// withAnyDatabase does so whatever the schema is.
func withAnyDatabase(c *cli.Context, action func(pool *pgxpool.Pool) error) error {
	pool, err := connect(c)
	if err != nil {
		return err
	}
	defer pool.Close()
	return domain.NameRole(pool, action(pool))
}

// column is one of a table: its heading, and what stands in it for an item.
type column[T any] struct {
	name string
	cell func(T) string
}

// printItems prints a list in the format that is asked for. As JSON it is {"items": [...]}.
func printItems[T any](c *cli.Context, items []T, columns ...column[T]) error {
	switch c.String(flagOutput) {
	case formatJSON:
		return printJSON(c, map[string]any{"items": items})
	case formatLines:
		for _, item := range items {
			if err := printJSON(c, item); err != nil {
				return err
			}
		}
		return nil
	}
	names := make([]string, len(columns))
	for i, column := range columns {
		names[i] = column.name
	}
	table := newTable(c)
	fmt.Fprintln(table, strings.Join(names, "\t"))
	for _, item := range items {
		cells := make([]string, len(columns))
		for i, column := range columns {
			cells[i] = oneLine(column.cell(item))
		}
		fmt.Fprintln(table, strings.Join(cells, "\t"))
	}
	return table.Flush()
}

// fact is a line about one thing.
type fact struct {
	name  string
	value any
}

// printRecord prints one thing in the format that is asked for: as a table, its facts.
func printRecord(c *cli.Context, record any, facts ...fact) error {
	if c.String(flagOutput) != formatTable {
		return printJSON(c, record)
	}
	table := newTable(c)
	for _, fact := range facts {
		fmt.Fprintf(table, "%s\t%s\n", fact.name, inCell(fmt.Sprint(fact.value)))
	}
	return table.Flush()
}

func newTable(c *cli.Context) *tabwriter.Writer {
	return tabwriter.NewWriter(c.App.Writer, 0, 0, 2, ' ', 0)
}

// printJSON prints one document, on a line of its own where lines are asked for.
func printJSON(c *cli.Context, value any) error {
	encoder := json.NewEncoder(c.App.Writer)
	if c.String(flagOutput) != formatLines {
		encoder.SetIndent("", "  ")
	}
	encoder.SetEscapeHTML(false)
	return encoder.Encode(value)
}

// noteLimit says when there may be more than a command lists.
func noteLimit(c *cli.Context, listed, limit int, what string) {
	if listed == limit {
		fmt.Fprintf(c.App.ErrWriter, "only the first %d %s are listed\n", limit, what)
	}
}

// oneLine keeps a text within its cell of a table of items.
func oneLine(text string) string {
	return strings.Join(strings.Fields(text), " ")
}

// shortened is the start of a text, with an ellipsis for the rest.
func shortened(text string, most int) string {
	text = oneLine(text)
	if runes := []rune(text); len(runes) > most {
		return string(runes[:most]) + "…"
	}
	return text
}

// inCell keeps a text of several lines in the second column of a table of facts.
func inCell(text string) string {
	return strings.ReplaceAll(strings.ReplaceAll(text, "\t", "    "), "\n", "\n\t")
}

// moment is a time as a person reads it, in the zone of the machine.
func moment(at time.Time) string {
	return at.Local().Format("2006-01-02 15:04:05.000 MST")
}

// ago is how long something has lasted, to the second.
func ago(d time.Duration) string {
	return formatDuration(d.Round(time.Second)) + " ago"
}

func yesNo(value bool) string {
	if value {
		return "yes"
	}
	return "no"
}
