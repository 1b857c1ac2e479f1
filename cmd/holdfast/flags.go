package main

import (
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/urfave/cli/v2"

	"github.com/holdfast-pg/holdfast/app"
)

const (
	flagDatabaseURL    = "database-url"
	flagConnectTimeout = "connect-timeout"
	flagLogLevel       = "log-level"
	flagLogFormat      = "log-format"
	flagOutput         = "output"
)

func databaseFlag() cli.Flag {
	return &cli.StringFlag{
		Name:  flagDatabaseURL,
		Usage: "the database's `URL`, such as postgres://user@host/name; else $" + app.EnvDatabaseURL + ", else $" + app.EnvGenericDatabaseURL,
	}
}

// databaseFlags are those of every command that asks the database something and ends.
func databaseFlags() []cli.Flag {
	connectTimeout := &cli.DurationFlag{
		Name:  flagConnectTimeout,
		Usage: "`DURATION` to go on trying to reach the database",
		Value: 10 * time.Second,
	}
	return append([]cli.Flag{databaseFlag(), connectTimeout}, logFlags()...)
}

func logFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: flagLogLevel, Usage: "`LEVEL`: debug, info, warn or error", Value: "info"},
		&cli.StringFlag{Name: flagLogFormat, Usage: "`FORMAT`: auto (text on a terminal, else json), text or json", Value: "auto"},
	}
}

func newLogger(c *cli.Context) (*slog.Logger, error) {
	log, err := app.NewLogger(c.App.ErrWriter, c.String(flagLogLevel), c.String(flagLogFormat))
	if err != nil {
		return nil, usage("%s", err.Error())
	}
	return log, nil
}

// connect opens the database that the command line or the environment names.
func connect(c *cli.Context) (*pgxpool.Pool, error) {
	url, err := app.DatabaseURL(c.String(flagDatabaseURL))
	if err != nil {
		return nil, err
	}
	return connectTo(c, url)
}

func connectTo(c *cli.Context, url string) (*pgxpool.Pool, error) {
	if err := checkPositive(c, flagConnectTimeout); err != nil {
		return nil, err
	}
	log, err := newLogger(c)
	if err != nil {
		return nil, err
	}
	return app.Connect(c.Context, url, c.Duration(flagConnectTimeout), log)
}

// checkPositive refuses durations and numbers for which zero would mean the default.
func checkPositive(c *cli.Context, names ...string) error {
	for _, name := range names {
		switch value := c.Value(name).(type) {
		case time.Duration:
			if value <= 0 {
				return usage("--%s must be positive, it is %s", name, value)
			}
		case int:
			if value <= 0 {
				return usage("--%s must be positive, it is %d", name, value)
			}
		}
	}
	return nil
}
