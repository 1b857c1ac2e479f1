package integration

import (
	"errors"
	"flag"
	"io/fs"
	"os"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/holdfast-pg/holdfast/db"
	"github.com/holdfast-pg/holdfast/integration/pgtest"
)

var update = flag.Bool("update", false, "write db/schema.sql anew")

const schemaFile = "../db/schema.sql"

func TestSchema_FileIsCurrent(t *testing.T) {
	t.Parallel()
	actual := describe(t, pgtest.New(t).Conn(t))
	if *update {
		if err := os.WriteFile(schemaFile, []byte(actual), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	committed, err := os.ReadFile(schemaFile)
	if errors.Is(err, fs.ErrNotExist) {
		t.Fatal("db/schema.sql is missing: run `make generate`")
	}
	if err != nil {
		t.Fatal(err)
	}
	if line, want, got := firstDifference(string(committed), actual); line > 0 {
		t.Fatalf("db/schema.sql is not what the migrations leave: run `make generate`\nline %d of the file: %s\n       the database: %s", line, want, got)
	}
}

// The description leaves nothing out that it would need to make the same schema again.
func TestSchema_FileRunsAsAScript(t *testing.T) {
	t.Parallel()
	script, err := os.ReadFile(schemaFile)
	if err != nil {
		t.Fatal(err)
	}
	database := pgtest.Empty(t)
	runScript(t, database, string(script))
	if line, want, got := firstDifference(string(script), describe(t, database.Conn(t))); line > 0 {
		t.Fatalf("line %d of the file: %s\nmade by the file: %s", line, want, got)
	}
}

func TestSchema_DescriptionDoesNotDependOnTheSession(t *testing.T) {
	t.Parallel()
	database := pgtest.New(t)
	want := describe(t, database.Conn(t))
	session := database.Conn(t)
	for _, setting := range []string{
		"search_path = holdfast, public",
		"IntervalStyle = iso_8601",
		"DateStyle = 'SQL, DMY'",
		"TimeZone = 'Pacific/Kiritimati'",
		"quote_all_identifiers = on",
		"default_transaction_isolation = 'read committed'",
	} {
		if _, err := session.Exec(t.Context(), "SET "+setting); err != nil {
			t.Fatal(err)
		}
	}
	if line, want, got := firstDifference(want, describe(t, session)); line > 0 {
		t.Fatalf("line %d: %s\nwith other settings: %s", line, want, got)
	}
}

// What somebody may do to a database by hand is seen, so that `holdfast doctor` can tell.
func TestSchema_DescriptionShowsEveryChange(t *testing.T) {
	t.Parallel()
	for _, change := range []string{
		"ALTER TABLE holdfast.inbox ADD COLUMN extra text",
		"ALTER TABLE holdfast.fences ALTER COLUMN resource TYPE text COLLATE pg_catalog.\"default\"",
		"ALTER TABLE holdfast.inbox ALTER COLUMN payload DROP NOT NULL",
		"ALTER TABLE holdfast.inbox ALTER COLUMN max_attempts SET DEFAULT 6",
		"ALTER TABLE holdfast.inbox DROP CONSTRAINT inbox_payload_size",
		"ALTER TABLE holdfast.inbox SET (fillfactor = 100)",
		"ALTER TABLE holdfast.inbox SET UNLOGGED",
		"ALTER TABLE holdfast.inbox ADD FOREIGN KEY (claimed_by) REFERENCES holdfast.workers (id)",
		"DROP INDEX holdfast.inbox_claim_idx",
		"CREATE INDEX ON holdfast.inbox (lease_expires_at)",
		"UPDATE pg_index SET indisvalid = false WHERE indexrelid = 'holdfast.inbox_claim_idx'::regclass",
		"CREATE TRIGGER t BEFORE UPDATE ON holdfast.inbox FOR EACH ROW EXECUTE FUNCTION suppress_redundant_updates_trigger()",
		"ALTER SEQUENCE holdfast.generation_seq CACHE 100",
		"ALTER TYPE holdfast.inbox_status ADD VALUE 'lost'",
		"DROP VIEW holdfast.jobs",
		"ALTER FUNCTION holdfast.backoff(integer) IMMUTABLE",
		"ALTER FUNCTION holdfast.create_archive_days(integer) RESET lock_timeout",
		"GRANT EXECUTE ON FUNCTION holdfast.drop_archive_days() TO PUBLIC",
		"REVOKE EXECUTE ON FUNCTION holdfast.backoff(integer) FROM PUBLIC",
		"DROP TABLE holdfast.inbox_archive_default",
		"COMMENT ON COLUMN holdfast.inbox.id IS NULL",
	} {
		t.Run(change, func(t *testing.T) {
			t.Parallel()
			database := pgtest.New(t)
			before := describe(t, database.Conn(t))
			database.Exec(t, change)
			if describe(t, database.Conn(t)) == before {
				t.Error("the description is the same after the change")
			}
		})
	}
}

func TestSchema_EverythingHasAComment(t *testing.T) {
	t.Parallel()
	silent := pgtest.Values[string](t, pgtest.New(t), `
		WITH ours AS (
			SELECT oid, relname, relkind, relispartition
			FROM pg_class
			WHERE relnamespace = 'holdfast'::regnamespace
				AND relname !~ '^(goose_version|inbox_archive_[0-9]{8})'
		)
		SELECT 'schema ' || nspname FROM pg_namespace
		WHERE nspname = 'holdfast' AND obj_description(oid, 'pg_namespace') IS NULL
		UNION ALL
		SELECT 'table, view or sequence ' || relname FROM ours
		WHERE relkind IN ('r', 'p', 'v', 'm', 'S') AND obj_description(oid, 'pg_class') IS NULL
		UNION ALL
		SELECT 'index ' || relname FROM ours
		WHERE relkind IN ('i', 'I') AND NOT relispartition AND obj_description(oid, 'pg_class') IS NULL
			AND NOT EXISTS (SELECT FROM pg_constraint WHERE conindid = ours.oid)
		UNION ALL
		SELECT 'column ' || relname || '.' || attname FROM ours JOIN pg_attribute ON attrelid = oid
		WHERE relkind IN ('r', 'p', 'v', 'm') AND NOT relispartition AND attnum > 0 AND NOT attisdropped
			AND col_description(oid, attnum) IS NULL
		UNION ALL
		SELECT 'type ' || typname FROM pg_type
		WHERE typnamespace = 'holdfast'::regnamespace AND typtype IN ('e', 'd') AND obj_description(oid, 'pg_type') IS NULL
		UNION ALL
		SELECT 'function ' || oid::regprocedure FROM pg_proc
		WHERE pronamespace = 'holdfast'::regnamespace AND obj_description(oid, 'pg_proc') IS NULL
		ORDER BY 1`)
	for _, object := range silent {
		t.Errorf("%s has no comment", object)
	}
}

// A foreign key or a trigger would run once for each row of a set.
func TestSchema_HasNoForeignKeyTriggerOrRule(t *testing.T) {
	t.Parallel()
	found := pgtest.Values[string](t, pgtest.New(t), `
		SELECT 'foreign key ' || conname FROM pg_constraint
		WHERE connamespace = 'holdfast'::regnamespace AND contype = 'f'
		UNION ALL
		SELECT 'trigger ' || tgname FROM pg_trigger JOIN pg_class ON pg_class.oid = tgrelid
		WHERE relnamespace = 'holdfast'::regnamespace
		UNION ALL
		SELECT 'rule ' || rulename FROM pg_rewrite JOIN pg_class ON pg_class.oid = ev_class
		WHERE relnamespace = 'holdfast'::regnamespace AND relkind <> 'v'`)
	for _, object := range found {
		t.Errorf("there is a %s", object)
	}
}

// An index that named lease_expires_at, also in its condition, would make every renewal
// write to all indexes of the table.
func TestSchema_NoIndexNamesTheDeadline(t *testing.T) {
	t.Parallel()
	found := pgtest.Values[string](t, pgtest.New(t), `
		SELECT pg_get_indexdef(indexrelid) FROM pg_index
		WHERE indrelid = 'holdfast.inbox'::regclass AND pg_get_indexdef(indexrelid) LIKE '%lease_expires_at%'`)
	for _, definition := range found {
		t.Error(definition)
	}
}

func describe(t *testing.T, conn *pgx.Conn) string {
	t.Helper()
	text, err := db.Describe(t.Context(), conn)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// runScript runs several statements at once, as psql does with a file.
func runScript(t *testing.T, database *pgtest.Database, script string) {
	t.Helper()
	if _, err := database.Conn(t).PgConn().Exec(t.Context(), script).ReadAll(); err != nil {
		t.Fatal(err)
	}
}

// firstDifference returns the number of the first line in which two texts differ, from 1,
// with both; 0 when the texts are equal.
func firstDifference(want, got string) (line int, wantLine, gotLine string) {
	if want == got {
		return 0, "", ""
	}
	wants, gots := strings.Split(want, "\n"), strings.Split(got, "\n")
	for i := range min(len(wants), len(gots)) {
		if wants[i] != gots[i] {
			return i + 1, wants[i], gots[i]
		}
	}
	shorter := min(len(wants), len(gots))
	return shorter + 1, strings.Join(wants[shorter:], "\n"), strings.Join(gots[shorter:], "\n")
}
