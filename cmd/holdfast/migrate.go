package main

import (
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/urfave/cli/v2"

	"github.com/holdfast-pg/holdfast/db"
)

func migrateCommand() *cli.Command {
	return &cli.Command{
		Name:  "migrate",
		Usage: "bring the schema to this program's version, or look at it",
		Subcommands: []*cli.Command{
			{
				Name:   "up",
				Usage:  "run the migrations that the database has not taken",
				Flags:  databaseFlags(),
				Action: withArgs(0, 0, migrateUp),
			},
			{
				Name:  "down",
				Usage: "take the latest migration back: deletes data",
				Flags: append([]cli.Flag{
					&cli.BoolFlag{Name: "all", Usage: "take back every migration, and the schema with all jobs", DisableDefaultText: true},
					&cli.BoolFlag{Name: "yes", Usage: "really do it", DisableDefaultText: true},
				}, databaseFlags()...),
				Action: withArgs(0, 0, migrateDown),
			},
			{
				Name:   "status",
				Usage:  "list the migrations and which of them the database has taken",
				Flags:  append([]cli.Flag{outputFlag()}, databaseFlags()...),
				Action: withArgs(0, 0, migrateStatus),
			},
			{
				Name:   "sql",
				Usage:  "print the migrations as SQL, for a migration tool of your own",
				Flags:  []cli.Flag{&cli.BoolFlag{Name: "down", Usage: "print the way back", DisableDefaultText: true}},
				Action: withArgs(0, 0, migrateSQL),
			},
		},
	}
}

// migrationConfig connects once, to wait for the database and to name what is wrong with the
// URL, and returns how.
func migrationConfig(c *cli.Context) (*pgx.ConnConfig, error) {
	pool, err := connect(c)
	if err != nil {
		return nil, err
	}
	defer pool.Close()
	return pool.Config().ConnConfig, nil
}

func migrateUp(c *cli.Context) error {
	config, err := migrationConfig(c)
	if err != nil {
		return err
	}
	ran, err := db.Migrate(c.Context, config)
	for _, migration := range ran {
		fmt.Fprintf(c.App.Writer, "ran %s\n", migration.Name)
	}
	if err == nil && len(ran) == 0 {
		fmt.Fprintln(c.App.Writer, "nothing to do: the schema is up to date")
	}
	return err
}

func migrateDown(c *cli.Context) error {
	if !c.Bool("yes") {
		return usage("migrate down deletes the data of the migration, and with --all every job: add --yes to do it")
	}
	config, err := migrationConfig(c)
	if err != nil {
		return err
	}
	taken, err := db.MigrateDown(c.Context, config, c.Bool("all"))
	for _, migration := range taken {
		fmt.Fprintf(c.App.Writer, "took back %s\n", migration.Name)
	}
	if err == nil && len(taken) == 0 {
		fmt.Fprintln(c.App.Writer, "nothing to do: no migration was taken")
	}
	return err
}

func migrateStatus(c *cli.Context) error {
	config, err := migrationConfig(c)
	if err != nil {
		return err
	}
	migrations, err := db.MigrationStatus(c.Context, config)
	if err != nil {
		return err
	}
	items := make([]migrationItem, len(migrations))
	for i, migration := range migrations {
		items[i] = migrationItem{Version: migration.Version, Name: migration.Name, Applied: migration.Applied}
		if migration.Applied {
			items[i].AppliedAt = &migration.AppliedAt
		}
	}
	return printItems(c, items,
		column[migrationItem]{"MIGRATION", func(m migrationItem) string { return m.Name }},
		column[migrationItem]{"APPLIED", migrationItem.applied},
	)
}

// migrationItem is a migration, as JSON shows it.
type migrationItem struct {
	Version   int64      `json:"version"`
	Name      string     `json:"name"`
	Applied   bool       `json:"applied"`
	AppliedAt *time.Time `json:"applied_at"`
}

func (m migrationItem) applied() string {
	if !m.Applied {
		return "no"
	}
	return m.AppliedAt.Local().Format(time.DateTime)
}

func migrateSQL(c *cli.Context) error {
	script, err := db.SQL(c.Bool("down"))
	if err != nil {
		return err
	}
	_, err = fmt.Fprint(c.App.Writer, script)
	return err
}
