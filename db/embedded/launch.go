package embedded

import (
	"cmp"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
)

//go:embed guard.sh
var guard string

// startLimit is how long initdb and the start may take together. A slow disk needs seconds; a server that
// needs longer than this is stuck.
const startLimit = 2 * time.Minute

var errPortTaken = errors.New("another program took the port")

// setup is what a server is started from.
type setup struct {
	bins       binaries
	parameters map[string]string
	who        account
	password   string // The superuser's.
	data       string // The data to take over; "" for a new cluster's.
}

// launch creates a data directory, starts a server on it and waits until the server accepts connections.
func (h host) launch(ctx context.Context, from setup) (*Server, error) {
	port, err := h.port()
	if err != nil {
		return nil, fmt.Errorf("find a free port: %w", err)
	}
	dir, err := privateDir(from.password, from.who)
	if err != nil {
		return nil, err
	}
	if from.data != "" {
		err = os.Rename(from.data, filepath.Join(dir, "data"))
	}
	var s *Server
	if err == nil {
		s, err = runGuard(from, dir, port)
	}
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	if err := s.ready(ctx); err != nil {
		if stop := s.Stop(); stop != nil {
			return nil, errors.Join(err, stop)
		}
		return nil, err
	}
	return s, nil
}

func freePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	return l.Addr().(*net.TCPAddr).Port, l.Close()
}

// privateDir makes the directory that holds the guard's script, the superuser's password for initdb, and
// later the log and the data. It belongs to the server's account, which must also be able to remove it.
func privateDir(password string, who account) (string, error) {
	dir, err := os.MkdirTemp(tempFolder(who), "holdfast-postgres-")
	if err != nil {
		return "", fmt.Errorf("create the data directory: %w", err)
	}
	names := []string{filepath.Join(dir, "guard"), filepath.Join(dir, "password"), dir}
	err = errors.Join(
		os.WriteFile(names[0], []byte(guard), 0o600),
		os.WriteFile(names[1], []byte(password), 0o600),
	)
	for _, name := range names {
		if err == nil && who != (account{}) {
			err = os.Chown(name, who.uid, who.gid)
		}
	}
	if err != nil {
		return "", errors.Join(fmt.Errorf("create the data directory: %w", err), os.RemoveAll(dir))
	}
	return dir, nil
}

// tempFolder is the temporary directory, unless the server's account may not make and remove directories
// there: root's is often closed to others, and then it is /tmp.
func tempFolder(who account) string {
	temp := os.TempDir()
	if who == (account{}) {
		return temp
	}
	needed := os.FileMode(0o003)
	for dir := temp; ; dir, needed = filepath.Dir(dir), 0o001 {
		if info, err := os.Stat(dir); err != nil || info.Mode().Perm()&needed != needed {
			return "/tmp"
		}
		if dir == filepath.Dir(dir) {
			return temp
		}
	}
}

// settings turns the parameters into arguments of postgres, which lets the last of two equal names win.
func settings(parameters map[string]string, port int) []string {
	args := []string{"-c", "max_connections=200"}
	for _, name := range slices.Sorted(maps.Keys(parameters)) {
		args = append(args, "-c", name+"="+parameters[name])
	}
	return append(args,
		"-c", "listen_addresses=127.0.0.1",
		"-c", fmt.Sprintf("port=%d", port),
		"-c", "unix_socket_directories=",
	)
}

// runGuard starts the script that runs the server, and one goroutine that waits for it. The goroutine
// ends when Stop closes the lifeline, or earlier when the server ends by itself.
func runGuard(from setup, dir string, port int) (*Server, error) {
	log, err := os.OpenFile(filepath.Join(dir, "log"), os.O_CREATE|os.O_RDWR|os.O_APPEND, 0o600)
	if err != nil {
		return nil, fmt.Errorf("create the server's log: %w", err)
	}
	listen, lifeline, err := os.Pipe()
	if err != nil {
		return nil, errors.Join(fmt.Errorf("create the guard's pipe: %w", err), log.Close())
	}
	args := append([]string{filepath.Join(dir, "guard"), dir, from.bins.dir}, settings(from.parameters, port)...)
	cmd := serverCommand(exec.Command("/bin/sh", args...), from.who)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.ExtraFiles = []*os.File{listen} // Descriptor 3 of the child.
	err = errors.Join(cmd.Start(), listen.Close())
	if err != nil {
		return nil, errors.Join(fmt.Errorf("run the guard: %w", err), log.Close(), lifeline.Close())
	}
	s := newServer(from, port, dir, log, lifeline)
	go func() {
		_ = cmd.Wait() // Always "killed", by the script's own hand; the log says how the server ended.
		close(s.exited)
	}()
	return s, nil
}

// serverCommand gives a command what every program of the server gets: the account, no terminal group,
// a directory it may enter, and an environment that neither translates its messages nor points it at
// another server. UTC spares initdb the search for the machine's time zone.
func serverCommand(cmd *exec.Cmd, who account) *exec.Cmd {
	cmd.Dir = "/"
	cmd.Env = []string{
		"PATH=" + strings.TrimPrefix(os.Getenv("PATH")+":/usr/bin:/bin", ":"), // For rm and sleep.
		"LC_ALL=C",
		"TZ=UTC",
	}
	cmd.SysProcAttr = ownGroup(who)
	return cmd
}

// ready waits until the server accepts a connection.
func (s *Server) ready(ctx context.Context) error {
	return s.await(ctx, "the server accepts connections", func(ctx context.Context) bool { return s.ping(ctx) == nil })
}

// await asks again and again until the condition holds, or never can because the server has ended. What
// completes the sentence "wait until …".
func (s *Server) await(ctx context.Context, what string, holds func(ctx context.Context) bool) error {
	ctx, cancel := context.WithTimeoutCause(ctx, startLimit, fmt.Errorf("not so after %v", startLimit))
	defer cancel()
	retry := time.NewTicker(10 * time.Millisecond)
	defer retry.Stop()
	for {
		if holds(ctx) {
			return nil
		}
		select {
		case <-s.exited:
			return s.earlyExit()
		case <-ctx.Done():
			return fmt.Errorf("wait until %s: %w%s", what, context.Cause(ctx), s.logTail())
		case <-retry.C:
		}
	}
}

// ping connects once. The short deadline is for a port that another program took and does not answer on.
func (s *Server) ping(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	conn, err := pgx.Connect(ctx, s.url)
	if err != nil {
		return err
	}
	return conn.Close(ctx)
}

func (s *Server) earlyExit() error {
	tail := s.logTail()
	// The text of the system, since LC_ALL=C; postgres has no exit status for it.
	if strings.Contains(tail, "Address already in use") {
		return fmt.Errorf("%w%s", errPortTaken, tail)
	}
	return fmt.Errorf("the server ended before it accepted connections%s", tail)
}

// logTail is the end of the log, ready to follow a sentence: at most 20 lines of at most 4 KiB.
func (s *Server) logTail() string {
	const most = 4 << 10
	info, err := s.log.Stat()
	if err != nil {
		return "; its log cannot be read: " + err.Error()
	}
	text, err := io.ReadAll(io.NewSectionReader(s.log, max(0, info.Size()-most), most))
	if err != nil {
		return "; its log cannot be read: " + err.Error()
	}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	lines = lines[max(0, len(lines)-20):]
	return "; the end of its log:\n  " + cmp.Or(strings.Join(lines, "\n  "), "(empty)")
}
