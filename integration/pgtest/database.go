package pgtest

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/holdfast-pg/holdfast/domain"
)

// connections is how many a test's pool opens at most. Enough for tests of races; the
// server has room for the pools of all tests that run at once.
const connections = 16

// Database is the database of one test.
type Database struct {
	URL       string // Through the pooler, if there is one.
	DirectURL string // Never through a pooler.
	Pool      *pgxpool.Pool

	direct *pgx.ConnConfig
	counts *counts
}

var databases atomic.Int64

// New returns a migrated database of the test's own. When the test ends it is dropped, and
// the test fails if a session to it was left open.
func New(tb testing.TB) *Database {
	tb.Helper()
	template, err := running(tb).template()
	if err != nil {
		tb.Fatalf("pgtest: make the template database: %v", err)
	}
	return create(tb, template)
}

// Empty returns a database of the test's own without the schema.
func Empty(tb testing.TB) *Database {
	tb.Helper()
	running(tb)
	return create(tb, "template1")
}

func running(tb testing.TB) *server {
	tb.Helper()
	if current == nil {
		tb.Fatal("pgtest: there is no server: TestMain must call pgtest.Main")
	}
	return current
}

func create(tb testing.TB, template string) *Database {
	tb.Helper()
	name := fmt.Sprintf("holdfast_test_%s_%d", current.run, databases.Add(1))
	if err := current.databases.Clone(template, name); err != nil {
		tb.Fatalf("pgtest: create database %s: %v", name, err)
	}
	tb.Cleanup(func() { current.drop(tb, name) })
	address := current.databases.URL(name)
	database := &Database{URL: address, DirectURL: address, counts: &counts{}}
	if current.pooler != nil {
		database.URL = current.pooler.databaseURL(name)
	}
	var err error
	if database.direct, err = pgx.ParseConfig(database.DirectURL); err != nil {
		tb.Fatalf("pgtest: %v", err)
	}
	database.direct.Tracer = database.counts
	database.Pool = database.open(tb)
	return database
}

func (d *Database) open(tb testing.TB) *pgxpool.Pool {
	tb.Helper()
	config, err := pgxpool.ParseConfig(d.URL)
	if err != nil {
		tb.Fatalf("pgtest: %v", err)
	}
	config.MaxConns = connections
	config.ConnConfig.Tracer = d.counts
	pool, err := pgxpool.NewWithConfig(tb.Context(), config)
	if err != nil {
		tb.Fatalf("pgtest: connect to %s: %v", config.ConnConfig.Database, err)
	}
	tb.Cleanup(pool.Close)
	return pool
}

// Config returns settings for connections of the test's own, such as db.Migrate wants. They
// never lead through a pooler.
func (d *Database) Config() *pgx.ConnConfig {
	return d.direct.Copy()
}

// Direct returns the same database past the pooler, for a test that must know which session it
// has, or whose sessions come to harm. Without a pooler it is no different.
func (d *Database) Direct(tb testing.TB) *Database {
	tb.Helper()
	direct := &Database{URL: d.DirectURL, DirectURL: d.DirectURL, direct: d.direct, counts: d.counts}
	direct.Pool = direct.open(tb)
	return direct
}

// Conn opens a connection of its own, for a test that needs a session, and so never through a
// pooler; closed when the test ends.
func (d *Database) Conn(tb testing.TB) *pgx.Conn {
	tb.Helper()
	conn, err := pgx.ConnectConfig(tb.Context(), d.Config())
	if err != nil {
		tb.Fatalf("pgtest: connect: %v", err)
	}
	tb.Cleanup(func() { _ = conn.Close(context.Background()) })
	return conn
}

// Queue returns a queue on the database, closed when the test ends.
func (d *Database) Queue(tb testing.TB) *domain.Queue {
	tb.Helper()
	queue, err := domain.NewQueue(d.Pool)
	if err != nil {
		tb.Fatalf("pgtest: %v", err)
	}
	tb.Cleanup(queue.Close)
	return queue
}

// createTemplate makes the migrated database that New clones. It lasts as long as the server
// is used.
func (s *server) createTemplate() (string, error) {
	name := "holdfast_template_" + s.run
	s.end = append(s.end, func() error { _, err := s.databases.Drop(name); return err })
	return name, s.databases.MakeTemplate(name)
}

func (s *server) drop(tb testing.TB, name string) {
	tb.Helper()
	if s.pooler != nil {
		s.pooler.forget(tb, name)
	}
	left, err := s.databases.Drop(name)
	if left > 0 {
		tb.Errorf("pgtest: %d sessions to the test's database were left open", left)
	}
	if err != nil {
		tb.Errorf("pgtest: drop the test's database: %v", err)
	}
}
