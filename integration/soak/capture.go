package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/holdfast-pg/holdfast/integration/soak/history"
)

const (
	slotName    = "soak"
	captureWait = 200 * time.Millisecond
	captureSize = 20_000 // Changes of one read, rounded up to whole transactions.
)

// capture copies what the server commits from its own log into the history.
type capture struct {
	config *pgx.ConnConfig
	file   *history.Writer

	conn  *pgx.Conn
	last  uint64 // The latest commit that was written.
	inner []history.Change
	xid   uint32
}

// startSlot makes the server keep its log from now on.
func startSlot(ctx context.Context, conn *pgx.Conn) error {
	var level string
	if err := conn.QueryRow(ctx, "SHOW wal_level").Scan(&level); err != nil {
		return err
	}
	if level != "logical" {
		return fmt.Errorf("wal_level is %s: the run cannot be judged without logical decoding, start the server with wal_level=logical", level)
	}
	_, err := conn.Exec(ctx, "SELECT pg_create_logical_replication_slot($1, 'test_decoding')", slotName)
	return err
}

// follow copies until ctx ends. A server that is away is asked again.
func (c *capture) follow(ctx context.Context) error {
	ticker := time.NewTicker(captureWait)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
		if _, err := c.read(context.WithoutCancel(ctx)); err != nil && !isServerAway(err) {
			return err
		}
	}
}

// drain copies what is left.
func (c *capture) drain(ctx context.Context) error {
	for {
		changes, err := c.read(ctx)
		if err != nil || changes == 0 {
			return err
		}
	}
}

// read copies the next transactions. After a crash the server tells the latest ones again.
func (c *capture) read(ctx context.Context) (changes int, err error) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	if c.conn == nil || c.conn.IsClosed() {
		if c.conn, err = pgx.ConnectConfig(ctx, c.config); err != nil {
			return 0, err
		}
	}
	rows, err := c.conn.Query(ctx, "SELECT lsn::text, data FROM pg_logical_slot_get_changes($1, NULL, $2, 'include-timestamp', 'on', 'skip-empty-xacts', 'on')", slotName, captureSize)
	if err != nil {
		return 0, err
	}
	var lsn, data string
	_, err = pgx.ForEachRow(rows, []any{&lsn, &data}, func() error {
		changes++
		return c.note(lsn, data)
	})
	return changes, err
}

func (c *capture) note(lsn, line string) error {
	switch {
	case strings.HasPrefix(line, "BEGIN "):
		xid, err := strconv.ParseUint(strings.TrimPrefix(line, "BEGIN "), 10, 32)
		c.xid, c.inner = uint32(xid), c.inner[:0]
		return err
	case strings.HasPrefix(line, "COMMIT "):
		return c.commit(lsn, line)
	}
	change, found, err := decodeLine(line)
	if found {
		c.inner = append(c.inner, change)
	}
	return err
}

func (c *capture) commit(lsn, line string) error {
	position, err := history.ParseLSN(lsn)
	if err != nil || position <= c.last {
		return err
	}
	_, at, _ := strings.Cut(strings.TrimSuffix(line, ")"), "(at ")
	when, err := parseTime(at)
	if err != nil {
		return err
	}
	for _, change := range c.inner {
		change.LSN, change.XID, change.Commit = lsn, c.xid, when
		if err := c.file.Write(change); err != nil {
			return err
		}
	}
	c.last = position
	return nil
}
