package judge

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-pg/holdfast/integration/soak/history"
)

// Verdict is what a run shows.
type Verdict string

// The verdicts.
const (
	Green    Verdict = "green"    // Every promise was checked and held, and every state was reached.
	Violated Verdict = "violated" // A promise was broken.
	Invalid  Verdict = "invalid"  // None was, but the run did not go through all that it must.
)

// Report is the outcome of a judgement.
type Report struct {
	Verdict    Verdict           `json:"verdict"`
	Seed       uint64            `json:"seed"`
	Length     time.Duration     `json:"length_ns"`
	Server     string            `json:"server"`
	Counts     Counts            `json:"counts"`
	Faults     []Count           `json:"faults"` // Injected, by kind.
	Skipped    []history.Skipped `json:"skipped"`
	Promises   []Promise         `json:"promises"`
	Reached    []Count           `json:"reached"`
	Violations []Violation       `json:"violations"` // The first of them.
}

// Counts say how large the run was.
type Counts struct {
	Jobs        int `json:"jobs"`
	Operations  int `json:"operations"`
	Changes     int `json:"changes"`
	Claims      int `json:"claims"`
	Effects     int `json:"effects"`
	Faults      int `json:"faults"`
	NotInjected int `json:"faults_not_injected"` // Tried, in vain.
	Sampled     int `json:"sampled"`             // Jobs whose answers were also checked without the log.
	Undecided   int `json:"undecided"`           // Of those, in the time that one has.
}

// Count is how often something happened.
type Count struct {
	Name  string `json:"name"`
	Count int    `json:"count"`
}

// Promise is how a promise fared.
type Promise struct {
	Name    string `json:"name"`
	Checked int    `json:"checked"`
	Broken  int    `json:"broken"`

	// Bound is the rate above which, at 95 % confidence, none broken of so many excludes: the rule
	// of three, 3/Checked. 1 if nothing was checked, or if something was broken.
	Bound float64 `json:"bound"`
}

// Violation is a broken promise, and where it shows.
type Violation struct {
	Promise    string `json:"promise"`
	Sentence   string `json:"sentence"`
	Job        string `json:"job,omitempty"`
	Generation int64  `json:"generation,omitempty"`
	Resource   string `json:"resource,omitempty"` // Or the worker, of a drain.
	Seen       string `json:"seen"`
	Where      string `json:"where"`
}

// String returns the violation as one sentence.
func (v Violation) String() string {
	var about []string
	if v.Job != "" {
		about = append(about, "job "+v.Job)
	}
	if v.Generation != 0 {
		about = append(about, fmt.Sprintf("generation %d", v.Generation))
	}
	if v.Resource != "" {
		about = append(about, v.Resource)
	}
	return fmt.Sprintf("broke %s: %s: %s: %s (%s)", v.Promise, strings.TrimSuffix(v.Sentence, "."), strings.Join(about, ", "), v.Seen, v.Where)
}

func (j *judge) report() Report {
	report := Report{
		Verdict: Green, Seed: j.run.Seed, Length: j.run.Length, Server: j.run.Server, Counts: j.counts, Skipped: j.run.Skipped, Violations: j.violations,
	}
	for _, rule := range j.rules {
		promise := Promise{Name: rule.promise.name, Checked: j.checked[rule.promise], Broken: j.broken[rule.promise], Bound: 1}
		if promise.Broken == 0 && promise.Checked > 3 {
			promise.Bound = 3 / float64(promise.Checked)
		}
		if promise.Checked == 0 {
			report.Verdict = Invalid
		}
		report.Promises = append(report.Promises, promise)
	}
	for at, count := range j.reached {
		report.Reached = append(report.Reached, Count{stateNames[at], count})
		if count == 0 {
			report.Verdict = Invalid
		}
	}
	for _, kind := range slices.Sorted(maps.Keys(j.faults)) {
		report.Faults = append(report.Faults, Count{kind, j.faults[kind]})
	}
	if len(j.violations) > 0 {
		report.Verdict = Violated
	}
	return report
}

// width is that of the printed report.
const width = 100

// Write prints the report as plain text.
func (r Report) Write(w io.Writer) error {
	out := &printer{to: w}
	c := r.Counts
	out.line("%s: seed %d, %s of faults, %s", strings.ToUpper(string(r.Verdict)), r.Seed, r.Length.Round(time.Second), cmp.Or(r.Server, "unknown server"))
	out.line("%d jobs, %d claims, %d operations, %d changes, %d effects, %d faults", c.Jobs, c.Claims, c.Operations, c.Changes, c.Effects, c.Faults)
	out.line("%d jobs also without the log, %d of them undecided; %d faults could not be injected", c.Sampled, c.Undecided, c.NotInjected)
	out.line("")
	out.line("%-24s %10s %12s   %s", "PROMISE", "BROKEN", "OF CHECKED", "95 % UPPER BOUND OF THE RATE")
	for _, p := range r.Promises {
		out.line("%-24s %10d %12d   %s", p.Name, p.Broken, p.Checked, p.bound())
	}
	out.table("REACHED", r.Reached)
	out.table("FAULTS", r.Faults)
	for _, skipped := range r.Skipped {
		out.line("not injected, so nothing is shown about it: %s (%s)", skipped.Fault, skipped.Reason)
	}
	for _, violation := range r.Violations {
		out.line("")
		out.line("%s", violation)
	}
	return out.err
}

func (p Promise) bound() string {
	switch {
	case p.Checked == 0:
		return "nothing was checked"
	case p.Broken > 0 || p.Bound >= 1:
		return "-"
	case p.Bound >= 0.001:
		return fmt.Sprintf("%.2g %%", 100*p.Bound)
	}
	return fmt.Sprintf("1 in %d", int(math.Floor(1/p.Bound)))
}

// printer writes lines that fit, and keeps the first error.
type printer struct {
	to  io.Writer
	err error
}

func (p *printer) table(heading string, counts []Count) {
	p.line("")
	p.line("%-82s %10s", heading, "TIMES")
	for _, count := range counts {
		note := ""
		if count.Count == 0 {
			note = " NEVER"
		}
		p.line("%-82s %10d%s", count.Name, count.Count, note)
	}
}

// line prints a line, folded at spaces where it is too long.
func (p *printer) line(format string, arguments ...any) {
	text := strings.TrimRight(fmt.Sprintf(format, arguments...), " ")
	for first := true; first || text != ""; first = false {
		part := text
		if len(text) > width {
			cut := strings.LastIndexByte(text[:width], ' ')
			if cut <= 2 {
				cut = width
			}
			part, text = text[:cut], "  "+strings.TrimLeft(text[cut:], " ")
		} else {
			text = ""
		}
		if _, err := fmt.Fprintln(p.to, part); p.err == nil {
			p.err = err
		}
	}
}
