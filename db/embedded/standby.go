package embedded

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/jackc/pgx/v5"
)

// Standby shuts the server down in good order, copies its data, starts it again, and starts the copy as a
// standby that follows nobody, on a port of its own with the same password and settings. The standby lacks
// whatever the server commits from then on, as one that lags behind lacks the last commits. Its data is as
// private as the server's, and either may be stopped first. Otherwise Standby is like [Server.Restart].
func (s *Server) Standby(ctx context.Context) (*Server, error) {
	for attempt := 1; ; attempt++ {
		standby, err := s.startCopy(ctx)
		if err == nil {
			return standby, nil
		}
		if attempt == launches || !errors.Is(err, errPortTaken) {
			return nil, fmt.Errorf("start a standby of the private server: %w", err)
		}
	}
}

// Promote makes a standby a primary: it ends its recovery, begins a new timeline, and accepts writes when
// Promote returns. Open connections stay.
func (s *Server) Promote(ctx context.Context) error {
	if err := s.promote(ctx); err != nil {
		return fmt.Errorf("promote the private server: %w", err)
	}
	return nil
}

func (s *Server) promote(ctx context.Context) error {
	conn, err := pgx.Connect(ctx, s.url)
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	var done bool
	if err := conn.QueryRow(ctx, "SELECT pg_promote()").Scan(&done); err != nil {
		return err
	}
	if !done {
		return errors.New("not done within a minute" + s.logTail())
	}
	return nil
}

// startCopy asks the guard for a copy of the data between two runs of the server.
func (s *Server) startCopy(ctx context.Context) (*Server, error) {
	const folder = "copy"
	from := s.setup
	from.data = filepath.Join(s.dir, folder)
	if err := os.Mkdir(from.data, 0o700); err != nil {
		return nil, err
	}
	err := s.give(from.data)
	if err == nil {
		err = s.restart(ctx, inOrder)
	}
	if err == nil {
		err = s.writeSignal(folder)
	}
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(from.data))
	}
	return thisHost().launch(ctx, from)
}

// writeSignal puts the file into a folder of data that makes a server on it a standby.
func (s *Server) writeSignal(folder string) error {
	file := filepath.Join(s.dir, folder, "standby.signal")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		return err
	}
	return s.give(file)
}

// give makes a file the property of the server's account, which may then also remove it.
func (s *Server) give(file string) error {
	if s.who == (account{}) {
		return nil
	}
	return os.Chown(file, s.who.uid, s.who.gid)
}
