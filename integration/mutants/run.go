package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// What becomes of a mutant. Only the first is what it should be.
const (
	caughtBy       = "caught"
	survived       = "SURVIVED"
	doesNotFit     = "DOES NOT FIT"     // Its text does not stand in the file exactly once.
	doesNotCompile = "DOES NOT COMPILE" // A compiler is no test.
	didNotRun      = "DID NOT RUN"      // The named test does not exist, was skipped or was not reached.
	tookTooLong    = "TOOK TOO LONG"
	controlFailed  = "CONTROL FAILED" // The named test does not pass without any mutant.
)

// buildLimit bounds a build, which has no cached packages to go by on a new machine.
const buildLimit = 5 * time.Minute

type result struct {
	mutant

	verdict string
	detail  string // What was said about it: by the compiler, or by the test.
	took    time.Duration
}

// nursery is where mutants are planted: in changed copies of single files, which the build
// takes in place of the real ones.
type nursery struct {
	root  string        // The folder of go.mod.
	temp  string        // Of the copies and the test binaries.
	limit time.Duration // How long a test may run.
}

// plantAll runs the tests once as they are, then plants the mutants, a few at once, and hands
// each result to note as it comes.
func (n nursery) plantAll(ctx context.Context, mutants []mutant, atOnce int, note func(result)) {
	statements := n.oncePerFolder(ctx, mutants)
	sound := n.control(ctx, mutants, statements)
	results := make(chan result)
	var gardeners sync.WaitGroup
	next := make(chan int)
	for range atOnce {
		gardeners.Go(func() {
			for place := range next {
				m := mutants[place]
				if said, passed := sound[m.folder+" "+m.test]; said != survived || !passed {
					results <- result{mutant: m, verdict: controlFailed, detail: said}
					continue
				}
				results <- n.plant(ctx, m, place, statements)
			}
		})
	}
	go func() {
		defer close(results)
		defer gardeners.Wait()
		defer close(next)
		for place := range mutants {
			select {
			case next <- place:
			case <-ctx.Done():
				return
			}
		}
	}()
	for r := range results {
		if ctx.Err() == nil {
			note(r)
		}
	}
}

// control runs the named tests without any mutant, those of a folder together, and returns the
// verdict of each by folder and name: survived says that it passed. They run in the binary in
// which statements can be changed, so that it is known that this alone changes nothing.
func (n nursery) control(ctx context.Context, mutants []mutant, statements func(folder string) shared) map[string]string {
	tests := map[string][]string{}
	for _, m := range mutants {
		if !slices.Contains(tests[m.folder], m.test) {
			tests[m.folder] = append(tests[m.folder], m.test)
		}
	}
	verdicts := map[string]string{}
	for folder, names := range tests {
		built := statements(folder)
		events, err := []event(nil), built.err
		if err == nil {
			// They share the time, but are many: each has the limit when it stands alone.
			events, err = n.watch(ctx, folder, built.binary, n.limit*time.Duration(2+len(names)/4), []string{"-test.run=" + patternOf(names...)}, nil)
		}
		for _, name := range names {
			verdict, detail := judge(events, name)
			switch {
			case err != nil:
				verdict = fmt.Sprintf("%v\n%s", err, built.said)
			case verdict != survived:
				verdict += "\n" + detail
			}
			verdicts[folder+" "+name] = verdict
		}
	}
	return verdicts
}

// plant tries one mutant. One of a statement needs no build of its own.
func (n nursery) plant(ctx context.Context, m mutant, place int, statements func(folder string) shared) result {
	began := time.Now()
	finish := func(verdict, detail string) result {
		return result{mutant: m, verdict: verdict, detail: detail, took: time.Since(began)}
	}
	source, err := os.ReadFile(filepath.Join(n.root, m.file))
	if err != nil {
		return finish(doesNotFit, err.Error())
	}
	if count := strings.Count(string(source), m.old); count != 1 || m.old == m.new {
		return finish(doesNotFit, fmt.Sprintf("the text to be replaced stands %d times in %s, want once and replaced by another:\n%s", count, m.file, m.old))
	}
	var built shared
	var environment []string
	if name := statementOf(m, string(source)); name != "" {
		built = statements(m.folder)
		environment = []string{nameVariable + "=" + name, oldVariable + "=" + m.old, newVariable + "=" + m.new}
	} else {
		plot := filepath.Join(n.temp, strconv.Itoa(place))
		defer func() { _ = os.RemoveAll(plot) }()
		built = n.grow(ctx, m, plot, string(source))
	}
	if built.err != nil {
		return finish(doesNotCompile, fmt.Sprintf("%v\n%s", built.err, built.said))
	}
	arguments := []string{"-test.run=" + patternOf(m.test)}
	if m.flag != "" {
		arguments = append(arguments, m.flag)
	}
	events, err := n.watch(ctx, m.folder, built.binary, n.limit, arguments, environment)
	if err != nil {
		return finish(didNotRun, err.Error())
	}
	return finish(judge(events, m.test))
}

