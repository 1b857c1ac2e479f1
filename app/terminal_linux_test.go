package app

import (
	"bufio"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"unsafe"
)

// terminal opens a pseudo terminal: what a program writes to the screen is read from the
// other end.
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

// loggedOnTerminal is the line that a logger writes to a terminal.
func loggedOnTerminal(t *testing.T, format string) string {
	t.Helper()
	screen, other := terminal(t)
	log, err := NewLogger(screen, "info", format)
	if err != nil {
		t.Fatal(err)
	}
	sayHello(log)
	line, err := bufio.NewReader(other).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	return line
}

func TestNewLogger_WritesColouredTextOnATerminal(t *testing.T) {
	// Not parallel: it sets the environment.
	t.Setenv("NO_COLOR", "")
	for _, format := range []string{"auto", "text"} {
		line := loggedOnTerminal(t, format)
		if !strings.Contains(line, "hello") || !strings.Contains(line, "\x1b[") || strings.HasPrefix(line, "{") {
			t.Errorf("%s: %q", format, line)
		}
	}
	if line := loggedOnTerminal(t, "json"); !strings.HasPrefix(line, "{") || strings.Contains(line, "\x1b") {
		t.Errorf("json: %q", line)
	}
}

func TestNewLogger_NoColorMeansNoColour(t *testing.T) {
	// Not parallel: it sets the environment.
	t.Setenv("NO_COLOR", "1")
	if line := loggedOnTerminal(t, "auto"); !strings.Contains(line, "INF hello queue=reports") || strings.Contains(line, "\x1b") {
		t.Errorf("got %q", line)
	}
}
