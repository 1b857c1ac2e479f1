package bench

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/holdfast-pg/holdfast/app"
)

const (
	readyTimeout = 30 * time.Second // for a worker process to be ready.
	leaveTimeout = 30 * time.Second // for it to drain.
)

// crew are the worker processes of a trial.
type crew struct {
	stage    *stage
	children []*child
}

// child is one worker process as its parent sees it.
type child struct {
	command *exec.Cmd
	stdin   io.WriteCloser
	stderr  strings.Builder
	ready   chan struct{}
	exited  chan struct{} // Closed when exit and report hold.
	exit    error
	handled atomic.Int64
	sent    chan sent // Its answers to count.

	mutex  sync.Mutex
	wrong  string // What the worker logged as an error first.
	report *workReport
}

// hire makes a crew of worker processes and waits until each is ready. None works before
// measure.
func (s *stage) hire(ctx context.Context, settings workerSettings, processes int) (*crew, error) {
	s.server.progress.begin(s.title+": start workers", 0)
	settings.URL = s.url
	hired := &crew{stage: s}
	for range processes {
		started, err := startChild(s.Program, settings)
		if err != nil {
			return nil, fmt.Errorf("start a worker: %w", err)
		}
		s.children = append(s.children, started)
		hired.children = append(hired.children, started)
	}
	for _, child := range hired.children {
		select {
		case <-child.ready:
		case <-child.exited:
			return nil, child.failure()
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(readyTimeout):
			return nil, fmt.Errorf("a worker was not ready after %s", readyTimeout)
		}
	}
	return hired, nil
}

// startChild starts a process and what reads its output. The settings go over stdin, since
// others can read a command line and an environment.
func startChild(program string, settings workerSettings) (*child, error) {
	encoded, err := json.Marshal(settings)
	if err != nil {
		return nil, err
	}
	c := &child{command: exec.CommandContext(context.Background(), program, "bench-worker"), ready: make(chan struct{}), exited: make(chan struct{}), sent: make(chan sent, 1)}
	app.OwnProcessGroup(c.command)
	c.command.Stderr = &c.stderr
	stdout, err := c.command.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if c.stdin, err = c.command.StdinPipe(); err != nil {
		return nil, err
	}
	if err := c.command.Start(); err != nil {
		return nil, err
	}
	go func() {
		c.read(stdout)
		c.exit = c.command.Wait()
		close(c.exited)
	}()
	_, err = c.stdin.Write(append(encoded, '\n'))
	if err != nil {
		c.kill()
	}
	return c, err
}

// read follows what the process says.
func (c *child) read(stdout io.Reader) {
	lines := bufio.NewReader(stdout)
	for {
		text, err := lines.ReadString('\n')
		if err != nil {
			return
		}
		text = strings.TrimSpace(text)
		if wrong, is := strings.CutPrefix(text, saysError); is {
			c.note(wrong)
		} else if counts, is := strings.CutPrefix(text, saysSent); is {
			c.readSent(counts)
		} else if text == saysReady {
			close(c.ready)
		} else if handled, err := strconv.ParseInt(text, 10, 64); err == nil {
			c.handled.Store(handled)
		} else if err := json.Unmarshal([]byte(text), &c.report); err != nil {
			c.note("cannot be understood: " + err.Error())
		}
	}
}

func (c *child) readSent(counts string) {
	var answer sent
	if err := json.Unmarshal([]byte(counts), &answer); err != nil {
		c.note("cannot be understood: " + err.Error())
	}
	c.sent <- answer
}

func (c *child) note(wrong string) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if c.wrong == "" {
		c.wrong = wrong
	}
}

// failure tells what went wrong with the process; its end is wrong too.
func (c *child) failure() error {
	c.mutex.Lock()
	wrong := c.wrong
	c.mutex.Unlock()
	if wrong != "" {
		return errors.New("a worker met an error: " + wrong)
	}
	select {
	case <-c.exited:
		return fmt.Errorf("a worker ended before its time: %s (%s)", strings.TrimSpace(c.stderr.String()), c.command.ProcessState)
	default:
		return nil
	}
}

func (c *child) kill() {
	_ = c.command.Process.Kill()
	_ = c.stdin.Close()
	<-c.exited
}

// start tells every worker to begin.
func (c *crew) start() error {
	for _, child := range c.children {
		if _, err := io.WriteString(child.stdin, "start\n"); err != nil {
			return errors.Join(fmt.Errorf("start a worker: %w", err), child.failure())
		}
	}
	return nil
}

// finish tells handlers that hold their jobs to return.
func (c *crew) finish() error {
	for _, child := range c.children {
		if _, err := io.WriteString(child.stdin, asksFinish); err != nil {
			return errors.Join(fmt.Errorf("let a worker finish: %w", err), child.failure())
		}
	}
	return nil
}

// handled is how many jobs the handlers have run, as of a few milliseconds ago.
func (c *crew) handled() int {
	handled := 0
	for _, child := range c.children {
		handled += int(child.handled.Load())
	}
	return handled
}

// count asks the workers what they have sent so far, and adds it up.
func (c *crew) count(ctx context.Context) (total sent, err error) {
	for _, child := range c.children {
		if _, err := io.WriteString(child.stdin, asksCount); err != nil {
			return total, errors.Join(fmt.Errorf("ask a worker: %w", err), child.failure())
		}
		select {
		case answer := <-child.sent:
			total.Statements += answer.Statements
			total.Trips += answer.Trips
			total.Pings += answer.Pings
			total.Transactions += answer.Transactions
		case <-child.exited:
			return total, child.failure()
		case <-ctx.Done():
			return total, ctx.Err()
		}
	}
	return total, nil
}

// failure is that of the first worker that failed.
func (c *crew) failure() error {
	for _, child := range c.children {
		if err := child.failure(); err != nil {
			return err
		}
	}
	return nil
}

// stop drains the workers and adds their reports up.
func (c *crew) stop(ctx context.Context) (*workReport, error) {
	for _, child := range c.children {
		if err := errors.Join(child.failure(), child.command.Process.Signal(syscall.SIGTERM)); err != nil {
			return nil, err
		}
	}
	total := &workReport{Wait: newHistogram(), Claims: newStatementWork(), Renewals: newStatementWork(), Began: map[int64]int64{}}
	for _, child := range c.children {
		select {
		case <-child.exited:
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(leaveTimeout):
			return nil, fmt.Errorf("a worker did not leave within %s", leaveTimeout)
		}
		if child.exit != nil || child.wrong != "" || child.report == nil {
			return nil, child.failure()
		}
		total.add(child.report)
		total.CPU += child.command.ProcessState.UserTime() + child.command.ProcessState.SystemTime()
	}
	return total, nil
}

func (r *workReport) add(other *workReport) {
	r.Handled += other.Handled
	r.Trips += other.Trips
	r.PeakMemory += other.PeakMemory
	r.Wait.merge(other.Wait)
	r.Claims.add(other.Claims)
	r.Renewals.add(other.Renewals)
	maps.Copy(r.Began, other.Began)
}
