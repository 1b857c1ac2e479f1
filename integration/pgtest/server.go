package pgtest

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"

	"github.com/holdfast-pg/holdfast/db/embedded"
	"github.com/holdfast-pg/holdfast/internal/testdb"
)

// server is where the databases of a test run are.
type server struct {
	description string         // One line: which server, which version, and why this one.
	url         string         // Of a database to connect to for creating others.
	databases   *testdb.Server // At url.
	pooler      *pooler        // In front of the server, or nil.
	run         string         // Part of the name of each database of this run.
	end         []func() error // What stop does, last first.

	template func() (string, error)
}

// settings are what the environment says about the server.
type settings struct {
	databaseURL string
	kind        string // "container", "embedded", or "" for whichever can be had.
	image       string
	version     string
	pooler      string // The program that is put in front of the server; "" for none.
}

func settingsFromEnvironment() settings {
	image := os.Getenv("HOLDFAST_TEST_POSTGRES_IMAGE")
	if image == "" {
		image = "postgres:18-alpine"
	}
	return settings{
		databaseURL: os.Getenv("HOLDFAST_TEST_DATABASE_URL"),
		kind:        os.Getenv("HOLDFAST_TEST_POSTGRES"),
		image:       image,
		version:     os.Getenv("HOLDFAST_TEST_POSTGRES_VERSION"),
		pooler:      os.Getenv("HOLDFAST_TEST_POOLER"),
	}
}

func start(ctx context.Context, s settings) (*server, error) {
	started := &server{run: strings.ToLower(rand.Text()[:10])}
	started.template = sync.OnceValues(started.createTemplate)
	why, err := started.launch(ctx, s)
	if err == nil {
		err = started.connect(ctx, why)
	}
	if err == nil && s.pooler != "" {
		err = started.putPooler(ctx, s.pooler)
	}
	if err != nil {
		return nil, errors.Join(err, started.stop())
	}
	return started, nil
}

// launch makes sure that a server runs at s.url, and says in words which one and why.
func (s *server) launch(ctx context.Context, wanted settings) (why string, err error) {
	switch {
	case wanted.databaseURL != "":
		s.url = wanted.databaseURL
		return "given by HOLDFAST_TEST_DATABASE_URL", nil
	case wanted.kind == "container" && wanted.version != "":
		return "", errors.New("HOLDFAST_TEST_POSTGRES=container takes its version from HOLDFAST_TEST_POSTGRES_IMAGE: unset HOLDFAST_TEST_POSTGRES_VERSION")
	case wanted.kind == "container":
		if err := s.launchContainer(ctx, wanted.image, demandedLimit); err != nil {
			return "", fmt.Errorf("HOLDFAST_TEST_POSTGRES=container: %w", err)
		}
		return "in a container of " + wanted.image + ", as HOLDFAST_TEST_POSTGRES says", nil
	case wanted.kind == "embedded":
		return s.launchEmbedded(ctx, wanted.version, "as HOLDFAST_TEST_POSTGRES says")
	case wanted.kind != "":
		return "", fmt.Errorf("HOLDFAST_TEST_POSTGRES=%s: want container, embedded, or nothing", wanted.kind)
	case wanted.version != "":
		return s.launchEmbedded(ctx, wanted.version, "as HOLDFAST_TEST_POSTGRES_VERSION says")
	}
	noContainer := s.launchContainer(ctx, wanted.image, optionalLimit)
	if noContainer == nil {
		return "in a container of " + wanted.image + ", because a Docker engine answers", nil
	}
	return s.launchEmbedded(ctx, "", "because there is no container: "+firstLine(noContainer))
}

func (s *server) launchEmbedded(ctx context.Context, version, reason string) (why string, err error) {
	private, err := embedded.Start(ctx, embedded.Options{Version: version, Parameters: testdb.Parameters, Progress: os.Stderr})
	if err != nil {
		return "", fmt.Errorf("%s: %w", reason, err)
	}
	s.end = append(s.end, private.Stop)
	s.url = private.URL()
	return "embedded (" + private.Source() + "), " + reason, nil
}

// connect describes the server.
func (s *server) connect(ctx context.Context, why string) (err error) {
	if s.databases, err = testdb.At(s.url); err != nil {
		return err
	}
	version, err := s.databases.Version(ctx)
	if err != nil {
		return fmt.Errorf("connect to the server %s: %w", why, err)
	}
	s.description = "PostgreSQL " + version + " " + why
	return nil
}

// putPooler puts a PgBouncer between the server and the pools of the tests.
func (s *server) putPooler(ctx context.Context, program string) (err error) {
	if s.pooler, err = startPooler(ctx, program, s.url); err != nil {
		return err
	}
	s.end = append(s.end, s.pooler.stop)
	s.description += ", " + s.pooler.description()
	return nil
}

func (s *server) stop() error {
	var failures []error
	for i := len(s.end) - 1; i >= 0; i-- {
		failures = append(failures, s.end[i]())
	}
	return errors.Join(failures...)
}

func firstLine(err error) string {
	line, _, _ := strings.Cut(err.Error(), "\n")
	return line
}
