// Package testdb makes databases for tests on a server that exists: it clones a migrated
// template and drops the clone. holdfasttest, for everybody, and integration/pgtest, for our
// own tests, are built on it; which server it is, they decide.
package testdb

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/holdfast-pg/holdfast/db"
)

// Parameters suit a server that nobody will miss: a test must not wait for a disk. What a
// commit means to other sessions stays as it is in production.
var Parameters = map[string]string{
	"fsync":              "off",
	"full_page_writes":   "off",
	"synchronous_commit": "on",
	"max_connections":    "300",
	"max_wal_size":       "4GB",
	// Zero, the default of Postgres, forbids two-phase commit.
	"max_prepared_transactions": "20",
}

// limit bounds each piece of work on the server, also when the test's context has ended.
const limit = time.Minute

// Server is where the databases of tests are. It keeps no connection, so that nothing is left
// of it when a process just ends.
type Server struct {
	address url.URL

	cloning sync.Mutex
}

// At returns the server at an address, whose user may create databases.
func At(address string) (*Server, error) {
	parsed, err := url.Parse(address)
	if err != nil || !strings.HasPrefix(parsed.Scheme, "postgres") {
		// The parser's words may hold the password.
		return nil, errors.New("the server's address must have the form postgres://user:password@host:port/database")
	}
	return &Server{address: *parsed}, nil
}

// URL is the address of a database on the server.
func (s *Server) URL(database string) string {
	address := s.address
	address.Path = "/" + database
	return address.String()
}

// Version asks the server for its version, such as 18.1.
func (s *Server) Version(ctx context.Context) (version string, err error) {
	conn, err := pgx.Connect(ctx, s.address.String())
	if err != nil {
		return "", err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	err = conn.QueryRow(ctx, "SELECT current_setting('server_version')").Scan(&version)
	return version, err
}

// Clone makes a database. It makes one at a time: two at once take as long.
func (s *Server) Clone(template, name string) error {
	s.cloning.Lock()
	defer s.cloning.Unlock()
	return s.execute("CREATE DATABASE " + name + " TEMPLATE " + template)
}

// Drop removes a database and returns how many sessions to it were left open for more than
// five seconds; they are ended.
func (s *Server) Drop(name string) (left int, err error) {
	err = s.do(func(ctx context.Context, conn *pgx.Conn) error {
		left = s.awaitSessions(ctx, conn, name)
		_, err := conn.Exec(ctx, "DROP DATABASE IF EXISTS "+name+" WITH (FORCE)")
		return err
	})
	return left, err
}

// awaitSessions waits until the sessions to a database have ended: the server notices a
// little later than the client.
func (s *Server) awaitSessions(ctx context.Context, conn *pgx.Conn, name string) (left int) {
	Poll(5*time.Second, func() bool {
		err := conn.QueryRow(ctx, "SELECT count(*) FROM pg_stat_activity WHERE datname = $1 AND backend_type = 'client backend'", name).Scan(&left)
		return err != nil || left == 0
	})
	return left
}

// migrate brings a new database to the schema of this program, and closes it: somebody who
// connects by mistake would stop every clone.
func (s *Server) migrate(ctx context.Context, conn *pgx.Conn, name string) error {
	config, err := pgx.ParseConfig(s.URL(name))
	if err != nil {
		return err
	}
	if _, err := db.Migrate(ctx, config); err != nil {
		return err
	}
	_, err = conn.Exec(ctx, "ALTER DATABASE "+name+" ALLOW_CONNECTIONS false")
	return err
}

func (s *Server) execute(sql string) error {
	return s.do(func(ctx context.Context, conn *pgx.Conn) error {
		_, err := conn.Exec(ctx, sql)
		return err
	})
}

// do works on a connection of its own, within the limit.
func (s *Server) do(work func(ctx context.Context, conn *pgx.Conn) error) error {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	conn, err := pgx.Connect(ctx, s.address.String())
	if err != nil {
		return fmt.Errorf("connect to the server: %w", err)
	}
	defer conn.Close(ctx)
	return work(ctx, conn)
}

// Poll asks at once, then every five milliseconds, and a last time at the deadline, and tells
// whether the condition held.
func Poll(deadline time.Duration, condition func() bool) bool {
	if condition() {
		return true
	}
	end := time.NewTimer(deadline)
	defer end.Stop()
	again := time.NewTicker(5 * time.Millisecond)
	defer again.Stop()
	for {
		select {
		case <-again.C:
			if condition() {
				return true
			}
		case <-end.C:
			return condition()
		}
	}
}
