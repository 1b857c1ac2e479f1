package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/holdfast-pg/holdfast"
	"github.com/holdfast-pg/holdfast/db"
	"github.com/holdfast-pg/holdfast/db/embedded"
)

// place is where a run happens: a server of its own, with one database for the jobs and one
// for the protected store.
type place struct {
	server *embedded.Server
	jobs   string // Addresses, past every line.
	sink   string
	pool   *pgxpool.Pool // The harness's own, on the jobs.
}

// parameters make the server one that can be judged. A crash of it is one of its processes,
// not of the machine, so nothing has to reach the disk.
var parameters = map[string]string{
	"wal_level":          "logical",
	"fsync":              "off",
	"full_page_writes":   "off",
	"synchronous_commit": "on",
	"max_connections":    "200",
	"max_wal_size":       "2GB",
	"deadlock_timeout":   "200ms",
}

// jobsTables are what the producers and the handlers write beside their jobs, and what makes
// statements stumble. With the whole old row in the log every change can be judged alone.
const jobsTables = `
	CREATE SCHEMA soak;
	CREATE TABLE soak.placed (marker text PRIMARY KEY, job uuid NOT NULL);
	CREATE TABLE soak.ledger (job uuid NOT NULL, generation bigint NOT NULL);
	CREATE TABLE soak.mended (at timestamptz DEFAULT now());
	CREATE TABLE soak.trouble (sqlstate text NOT NULL, share float NOT NULL);
	CREATE FUNCTION soak.stumble() RETURNS trigger LANGUAGE plpgsql AS $$
		DECLARE now_and_then record;
		BEGIN
			FOR now_and_then IN SELECT sqlstate FROM soak.trouble WHERE random() < share LOOP
				RAISE EXCEPTION USING ERRCODE = now_and_then.sqlstate, MESSAGE = 'trouble of the soak';
			END LOOP;
			RETURN NULL;
		END $$;
	CREATE TRIGGER stumble BEFORE INSERT OR UPDATE OR DELETE ON holdfast.inbox
		FOR EACH STATEMENT EXECUTE FUNCTION soak.stumble();
	ALTER TABLE holdfast.inbox REPLICA IDENTITY FULL;
	ALTER TABLE holdfast.inbox_archive_default REPLICA IDENTITY FULL`

const sinkTables = `
	CREATE TABLE effects (
		seq bigserial PRIMARY KEY, resource text NOT NULL, token bigint NOT NULL,
		job uuid NOT NULL, worker text NOT NULL, accepted boolean NOT NULL
	)`

func newPlace(ctx context.Context, progress io.Writer) (*place, error) {
	server, err := embedded.Start(ctx, embedded.Options{Parameters: parameters, Progress: progress})
	if err != nil {
		return nil, err
	}
	p := &place{server: server}
	if err := p.build(ctx); err != nil {
		return nil, errors.Join(err, server.Stop())
	}
	return p, nil
}

func (p *place) build(ctx context.Context) (err error) {
	if p.jobs, err = p.create(ctx, "soak_jobs", jobsTables); err != nil {
		return err
	}
	if p.sink, err = p.create(ctx, "soak_sink", sinkTables); err != nil {
		return err
	}
	if p.pool, err = open(ctx, p.jobs); err != nil {
		return err
	}
	conn, err := p.pool.Acquire(ctx)
	if err != nil {
		return err
	}
	defer conn.Release()
	if err := startSlot(ctx, conn.Conn()); err != nil {
		return err
	}
	if _, err := holdfast.SetQueue(ctx, conn, ordinaryQueue, holdfast.QueueChange{}); err != nil {
		return err
	}
	inOrder := true
	_, err = holdfast.SetQueue(ctx, conn, orderedQueue, holdfast.QueueChange{Ordered: &inOrder})
	return err
}

// create makes a migrated database with more tables, and returns its address.
func (p *place) create(ctx context.Context, name, tables string) (string, error) {
	admin, err := pgx.Connect(ctx, p.server.URL())
	if err != nil {
		return "", err
	}
	defer admin.Close(ctx)
	if _, err := admin.Exec(ctx, "CREATE DATABASE "+name); err != nil {
		return "", err
	}
	address, err := url.Parse(p.server.URL())
	if err != nil {
		return "", err
	}
	address.Path = "/" + name
	config, err := pgx.ParseConfig(address.String())
	if err != nil {
		return "", err
	}
	if _, err := db.Migrate(ctx, config); err != nil {
		return "", err
	}
	conn, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return "", err
	}
	defer conn.Close(ctx)
	if _, err := conn.Exec(ctx, tables); err != nil {
		return "", fmt.Errorf("prepare %s: %w", name, err)
	}
	return address.String(), nil
}

func (p *place) close() error {
	p.pool.Close()
	return p.server.Stop()
}

// through returns a database's address as it is reached at another host and port.
func through(database, hostAndPort string) string {
	address, err := url.Parse(database)
	if err != nil {
		panic(err) // The address is our own.
	}
	address.Host = hostAndPort
	return address.String()
}

// isServerAway tells whether an error goes away when the server is back: a connection that
// broke or could not be made, or a server that is just stopping or starting.
func isServerAway(err error) bool {
	var answer *pgconn.PgError
	if !errors.As(err, &answer) {
		var network net.Error
		return errors.As(err, &network) || errors.Is(err, pgconn.ErrConnClosed) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) || errors.Is(err, net.ErrClosed)
	}
	switch answer.Code[:2] {
	case "57", "08", "53": // The server stops or starts, the connection broke, no room for one.
		return true
	}
	return false
}
