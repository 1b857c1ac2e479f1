// Package bench measures Holdfast on a Postgres server: how fast it works jobs off, what that
// costs, and how long a job waits. Workers run in processes of their own, as they do in
// production; the bench's own statements count in no figure.
//
// A measurement is a scenario, one file for each; scenario.go says what it is made of.
package bench

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"
	"time"

	"github.com/holdfast-pg/holdfast/domain"
)

// scenarios are those of the bench, in the order in which all of them run.
var scenarios = []scenario{
	drain, steady, slots,
	payloads, enqueues, latency, idle,
	ladder, pinned, renew, ordered, support, observed, tuned, relays,
}

// Size says how much work a scenario does.
type Size string

// The sizes.
const (
	SizeSmall Size = "small" // Enough to show that it works.
	SizeFull  Size = "full"  // Enough to measure.
)

// Options say what is measured. What is 0 is the scenario's to choose.
type Options struct {
	Scenarios   []string      // Empty: all of them.
	DatabaseURL string        // "" starts a private Postgres that is gone afterwards.
	Size        Size          // Which defaults the scenarios choose.
	Seed        int64         // Chooses the keys and the payloads.
	Jobs        int           // For scenarios that work off a number of jobs.
	Duration    time.Duration // For scenarios that run for a time.
	Payload     int           // Bytes of a payload.
	Concurrency int           // Handlers at once in a worker.
	Share       float64       // Of the greatest rate, for scenarios that offer jobs; 0 offers all they take.
	Repeat      int           // Runs of each trial; the report has their medians.

	Print    func(Report) error // Prints the report when it is complete; without it tables are printed as they come.
	Version  string             // Of this program, for the report.
	Program  string             // The holdfast binary.
	Out      io.Writer          // Gets the report.
	Progress io.Writer          // Is shown how far it is, if it is a terminal.
}

// ErrRestarted says that no number of the scenario can be trusted.
var ErrRestarted = errors.New("the server restarted meanwhile, and no number of this scenario can be trusted")

// Names are the names of the scenarios, each with what it does.
func Names() (names, about []string) {
	for _, s := range scenarios {
		names, about = append(names, s.name), append(about, s.about)
	}
	return names, about
}

// choose returns the scenarios named, or all. An unknown name is a domain.InvalidError.
func choose(names []string) ([]scenario, error) {
	if len(names) == 0 {
		return scenarios, nil
	}
	var chosen []scenario
	for _, name := range names {
		found := false
		for _, s := range scenarios {
			if s.name == name {
				chosen, found = append(chosen, s), true
			}
		}
		if !found {
			known, _ := Names()
			return nil, &domain.InvalidError{Field: "scenario", Reason: fmt.Sprintf("%q is none of %s", name, strings.Join(known, ", "))}
		}
	}
	return chosen, nil
}

// Check tells whether the options make sense, before anything is started: a
// domain.InvalidError if not.
func (o Options) Check() error {
	switch {
	case o.Size != SizeSmall && o.Size != SizeFull:
		return &domain.InvalidError{Field: "--size", Reason: fmt.Sprintf("%q is none of %s, %s", o.Size, SizeSmall, SizeFull)}
	case o.Share < 0 || o.Share > 1:
		return &domain.InvalidError{Field: "--share", Reason: fmt.Sprintf("%g is not between 0 and 1", o.Share)}
	case o.Payload < leastPayload || o.Payload > mostPayload:
		return &domain.InvalidError{Field: "--payload", Reason: fmt.Sprintf("%d is not between %d and %d bytes", o.Payload, leastPayload, mostPayload)}
	case o.Duration != 0 && o.Duration < time.Second:
		return &domain.InvalidError{Field: "--duration", Reason: fmt.Sprintf("%s is less than a second", o.Duration)}
	}
	_, err := choose(o.Scenarios)
	return err
}

// Run runs the scenarios one after the other and prints each one's table as soon as it is
// complete; Options.Print gets all of them, when all are. Of a scenario that fails nothing is
// printed, and it is the last. ErrRestarted: the server did.
func Run(ctx context.Context, options Options) (err error) {
	if err := options.Check(); err != nil {
		return err
	}
	chosen, _ := choose(options.Scenarios) // Checked above.
	progress := newProgress(options.Progress)
	defer progress.end()
	server, err := openServer(ctx, options.DatabaseURL, progress)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, server.close()) }()
	report := Report{
		Version: options.Version, Go: runtime.Version(), Size: options.Size, Seed: options.Seed, Repeat: options.Repeat,
		Machine: thisMachine(ctx),
	}
	if report.Server, err = server.describe(ctx); err != nil {
		return err
	}
	if options.Print != nil {
		return server.runForReport(ctx, options, chosen, report)
	}
	return server.runForTables(ctx, options, chosen, report)
}

func (s *server) runForReport(ctx context.Context, options Options, chosen []scenario, report Report) error {
	for _, scenario := range chosen {
		results, err := s.runScenario(ctx, options, scenario)
		if err != nil {
			return err
		}
		report.Results = append(report.Results, results...)
	}
	return options.Print(report)
}

func (s *server) runForTables(ctx context.Context, options Options, chosen []scenario, report Report) error {
	for i, scenario := range chosen {
		results, err := s.runScenario(ctx, options, scenario)
		if err != nil {
			return err
		}
		if i == 0 { // Not earlier: without a number it says nothing.
			err = report.printHead(options.Out)
		}
		if err := errors.Join(err, printScenario(options.Out, scenario, results)); err != nil {
			return err
		}
	}
	return nil
}

// runScenario runs the trials of a scenario in turns, as often as was asked for, and returns
// the medians of each: what the machine does meanwhile then touches all of them alike.
func (s *server) runScenario(ctx context.Context, options Options, of scenario) ([]Result, error) {
	defer s.progress.end()
	trials := of.trials(options)
	runs := make([][][]Figure, len(trials))
	for run := range max(options.Repeat, 1) {
		for i, t := range trials {
			figures, err := s.try(ctx, options, t, fmt.Sprintf("%s, %s", of.name, t.name), run)
			if err != nil {
				return nil, fmt.Errorf("%s, %s: %w", of.name, t.name, err)
			}
			runs[i] = append(runs[i], figures)
		}
	}
	results := make([]Result, len(trials))
	for i, t := range trials {
		results[i] = Result{Scenario: of.name, Trial: t.name, Figures: medians(runs[i])}
	}
	return results, nil
}

// try runs a trial once, on a database of its own, and makes sure that the server was there
// all the time.
func (s *server) try(ctx context.Context, options Options, t trial, title string, run int) (figures []Figure, err error) {
	if err := s.checkRoom(ctx, t.needs); err != nil {
		return nil, err
	}
	options.Seed += int64(run)
	stage, err := s.newStage(ctx, options, title)
	if err == nil {
		figures, err = t.run(ctx, stage)
		// Asked first, because it waits for a server that is starting, and that drops nothing.
		restarted := s.checkStarted(ctx)
		err = errors.Join(cmp.Or(restarted, err), stage.close())
	}
	return figures, err
}
