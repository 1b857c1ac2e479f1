package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-pg/holdfast"
)

// A worker is a process of its own. It connects, writes a line "ready" with the versions of
// what it is made of, works from the line "go" on its standard input on, and ends in good
// order at the end of that, which comes at the latest with the end of this process.
type workerProcess struct {
	command  *exec.Cmd
	input    io.WriteCloser
	versions string
	exited   chan error // Has the one answer of Wait.
}

// patience is how long a worker may take to get ready, to stop, and to do one job.
const patience = 60 * time.Second

// workerCommand is the first argument of this program when it is run as a worker.
const workerCommand = "work"

// workerOf returns this program as a worker.
func workerOf(args ...string) *exec.Cmd {
	program, err := os.Executable()
	if err != nil {
		program = os.Args[0]
	}
	worker := exec.Command(program, append([]string{workerCommand}, args...)...)
	worker.Env = os.Environ()
	return worker
}

// startWorker starts a process and waits until it is ready.
func startWorker(ctx context.Context, command *exec.Cmd, url string) (*workerProcess, error) {
	command.Env = append(command.Env, urlVariable+"="+url)
	command.Stderr = os.Stderr
	input, err := command.StdinPipe()
	if err != nil {
		return nil, err
	}
	output, err := command.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := command.Start(); err != nil {
		return nil, err
	}
	worker := &workerProcess{command: command, input: input, exited: make(chan error, 1)}
	first := make(chan string, 1)
	go func() {
		lines := bufio.NewReader(output)
		line, _ := lines.ReadString('\n')
		first <- line
		_, _ = io.Copy(io.Discard, lines)
		worker.exited <- command.Wait()
	}()
	late := time.NewTimer(patience)
	defer late.Stop()
	select {
	case line := <-first:
		versions, ready := strings.CutPrefix(strings.TrimSpace(line), "ready ")
		if !ready {
			return nil, errors.Join(fmt.Errorf("the worker said %q in place of ready", line), worker.stop())
		}
		worker.versions = versions
		return worker, nil
	case <-late.C:
		return nil, errors.Join(fmt.Errorf("the worker was not ready within %s", patience), worker.stop())
	case <-ctx.Done():
		return nil, errors.Join(context.Cause(ctx), worker.stop())
	}
}

// begin lets the worker work.
func (w *workerProcess) begin() error {
	_, err := io.WriteString(w.input, "go\n")
	return err
}

// check returns an error when the worker is gone.
func (w *workerProcess) check() error {
	select {
	case err := <-w.exited:
		w.exited <- err
		return fmt.Errorf("the worker ended before its time (error: %w)", err)
	default:
		return nil
	}
}

// stop ends the worker and waits for that. It may be called again.
func (w *workerProcess) stop() error {
	_ = w.input.Close() // Closed before, or broken because the worker is gone.
	late := time.AfterFunc(patience, func() { _ = w.command.Process.Kill() })
	defer late.Stop()
	err := <-w.exited
	w.exited <- err
	if err != nil {
		return fmt.Errorf("stop the worker: %w", err)
	}
	return nil
}

// runWorker is the other side: what this program does as a worker.
func runWorker(ctx context.Context, args []string, input io.Reader, output io.Writer) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ready := func(versions string) {
		fmt.Fprintln(output, "ready "+versions)
		lines := bufio.NewReader(input)
		if _, err := lines.ReadString('\n'); err != nil {
			cancel()
		}
		go func() {
			_, _ = io.Copy(io.Discard, lines)
			cancel()
		}()
	}
	url := os.Getenv(urlVariable)
	switch name, option := args[0], args[len(args)-1]; name {
	case "river":
		return workRiver(ctx, url, ready)
	case "bare":
		return workBare(ctx, url, holdfast.RetentionMode(option), ready)
	case "holdfast":
		concurrency, err := strconv.Atoi(option)
		if err != nil {
			return err
		}
		return workHoldfast(ctx, url, concurrency, ready)
	default:
		return fmt.Errorf("there is no worker %q", name)
	}
}

// moduleVersions returns the versions of modules that this program is built from.
func moduleVersions(paths ...string) string {
	info, _ := debug.ReadBuildInfo()
	versions := make([]string, len(paths))
	for i, path := range paths {
		version := "of this checkout" // It stands in for the module.
		for _, module := range info.Deps {
			if module.Path == path && module.Replace == nil {
				version = module.Version
			}
		}
		versions[i] = strings.TrimPrefix(path, "github.com/") + " " + version
	}
	return strings.Join(versions, ", ")
}

// pause waits, or until ctx ends.
func pause(ctx context.Context, wait time.Duration) {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}
