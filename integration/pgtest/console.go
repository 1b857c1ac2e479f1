package pgtest

import (
	"context"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/holdfast-pg/holdfast/internal/testdb"
)

// console is the database in which PgBouncer answers questions about itself.
const console = "pgbouncer"

// description follows the server's.
func (p *pooler) description() string {
	if p.prepared {
		return "through " + p.version + " in transaction mode with prepared statements"
	}
	return "through " + p.version + " in transaction mode"
}

// databaseURL is the address of a database through the pooler. It tells pgx when it must not
// leave prepared statements in a connection that the next transaction may not get.
func (p *pooler) databaseURL(name string) string {
	query := url.Values{"sslmode": {"disable"}}
	if !p.prepared {
		query.Set("default_query_exec_mode", "cache_describe")
	}
	address := url.URL{
		Scheme:   "postgres",
		User:     url.UserPassword(p.server.User, p.server.Password),
		Host:     net.JoinHostPort("127.0.0.1", p.port),
		Path:     "/" + name,
		RawQuery: query.Encode(),
	}
	return address.String()
}

// ask runs a command of the console and returns the rows of its answer, by column.
func (p *pooler) ask(command string) ([]map[string]string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	conn, err := pgx.Connect(ctx, p.databaseURL(console))
	if err != nil {
		return nil, err
	}
	defer conn.Close(ctx)
	results, err := conn.PgConn().Exec(ctx, command).ReadAll()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", command, err)
	}
	var answer []map[string]string
	for _, result := range results {
		for _, values := range result.Rows {
			row := map[string]string{}
			for i, field := range result.FieldDescriptions {
				row[field.Name] = string(values[i])
			}
			answer = append(answer, row)
		}
	}
	return answer, nil
}

// forget ends the connections that the pooler keeps to a test's database, which would count as
// sessions left open. The test fails if it has left one of its own to the pooler open.
func (p *pooler) forget(tb testing.TB, name string) {
	tb.Helper()
	left := -1
	var failure error
	ended := testdb.Poll(5*time.Second, func() bool {
		var clients []map[string]string
		clients, failure = p.ask("SHOW CLIENTS")
		left = len(about(clients, name))
		return failure == nil && left == 0
	})
	if !ended {
		tb.Errorf("pgtest: %d connections to the test's database through the pooler were left open (error %v)", left, failure)
	}
	pools, err := p.ask("SHOW STATS")
	if err != nil {
		tb.Errorf("pgtest: ask the pooler what it has done: %v", err)
	}
	for _, pool := range about(pools, name) {
		if pool["total_xact_count"] != "0" {
			p.served.Add(1)
		}
	}
	// The pooler does not know a database that nobody has reached through it.
	if _, err := p.ask("KILL " + name); err != nil && !strings.Contains(err.Error(), "no such database") {
		tb.Errorf("pgtest: end the pooler's connections: %v", err)
	}
}

// about returns the rows about a database.
func about(rows []map[string]string, database string) []map[string]string {
	return slices.DeleteFunc(rows, func(row map[string]string) bool { return row["database"] != database })
}
