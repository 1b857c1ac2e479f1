//go:build unix

package app

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/holdfast-pg/holdfast/domain"
)

const (
	// shortDelay is the time between SIGTERM and SIGKILL where a test waits for it.
	shortDelay = 100 * time.Millisecond

	// deadline bounds what a test waits for.
	deadline = 20 * time.Second
)

// stopWhenReady runs a command that makes the file "ready" in its directory, stops it then,
// and returns how long it took to end, and the error.
func stopWhenReady(t *testing.T, dir, command string, killDelay time.Duration) (took time.Duration, err error) {
	t.Helper()
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	ended := make(chan error, 1)
	program := Exec{Command: "cd '" + dir + "'; " + command, Stdout: io.Discard, Stderr: io.Discard, KillDelay: killDelay}
	go func() { ended <- program.Run(ctx, testJob()) }()
	eventually(t, "the program is ready", func() bool {
		_, err := os.Stat(filepath.Join(dir, "ready"))
		return err == nil
	})
	cancel(domain.ErrLeaseLost)
	stopped := time.Now()
	select {
	case err := <-ended:
		return time.Since(stopped), err
	case <-time.After(deadline):
		t.Fatal("the program does not end")
		return 0, nil
	}
}

func TestExec_StoppedProgramGetsSIGTERM(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	_, err := stopWhenReady(t, dir, `trap 'echo cleaned >cleaned; exit 0' TERM; : >ready; while :; do sleep 0.01; done`, deadline)
	if !errors.Is(err, domain.ErrLeaseLost) {
		t.Errorf("got %v: a program that was stopped has not done its job", err)
	}
	if _, err := os.Stat(filepath.Join(dir, "cleaned")); err != nil {
		t.Errorf("the program had no time to clean up: %v", err)
	}
}

func TestExec_StopEndsTheWholeFamily(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	// The program waits for its child, which waits for its own.
	_, _ = stopWhenReady(t, dir, `sh -c 'sh -c "echo \$\$ >grandchild; : >ready; sleep 600; :" & echo $! >child; wait' & wait`, deadline)
	for _, name := range []string{"child", "grandchild"} {
		pid := readPID(t, filepath.Join(dir, name))
		eventually(t, name+" is gone", func() bool { return !alive(pid) })
	}
}

func TestExec_ProgramThatIgnoresSIGTERMIsKilledAfterTheDelay(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	took, err := stopWhenReady(t, dir, `trap '' TERM; echo $$ >self; sh -c 'echo $$ >child; : >ready; sleep 600; :'`, shortDelay)
	if !errors.Is(err, domain.ErrLeaseLost) {
		t.Errorf("got %v", err)
	}
	if took < shortDelay {
		t.Errorf("it was killed after %s, before the delay of %s", took, shortDelay)
	}
	for _, name := range []string{"self", "child"} {
		pid := readPID(t, filepath.Join(dir, name))
		eventually(t, name+" is gone", func() bool { return !alive(pid) })
	}
}

func TestExec_ChildThatIgnoresSIGTERMDoesNotOutliveTheProgram(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	_, _ = stopWhenReady(t, dir, `sh -c 'trap "" TERM; echo $$ >child; : >ready; exec >/dev/null 2>&1; while :; do sleep 0.01; done' & wait`, deadline)
	pid := readPID(t, filepath.Join(dir, "child"))
	eventually(t, "the child is gone", func() bool { return !alive(pid) })
}

func TestExec_NothingStartsWhenTheClaimIsOverAlready(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(domain.ErrStopping)
	file := filepath.Join(t.TempDir(), "file")
	err := Exec{Command: ": >" + file, Stdout: io.Discard, Stderr: io.Discard}.Run(ctx, testJob())
	if !errors.Is(err, domain.ErrStopping) {
		t.Errorf("got %v", err)
	}
	if _, err := os.Stat(file); !errors.Is(err, os.ErrNotExist) {
		t.Error("the program ran")
	}
}

func readPID(t *testing.T, file string) int {
	t.Helper()
	var pid int
	eventually(t, "a process id stands in "+filepath.Base(file), func() bool {
		text, _ := os.ReadFile(file)
		pid, _ = strconv.Atoi(strings.TrimSpace(string(text)))
		return pid > 1
	})
	return pid
}

// alive tells whether a process runs. Its parent may be gone: then nobody else may collect
// it, and a dead one stays as a zombie.
func alive(pid int) bool {
	if syscall.Kill(pid, 0) != nil {
		return false
	}
	status, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return !errors.Is(err, os.ErrNotExist)
	}
	_, state, _ := strings.Cut(string(status), ") ")
	return !strings.HasPrefix(state, "Z")
}

func kill(t *testing.T, pid int) {
	t.Helper()
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Error(err)
	}
}

func eventually(t *testing.T, what string, condition func() bool) {
	t.Helper()
	end := time.NewTimer(deadline)
	defer end.Stop()
	again := time.NewTicker(5 * time.Millisecond)
	defer again.Stop()
	for !condition() {
		select {
		case <-again.C:
		case <-end.C:
			t.Fatalf("gave up after %s waiting until %s", deadline, what)
		}
	}
}
