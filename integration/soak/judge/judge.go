// Package judge decides whether a run of the soak kept the promises of docs/guarantees.md. It
// compares what clients were told with what Postgres committed by its own log, and leans on no
// code of the product.
//
// It reads what the clients wrote first, because a line of the log is judged by what was asked
// for and answered; then the log, the sink and the final rows, in one pass each. What it
// remembers grows with the jobs and their claims, not with the records.
package judge

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/holdfast-pg/holdfast/integration/soak/history"
)

// Run judges the run in a folder. An error, such as history.ErrCutShort, says that it cannot be
// judged; what it broke or did not reach is in the report.
func Run(ctx context.Context, dir string) (Report, error) {
	return run(ctx, dir, allRules)
}

func run(ctx context.Context, dir string, rules []rule) (Report, error) {
	j, err := read(ctx, dir, rules)
	if err != nil {
		return Report{}, err
	}
	return j.report(), nil
}

// read reads the whole run and checks it.
func read(ctx context.Context, dir string, rules []rule) (*judge, error) {
	manifest, err := history.Open(dir)
	if err != nil {
		return nil, err
	}
	if manifest.Lease <= 0 {
		return nil, fmt.Errorf("%w: %s has no lease", history.ErrCutShort, history.ManifestFile)
	}
	j := &judge{dir: dir, run: manifest, rules: rules, book: newBook(), checked: map[*promise]int{}, broken: map[*promise]int{}, faults: map[string]int{}}
	for _, pass := range []func(context.Context) error{j.readClients, j.readLog, j.readSink, j.readFaults, j.readFinal, j.checkRest, j.checkSamples} {
		if err := pass(ctx); err != nil {
			return nil, fmt.Errorf("judge %s: %w", dir, err)
		}
	}
	return j, nil
}

// judge is one judgement under way.
type judge struct {
	dir   string
	run   history.Run
	rules []rule
	book

	checked, broken map[*promise]int
	violations      []Violation
	reached         [stateCount]int
	faults          map[string]int
	counts          Counts
	recovered       recovery
	tokens          tokens
	resources       map[uint64]*resource
	drained         int // How many drains have been checked, in the order of their ends.
}

// records yields the records of a file until the context ends.
func records[T any](ctx context.Context, j *judge, name string, use func(record *T, line uint32) error) error {
	var line uint32
	for record, err := range history.Read[T](j.dir, name) {
		if err != nil {
			return err
		}
		line++
		if line%1024 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		if err := use(&record, line); err != nil {
			return fmt.Errorf("%s, line %d: %w", name, line, err)
		}
	}
	return nil
}

// subject is what a violation is about. Zero fields are left out.
type subject struct {
	job        uint32
	generation int64
	other      string
}

// shown is how many violations a report has in full.
const shown = 20

func (j *judge) broke(p *promise, about subject, where, format string, arguments ...any) {
	j.broken[p]++
	if len(j.violations) == shown {
		return
	}
	violation := Violation{Promise: p.name, Sentence: p.sentence, Generation: about.generation, Resource: about.other, Seen: fmt.Sprintf(format, arguments...), Where: where}
	if about.job != 0 {
		violation.Job = j.jobs.at(about.job).id.String()
	}
	j.violations = append(j.violations, violation)
}

func (j *judge) place(at where) string {
	return fmt.Sprintf("%s, line %d", j.files.text(uint32(at.file)), at.line)
}

func (j *judge) inLog(line uint32) string {
	return fmt.Sprintf("%s, line %d", history.WALFile, line)
}

// checkRest asks what can only be asked at the end.
func (j *judge) checkRest(ctx context.Context) error {
	for _, rule := range j.rules {
		check := counter(j, rule.promise)
		if rule.asked != nil {
			for record := range j.enqueues.all {
				check(rule.asked(j, record))
			}
		}
		if rule.job != nil {
			for record := range j.jobs.all {
				check(rule.job(j, record))
			}
		}
		if rule.claim != nil {
			for generation, record := range j.allClaims {
				check(rule.claim(j, generation, record))
			}
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
	j.reachAtEnd()
	return nil
}

func counter(j *judge, p *promise) func(bool) {
	return func(applied bool) {
		if applied {
			j.checked[p]++
		}
	}
}

// readFinal counts the rows of each job at the end.
func (j *judge) readFinal(ctx context.Context) error {
	return records(ctx, j, history.FinalFile, func(row *history.Row, line uint32) error {
		job, err := j.jobOf(row.ID)
		if err != nil {
			return err
		}
		at := place(slices.Index(placeNames[:], row.Place))
		if at != inbox && at != archive {
			return fmt.Errorf("%.60q is no place", row.Place)
		}
		job.final = min(job.final+1, 2)
		job.finalLine = line
		switch {
		case job.final > 1, job.place == nowhere: // keptJob tells of it.
		case job.place != at || at == inbox && job.status.String() != row.Status || job.generation != row.Generation:
			j.broke(kept, subject{job: job.number, generation: row.Generation}, fmt.Sprintf("%s, line %d", history.FinalFile, line),
				"at the end it is in %s as %q, and by the log in %s as %s of generation %d", row.Place, row.Status, placeNames[job.place], job.status, job.generation)
		}
		return nil
	})
}

func (j *judge) readFaults(ctx context.Context) error {
	return records(ctx, j, history.FaultsFile, func(fault *history.Fault, _ uint32) error {
		if fault.Error != "" {
			j.counts.NotInjected++
			return nil
		}
		j.faults[fault.Kind]++
		j.counts.Faults++
		switch {
		case fault.Kind == history.ServerCrash && j.recovered.last > nanos(fault.End):
			j.reach(crashed)
		case strings.HasPrefix(fault.Kind, history.CutBeforeCommit):
			j.reach(cutBefore)
		case strings.HasPrefix(fault.Kind, history.CutAfterCommit):
			j.reach(cutAfter)
		}
		return nil
	})
}

// recovery knows when Postgres committed last.
type recovery struct{ last int64 }
