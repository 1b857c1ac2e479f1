package demo

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/holdfast-pg/holdfast/app"
	"github.com/holdfast-pg/holdfast/app/orders"
)

// The workers' timings: short, so that a crash is over in seconds.
const (
	demoLease        = 3 * time.Second
	demoHousekeeping = time.Second
	demoHeartbeat    = time.Second
)

// workerProcess is one `holdfast work`.
type workerProcess struct {
	name            string
	applicationName string
	command         *exec.Cmd
	exited          chan struct{}
	exitErr         error

	mutex  sync.Mutex
	ids    []string // It has a new one when it was taken for dead and joined again.
	points map[string]bool
}

// startWorkers starts three workers for receipts and two for labels and waits until each has
// joined.
func (s *show) startWorkers(ctx context.Context) error {
	for i := 1; i <= 5; i++ {
		start := s.startSender
		if i > 3 {
			start = s.startPrinter
		}
		if err := start(fmt.Sprintf("w%d", i)); err != nil {
			return fmt.Errorf("start a worker: %w", err)
		}
	}
	s.story.tell("workers w1, w2 and w3 started for receipts, w4 and w5 for labels; lease %s", demoLease)
	return s.until(ctx, "the workers to join", func() (bool, error) {
		for _, process := range s.workers {
			if len(process.allIDs()) == 0 {
				return false, process.failure()
			}
		}
		return true, nil
	})
}

// startSender starts a worker whose handler is a program that sends receipts.
func (s *show) startSender(name string) error {
	// exec: the handler is the worker's own child and dies with it.
	handler := "exec " + quote(s.Program) + " demo-receipt"
	if s.WithoutMark {
		handler += " --without-mark"
	}
	return s.startWorker(name, s.readHandlers, "work",
		"--queue", s.queue, "--kind", orders.SendReceipt{}.Kind(), "--exec", handler,
		"--concurrency", "4", "--log-format", "json",
		"--lease", demoLease.String(), "--housekeeping", demoHousekeeping.String(), "--heartbeat", demoHeartbeat.String())
}

// startPrinter starts a worker whose handler prints labels in the worker's own process.
func (s *show) startPrinter(name string) error {
	args := []string{"demo-label", "--queue", s.labels}
	if s.WithoutFence {
		args = append(args, "--without-fence")
	}
	return s.startWorker(name, s.readSteps, args...)
}

// startWorker starts a process and what reads its output.
func (s *show) startWorker(name string, read func(*workerProcess, io.Reader), args ...string) error {
	process := &workerProcess{
		name:            name,
		applicationName: s.queue + "-" + name,
		exited:          make(chan struct{}),
		points:          map[string]bool{},
	}
	process.command = exec.CommandContext(context.Background(), s.Program, args...)
	process.command.Env = append(os.Environ(), app.EnvDatabaseURL+"="+s.url, "PGAPPNAME="+process.applicationName)
	app.OwnProcessGroup(process.command)
	stdout, err := process.command.StdoutPipe()
	if err != nil {
		return err
	}
	stderr, err := process.command.StderrPipe()
	if err != nil {
		return err
	}
	if err := process.command.Start(); err != nil {
		return err
	}
	s.workers = append(s.workers, process)
	var reading sync.WaitGroup
	reading.Go(func() { read(process, stdout) })
	reading.Go(func() { s.readLog(process, stderr) })
	go func() {
		reading.Wait()
		process.exitErr = process.command.Wait()
		close(process.exited)
	}()
	return nil
}

// readHandlers reads what the handlers print, through their worker's stdout.
func (s *show) readHandlers(process *workerProcess, stdout io.Reader) {
	lines := bufio.NewScanner(stdout)
	for lines.Scan() {
		line := lines.Text()
		if order, marked := strings.CutSuffix(line, alreadySent); marked {
			s.tellReclaims(true)
			s.story.tell("%s runs %s again and finds the mark: no second receipt", process.name, order)
			continue
		}
		if order, again := strings.CutSuffix(line, sentAgain); again {
			s.tellReclaims(true)
			s.story.warn("%s runs %s again and sends a second receipt", process.name, order)
			continue
		}
		process.mutex.Lock()
		process.points[line] = true
		process.mutex.Unlock()
	}
}

