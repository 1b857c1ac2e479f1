package db

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/database"
	"github.com/pressly/goose/v3/lock"
)

//go:embed migrations/*.sql
var migrations embed.FS

const (
	// versionTable is ours alone, so that an application's own goose migrations and these
	// do not meet.
	versionTable = "holdfast.goose_version"

	// lockID is the advisory lock that migrators of any program version wait for: the first
	// eight bytes of the SHA-256 of "holdfast migrations" without the highest and lowest bit.
	lockID int64 = 8063884776885201994

	// lockWait is how long a migrator waits for another one.
	lockWait = 5 * time.Minute
)

// Migration is one step of the schema and whether a database has taken it.
type Migration struct {
	Version   int64
	Name      string
	Applied   bool
	AppliedAt time.Time // Zero unless Applied.
}

// Migrate brings the schema to this program's version and returns the migrations that it
// ran; none when it was there already. Two migrators at once are safe: the second waits. It
// needs a direct connection, or a pooler in session mode, because the lock is a session's.
func Migrate(ctx context.Context, config *pgx.ConnConfig) ([]Migration, error) {
	return withProvider(ctx, config, func(provider *goose.Provider, _ *sql.DB) ([]Migration, error) {
		results, err := provider.Up(ctx)
		return ranMigrations(results), err
	})
}

// MigrateDown takes the latest migration back, or with all every one of them: that deletes
// all jobs, and the schema with them. It returns the migrations that it took back.
func MigrateDown(ctx context.Context, config *pgx.ConnConfig, all bool) ([]Migration, error) {
	return withProvider(ctx, config, func(provider *goose.Provider, pool *sql.DB) ([]Migration, error) {
		if !all {
			result, err := provider.Down(ctx)
			if errors.Is(err, goose.ErrNoNextVersion) {
				return nil, nil
			}
			if err != nil {
				return nil, err
			}
			return ranMigrations([]*goose.MigrationResult{result}), nil
		}
		results, err := provider.DownTo(ctx, 0)
		if err != nil {
			return ranMigrations(results), err
		}
		// What is left is the table that counted versions, and the schema around it.
		_, err = pool.ExecContext(ctx, "DROP TABLE "+versionTable+"; DROP SCHEMA holdfast")
		return ranMigrations(results), err
	})
}

// MigrationStatus lists every migration and whether the database has taken it. It changes
// nothing.
func MigrationStatus(ctx context.Context, config *pgx.ConnConfig) ([]Migration, error) {
	pool := stdlib.OpenDB(*config)
	defer pool.Close()
	applied, err := appliedVersions(ctx, pool)
	if err != nil {
		return nil, fmt.Errorf("read the migrations' status: %w", err)
	}
	sources, err := Sources()
	if err != nil {
		return nil, err
	}
	for i, migration := range sources {
		sources[i].AppliedAt, sources[i].Applied = applied[migration.Version]
	}
	return sources, nil
}

// appliedVersions reads the version table without creating it.
func appliedVersions(ctx context.Context, pool *sql.DB) (map[int64]time.Time, error) {
	applied := map[int64]time.Time{}
	var exists bool
	if err := pool.QueryRowContext(ctx, "SELECT to_regclass($1) IS NOT NULL", versionTable).Scan(&exists); err != nil || !exists {
		return applied, err
	}
	rows, err := pool.QueryContext(ctx, "SELECT version_id, max(tstamp) FROM "+versionTable+" WHERE is_applied GROUP BY version_id ORDER BY version_id")
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var version int64
		var at time.Time
		if err := rows.Scan(&version, &at); err != nil {
			return nil, err
		}
		applied[version] = at
	}
	return applied, rows.Err()
}

// withProvider runs an action under the migrators' lock, in the schema that holds the
// version table.
func withProvider(ctx context.Context, config *pgx.ConnConfig, action func(*goose.Provider, *sql.DB) ([]Migration, error)) ([]Migration, error) {
	pool := stdlib.OpenDB(*config)
	defer pool.Close()
	files, err := fs.Sub(migrations, "migrations")
	if err != nil {
		return nil, fmt.Errorf("read the embedded migrations: %w", err)
	}
	locker, err := lock.NewPostgresSessionLocker(lock.WithLockID(lockID), lock.WithLockTimeout(1, uint64(lockWait.Seconds())))
	if err != nil {
		return nil, fmt.Errorf("prepare the migrators' lock: %w", err)
	}
	if err := createSchema(ctx, pool); err != nil {
		return nil, fmt.Errorf("create the schema: %w", err)
	}
	provider, err := goose.NewProvider(database.DialectPostgres, pool, files,
		goose.WithTableName(versionTable),
		goose.WithSessionLocker(locker),
		goose.WithDisableGlobalRegistry(true),
	)
	if err != nil {
		return nil, fmt.Errorf("load migrations: %w", err)
	}
	ran, err := action(provider, pool)
	if err != nil {
		return ran, fmt.Errorf("migrate: %w", err)
	}
	return ran, nil
}

// createSchema makes the schema that holds the version table. Two sessions that create it at
// once collide in the catalog in spite of IF NOT EXISTS, so it takes a lock for itself.
func createSchema(ctx context.Context, pool *sql.DB) error {
	tx, err := pool.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }()
	if _, err := tx.ExecContext(ctx, "SELECT pg_advisory_xact_lock($1)", lockID+1); err != nil {
		return err
	}
	if _, err := tx.ExecContext(ctx, "CREATE SCHEMA IF NOT EXISTS holdfast"); err != nil {
		return err
	}
	return tx.Commit()
}

func ranMigrations(results []*goose.MigrationResult) []Migration {
	ran := make([]Migration, len(results))
	for i, result := range results {
		ran[i] = Migration{Version: result.Source.Version, Name: sourceName(result.Source.Path)}
	}
	return ran
}
