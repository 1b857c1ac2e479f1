package integration

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-pg/holdfast/integration/pgtest"
)

// meta.oldest_binary says which programs may run on the newest schema. That is a promise, so the
// statements of each of them are kept, and run.
func TestEvolution_StatementsAreFrozenOfEveryProgramThatMayRun(t *testing.T) {
	t.Parallel()
	database := pgtest.New(t)
	oldest := pgtest.Value[int](t, database, "SELECT oldest_binary FROM holdfast.meta")
	newest := int(latestMigration(t))
	var needed []int
	for version := oldest; version < newest; version++ {
		needed = append(needed, version)
	}
	if kept := frozenVersions(t); !slices.Equal(kept, needed) {
		t.Errorf("testdata/statements has the versions %v, and programs of %v may run on schema %d: run `make freeze`", kept, needed, newest)
	}
	if oldest >= newest {
		t.Errorf("no earlier program may run on schema %d: a deploy would need all workers to stop at once", newest)
	}
}

// A program that runs while its schema is migrated keeps its sessions, with statements prepared
// on the old one: the server answers "cached plan must not change result type" if a migration
// changes what they return. One that connects afterwards prepares them anew.
func TestEvolution_OlderProgramsRunOnWhileTheSchemaIsMigrated(t *testing.T) {
	t.Parallel()
	for _, version := range frozenVersions(t) {
		t.Run(fmt.Sprintf("version %d", version), func(t *testing.T) {
			t.Parallel()
			database := migratedTo(t, version)
			running := programOf(t, version, database)
			wantNone(t, "before the migration", running.runEach(t))
			migrate(t, database)
			wantNone(t, "in a session from before the migration", running.runEach(t))
			wantNone(t, "in a session from after it", programOf(t, version, database).runEach(t))
		})
	}
}

// What would break a running program is found: the check of this file bites.
func TestEvolution_ChangeThatBreaksAProgramIsFound(t *testing.T) {
	t.Parallel()
	for change, complaint := range map[string]string{
		"ALTER TABLE holdfast.inbox RENAME COLUMN last_error TO error":                          "last_error",
		"ALTER TABLE holdfast.inbox ADD COLUMN region text NOT NULL":                            `null value in column "region"`,
		"ALTER TABLE holdfast.inbox ADD CHECK (max_attempts > 100)":                             "violates check constraint",
		"ALTER TABLE holdfast.idempotency_keys DROP CONSTRAINT idempotency_keys_pkey":           "no unique or exclusion constraint",
		"ALTER TABLE holdfast.events ALTER COLUMN attempt TYPE text":                            "cannot read column attempt as Attempt *int32",
		"ALTER SEQUENCE holdfast.generation_seq RENAME TO generations":                          "generation_seq",
		"ALTER TYPE holdfast.retention_mode RENAME VALUE 'keep' TO 'hold'":                      "invalid input value for enum",
		"DROP FUNCTION holdfast.create_archive_days(integer)":                                   "create_archive_days",
		"ALTER TABLE holdfast.workers ALTER COLUMN started_at TYPE text USING 'in the morning'": "cached plan must not change result type",
	} {
		t.Run(change, func(t *testing.T) {
			t.Parallel()
			database := pgtest.New(t)
			old := programOf(t, lastFrozen(t), database)
			wantNone(t, "before the change", old.runEach(t))
			database.Exec(t, change)
			failed := append(old.runEach(t), programOf(t, old.Schema, database).runEach(t)...)
			if !slices.ContainsFunc(failed, func(err error) bool { return strings.Contains(err.Error(), complaint) }) {
				t.Errorf("nothing says %q: %v", complaint, failed)
			}
		})
	}
}

// migratedTo returns a database whose schema is that of an earlier version.
func migratedTo(t *testing.T, version int) *pgtest.Database {
	t.Helper()
	database := pgtest.New(t)
	for schemaVersion(t, database) > int64(version) {
		migrateDown(t, database, false)
	}
	return database
}

func wantNone(t *testing.T, when string, failed []error) {
	t.Helper()
	for _, err := range failed {
		t.Errorf("%s: %v", when, err)
	}
}