// readSteps reads what the handlers of labels print.
func (s *show) readSteps(process *workerProcess, stdout io.Reader) {
	lines := bufio.NewScanner(stdout)
	for lines.Scan() {
		taken := step{by: process}
		if json.Unmarshal(lines.Bytes(), &taken) == nil {
			s.steps.add(taken)
		}
	}
}

// readLog reads what the worker logs.
func (s *show) readLog(process *workerProcess, stderr io.Reader) {
	lines := bufio.NewScanner(stderr)
	for lines.Scan() {
		var entry struct {
			Level      string `json:"level"`
			Message    string `json:"msg"`
			WorkerID   string `json:"worker_id"`
			Generation int64  `json:"generation"`
			From       string `json:"from"`
			Error      string `json:"error"`
		}
		if json.Unmarshal(lines.Bytes(), &entry) != nil {
			continue
		}
		switch {
		case entry.Message == "worker joined":
			process.mutex.Lock()
			process.ids = append(process.ids, entry.WorkerID)
			process.mutex.Unlock()
		case entry.Message == "job settled":
			s.steps.add(step{Name: stepCompleted, Token: entry.Generation, by: process})
		case entry.Message == "the result was refused":
			s.steps.add(step{Name: stepCompletionRefused, Token: entry.Generation, by: process})
		case entry.From != "":
			s.reclaims.add(entry.From, handover{by: process.name, from: s.nameOf(entry.From)})
		case entry.Level == "ERROR":
			s.story.warn("%s: %s: %s", process.name, entry.Message, entry.Error)
		}
	}
}

// quote makes a path one word for the shell.
func quote(path string) string {
	return "'" + strings.ReplaceAll(path, "'", `'\''`) + "'"
}

func (s *show) nameOf(workerID string) string {
	for _, process := range s.workers {
		if slices.Contains(process.allIDs(), workerID) {
			return process.name
		}
	}
	return workerID
}

// awaitPoint waits until a handler says that it stands at a point, and returns its worker.
func (s *show) awaitPoint(ctx context.Context, point string) (at *workerProcess, err error) {
	err = s.until(ctx, "a handler to reach: "+point, func() (bool, error) {
		for _, process := range s.workers {
			process.mutex.Lock()
			reached := process.points[point]
			process.mutex.Unlock()
			if reached {
				at = process
				return true, nil
			}
		}
		return false, nil
	})
	return at, err
}

// reclaimedFrom counts the jobs reclaimed from a worker, under any of its ids.
func (s *show) reclaimedFrom(process *workerProcess) int {
	jobs := 0
	for _, id := range process.allIDs() {
		jobs += s.reclaims.countFrom(id)
	}
	return jobs
}

func (p *workerProcess) allIDs() []string {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	return slices.Clone(p.ids)
}

// failure tells why a worker that should run does not.
func (p *workerProcess) failure() error {
	select {
	case <-p.exited:
		return fmt.Errorf("worker %s ended: %w", p.name, p.exitErr)
	default:
		return nil
	}
}

func (p *workerProcess) running() bool {
	return p.failure() == nil
}

// kill ends the process without a word of warning to it.
func (p *workerProcess) kill() error {
	if err := p.command.Process.Kill(); err != nil {
		return fmt.Errorf("kill %s: %w", p.name, err)
	}
	<-p.exited
	return nil
}

// drainSurvivors ends the workers in good order.
func (s *show) drainSurvivors() error {
	var survivors []*workerProcess
	for _, process := range s.workers {
		if !process.running() {
			continue
		}
		if err := process.command.Process.Signal(syscall.SIGTERM); err != nil {
			return fmt.Errorf("drain %s: %w", process.name, err)
		}
		survivors = append(survivors, process)
	}
	var names []string
	for _, process := range survivors {
		<-process.exited
		if process.exitErr != nil {
			return fmt.Errorf("drain %s: %w", process.name, process.exitErr)
		}
		names = append(names, process.name)
	}
	s.story.tell("%s drained and left (SIGTERM)", strings.Join(names, ", "))
	return nil
}

// stopWorkers makes sure that no process outlives the demo.
func (s *show) stopWorkers() {
	for _, process := range s.workers {
		if process.running() {
			_ = process.kill()
		}
	}
}
