package main

import (
	"fmt"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/urfave/cli/v2"

	"github.com/holdfast-pg/holdfast/app"
	"github.com/holdfast-pg/holdfast/domain"
)

const flagReadURL = "read-url"

// readFlags are those of a command that only reads, and may do so from a replica.
func readFlags() []cli.Flag {
	readURL := &cli.StringFlag{Name: flagReadURL, Usage: "read from the replica at this `URL`, and say how far it is behind; else $" + app.EnvReadURL + ", else the database's"}
	return append([]cli.Flag{readURL}, databaseFlags()...)
}

// withReplica runs a command that only reads: on the replica that is named, else on the
// database. Where it reads from a replica it says how old the answer is.
func withReplica(c *cli.Context, action func(pool *pgxpool.Pool) error) error {
	url := app.ReadURL(c.String(flagReadURL))
	if url == "" {
		return withDatabase(c, action)
	}
	pool, err := connectTo(c, url)
	if err != nil {
		return err
	}
	defer pool.Close()
	lag, err := domain.ReadLag(c.Context, pool)
	if err != nil {
		return err
	}
	fmt.Fprintln(c.App.ErrWriter, "read from", lag)
	return domain.NameRole(pool, fitting(c, action)(pool))
}
