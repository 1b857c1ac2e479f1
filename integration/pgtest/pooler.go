package pgtest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
)

// poolerLimit is how long a PgBouncer may take to answer. It takes milliseconds.
const poolerLimit = 30 * time.Second

// guard is a shell script that runs the program of its arguments until that ends, or until
// its own input ends: also a killed test leaves no pooler behind. It ignores Ctrl-C, which
// reaches the whole group, because it still has to remove the folder.
const guard = `trap '' HUP INT TERM
folder=$1; shift
exec 3<&0
"$@" 3<&- & pooler=$!
{ read -r _ <&3; kill -KILL "$pooler"; } & watch=$!
wait "$pooler"
kill -KILL "$watch"
rm -rf "$folder"`

// pooler is a PgBouncer in transaction mode in front of the server.
type pooler struct {
	version  string       // Such as "PgBouncer 1.18.0".
	prepared bool         // It keeps the prepared statements of its clients apart.
	served   atomic.Int64 // Databases in which it has run transactions.

	server   *pgx.ConnConfig
	port     string
	folder   string // The configuration and the log.
	log      *os.File
	lifeline io.Closer     // The guard's input.
	exited   chan struct{} // Closed when the guard has ended, and so the pooler before it.
}

// startPooler runs a PgBouncer in front of the server at the address, and returns when it
// answers.
func startPooler(ctx context.Context, program, address string) (*pooler, error) {
	p := &pooler{exited: make(chan struct{})}
	err := p.start(ctx, program, address)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("HOLDFAST_TEST_POOLER=%s: %w%s", program, err, p.logged()), p.stop())
	}
	return p, nil
}

func (p *pooler) start(ctx context.Context, program, address string) (err error) {
	if p.server, err = pgx.ParseConfig(address); err != nil {
		return err
	}
	if p.port, err = freePort(ctx); err != nil {
		return fmt.Errorf("find a free port: %w", err)
	}
	// The program is found here, because the guard has no way to say that it was not.
	if program, err = exec.LookPath(program); err != nil {
		return err
	}
	if err := p.writeFiles(); err != nil {
		return fmt.Errorf("write the configuration: %w", err)
	}
	if err := p.run(program); err != nil {
		return err
	}
	return p.ready(ctx)
}

func freePort(ctx context.Context) (string, error) {
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	_, port, err := net.SplitHostPort(listener.Addr().String())
	return port, errors.Join(err, listener.Close())
}

// writeFiles makes the folder and what is in it. The pooler reads its files again later, when
// it is no longer root.
func (p *pooler) writeFiles() (err error) {
	who, err := poolerAccount()
	if err != nil {
		return err
	}
	if p.folder, err = os.MkdirTemp("", "holdfast-pooler-"); err != nil {
		return err
	}
	// Opened here, so that it can be read when the folder is gone.
	p.log, err = os.OpenFile(filepath.Join(p.folder, "log"), os.O_CREATE|os.O_RDWR|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	settings, users := filepath.Join(p.folder, "pgbouncer.ini"), filepath.Join(p.folder, "users")
	err = errors.Join(
		os.WriteFile(settings, []byte(p.settings(who, users)), 0o600),
		os.WriteFile(users, []byte(quoted(p.server.User)+" "+quoted(p.server.Password)+"\n"), 0o600),
	)
	if err != nil || who == nil {
		return err
	}
	uid, errUID := strconv.Atoi(who.Uid)
	gid, errGID := strconv.Atoi(who.Gid)
	err = errors.Join(errUID, errGID)
	for _, name := range []string{p.folder, settings, users} {
		if err == nil {
			err = os.Chown(name, uid, gid)
		}
	}
	return err
}

// poolerAccount is the user that root's pooler becomes, because it does not run as root; nil
// for an ordinary user.
func poolerAccount() (*user.User, error) {
	if os.Geteuid() != 0 {
		return nil, nil //nolint:nilnil // There is none, and nothing is wrong.
	}
	for _, name := range []string{"postgres", "nobody"} {
		if who, err := user.Lookup(name); err == nil {
			return who, nil
		}
	}
	return nil, errors.New("PgBouncer does not run as root, and there is neither a user postgres nor a user nobody")
}

// settings are those that production needs, and what makes the pooler private. Connections to
// the server are few enough to be shared by the clients of a test, and enough for what its
// transactions hold at once.
func (p *pooler) settings(who *user.User, users string) string {
	lines := []string{
		"[databases]",
		fmt.Sprintf("* = host=%s port=%d", p.server.Host, p.server.Port),
		"[pgbouncer]",
		"pool_mode = transaction",
		"listen_addr = 127.0.0.1",
		"listen_port = " + p.port,
		"unix_socket_dir =",
		"auth_type = " + p.authentication(),
		"auth_file = " + users,
		"admin_users = " + p.server.User,
		"max_client_conn = 1000",
		"default_pool_size = 32",
		"log_connections = 0",
		"log_disconnections = 0",
	}
	if who != nil {
		lines = append(lines, "user = "+who.Username)
	}
	return strings.Join(lines, "\n") + "\n"
}

// authentication asks clients for the server's password, if it has one.
func (p *pooler) authentication() string {
	if p.server.Password == "" {
		return "trust"
	}
	return "scram-sha-256"
}

func quoted(word string) string {
	return `"` + strings.ReplaceAll(word, `"`, `""`) + `"`
}

// run starts the guard, and one goroutine that waits for it, which ends with the pooler.
func (p *pooler) run(program string) error {
	command := exec.Command("/bin/sh", "-c", guard, "sh", p.folder, program, filepath.Join(p.folder, "pgbouncer.ini"))
	command.Stdout, command.Stderr = p.log, p.log
	input, err := command.StdinPipe()
	if err != nil {
		return err
	}
	if err := command.Start(); err != nil {
		return err
	}
	p.lifeline = input
	go func() {
		_ = command.Wait() // The log says how the pooler ended.
		close(p.exited)
	}()
	return nil
}

// ready waits until the pooler answers, and learns what it can do.
func (p *pooler) ready(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, poolerLimit)
	defer cancel()
	retry := time.NewTicker(10 * time.Millisecond)
	defer retry.Stop()
	for {
		answer, err := p.ask("SHOW VERSION")
		if err == nil {
			p.version = answer[0]["version"]
			_, err := p.ask("SET max_prepared_statements = 200")
			p.prepared = err == nil // PgBouncer before 1.21 does not know the setting.
			return nil
		}
		select {
		case <-p.exited:
			return errors.New("it ended at once")
		case <-ctx.Done():
			return fmt.Errorf("no answer within %s: %w", poolerLimit, err)
		case <-retry.C:
		}
	}
}

// stop ends the pooler and removes what it leaves.
func (p *pooler) stop() error {
	var failures []error
	if p.lifeline != nil {
		failures = append(failures, p.lifeline.Close())
		<-p.exited
	}
	if p.log != nil {
		failures = append(failures, p.log.Close())
	}
	if p.folder != "" {
		failures = append(failures, os.RemoveAll(p.folder)) // The guard has, unless it never ran.
	}
	return errors.Join(failures...)
}

// logged is the end of the log, ready to follow a sentence.
func (p *pooler) logged() string {
	if p.log == nil {
		return ""
	}
	text, err := io.ReadAll(io.NewSectionReader(p.log, 0, 1<<20))
	if err != nil {
		return "; its log cannot be read: " + err.Error()
	}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	return "; the end of its log:\n  " + strings.Join(lines[max(0, len(lines)-10):], "\n  ")
}
