package integration

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/holdfast-pg/holdfast/db"
	"github.com/holdfast-pg/holdfast/domain"
	"github.com/holdfast-pg/holdfast/integration/pgtest"
)

func TestMigrate_UpDownAndUpAgainLeaveTheSameSchema(t *testing.T) {
	t.Parallel()
	database := pgtest.Empty(t)
	latest := latestMigration(t)
	if ran := migrate(t, database); len(ran) != int(latest) {
		t.Fatalf("the first migration ran %d steps, want %d", len(ran), latest)
	}
	if ran := migrate(t, database); len(ran) != 0 {
		t.Errorf("a second migration ran %v, want nothing", ran)
	}
	schema := describe(t, database.Conn(t))

	for version := latest; version > 0; version-- {
		if got := schemaVersion(t, database); got != version {
			t.Errorf("meta.schema_version is %d with %d migrations", got, version)
		}
		if down := migrateDown(t, database, false); len(down) != 1 || down[0].Version != version {
			t.Fatalf("one step down from %d took back %v", version, down)
		}
	}
	if down := migrateDown(t, database, false); len(down) != 0 {
		t.Errorf("a step down from nothing took back %v", down)
	}
	if left := relations(t, database); !slices.Equal(left, []string{"goose_version"}) {
		t.Errorf("taking back one by one leaves %v", left)
	}

	migrate(t, database)
	if line, want, got := firstDifference(schema, describe(t, database.Conn(t))); line > 0 {
		t.Errorf("line %d of the schema: %s\nafter down and up: %s", line, want, got)
	}
	if down := migrateDown(t, database, true); len(down) != int(latest) {
		t.Errorf("taking back all took back %d of %d", len(down), latest)
	}
	if pgtest.Value[bool](t, database, "SELECT to_regnamespace('holdfast') IS NOT NULL") {
		t.Error("the schema is there after all migrations were taken back")
	}
	migrate(t, database)
	if line, want, got := firstDifference(schema, describe(t, database.Conn(t))); line > 0 {
		t.Errorf("line %d of the schema: %s\nafter all down and up: %s", line, want, got)
	}
}

func TestMigrate_EveryStepSetsItsVersion(t *testing.T) {
	t.Parallel()
	database := pgtest.Empty(t)
	script, err := db.SQL(false)
	if err != nil {
		t.Fatal(err)
	}
	sources, err := db.Sources()
	if err != nil {
		t.Fatal(err)
	}
	for i, source := range sources {
		_, rest, found := strings.Cut(script, "-- "+source.Name+"\n")
		if !found {
			t.Fatalf("the script has no step %s", source.Name)
		}
		if i+1 < len(sources) {
			rest, _, _ = strings.Cut(rest, "-- "+sources[i+1].Name+"\n")
		}
		runScript(t, database, rest)
		if got := schemaVersion(t, database); got != source.Version {
			t.Errorf("%s leaves meta.schema_version at %d", source.Name, got)
		}
		if got := pgtest.Value[int64](t, database, "SELECT oldest_binary FROM holdfast.meta"); got > source.Version {
			t.Errorf("%s leaves meta.oldest_binary at %d, which no program fits", source.Name, got)
		}
	}
	if latest := latestMigration(t); latest != domain.SchemaVersion {
		t.Errorf("the latest migration is %d and domain.SchemaVersion %d", latest, domain.SchemaVersion)
	}
}

func TestMigrate_ManyMigratorsAtOnceRunEachStepOnce(t *testing.T) {
	t.Parallel()
	database := pgtest.Empty(t)
	const migrators = 8
	var group sync.WaitGroup
	var ran [migrators][]db.Migration
	var failed [migrators]error
	for i := range migrators {
		group.Go(func() { ran[i], failed[i] = db.Migrate(t.Context(), database.Config()) })
	}
	group.Wait()
	if err := errors.Join(failed[:]...); err != nil {
		t.Fatal(err)
	}
	var versions []int64
	for _, migration := range slices.Concat(ran[:]...) {
		versions = append(versions, migration.Version)
	}
	slices.Sort(versions)
	if want := countTo(latestMigration(t)); !slices.Equal(versions, want) {
		t.Errorf("the migrators ran %v in all, want %v", versions, want)
	}
	recorded := pgtest.Values[int64](t, database, "SELECT version_id FROM holdfast.goose_version WHERE version_id > 0 ORDER BY id")
	if want := countTo(latestMigration(t)); !slices.Equal(recorded, want) {
		t.Errorf("the version table holds %v, want %v", recorded, want)
	}
}

func TestMigrate_StatusChangesNothing(t *testing.T) {
	t.Parallel()
	database := pgtest.Empty(t)
	for _, migration := range status(t, database) {
		if migration.Applied || !migration.AppliedAt.IsZero() {
			t.Errorf("on an empty database the status says %+v", migration)
		}
	}
	if pgtest.Value[bool](t, database, "SELECT to_regnamespace('holdfast') IS NOT NULL") {
		t.Error("asking for the status made the schema")
	}
	migrate(t, database)
	listed := status(t, database)
	if len(listed) != int(latestMigration(t)) {
		t.Errorf("the status lists %d migrations of %d", len(listed), latestMigration(t))
	}
	for _, migration := range listed {
		if !migration.Applied || migration.AppliedAt.IsZero() || !strings.HasPrefix(migration.Name, fmt.Sprintf("%05d_", migration.Version)) {
			t.Errorf("on a migrated database the status says %+v", migration)
		}
	}
}

