package bench

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/holdfast-pg/holdfast/app"
	"github.com/holdfast-pg/holdfast/db/bench"
	"github.com/holdfast-pg/holdfast/db/embedded"
	"github.com/holdfast-pg/holdfast/domain"
)

const connectPatience = 10 * time.Second

// privateSettings are what the bench changes on a server of its own, and prints. Commits are
// as durable as in production.
var privateSettings = map[string]string{
	"fsync":              "on",
	"synchronous_commit": "on",
	"full_page_writes":   "on",
	"shared_buffers":     "512MB",
	"max_wal_size":       "8GB",
}

// preferredVersion is the server that the bench starts, unless it cannot be had.
const preferredVersion = "18"

// server is where the databases of the trials are.
type server struct {
	url      string
	pool     *pgxpool.Pool // To the database that was there before; reads what concerns the whole server.
	private  *embedded.Server
	queries  *bench.Queries
	started  time.Time
	progress *progress
}

func openServer(ctx context.Context, address string, progress *progress) (*server, error) {
	s := &server{url: address, queries: bench.New(), progress: progress}
	if address == "" {
		private, err := startPrivate(ctx, progress)
		if err != nil {
			return nil, err
		}
		s.private, s.url = private, private.URL()
	}
	if err := s.connect(ctx); err != nil {
		return nil, errors.Join(err, s.close())
	}
	return s, nil
}

func startPrivate(ctx context.Context, progress *progress) (*embedded.Server, error) {
	progress.begin("start a server", 0)
	options := embedded.Options{Version: preferredVersion, Parameters: privateSettings, Progress: progress.out}
	private, err := embedded.Start(ctx, options)
	var missing *embedded.NotFoundError
	if errors.As(err, &missing) {
		options.Version = ""
		private, err = embedded.Start(ctx, options)
	}
	return private, err
}

func (s *server) connect(ctx context.Context) (err error) {
	if s.pool, err = app.Connect(ctx, s.url, connectPatience, slog.New(slog.DiscardHandler)); err != nil {
		return err
	}
	if err := s.checkUnused(ctx); err != nil {
		return err
	}
	s.started, err = s.queries.ServerStartedAt(ctx, s.pool)
	return err
}

// checkUnused makes sure that nobody's jobs are in the database that was given.
func (s *server) checkUnused(ctx context.Context) error {
	migrated, err := s.queries.HasInbox(ctx, s.pool)
	if err != nil || !migrated {
		return err
	}
	problem := "holds jobs"
	inUse, err := s.queries.HasJobs(ctx, s.pool)
	if isForbidden(err) {
		problem, inUse, err = "has the schema of Holdfast, and may hold jobs that this role must not see", true, nil
	}
	if err != nil || !inUse {
		return err
	}
	return &domain.InvalidError{Field: "--database-url", Reason: fmt.Sprintf(
		"names the database %q, which %s: the bench would take the server from them; name another server, or another database of this one if nobody needs it meanwhile",
		s.pool.Config().ConnConfig.Database, problem)}
}

func (s *server) close() error {
	if s.pool != nil {
		s.pool.Close()
	}
	if s.private != nil {
		return s.private.Stop()
	}
	return nil
}

// checkStarted tells whether the server is the one that it was. One that does not answer is
// waited for, because it may be starting again.
func (s *server) checkStarted(ctx context.Context) error {
	if ctx.Err() != nil {
		return nil // An interrupted run prints nothing anyway.
	}
	fresh, err := app.Connect(ctx, s.url, connectPatience, slog.New(slog.DiscardHandler))
	if err != nil {
		return err
	}
	defer fresh.Close()
	started, err := s.queries.ServerStartedAt(ctx, fresh)
	if err == nil && !started.Equal(s.started) {
		err = ErrRestarted
	}
	return err
}

// checkpoint does nothing for a role that may not.
func (s *server) checkpoint(ctx context.Context) error {
	err := s.queries.Checkpoint(ctx, s.pool)
	if isForbidden(err) {
		return nil
	}
	return err
}

// isForbidden tells whether the role lacks a privilege.
func isForbidden(err error) bool {
	var refused *pgconn.PgError
	return errors.As(err, &refused) && refused.Code == "42501"
}

// withDatabase is the address of another database on the same server, in either form.
func withDatabase(address, name string) (string, error) {
	if !strings.Contains(address, "://") {
		return address + " dbname=" + name, nil // The last of two holds.
	}
	parsed, err := url.Parse(address)
	if err != nil {
		return "", app.ErrInvalidURL // The text of the error may hold the password.
	}
	parsed.Path = "/" + name
	query := parsed.Query()
	query.Del("dbname")
	query.Del("database")
	parsed.RawQuery = query.Encode()
	return parsed.String(), nil
}
