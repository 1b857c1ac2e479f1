package db

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// CreateDatabase makes an empty database beside the one that the settings name, with that
// one's role as its owner. The role must be allowed to.
func CreateDatabase(ctx context.Context, config *pgx.ConnConfig, name string) error {
	if err := execute(ctx, config, "CREATE DATABASE "+pgx.Identifier{name}.Sanitize()); err != nil {
		return fmt.Errorf("create database %s: %w", name, err)
	}
	return nil
}

// DropDatabase removes a database beside the one that the settings name, if it exists, and
// ends the sessions that are left in it.
func DropDatabase(ctx context.Context, config *pgx.ConnConfig, name string) error {
	if err := execute(ctx, config, "DROP DATABASE IF EXISTS "+pgx.Identifier{name}.Sanitize()+" WITH (FORCE)"); err != nil {
		return fmt.Errorf("drop database %s: %w", name, err)
	}
	return nil
}

// execute runs a statement that cannot be in a transaction, on a connection of its own.
func execute(ctx context.Context, config *pgx.ConnConfig, sql string) error {
	conn, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	_, err = conn.Exec(ctx, sql)
	return err
}
