package integration

import (
	"context"
	"database/sql"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"

	"github.com/holdfast-pg/holdfast/gen"
	"github.com/holdfast-pg/holdfast/integration/pgtest"
)

// The migrations that docs/schema-evolution.md shows are run one after the other, up and down,
// under the sessions of the programs that must bear them.
func TestEvolution_MigrationsOfTheDocumentBreakNoProgram(t *testing.T) {
	t.Parallel()
	database := pgtest.New(t)
	before := describe(t, database.Conn(t))
	files := shownMigrations(t)
	provider := shownProvider(t, database, files)
	older := programOf(t, lastFrozen(t), database)
	today := untraced(t, database)
	for range files {
		result, err := provider.UpByOne(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		wantNone(t, result.Source.Path, append(older.runEach(t), runToday(t, today)...))
	}
	if _, err := provider.DownTo(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	wantNone(t, "taken back", append(older.runEach(t), runToday(t, today)...))
	database.Exec(t, "DROP TABLE public.shown")
	// The value of an enum is what stays.
	after := strings.Replace(describe(t, database.Conn(t)), ",\n    'inspected'", "", 1)
	if line, want, got := firstDifference(before, after); line > 0 {
		t.Errorf("line %d of the schema: %s\nafter up and down: %s", line, want, got)
	}
}

// An index that was made beforehand, without stopping anybody, is the one that the migration
// would have made.
func TestEvolution_IndexesMadeBeforehandAreThoseOfTheMigration(t *testing.T) {
	t.Parallel()
	database := migratedTo(t, 9)
	conn := database.Conn(t)
	made := 0
	for _, block := range sqlBlocks(t, "../docs/schema-evolution.md") {
		if !strings.HasPrefix(block, "CREATE INDEX CONCURRENTLY IF NOT EXISTS") {
			continue
		}
		for statement := range strings.SplitSeq(strings.TrimSuffix(block, ";"), ";\n") {
			if _, err := conn.Exec(t.Context(), statement); err != nil {
				t.Fatalf("%s: %v", statement, err)
			}
			made++
		}
	}
	if made != 2 {
		t.Fatalf("%d indexes were made, want 2", made)
	}
	migrate(t, database)
	if line, want, got := firstDifference(describe(t, pgtest.New(t).Conn(t)), describe(t, conn)); line > 0 {
		t.Errorf("line %d of the schema: %s\nwith indexes made beforehand: %s", line, want, got)
	}
}

// A migration that cannot have its lock gives up, leaves nothing, and can be run again.
func TestEvolution_MigrationThatWaitsForALockGivesUp(t *testing.T) {
	t.Parallel()
	database := migratedTo(t, 9)
	holder, err := database.Conn(t).Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := holder.Exec(t.Context(), "LOCK TABLE holdfast.inbox IN ROW EXCLUSIVE MODE"); err != nil {
		t.Fatal(err)
	}
	hasty := func() *process {
		up := newProcess(t, database.DirectURL, "migrate", "up")
		up.command.Env = append(up.command.Env, "PGOPTIONS=-c lock_timeout=50ms")
		return up.start(t)
	}
	wantOutput(t, &hasty().ends(t, 1).stderr, "canceling statement due to lock timeout")
	if got := schemaVersion(t, database); got != 9 {
		t.Errorf("the schema stands at %d", got)
	}
	if err := holder.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	hasty().ends(t, 0)
}

// The newest program on the schema before its own says what to do, as the document shows it.
func TestEvolution_NewestProgramRefusesTheSchemaBefore(t *testing.T) {
	t.Parallel()
	newest := int(latestMigration(t))
	database := migratedTo(t, newest-1)
	shown := strings.NewReplacer("version 9 ", fmt.Sprintf("version %d ", newest-1), "version 10:", fmt.Sprintf("version %d:", newest)).
		Replace(read(t, "../docs/schema-evolution.md"))
	for _, args := range [][]string{{"work", "--exec", "true"}, {"health", "ready"}} {
		if said := runCLI(t, database, 1, args...).stderr.String(); !strings.Contains(shown, said) {
			t.Errorf("holdfast %s says, other than the document:\n%s", strings.Join(args, " "), said)
		}
	}
}

// shownMigrations are the blocks of the document that are migrations, by file name.
func shownMigrations(t *testing.T) fstest.MapFS {
	t.Helper()
	files := fstest.MapFS{}
	for _, block := range sqlBlocks(t, "../docs/schema-evolution.md") {
		if strings.HasPrefix(block, "-- +goose") {
			files[fmt.Sprintf("%05d_shown.sql", len(files)+1)] = &fstest.MapFile{Data: []byte(block)}
		}
	}
	if len(files) < 6 {
		t.Fatalf("only %d migrations were found", len(files))
	}
	return files
}

func shownProvider(t *testing.T, database *pgtest.Database, files fstest.MapFS) *goose.Provider {
	t.Helper()
	pool := stdlib.OpenDB(*database.Config())
	t.Cleanup(func() { _ = pool.Close() })
	provider, err := newProvider(pool, files)
	if err != nil {
		t.Fatal(err)
	}
	return provider
}

func newProvider(pool *sql.DB, files fstest.MapFS) (*goose.Provider, error) {
	return goose.NewProvider(goose.DialectPostgres, pool, files, goose.WithTableName("public.shown"), goose.WithDisableGlobalRegistry(true))
}

// untraced opens a connection whose queries do not count as tests of them: see everyQueryRan.
func untraced(t *testing.T, database *pgtest.Database) *pgx.Conn {
	t.Helper()
	config := database.Config()
	config.Tracer = nil
	conn, err := pgx.ConnectConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	return conn
}

// runToday runs each query of this program once, in a session that keeps what it has prepared.
func runToday(t *testing.T, conn *pgx.Conn) (failed []error) {
	t.Helper()
	queries := reflect.ValueOf(gen.New())
	for i := range queries.NumMethod() {
		if err := runOnce(t.Context(), conn, queries.Method(i)); err != nil {
			failed = append(failed, fmt.Errorf("%s: %w", queries.Type().Method(i).Name, err))
		}
	}
	return failed
}

func lastFrozen(t *testing.T) int {
	t.Helper()
	versions := frozenVersions(t)
	return versions[len(versions)-1]
}

// sqlBlocks are the blocks of SQL of a document.
func sqlBlocks(t *testing.T, document string) []string {
	t.Helper()
	var blocks []string
	for _, block := range fencedBlocks(read(t, document)) {
		if block.language == "sql" {
			blocks = append(blocks, block.text)
		}
	}
	return blocks
}
