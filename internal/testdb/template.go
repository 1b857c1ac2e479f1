package testdb

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/holdfast-pg/holdfast/db"
)

// empty is the template of a database without the schema.
const empty = "template1"

// MakeTemplate makes a migrated database under the name given, to be cloned. Whoever asks for
// it drops it.
func (s *Server) MakeTemplate(name string) error {
	if err := s.Clone(empty, name); err != nil {
		return err
	}
	return s.do(func(ctx context.Context, conn *pgx.Conn) error { return s.migrate(ctx, conn, name) })
}

// templateLock is what the processes that look for a template wait on: the first eight bytes
// of the SHA-256 of "holdfast test template" without the highest and lowest bit.
const templateLock int64 = 3252814530831340710

// KeepTemplate returns the name of the migrated database of this program's schema, which it
// makes unless the server has it. It stays there for other processes and other runs: nobody
// knows which is the last.
func (s *Server) KeepTemplate() (string, error) {
	script, err := db.SQL(false)
	if err != nil {
		return "", err
	}
	hash := sha256.Sum256([]byte(script))
	name := "holdfast_template_" + hex.EncodeToString(hash[:6])
	return name, s.do(func(ctx context.Context, conn *pgx.Conn) error {
		// Ends with the connection.
		if _, err := conn.Exec(ctx, "SELECT pg_advisory_lock($1)", templateLock); err != nil {
			return err
		}
		return s.ensureTemplate(ctx, conn, name)
	})
}

// ensureTemplate makes the template, unless there is one that was finished.
func (s *Server) ensureTemplate(ctx context.Context, conn *pgx.Conn, name string) error {
	var unfinished bool
	err := conn.QueryRow(ctx, "SELECT datallowconn FROM pg_database WHERE datname = $1", name).Scan(&unfinished)
	switch {
	case err == nil && !unfinished:
		return nil
	case err != nil && !errors.Is(err, pgx.ErrNoRows):
		return err
	}
	_, err = conn.Exec(ctx, "DROP DATABASE IF EXISTS "+name+" WITH (FORCE)")
	if err == nil {
		err = s.MakeTemplate(name)
	}
	if err != nil {
		return fmt.Errorf("make the template database: %w", err)
	}
	return nil
}