func TestMigrate_PrintedScriptsDoTheSame(t *testing.T) {
	t.Parallel()
	want := describe(t, pgtest.New(t).Conn(t))
	database := pgtest.Empty(t)
	for _, down := range []bool{false, true, false} {
		script, err := db.SQL(down)
		if err != nil {
			t.Fatal(err)
		}
		runScript(t, database, script)
		if left := relations(t, database); down && len(left) > 0 {
			t.Errorf("the script down leaves %v", left)
		}
	}
	if line, want, got := firstDifference(want, describe(t, database.Conn(t))); line > 0 {
		t.Errorf("line %d of the schema: %s\nmade by the script: %s", line, want, got)
	}
}

func TestMigrate_ProgramAndSchemaThatDoNotFitAreRefused(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name           string
		schema, oldest int
		command        string // That the refusal names; "" when there is none.
	}{
		{"older", domain.SchemaVersion - 1, 1, "holdfast migrate up"},
		{"equal", domain.SchemaVersion, domain.SchemaVersion, ""},
		{"newer and compatible", domain.SchemaVersion + 1, domain.SchemaVersion, ""},
		{"newer and incompatible", domain.SchemaVersion + 2, domain.SchemaVersion + 1, "holdfast migrate down"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			database := pgtest.New(t)
			database.Exec(t, "UPDATE holdfast.meta SET schema_version = $1, oldest_binary = $2", test.schema, test.oldest)
			_, err := domain.ReadMeta(t.Context(), database.Pool)
			if test.command == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			var refused *domain.SchemaError
			if !errors.As(err, &refused) || refused.Schema != test.schema || refused.Binary != domain.SchemaVersion {
				t.Fatalf("ReadMeta says %v", err)
			}
			if !strings.Contains(err.Error(), test.command) {
				t.Errorf("%q does not name %q", err, test.command)
			}
		})
	}
}

func TestMigrate_UnmigratedDatabaseIsRefused(t *testing.T) {
	t.Parallel()
	for _, left := range []string{"nothing", "the empty schema"} {
		t.Run(left, func(t *testing.T) {
			t.Parallel()
			database := pgtest.Empty(t)
			if left == "the empty schema" {
				database.Exec(t, "CREATE SCHEMA holdfast")
			}
			_, err := domain.ReadMeta(t.Context(), database.Pool)
			if !errors.Is(err, domain.ErrNotMigrated) || !strings.Contains(err.Error(), "holdfast migrate up") {
				t.Errorf("ReadMeta says %v", err)
			}
		})
	}
}

func migrate(t *testing.T, database *pgtest.Database) []db.Migration {
	t.Helper()
	ran, err := db.Migrate(t.Context(), database.Config())
	if err != nil {
		t.Fatal(err)
	}
	return ran
}

func migrateDown(t *testing.T, database *pgtest.Database, all bool) []db.Migration {
	t.Helper()
	ran, err := db.MigrateDown(t.Context(), database.Config(), all)
	if err != nil {
		t.Fatal(err)
	}
	return ran
}

func status(t *testing.T, database *pgtest.Database) []db.Migration {
	t.Helper()
	listed, err := db.MigrationStatus(t.Context(), database.Config())
	if err != nil {
		t.Fatal(err)
	}
	return listed
}

func latestMigration(t *testing.T) int64 {
	t.Helper()
	sources, err := db.Sources()
	if err != nil {
		t.Fatal(err)
	}
	return sources[len(sources)-1].Version
}

func schemaVersion(t *testing.T, database *pgtest.Database) int64 {
	t.Helper()
	return pgtest.Value[int64](t, database, "SELECT schema_version FROM holdfast.meta")
}

// relations are what the schema holds: tables, views, sequences without an owner, types and
// functions.
func relations(t *testing.T, database *pgtest.Database) []string {
	t.Helper()
	return pgtest.Values[string](t, database, `
		SELECT relname::text FROM pg_class
		WHERE relnamespace = to_regnamespace('holdfast') AND relkind IN ('r', 'p', 'v')
		UNION ALL
		SELECT typname::text FROM pg_type
		WHERE typnamespace = to_regnamespace('holdfast') AND typtype IN ('e', 'd')
		UNION ALL
		SELECT proname::text FROM pg_proc
		WHERE pronamespace = to_regnamespace('holdfast')
		UNION ALL
		SELECT sequencename::text FROM pg_sequences
		WHERE schemaname = 'holdfast' AND sequencename NOT LIKE 'goose%'`)
}

func countTo(n int64) []int64 {
	numbers := make([]int64, n)
	for i := range numbers {
		numbers[i] = int64(i) + 1
	}
	return numbers
}
