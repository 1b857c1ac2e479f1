// Package embedded runs a private Postgres server for as long as a program needs one: the demo, the bench
// and the tests use it, so that none of them asks for a database to be set up first.
//
// The server listens on 127.0.0.1 only, on a port and with a password of its own, and keeps its data in a
// directory of its own. Server and directory are gone after [Server.Stop], and also when the program ends
// without it: by a return from main, by Ctrl-C, or by SIGKILL. The shell script guard.sh sees to that.
//
// The binaries are those of the machine, or else a download that is kept for the next time.
// [Server.Source] says which.
package embedded

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
)

// Options says which server to run. The zero value runs any server of the machine, major version 14 or
// later, with its default settings, and downloads PostgreSQL 18 when the machine has none.
type Options struct {
	// Version is a major version, "14" to "18". Binaries of the machine are used only when they have it.
	// Empty means any, and 18 for the download.
	Version string

	// Parameters are settings of postgresql.conf. They win over this package's own max_connections = 200
	// and lose to what makes the server private: listen_addresses, port and unix_socket_directories.
	Parameters map[string]string

	// Progress is where a download is announced: a spinner on a terminal, else plain lines.
	// Nil means nowhere.
	Progress io.Writer
}

// Server is a running private server.
type Server struct {
	setup
	url string
	dir string

	log      *os.File      // Opened before the server starts, so that it can be read when the directory is gone.
	lifeline *os.File      // The writing end of the guard's pipe. Closing it, or dying, ends the server.
	exited   chan struct{} // Closed when the guard has ended, and so the server before it.
	stop     func() error
}

// launches is how often Start tries again when another program takes the chosen port first.
const launches = 5

// Start runs a server and returns when it accepts connections. Cancelling ctx gives up the start and
// leaves nothing behind; once Start has returned, only [Server.Stop] or the end of the program ends the
// server.
//
// It returns a [*NotFoundError] when there are no binaries to run, and an error with the end of the
// server's log when the server does not come up. On Windows it always returns an error.
func Start(ctx context.Context, o Options) (*Server, error) {
	return thisHost().start(ctx, o)
}

func (h host) start(ctx context.Context, o Options) (*Server, error) {
	if err := supported(); err != nil {
		return nil, err
	}
	if o.Progress == nil {
		o.Progress = io.Discard
	}
	who, err := serverAccount()
	if err != nil {
		return nil, fmt.Errorf("start a private server: %w", err)
	}
	bins, err := h.find(ctx, o, who)
	if err != nil {
		return nil, fmt.Errorf("start a private server: %w", err)
	}
	for attempt := 1; ; attempt++ {
		s, err := h.launch(ctx, setup{bins: bins, parameters: o.Parameters, who: who, password: rand.Text()})
		if err == nil {
			return s, nil
		}
		if attempt == launches || !errors.Is(err, errPortTaken) {
			return nil, fmt.Errorf("start a private server from %s: %w", bins.dir, err)
		}
	}
}

// URL is the address of the database postgres, with the name and password of the server's superuser.
func (s *Server) URL() string { return s.url }

// Version is the version of the binaries, such as "PostgreSQL 18.1".
func (s *Server) Version() string { return "PostgreSQL " + s.bins.version }

// Source says where the binaries come from: "PATH", "pg_config", the folder they were found in, or
// "downloaded 18.3.0".
func (s *Server) Source() string { return s.bins.source }

// Stop ends the server, waits until it is gone, and removes its data directory. It shuts down at once and
// without a checkpoint: open connections break and the data is thrown away. Calls after the first
// return the same answer.
func (s *Server) Stop() error { return s.stop() }

// shutdown does the work of Stop. The guard kills a server that does not end within ten seconds, so the
// wait here has an end.
func (s *Server) shutdown() error {
	closed := s.lifeline.Close()
	<-s.exited
	// The guard has removed the directory, unless it was killed or may not write in the parent directory.
	if err := errors.Join(closed, s.log.Close(), os.RemoveAll(s.dir)); err != nil {
		return fmt.Errorf("stop the private server: %w", err)
	}
	return nil
}

func newServer(from setup, port int, dir string, log, lifeline *os.File) *Server {
	url := fmt.Sprintf("postgres://holdfast:%s@127.0.0.1:%d/postgres?sslmode=disable", from.password, port)
	s := &Server{setup: from, url: url, dir: dir, log: log, lifeline: lifeline, exited: make(chan struct{})}
	s.stop = sync.OnceValue(s.shutdown)
	return s
}
