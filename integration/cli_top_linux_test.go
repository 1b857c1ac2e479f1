package integration

import (
	"context"
	"fmt"
	"io"
	"os"
	"reflect"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"github.com/jackc/pgx/v5"
	"golang.org/x/term"

	"github.com/holdfast-pg/holdfast/integration/pgtest"
)

// topOnScreen is a `holdfast top` that a person looks at.
type topOnScreen struct {
	*process

	screen, other *os.File
	shown         output
	before        *term.State
}

func watchTop(t *testing.T, database *pgtest.Database, width, height uint16, environment ...string) *topOnScreen {
	t.Helper()
	top := &topOnScreen{}
	top.screen, top.other = terminal(t)
	top.resize(t, width, height)
	var err error
	if top.before, err = term.GetState(int(top.screen.Fd())); err != nil {
		t.Fatal(err)
	}
	go func() { _, _ = io.Copy(&top.shown, top.other) }()
	top.process = newProcess(t, database.URL, "top", "--interval", "100ms")
	top.command.Stdin, top.command.Stdout = top.screen, top.screen
	top.command.Env = append(top.command.Env, environment...)
	top.start(t)
	return top
}

// resize gives the terminal another size, of which the kernel tells only those that it controls.
func (s *topOnScreen) resize(t *testing.T, width, height uint16) {
	t.Helper()
	size := [4]uint16{height, width}
	if _, _, failed := syscall.Syscall(syscall.SYS_IOCTL, s.other.Fd(), syscall.TIOCSWINSZ, uintptr(unsafe.Pointer(&size))); failed != 0 {
		t.Fatal(failed)
	}
	if s.process != nil {
		s.signal(t, syscall.SIGWINCH)
	}
}

// frame is the latest one that was drawn to its end.
func (s *topOnScreen) frame() string {
	text, _, _ := cutLast(s.shown.String(), "\x1b[J")
	_, frame, _ := cutLast(text, "\x1b[H")
	return strings.ReplaceAll(frame, "\x1b[K", "")
}

func cutLast(text, mark string) (before, after string, found bool) {
	at := strings.LastIndex(text, mark)
	if at < 0 {
		return text, "", false
	}
	return text[:at], text[at+len(mark):], true
}

// shows waits for a frame with the words.
func (s *topOnScreen) shows(t *testing.T, words string) {
	t.Helper()
	pgtest.Eventually(t, patience, "the screen shows "+words, func() bool { return strings.Contains(s.frame(), words) })
}

// quits ends it, and expects the terminal as it was.
func (s *topOnScreen) quits(t *testing.T, end func()) {
	t.Helper()
	end()
	s.ends(t, 0)
	after, err := term.GetState(int(s.screen.Fd()))
	if err != nil || !reflect.DeepEqual(after, s.before) {
		t.Errorf("the terminal was left as %+v, not %+v, %v", after, s.before, err)
	}
	pgtest.Eventually(t, patience, "the screen is given back", func() bool { return strings.HasSuffix(s.shown.String(), "\x1b[?7h\x1b[?25h\x1b[?1049l") })
	if s.stderr.String() != "" {
		t.Errorf("stderr: %s", s.stderr.String())
	}
}

func (s *topOnScreen) press(t *testing.T, key string) {
	t.Helper()
	if _, err := io.WriteString(s.other, key); err != nil {
		t.Fatal(err)
	}
}

func TestCLI_TopWatchesOnATerminalUntilAKeyEndsIt(t *testing.T) {
	t.Parallel()
	database := pgtest.New(t)
	top := watchTop(t, database, 100, 24)
	top.shows(t, "\x1b[32mverdict  healthy: 0 workers live\x1b[0m")
	enqueue(t, database)
	top.shows(t, "\x1b[1;31mverdict  nobody works on queue default\x1b[0m")
	top.shows(t, "/s enqueued")
	top.resize(t, 20, 4)
	top.shows(t, "verdict  nobody wor…\x1b[0m\r\n")
	if lines := strings.Count(top.frame(), "\r\n") + 1; lines != 4 {
		t.Errorf("%d lines in a terminal of 4:\n%q", lines, top.frame())
	}
	top.quits(t, func() { top.press(t, "xq") })
}

func TestCLI_TopSaysThatTheDatabaseIsLostAndFindsItAgain(t *testing.T) {
	t.Parallel()
	database := pgtest.New(t)
	allow := connectionsTo(t, database)
	top := watchTop(t, database, 100, 24, "NO_COLOR=1")
	top.shows(t, "healthy: 0 workers live")
	allow(false)
	top.shows(t, "lost     the database, for ")
	top.shows(t, "is not currently accepting connections")
	top.shows(t, "healthy: 0 workers live") // As it was seen last.
	allow(true)
	pgtest.Eventually(t, patience, "the database is found again", func() bool { return !strings.Contains(top.frame(), "lost ") })
	top.shows(t, "/s enqueued")
	if strings.Contains(top.shown.String(), "\x1b[32m") {
		t.Errorf("the screen is coloured: %q", top.frame())
	}
	top.quits(t, func() { top.press(t, "\x03") })

	signalled := watchTop(t, database, 80, 24)
	signalled.shows(t, "healthy")
	signalled.quits(t, func() { signalled.signal(t, syscall.SIGTERM) })
}

// connectionsTo forbids connections to a database, and ends those that there are, or allows them.
func connectionsTo(t *testing.T, database *pgtest.Database) (allow func(bool)) {
	t.Helper()
	config := database.Config()
	name := config.Database
	config.Database = "postgres"
	conn, err := pgx.ConnectConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	return func(allowed bool) {
		t.Helper()
		change(t, conn, fmt.Sprintf("ALTER DATABASE %s ALLOW_CONNECTIONS %t", pgx.Identifier{name}.Sanitize(), allowed))
		if !allowed {
			change(t, conn, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '"+name+"'")
		}
	}
}
