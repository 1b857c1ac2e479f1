package main

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
)

// report is everything that a reader needs to believe a number, and the numbers.
type report struct {
	Machine   machineFacts   `json:"machine"`
	Server    serverFacts    `json:"server"`
	Method    []string       `json:"method"`
	Systems   []systemFacts  `json:"systems"`
	Scenarios []scenarioRows `json:"scenarios"`
	Notes     []string       `json:"notes"`
}

type serverFacts struct {
	Version  string            `json:"version"`
	Source   string            `json:"source"`
	Settings map[string]string `json:"settings"`
}

type systemFacts struct {
	Name     string `json:"name"`
	Versions string `json:"versions"`
	Settings string `json:"settings"`
}

type scenarioRows struct {
	Name string `json:"name"`
	Rows []row  `json:"rows"`
}

// row is one line of a table. Ratios are of medians; 0 where there is nothing to compare with.
type row struct {
	System     string   `json:"system"`
	Median     float64  `json:"median_jobs_per_second"`
	Min        float64  `json:"min_jobs_per_second"`
	Max        float64  `json:"max_jobs_per_second"`
	OfRiver    float64  `json:"ratio_to_river"`
	OfGraphile float64  `json:"ratio_to_graphile_worker"`
	OfBare     float64  `json:"ratio_to_bare_loop"`
	WALPerJob  float64  `json:"median_wal_bytes_per_job"`
	Samples    []sample `json:"samples"`
}

// What the figures in the documentation were measured on lies between these, archived bare
// loop to River, in drain.
const leastComparable, mostComparable = 2.2, 2.9

// shortNote is the number of waiting jobs below which steady measured the producer too.
const shortNote = backlog / 4

// busyNote is the load average at the start above which the machine was not quiet.
const busyNote = 0.5

// newRows makes the table of a scenario from the samples of each system, in the order of
// systems.
func newRows(scenario string, systems []system, samples map[string][]sample) scenarioRows {
	medianOf := func(name string) float64 { return median(samples[name], rateOf) }
	rows := scenarioRows{Name: scenario}
	for _, each := range systems {
		own := samples[each.Name()]
		bare := bareSystem{inbox{retentionArchive}}.Name()
		if each.Deletes() {
			bare = bareSystem{inbox{retentionDrop}}.Name()
		}
		rate := medianOf(each.Name())
		rows.Rows = append(rows.Rows, row{
			System:     each.Name(),
			Median:     rate,
			Min:        slices.MinFunc(own, compareRates).Rate,
			Max:        slices.MaxFunc(own, compareRates).Rate,
			OfRiver:    ratio(rate, medianOf(riverSystem{}.Name())),
			OfGraphile: ratio(rate, medianOf(graphileSystem{}.Name())),
			OfBare:     ratio(rate, medianOf(bare)),
			WALPerJob:  median(own, func(s sample) float64 { return s.WALPerJob }),
			Samples:    own,
		})
	}
	return rows
}

func rateOf(s sample) float64 { return s.Rate }

func compareRates(a, b sample) int {
	switch {
	case a.Rate < b.Rate:
		return -1
	case a.Rate > b.Rate:
		return 1
	default:
		return 0
	}
}

func median(samples []sample, value func(sample) float64) float64 {
	if len(samples) == 0 {
		return 0
	}
	values := make([]float64, len(samples))
	for i, each := range samples {
		values[i] = value(each)
	}
	slices.Sort(values)
	middle := len(values) / 2
	if len(values)%2 == 0 {
		return (values[middle-1] + values[middle]) / 2
	}
	return values[middle]
}

func ratio(a, b float64) float64 {
	if b == 0 {
		return 0
	}
	return a / b
}

// addNotes adds what a reader must know before comparing.
func (r *report) addNotes() {
	for _, setting := range []string{"fsync", "synchronous_commit"} {
		if value := r.Server.Settings[setting]; value == "off" {
			r.Notes = append(r.Notes, setting+" is off: the rates are not those of durable work")
		}
	}
	if load, err := strconv.ParseFloat(r.Machine.Load, 64); err == nil && load > busyNote {
		r.Notes = append(r.Notes, fmt.Sprintf("the machine had other work: its load average was %.2f at the start", load))
	}
	for _, scenario := range r.Scenarios {
		for _, row := range scenario.Rows {
			if scenario.Name == drain && row.System == (bareSystem{inbox{retentionArchive}}).Name() &&
				row.OfRiver > 0 && (row.OfRiver < leastComparable || row.OfRiver > mostComparable) {
				r.Notes = append(r.Notes, fmt.Sprintf(
					"this machine is not comparable with the published figures: the %s is %.2f × River in drain, and theirs is %.1f to %.1f",
					row.System, row.OfRiver, leastComparable, mostComparable))
			}
			waiting := median(row.Samples, func(s sample) float64 { return s.Waiting })
			if scenario.Name == steady && waiting < shortNote {
				r.Notes = append(r.Notes, fmt.Sprintf(
					"%s, %s: %.0f jobs were found waiting on the average, so the rate is that of adding jobs",
					scenario.Name, row.System, waiting))
			}
		}
	}
}

func (r *report) writeJSON(out io.Writer) error {
	encoder := json.NewEncoder(out)
	encoder.SetIndent("", "  ")
	return encoder.Encode(r)
}

func (r *report) writeText(out io.Writer) error {
	fmt.Fprintf(out, "Machine   %s\nServer    PostgreSQL %s, %s\n          %s\n", r.Machine, r.Server.Version, r.Server.Source, r.Server.settings())
	for i, line := range r.Method {
		heading := ""
		if i == 0 {
			heading = "Method"
		}
		fmt.Fprintf(out, "%-10s%s\n", heading, line)
	}
	fmt.Fprintln(out, "Systems")
	for _, each := range r.Systems {
		fmt.Fprintf(out, "  %s: %s\n    %s\n", each.Name, each.Versions, each.Settings)
	}
	for _, scenario := range r.Scenarios {
		if err := scenario.writeText(out); err != nil {
			return err
		}
	}
	if len(r.Notes) > 0 {
		fmt.Fprintln(out)
	}
	for _, note := range r.Notes {
		fmt.Fprintln(out, "NB: "+note)
	}
	return nil
}

func (s scenarioRows) writeText(out io.Writer) error {
	fmt.Fprintf(out, "\n%s\n", s.Name)
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "\tjobs/s\tmin–max\t× River\t× Graphile\t× bare\tWAL B/job\t")
	for _, row := range s.Rows {
		fmt.Fprintf(table, "%s\t%.0f\t%.0f–%.0f\t%s\t%s\t%s\t%.0f\t\n", row.System, row.Median, row.Min, row.Max,
			showRatio(row.OfRiver), showRatio(row.OfGraphile), showRatio(row.OfBare), row.WALPerJob)
	}
	return table.Flush()
}

func showRatio(ratio float64) string {
	if ratio == 0 {
		return "–"
	}
	return fmt.Sprintf("%.2f", ratio)
}

func (s serverFacts) settings() string {
	parts := make([]string, len(reported))
	for i, name := range reported {
		parts[i] = name + " " + s.Settings[name]
	}
	return strings.Join(parts, ", ")
}
