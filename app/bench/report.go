package bench

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"unicode/utf8"
)

// Report is what a run of the bench prints, as JSON with all its results.
type Report struct {
	Version string   `json:"version"`
	Go      string   `json:"go"`
	Size    Size     `json:"size"`
	Seed    int64    `json:"seed"`
	Repeat  int      `json:"repeat"`
	Machine Machine  `json:"machine"`
	Server  Server   `json:"server"`
	Results []Result `json:"results"`
}

// Result is what a trial found: the medians, if it was repeated.
type Result struct {
	Scenario string   `json:"scenario"`
	Trial    string   `json:"trial"`
	Figures  []Figure `json:"figures"`
}

// medians takes the median of each figure over the runs, the mean of the middle two for an
// even number of them.
func medians(runs [][]Figure) []Figure {
	values := map[string][]float64{}
	var figures []Figure
	for _, run := range runs {
		for _, figure := range run {
			if values[figure.Name] == nil {
				figures = append(figures, figure)
			}
			values[figure.Name] = append(values[figure.Name], figure.Value)
		}
	}
	for i := range figures {
		sorted := slices.Sorted(slices.Values(values[figures[i].Name]))
		middle := len(sorted) / 2
		figures[i].Value = (sorted[middle] + sorted[(len(sorted)-1)/2]) / 2
	}
	return figures
}

func (r Report) printHead(w io.Writer) error {
	head := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintf(head, "holdfast\t%s, %s, size %s, seed %d, medians of %d\n", r.Version, r.Go, r.Size, r.Seed, r.Repeat)
	fmt.Fprintf(head, "machine\t%d cores, %s, %s, %s\n", r.Machine.Cores, r.Machine.CPU, gigabytes(r.Machine.Memory), r.Machine.OS)
	fmt.Fprintf(head, "server\t%s, %s\n", r.Server.Version, r.Server.Source)
	line := ""
	for _, setting := range r.Server.Settings {
		text := setting.Name + "=" + setting.Value
		if setting.Changed {
			text += "*"
		}
		if len(line)+len(text) > 100 {
			fmt.Fprintf(head, "\t%s\n", line)
			line = ""
		}
		line = strings.TrimSpace(line + " " + text)
	}
	fmt.Fprintf(head, "\t%s\n", line)
	if slices.ContainsFunc(r.Server.Settings, func(each Setting) bool { return each.Changed }) {
		fmt.Fprintln(head, "\t*: set by the bench")
	}
	return head.Flush()
}

// printScenario prints the table of a scenario, whole or not at all.
func printScenario(w io.Writer, of scenario, results []Result) error {
	var text strings.Builder
	fmt.Fprintf(&text, "\n%s: %s\n\n", of.name, of.about)
	printTable(&text, tableOf(results))
	_, err := io.WriteString(w, text.String())
	return err
}

// tableOf has a row for each figure and a column for each trial.
func tableOf(results []Result) [][]string {
	var names []string
	cells := map[string][]string{}
	header := []string{""}
	for i, result := range results {
		header = append(header, result.Trial)
		for _, figure := range result.Figures {
			name := figure.Name
			if figure.Unit != "" {
				name += " (" + figure.Unit + ")"
			}
			if cells[name] == nil {
				names = append(names, name)
				cells[name] = make([]string, len(results))
			}
			cells[name][i] = number(figure.Value)
		}
	}
	table := [][]string{header}
	for _, name := range names {
		table = append(table, append([]string{name}, cells[name]...))
	}
	return table
}

// printTable prints names to the left and numbers to the right.
func printTable(w io.Writer, table [][]string) {
	widths := make([]int, len(table[0]))
	for _, row := range table {
		for i, cell := range row {
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	for _, row := range table {
		var line strings.Builder
		fmt.Fprintf(&line, "  %-*s", widths[0], row[0])
		for i, cell := range row[1:] {
			fmt.Fprintf(&line, "  %*s", widths[i+1], cell)
		}
		fmt.Fprintln(w, strings.TrimRight(line.String(), " "))
	}
}

// number prints three digits or more, with commas between thousands.
func number(value float64) string {
	switch {
	case value == float64(int64(value)) || value >= 100:
		return commas(strconv.FormatFloat(value, 'f', 0, 64))
	case value >= 10:
		return strconv.FormatFloat(value, 'f', 1, 64)
	case value >= 1:
		return strconv.FormatFloat(value, 'f', 2, 64)
	default:
		return strconv.FormatFloat(value, 'f', 4, 64)
	}
}

func commas(digits string) string {
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}
