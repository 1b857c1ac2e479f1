package simulate

import (
	"fmt"
	"io"
	"strings"
)

// Print prints a report for people, and asks before each row whether to go on; a nil more
// stands for yes. It ends early, without an error, when the answer is no.
func Print(out io.Writer, report Report, more func() bool) {
	p := &printer{out: out, more: more}
	p.text(fmt.Sprintf("%s, seed %d: %s", report.Preset, report.Seed, report.About))
	p.line("")
	p.line("# a handler that runs, . none, 0 buckets owned, x gone; > marks who did it")
	for _, scene := range report.Scenes {
		p.scene(scene)
	}
	p.counts(report.Scenes)
	p.line("")
	p.text(report.Lesson)
}

const (
	// width is that of the page.
	width = 100
	// laneWidth is that of the lane of a worker.
	laneWidth = 8
)

// printer prints lines until somebody has seen enough.
type printer struct {
	out  io.Writer
	more func() bool
	done bool
}

func (p *printer) line(format string, args ...any) {
	if !p.done {
		fmt.Fprintln(p.out, strings.TrimRight(fmt.Sprintf(format, args...), " "))
	}
}

// text prints a text of any length.
func (p *printer) text(text string) {
	for _, line := range wrapped(text, width) {
		p.line("%s", line)
	}
}

// row is a line that is waited for.
func (p *printer) row(text string) {
	if p.done || p.more != nil && !p.more() {
		p.done = true
		return
	}
	p.line("%s", text)
}

func (p *printer) scene(scene Scene) {
	p.line("\n%s\n", scene.Name)
	workers := workersOf(scene)
	p.line("      time  %s", lanesText(workers, func(name string) string { return " " + name }))
	for _, event := range scene.Events {
		p.row(eventText(event, workers, scene.byBuckets))
	}
	for i, found := range scene.Outcome {
		lead := "       end  "
		if i > 0 {
			lead = strings.Repeat(" ", len(lead))
		}
		p.row(lead + found)
	}
}

// workersOf lists those that have a lane, in the order in which they came.
func workersOf(scene Scene) (names []string) {
	if n := len(scene.Events); n > 0 {
		for _, lane := range scene.Events[n-1].Lanes {
			names = append(names, lane.Worker)
		}
	}
	return names
}

func lanesText(workers []string, cell func(name string) string) string {
	var text strings.Builder
	for _, name := range workers {
		fmt.Fprintf(&text, "%-*s", laneWidth, cell(name))
	}
	return text.String()
}

func eventText(event Event, workers []string, byBuckets bool) string {
	lanes := map[string]Lane{}
	for _, lane := range event.Lanes {
		lanes[lane.Worker] = lane
	}
	return fmt.Sprintf("%8.3f s  %s%s", event.At, lanesText(workers, func(name string) string {
		lane, exists := lanes[name]
		switch {
		case !exists:
			return ""
		case event.Worker == name:
			return ">" + laneText(lane, byBuckets)
		default:
			return " " + laneText(lane, byBuckets)
		}
	}), event.Text)
}

// laneText draws where a worker stands: a # for each handler that runs, or how many buckets it
// owns.
func laneText(lane Lane, byBuckets bool) string {
	switch {
	case lane.State == StatePaused:
		return "paused"
	case lane.State == StateKilled, lane.State == StateLeft:
		return "x"
	case byBuckets:
		return thousands(lane.Buckets)
	case lane.Running == 0:
		return "."
	default:
		return strings.Repeat("#", min(lane.Running, laneWidth-2))
	}
}

// counts prints those of all scenes side by side. A count that is zero in each of them is left
// out, unless it is one that every story is about.
func (p *printer) counts(scenes []Scene) {
	p.line("")
	names := make([]string, len(scenes))
	for i, scene := range scenes {
		names[i] = scene.Name
	}
	p.line("  %-34s %s", "", cells(names))
	for _, row := range countRows {
		values, some := make([]string, len(scenes)), row.always
		for i, scene := range scenes {
			values[i] = row.text(scene.Counts)
			some = some || values[i] != "0" && values[i] != ""
		}
		if some {
			p.line("  %-34s %s", row.name, cells(values))
		}
	}
}

func cells(values []string) string {
	var text strings.Builder
	for _, value := range values {
		fmt.Fprintf(&text, "%24s", value)
	}
	return text.String()
}

// countRow is a line of the counts.
type countRow struct {
	name   string
	always bool
	text   func(Counts) string
}

func number(name string, always bool, of func(Counts) int) countRow {
	return countRow{name, always, func(c Counts) string { return thousands(of(c)) }}
}

// waiting is a row of percentiles; it is left out where nobody has waited for such a job.
func waiting(name string, always bool, of func(Counts) *Waits) countRow {
	return countRow{name, always, func(c Counts) string {
		waits := of(c)
		if waits == nil {
			return ""
		}
		return fmt.Sprintf("%.3f s / %.3f s", waits.P50, waits.P99)
	}}
}

var countRows = []countRow{
	number("jobs enqueued", true, func(c Counts) int { return c.Enqueued }),
	number("duplicate requests found", true, func(c Counts) int { return c.Duplicates }),
	number("jobs done", true, func(c Counts) int { return c.Done }),
	number("runs of handlers", true, func(c Counts) int { return c.Runs }),
	number("jobs reclaimed", false, func(c Counts) int { return c.Reclaimed }),
	number("runs beside one of their key", false, func(c Counts) int { return c.Overlaps }),
	number("effects out of order", false, func(c Counts) int { return c.OutOfOrder }),
	number("effects made twice", true, func(c Counts) int { return c.Repeated }),
	number("stale writes refused", true, func(c Counts) int { return c.WritesRefused }),
	number("stale results refused", true, func(c Counts) int { return c.ResultsRefused }),
	number("updates lost", false, func(c Counts) int { return c.LostUpdates }),
	number("buckets moved by the join", false, func(c Counts) int { return c.Moved }),
	waiting("wait, p50 / p99", true, func(c Counts) *Waits { return c.Waits }),
	waiting("  of the hot key", false, func(c Counts) *Waits { return c.HotWaits }),
	waiting("  of the others", false, func(c Counts) *Waits { return c.OtherWaits }),
}

// wrapped breaks a text into lines.
func wrapped(text string, width int) (lines []string) {
	line := ""
	for _, word := range strings.Fields(text) {
		if line != "" && len([]rune(line))+1+len([]rune(word)) > width {
			lines = append(lines, line)
			line = ""
		}
		if line != "" {
			line += " "
		}
		line += word
	}
	return append(lines, line)
}
