package integration

import (
	"context"
	"io"
	"net"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/holdfast-pg/holdfast/integration/pgtest"
)

// gate stands before a server and closes each connection at once until it is opened: a
// database that is away and comes back.
type gate struct {
	listener net.Listener
	server   string
	opened   chan struct{}
	done     chan struct{}
	group    sync.WaitGroup
}

// gated returns a gate before the database's server, and the database's URL through it.
func gated(t *testing.T, database *pgtest.Database) (*gate, string) {
	t.Helper()
	address, err := url.Parse(database.URL)
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	g := &gate{listener: listener, server: address.Host, opened: make(chan struct{}), done: make(chan struct{})}
	g.group.Go(g.serve)
	t.Cleanup(func() {
		close(g.done)
		_ = listener.Close()
		g.group.Wait()
	})
	address.Host = listener.Addr().String()
	return g, address.String()
}

func (g *gate) open() { close(g.opened) }

func (g *gate) serve() {
	for {
		client, err := g.listener.Accept()
		if err != nil {
			return
		}
		select {
		case <-g.opened:
			g.group.Go(func() { g.pass(client) })
		default:
			_ = client.Close()
		}
	}
}

// pass copies both ways until one side ends or the test does.
func (g *gate) pass(client net.Conn) {
	defer client.Close()
	var dialer net.Dialer
	server, err := dialer.DialContext(context.Background(), "tcp", g.server)
	if err != nil {
		return
	}
	ended := make(chan struct{}, 2)
	for from, to := range map[net.Conn]net.Conn{client: server, server: client} {
		g.group.Go(func() {
			_, _ = io.Copy(to, from)
			ended <- struct{}{}
		})
	}
	select {
	case <-ended:
	case <-g.done:
	}
	_ = client.Close()
	_ = server.Close()
}

func TestCLI_CommandWaitsForADatabaseThatIsAway(t *testing.T) {
	t.Parallel()
	database := pgtest.New(t)
	gate, url := gated(t, database)
	process := newProcess(t, url, "enqueue", "tick", "--connect-timeout", patience.String()).start(t)
	process.says(t, "cannot reach the database, trying again")
	gate.open()
	process.ends(t, 0)
}

func TestCLI_WorkerWaitsForADatabaseThatIsAway(t *testing.T) {
	t.Parallel()
	database := pgtest.New(t)
	gate, url := gated(t, database)
	enqueueCLI(t, database, "tick")
	worker := newProcess(t, url, "work", "--exec", "true").start(t)
	worker.says(t, "cannot join, trying again")
	gate.open()
	untilCompleted(t, database, 1)
	drains(t, worker)
}

func TestCLI_InterruptedWhileTheDatabaseIsAway(t *testing.T) {
	t.Parallel()
	_, url := gated(t, pgtest.New(t))
	command := newProcess(t, url, "migrate", "status", "--connect-timeout", patience.String()).start(t)
	command.says(t, "cannot reach the database").signal(t, interrupt)
	wantOutput(t, &command.ends(t, 130).stderr, "holdfast: interrupted\n")

	worker := newProcess(t, url, "work", "--exec", "true").start(t)
	worker.says(t, "cannot join").signal(t, interrupt)
	worker.ends(t, 0)
}

func TestCLI_DatabaseThatIsAwayForTooLongIsUnreachable(t *testing.T) {
	t.Parallel()
	_, url := gated(t, pgtest.New(t))
	process := newProcess(t, url, "enqueue", "tick", "--connect-timeout", "500ms").start(t).ends(t, 4)
	wantOutput(t, &process.stderr, "holdfast: the database cannot be reached: ")
}

func TestCLI_RefusedLoginIsNotRetriedAndDoesNotPrintThePassword(t *testing.T) {
	t.Parallel()
	database := pgtest.New(t)
	address, err := url.Parse(database.URL)
	if err != nil {
		t.Fatal(err)
	}
	noUser, noDatabase := *address, *address
	// Refused by servers that ask for a password, and by those that do not.
	noUser.User = url.UserPassword("nosuch", "canary")
	noDatabase.Path = "/nosuch"
	for _, test := range []struct{ url, words string }{{noUser.String(), "nosuch"}, {noDatabase.String(), `database "nosuch" does not exist`}} {
		for _, line := range []string{"migrate status", "work --exec true", "demo --database-url " + test.url} {
			process := newProcess(t, test.url, strings.Fields(line)...).start(t).ends(t, 1)
			wantOutput(t, &process.stderr, "holdfast: ", test.words)
			password, _ := address.User.Password()
			for _, secret := range []string{"canary", password} {
				if secret != "" && strings.Contains(process.stdout.String()+process.stderr.String(), secret) {
					t.Errorf("%s prints the password: %s", line, process.stderr.String())
				}
			}
		}
	}
}