// grow builds the test binary of one mutant.
func (n nursery) grow(ctx context.Context, m mutant, plot, source string) shared {
	overlay, err := writeOverlay(plot, map[string]string{
		filepath.Join(n.root, m.file): strings.Replace(source, m.old, m.new, 1),
	})
	if err != nil {
		return shared{err: err}
	}
	binary := filepath.Join(plot, "mutant.test")
	said, err := n.build(ctx, m.folder, overlay, binary)
	return shared{binary, said, err}
}

// build makes the test binary of a folder with the changes of an overlay, and returns what the
// compiler says.
func (n nursery) build(ctx context.Context, folder, overlay, binary string) (said string, err error) {
	ctx, cancel := context.WithTimeout(ctx, buildLimit)
	defer cancel()
	command := exec.CommandContext(ctx, "go", "test", "-c", "-vet=off", "-ldflags=-s -w", "-overlay", overlay, "-o", binary, "./"+folder)
	command.Dir = n.root
	output, err := command.CombinedOutput()
	if err == nil {
		_, err = os.Stat(binary) // There is none of a folder without tests.
	}
	return string(output), err
}

// event is one line of what test2json makes of a test's output.
type event struct {
	Action string
	Test   string
	Output string
}

// watch runs the tests of a binary, in their folder as go test does, and returns what happened.
// That a test fails is no error.
func (n nursery) watch(ctx context.Context, folder, binary string, limit time.Duration, arguments, environment []string) ([]event, error) {
	// The test ends itself at the limit, and says so; it is killed only when it cannot.
	ctx, cancel := context.WithTimeout(ctx, limit+10*time.Second)
	defer cancel()
	test := exec.CommandContext(ctx, binary, append(arguments, "-test.v=test2json", "-test.timeout="+limit.String())...)
	test.Dir = filepath.Join(n.root, folder)
	test.Env = append(os.Environ(), environment...)
	test.WaitDelay = 5 * time.Second // A server that outlives its test may hold the pipe.
	output, failed := test.CombinedOutput()
	if ctx.Err() != nil {
		return nil, fmt.Errorf("the test was killed after %s", limit)
	}
	convert := exec.CommandContext(ctx, "go", "tool", "test2json")
	convert.Dir = n.root
	convert.Stdin = strings.NewReader(string(output))
	lines, err := convert.Output()
	if err != nil {
		return nil, fmt.Errorf("read the test's output: %w", err)
	}
	var events []event
	for decoder := json.NewDecoder(strings.NewReader(string(lines))); decoder.More(); {
		var next event
		if err := decoder.Decode(&next); err != nil {
			return nil, fmt.Errorf("read the test's output: %w", err)
		}
		events = append(events, next)
	}
	if failed != nil {
		events = append(events, event{Action: "exit", Output: failed.Error()})
	}
	return events, nil
}

// died are the words with which a test binary dies.
var died = regexp.MustCompile(`(?m)^(panic: |fatal error: )`)

// judge tells what a test says of a mutant: it is caught only if the named test ran and either
// failed or was what ran when the binary died.
func judge(events []event, test string) (verdict, detail string) {
	var ran bool
	var ended string
	var said, exit strings.Builder
	for _, e := range events {
		switch {
		case e.Action == "exit":
			exit.WriteString(e.Output)
		case e.Action == "output":
			said.WriteString(e.Output)
		case e.Test != test:
		case e.Action == "run":
			ran = true
		case e.Action == "pass", e.Action == "fail", e.Action == "skip":
			ended = e.Action
		}
	}
	switch text := said.String(); {
	case strings.Contains(text, "panic: test timed out after"):
		return tookTooLong, text
	case ran && ended == "pass":
		return survived, text
	case ran && ended == "fail":
		return caughtBy, text
	case ran && ended == "" && exit.Len() > 0 && died.MatchString(text):
		return caughtBy, text
	default:
		return didNotRun, text + exit.String()
	}
}

// patternOf returns the -test.run of tests; of a subtest, when it is the only one.
func patternOf(tests ...string) string {
	if len(tests) > 1 {
		names := make([]string, len(tests))
		for i, test := range tests {
			names[i], _, _ = strings.Cut(test, "/")
		}
		return "^(" + strings.Join(names, "|") + ")$"
	}
	parts := strings.Split(tests[0], "/")
	for i, part := range parts {
		parts[i] = "^" + regexp.QuoteMeta(part) + "$"
	}
	return strings.Join(parts, "/")
}
