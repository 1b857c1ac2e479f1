package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"strings"
	"time"

	"github.com/cenkalti/backoff/v5"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/holdfast-pg/holdfast/domain"
)

// What can be wrong with a database before a statement reaches it.
var (
	// ErrInvalidURL says that the database URL cannot be read.
	ErrInvalidURL = errors.New("the database URL is not valid")

	// ErrUnreachable says that the database did not answer in time.
	ErrUnreachable = errors.New("the database cannot be reached")
)

// Connect opens a pool and waits until the database answers, trying again with backoff for
// as long as patience lasts. Errors never hold the password. ErrInvalidURL: correct the URL.
// ErrUnreachable: try again later. Anything else, such as a wrong password, does not get
// better by itself.
func Connect(ctx context.Context, url string, patience time.Duration, log *slog.Logger) (*pgxpool.Pool, error) {
	pool, err := openPool(ctx, url)
	if err != nil {
		return nil, err
	}
	// A server that takes the connection and says nothing must not hold us longer.
	trying, cancel := context.WithTimeoutCause(ctx, patience, fmt.Errorf("no answer within %s", patience))
	defer cancel()
	_, err = backoff.Retry(trying, func() (struct{}, error) {
		err := pool.Ping(trying)
		if err != nil && !domain.IsTemporary(err) {
			err = backoff.Permanent(err)
		}
		return struct{}{}, err
	},
		backoff.WithBackOff(&backoff.ExponentialBackOff{InitialInterval: 200 * time.Millisecond, RandomizationFactor: 0.3, Multiplier: 2, MaxInterval: 5 * time.Second}),
		backoff.WithMaxElapsedTime(patience),
		backoff.WithNotify(func(err error, wait time.Duration) {
			log.Warn("cannot reach the database, trying again", "error", err, "wait", wait.Round(time.Millisecond).String())
		}),
	)
	if err == nil {
		return pool, nil
	}
	pool.Close()
	if domain.IsTemporary(err) && ctx.Err() == nil {
		return nil, fmt.Errorf("%w: %w", ErrUnreachable, err)
	}
	return nil, fmt.Errorf("connect to the database: %w", err)
}

// openPool reads the URL and opens a pool, which connects to nothing yet.
func openPool(ctx context.Context, url string) (*pgxpool.Pool, error) {
	config, err := pgxpool.ParseConfig(url)
	if err != nil {
		return nil, fmt.Errorf("%w: %s", ErrInvalidURL, withoutURL(err))
	}
	if hasStrayAt(url) {
		return nil, fmt.Errorf("%w: an @ stands in the host, in the database name or in a parameter; in a user name or a password write %%40 for @ and %%2F for /", ErrInvalidURL)
	}
	if !strings.Contains(url, "default_query_exec_mode") {
		// Named prepared statements, the driver's default, break behind PgBouncer before 1.21.
		config.ConnConfig.DefaultQueryExecMode = pgx.QueryExecModeCacheDescribe
	}
	return pgxpool.NewWithConfig(ctx, config)
}

// withoutURL leaves the URL out of the driver's error. The driver masks the password, but
// where a URL is malformed enough it cannot know what is the password.
func withoutURL(err error) string {
	text := err.Error()
	if end := strings.LastIndex(text, "`: "); end >= 0 {
		text = text[end+len("`: "):]
	}
	// What it quotes is where it stopped reading, which may be within the password.
	if first, last := strings.Index(text, `"`), strings.LastIndex(text, `"`); first < last {
		text = text[:first] + "…" + text[last+1:]
	}
	return text
}

// hasStrayAt tells whether an @ follows the one behind the user and the password: part of
// the password would be taken for the host or for the database, and printed.
func hasStrayAt(url string) bool {
	_, rest, isURL := strings.Cut(url, "://")
	if end := strings.IndexAny(rest, "@/"); end >= 0 && rest[end] == '@' {
		user, password, _ := strings.Cut(rest[:end], ":")
		if strings.Contains(user, "?") || hasPasswordParameter(password) {
			return isURL // It belongs to a password among the parameters.
		}
		rest = rest[end+1:]
	}
	rest, _, _ = strings.Cut(rest, "?")
	return isURL && strings.Contains(rest, "@")
}

// hasPasswordParameter tells whether what the driver takes for a password is the end of the
// address, parameters and all: in postgres://host:5432?password=p@ss it reads up to the @.
func hasPasswordParameter(text string) bool {
	_, parameters, _ := strings.Cut(text, "?")
	for parameter := range strings.SplitSeq(parameters, "&") {
		key, _, _ := strings.Cut(parameter, "=")
		if name, err := url.QueryUnescape(key); err == nil && strings.HasSuffix(name, "password") {
			return true
		}
	}
	return false
}
