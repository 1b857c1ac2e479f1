package holdfasttest

import (
	"context"
	"crypto/rand"
	"fmt"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/holdfast-pg/holdfast/db"
	"github.com/holdfast-pg/holdfast/db/embedded"
	"github.com/holdfast-pg/holdfast/internal/testdb"
)

// connections is how many a test's pool opens at most.
const connections = 10

// startLimit is for a machine without Postgres, which downloads one.
const startLimit = 10 * time.Minute

// NewPool returns a pool on a database of the test's own, with Holdfast's schema in it. When
// the test ends the pool is closed and the database dropped; a session that is still open then
// fails the test. Tests may run in parallel. The address, for code that wants one, is
// pool.Config().ConnString().
//
// The first call of a process starts a private Postgres, which ends with the process: there is
// nothing to set up, and no TestMain. HOLDFAST_TEST_DATABASE_URL names a running server
// instead, directly, as a user who may create databases; the template that databases are cloned
// from, holdfast_template_…, stays there for the next run. HOLDFAST_TEST_POSTGRES_VERSION is the
// major version of the private one, 14 to 18; default: the one that the machine has, else a
// download of 18.
func NewPool(tb testing.TB) *pgxpool.Pool {
	tb.Helper()
	shared, err := theServer()
	if err != nil {
		tb.Fatalf("holdfasttest: %v", err)
	}
	name := fmt.Sprintf("holdfast_test_%s_%d", shared.run, shared.databases.Add(1))
	if err := shared.Clone(shared.template, name); err != nil {
		tb.Fatalf("holdfasttest: make the test's database: %v", err)
	}
	tb.Cleanup(func() { shared.drop(tb, name) })
	config, err := pgxpool.ParseConfig(shared.URL(name))
	if err != nil {
		tb.Fatalf("holdfasttest: read the server's address: %v", err)
	}
	config.MaxConns = connections
	pool, err := pgxpool.NewWithConfig(context.WithoutCancel(tb.Context()), config)
	if err != nil {
		tb.Fatalf("holdfasttest: connect to the test's database: %v", err)
	}
	tb.Cleanup(pool.Close)
	return pool
}

// Migrate brings a database of your own to Holdfast's schema, for tests that have one
// already. It does nothing when the schema is there. The address must not lead through a
// pooler in transaction mode.
func Migrate(tb testing.TB, url string) {
	tb.Helper()
	config, err := pgx.ParseConfig(url)
	if err != nil {
		// The driver's words may hold the password.
		tb.Fatal("holdfasttest: Migrate cannot read the address: write postgres://user:password@host:port/database")
	}
	if _, err := db.Migrate(tb.Context(), config); err != nil {
		tb.Fatalf("holdfasttest: %v", err)
	}
}

// server is where the databases of this process are.
type server struct {
	*testdb.Server
	template  string
	run       string       // Part of the name of each database.
	databases atomic.Int64 // How many there were.
}

// theServer starts the server at the first call. An embedded one ends with the process.
var theServer = sync.OnceValues(startServer)

func startServer() (*server, error) {
	address, err := serverAddress()
	if err != nil {
		return nil, err
	}
	databases, err := testdb.At(address)
	if err != nil {
		return nil, fmt.Errorf("HOLDFAST_TEST_DATABASE_URL: %w", err)
	}
	template, err := databases.KeepTemplate()
	if err != nil {
		return nil, fmt.Errorf("prepare the server for tests: %w", err)
	}
	return &server{Server: databases, template: template, run: strings.ToLower(rand.Text()[:10])}, nil
}

func serverAddress() (string, error) {
	if given := os.Getenv("HOLDFAST_TEST_DATABASE_URL"); given != "" {
		return given, nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), startLimit)
	defer cancel()
	private, err := embedded.Start(ctx, embedded.Options{
		Version:    os.Getenv("HOLDFAST_TEST_POSTGRES_VERSION"),
		Parameters: testdb.Parameters,
		Progress:   os.Stderr,
	})
	if err != nil {
		return "", fmt.Errorf("%w\nOr name a server whose user may create databases: HOLDFAST_TEST_DATABASE_URL=postgres://user:password@host:port/postgres", err)
	}
	return private.URL(), nil
}

func (s *server) drop(tb testing.TB, name string) {
	tb.Helper()
	left, err := s.Drop(name)
	if err != nil {
		tb.Errorf("holdfasttest: drop the test's database: %v", err)
	}
	if left > 0 {
		tb.Errorf("holdfasttest: the test ended with %d sessions to its database: stop what it started, such as a worker (end Run's context, then wait until Run returns), and close connections and pools", left)
	}
}
