package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/holdfast-pg/holdfast/db/embedded"
)

// server is the Postgres on which all systems take turns, each in a database of its own.
type server struct {
	url    *url.URL
	source string // Where it comes from, for the report.
	stop   func() error
}

// privateSettings are the settings of a private server: nothing is made faster by being made
// less safe.
var privateSettings = map[string]string{
	"fsync":              "on",
	"synchronous_commit": "on",
	"shared_buffers":     "512MB",
	"max_wal_size":       "8GB",
}

// reported are the settings that the report shows, as the server has them.
var reported = []string{
	"fsync", "synchronous_commit", "full_page_writes", "wal_level", "shared_buffers", "max_wal_size",
	"checkpoint_timeout", "max_connections", "autovacuum", "jit",
}

// findServer returns the server at the address given, or else starts a private one:
// PostgreSQL 18, or what the machine has when that cannot be had.
func findServer(ctx context.Context, address string, progress io.Writer) (*server, error) {
	if address != "" {
		parsed, err := url.Parse(address)
		if err != nil || !strings.HasPrefix(parsed.Scheme, "postgres") {
			// The error of url.Parse may hold the password.
			return nil, errors.New("--database-url cannot be read: write postgres://user@host:port/database")
		}
		return &server{url: parsed, source: "given by --database-url", stop: func() error { return nil }}, nil
	}
	if err := forgetDatabase(); err != nil {
		return nil, err
	}
	private, err := embedded.Start(ctx, embedded.Options{Version: "18", Parameters: privateSettings, Progress: progress})
	if err != nil {
		fmt.Fprintf(progress, "no PostgreSQL 18: %v\ntrying any other\n", err)
		private, err = embedded.Start(ctx, embedded.Options{Parameters: privateSettings, Progress: progress})
	}
	if err != nil {
		return nil, err
	}
	parsed, err := url.Parse(private.URL())
	if err != nil {
		return nil, errors.Join(err, private.Stop())
	}
	return &server{url: parsed, source: "private (" + private.Source() + ")", stop: private.Stop}, nil
}

// forgetDatabase takes the driver's variables out of the environment: PGOPTIONS or PGSSLMODE
// would reach a private server too.
func forgetDatabase() error {
	for _, variable := range os.Environ() {
		name, _, _ := strings.Cut(variable, "=")
		if !strings.HasPrefix(name, "PG") {
			continue
		}
		if err := os.Unsetenv(name); err != nil {
			return fmt.Errorf("forget %s: %w", name, err)
		}
	}
	return nil
}

// create makes an empty database, in place of one of that name, and returns its address. The
// checkpoint before it takes the writing that is left of the last run out of the next one.
func (s *server) create(ctx context.Context, name string) (string, error) {
	if err := s.drop(ctx, name); err != nil {
		return "", err
	}
	if err := s.exec(ctx, "CHECKPOINT", "CREATE DATABASE "+pgx.Identifier{name}.Sanitize()); err != nil {
		return "", err
	}
	database := *s.url
	database.Path = "/" + name
	return database.String(), nil
}

func (s *server) drop(ctx context.Context, name string) error {
	return s.exec(ctx, "DROP DATABASE IF EXISTS "+pgx.Identifier{name}.Sanitize()+" WITH (FORCE)")
}

func (s *server) exec(ctx context.Context, statements ...string) error {
	connection, err := pgx.Connect(ctx, s.url.String())
	if err != nil {
		return err
	}
	defer connection.Close(ctx)
	for _, statement := range statements {
		if _, err := connection.Exec(ctx, statement); err != nil {
			return err
		}
	}
	return nil
}

// describe returns the server's version and settings.
func (s *server) describe(ctx context.Context) (serverFacts, error) {
	facts := serverFacts{Source: s.source, Settings: map[string]string{}}
	connection, err := pgx.Connect(ctx, s.url.String())
	if err != nil {
		return facts, err
	}
	defer connection.Close(ctx)
	for _, name := range append([]string{"server_version"}, reported...) {
		var value string
		if err := connection.QueryRow(ctx, "SELECT current_setting($1)", name).Scan(&value); err != nil {
			return facts, err
		}
		facts.Settings[name] = value
	}
	facts.Version = facts.Settings["server_version"]
	delete(facts.Settings, "server_version")
	return facts, nil
}
