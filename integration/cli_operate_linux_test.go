package integration

import (
	"io"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"github.com/holdfast-pg/holdfast/integration/pgtest"
)

// terminal opens a pseudo terminal: what a process writes to the screen is read from the other
// end, and what is written there, the process reads.
func terminal(t *testing.T) (screen, other *os.File) {
	t.Helper()
	other, err := os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = other.Close() })
	var unlocked, number int32
	for request, argument := range map[uintptr]*int32{syscall.TIOCSPTLCK: &unlocked, syscall.TIOCGPTN: &number} {
		if _, _, failed := syscall.Syscall(syscall.SYS_IOCTL, other.Fd(), request, uintptr(unsafe.Pointer(argument))); failed != 0 {
			t.Fatal(failed)
		}
	}
	screen, err = os.OpenFile("/dev/pts/"+strconv.Itoa(int(number)), os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = screen.Close() })
	return screen, other
}

// onTerminal runs a command on a terminal, answers its question, and returns what stood on the
// screen.
func onTerminal(t *testing.T, database *pgtest.Database, answer string, code int, args ...string) (run *process, seen string) {
	t.Helper()
	screen, other := terminal(t)
	var shown output
	copied := make(chan struct{})
	go func() {
		defer close(copied)
		_, _ = io.Copy(&shown, other)
	}()
	run = newProcess(t, database.URL, args...)
	run.command.Stdin, run.command.Stderr = screen, screen
	run.start(t)
	pgtest.Eventually(t, patience, "the command asks", func() bool { return strings.Contains(shown.String(), "? [y/N] ") })
	if _, err := io.WriteString(other, answer+"\n"); err != nil {
		t.Fatal(err)
	}
	run.ends(t, code)
	_ = screen.Close() // Nobody writes any more: what is left on it can be read to its end.
	<-copied
	return run, shown.String()
}

func TestCLI_DeadRedriveAsksOnATerminal(t *testing.T) {
	t.Parallel()
	database := pgtest.New(t)
	fillDead(t, database, "default", "note", 2500, 2, false)
	_, seen := onTerminal(t, database, "n", 1, "dead", "redrive", "--all")
	if !strings.Contains(seen, "redrive 2500 jobs? [y/N] ") || !strings.Contains(seen, "holdfast: nothing was changed") {
		t.Errorf("the screen shows\n%s", seen)
	}
	if dead := pgtest.Value[int](t, database, "SELECT count(*) FROM holdfast.inbox WHERE status = 'dead_letter'"); dead != 2500 {
		t.Errorf("%d jobs are dead", dead)
	}
	run, seen := onTerminal(t, database, "yes", 0, "dead", "redrive", "--all")
	wantText(t, &run.stdout, "redriven 2500 of 2500 jobs")
	// A line that moves, and none in the log.
	if !strings.Contains(seen, "(2000/2500") || strings.Contains(seen, "INF") {
		t.Errorf("the screen shows\n%q", seen)
	}
}
