package embedded

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
)

// Restart ends the server as a crash would, at once and without a checkpoint, and starts it again with its
// data, port and settings. Open connections break, and what was committed is there again. It returns when
// the server accepts connections, and must not run beside another restart or [Server.Stop].
func (s *Server) Restart(ctx context.Context) error {
	if err := s.restart(ctx, immediately); err != nil {
		return fmt.Errorf("restart the private server: %w", err)
	}
	return nil
}

// RestartAsStandby shuts the server down in good order and starts it again as a standby that follows
// nobody: until [Server.Promote] it answers queries and refuses to write. Otherwise it is like
// [Server.Restart].
func (s *Server) RestartAsStandby(ctx context.Context) error {
	err := s.writeSignal("data")
	if err == nil {
		err = s.restart(ctx, inOrder)
	}
	if err != nil {
		return fmt.Errorf("restart the private server as a standby: %w", err)
	}
	return nil
}

// restart asks the guard to run the server again, and ends it. The guard removes the file that asks for it
// when the old server has ended.
func (s *Server) restart(ctx context.Context, end os.Signal) error {
	again := filepath.Join(s.dir, "again")
	if err := os.WriteFile(again, nil, 0o600); err != nil {
		return err
	}
	postmaster, err := s.postmaster()
	if err != nil {
		return err
	}
	if err := postmaster.Signal(end); err != nil {
		return err
	}
	err = s.await(ctx, "the server has ended", func(context.Context) bool {
		_, err := os.Stat(again)
		return errors.Is(err, os.ErrNotExist)
	})
	if err != nil {
		return err
	}
	return s.ready(ctx)
}

// postmaster is the process that Postgres names in the first line of a file in the data.
func (s *Server) postmaster() (*os.Process, error) {
	text, err := os.ReadFile(filepath.Join(s.dir, "data", "postmaster.pid"))
	if err != nil {
		return nil, err
	}
	line, _, _ := bytes.Cut(text, []byte("\n"))
	pid, err := strconv.Atoi(string(line))
	if err != nil {
		return nil, fmt.Errorf("read the server's process id: %w", err)
	}
	return os.FindProcess(pid)
}
