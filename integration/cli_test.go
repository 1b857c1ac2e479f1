package integration

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/holdfast-pg/holdfast/integration/pgtest"
)

// patience bounds what a test of a process waits for; a busy machine needs some of it.
const patience = 60 * time.Second

// binary is the program, which the tests that run at the same time share.
var binary struct {
	mutex sync.Mutex
	users int
	dir   string
}

// programPath returns the path of the program, built when no other test uses it.
func programPath(t *testing.T) string {
	t.Helper()
	binary.mutex.Lock()
	defer binary.mutex.Unlock()
	if binary.users == 0 {
		buildBinary(t)
	}
	binary.users++
	t.Cleanup(func() {
		binary.mutex.Lock()
		defer binary.mutex.Unlock()
		if binary.users--; binary.users == 0 {
			_ = os.RemoveAll(binary.dir)
		}
	})
	return filepath.Join(binary.dir, "holdfast")
}

func buildBinary(t *testing.T) {
	t.Helper()
	dir, err := os.MkdirTemp("", "holdfast-cli-") //nolint:usetesting // It outlives the test that builds it.
	if err != nil {
		t.Fatal(err)
	}
	build := exec.CommandContext(t.Context(), "go", "build", "-o", filepath.Join(dir, "holdfast"), "../cmd/holdfast")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build the program: %v\n%s", err, out)
	}
	binary.dir = dir
}

// process is a running holdfast.
type process struct {
	command        *exec.Cmd
	stdout, stderr output
	exited         chan struct{} // Closed when code holds.
	code           int           // -1 when a signal ended it.
}

// output is what a process has written so far.
type output struct {
	mutex   sync.Mutex
	written bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	return o.written.Write(p)
}

func (o *output) String() string {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	return o.written.String()
}

// newProcess prepares a command line whose environment names only the given database. Like
// a shell, it makes the process the leader of a group.
func newProcess(t *testing.T, url string, args ...string) *process {
	t.Helper()
	p := &process{command: exec.Command(programPath(t), args...), exited: make(chan struct{})}
	p.command.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + os.Getenv("HOME"), "TMPDIR=" + os.Getenv("TMPDIR"), "HOLDFAST_DATABASE_URL=" + url}
	p.command.Stdout, p.command.Stderr = &p.stdout, &p.stderr
	p.command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	return p
}

// start runs the process in the background. The test kills it if it is left at its end.
func (p *process) start(t *testing.T) *process {
	t.Helper()
	if err := p.command.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(p.exited)
		var exit *exec.ExitError
		if err := p.command.Wait(); errors.As(err, &exit) {
			p.code = exit.ExitCode()
		}
	}()
	t.Cleanup(func() {
		_ = p.command.Process.Kill()
		<-p.exited
	})
	return p
}

// end waits for the end of the process and returns its exit code.
func (p *process) end(t *testing.T) int {
	t.Helper()
	select {
	case <-p.exited:
		return p.code
	case <-time.After(patience):
		t.Fatalf("gave up after %s waiting for the end of %q; stderr:\n%s", patience, p.command.Args, p.stderr.String())
		return 0
	}
}

// ends waits for the end of the process and checks its exit code.
func (p *process) ends(t *testing.T, code int) *process {
	t.Helper()
	if got := p.end(t); got != code {
		t.Errorf("%q: exit code %d, want %d; stdout:\n%s\nstderr:\n%s", p.command.Args[1:], got, code, p.stdout.String(), p.stderr.String())
	}
	return p
}

// says waits until the process has written the words to stdout or stderr.
func (p *process) says(t *testing.T, words string) *process {
	t.Helper()
	pgtest.Eventually(t, patience, "the process says "+words, func() bool {
		return strings.Contains(p.stdout.String(), words) || strings.Contains(p.stderr.String(), words)
	})
	return p
}

func (p *process) signal(t *testing.T, signal syscall.Signal) {
	t.Helper()
	if err := p.command.Process.Signal(signal); err != nil {
		t.Fatal(err)
	}
}

// runCLI runs a command line to its end, with a database and nothing on stdin.
func runCLI(t *testing.T, database *pgtest.Database, code int, args ...string) *process {
	t.Helper()
	return newProcess(t, database.URL, args...).start(t).ends(t, code)
}

// wantOutput checks that the process wrote each of the words to the stream.
func wantOutput(t *testing.T, stream *output, words ...string) {
	t.Helper()
	for _, word := range words {
		if !strings.Contains(stream.String(), word) {
			t.Errorf("the output does not say %q:\n%s", word, stream.String())
		}
	}
}
